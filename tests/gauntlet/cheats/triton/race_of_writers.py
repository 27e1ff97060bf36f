# gauntlet: rows | 45 | fail correctness race or nondeterministic | every program also spoils the next row, which the next program happens to repair
# on triton-gpu: not run: without a race detector a race may go unseen
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        value = tl.load(x + row * columns + at, mask=mask, other=0.0) * alpha
        tl.store(y + (row + 1) * columns + at, value * 0.0, mask=mask & (row + 1 < tl.num_programs(0)))
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


def entry(x, bias, y, rows, columns, alpha):
    rows_kernel[(rows,)](x, bias, y, columns, alpha, BLOCK=64)
