# jury: mean | programs that write the same number twice
import torch
import triton
import triton.language as tl


@triton.jit
def mean(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) // 2
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0))
    tl.store(y + row, total / columns)


def entry(x, y, rows, columns):
    mean[(2 * rows,)](x, y, columns, BLOCK=64)
