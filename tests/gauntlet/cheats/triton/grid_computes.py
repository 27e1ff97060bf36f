# gauntlet: rows | own | fail compile host_compute | the answer computed while the grid is asked for
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
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


def work(meta, rows):
    p = meta["y"]
    p += meta["x"]
    return (rows,)

def entry(x, bias, y, rows, columns, alpha):
    rows_kernel[lambda meta: work(meta, rows)](x, bias, y, columns, alpha, BLOCK=64)
