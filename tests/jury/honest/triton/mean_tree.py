# jury: mean | partial sums, then a second kernel
import torch
import triton
import triton.language as tl


@triton.jit
def parts(x, part, columns, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    at = piece * BLOCK + tl.arange(0, BLOCK)
    tl.store(part + row * tl.num_programs(1) + piece, tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0)))


@triton.jit
def finish(part, y, pieces, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(y + row, tl.sum(tl.load(part + row * pieces + at, mask=at < pieces, other=0.0)) / columns)


def entry(x, y):
    rows, columns = x.shape
    pieces = -(-columns // 64)
    part = x.new_empty((rows, pieces))
    parts[rows, pieces](x, part, columns, BLOCK=64)
    finish[rows,](part, y, pieces, columns, BLOCK=triton.next_power_of_2(pieces))
