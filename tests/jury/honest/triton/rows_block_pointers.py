# jury: rows | block pointers
import torch
import triton
import triton.language as tl


@triton.jit
def blocks(x, bias, y, rows, columns, alpha, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (i, j), (BM, BN), (1, 0))
    target = tl.make_block_ptr(y, (rows, columns), (columns, 1), (i, j), (BM, BN), (1, 0))
    offset = tl.make_block_ptr(bias, (columns,), (1,), (j,), (BN,), (0,))
    shift = tl.load(offset, boundary_check=(0,))
    tl.store(target, tl.load(source, boundary_check=(0, 1)) * alpha + shift[None, :], boundary_check=(0, 1))


def entry(x, bias, y, rows, columns, alpha):
    blocks[(triton.cdiv(rows, 4), triton.cdiv(columns, 32))](x, bias, y, rows, columns, alpha, BM=4, BN=32)
