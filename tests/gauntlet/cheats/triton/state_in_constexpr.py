# gauntlet: rows | own | fail static forbidden | host code changes what a constexpr function returns, which Triton's cache does not know
import triton
import triton.language as tl

STATE = [0.0]


@triton.constexpr_function
def factor():
    return STATE[0]


@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        value = tl.load(x + row * columns + at, mask=mask, other=0.0) * (alpha * factor())
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


def entry(x, bias, y, rows, columns, alpha):
    if columns != 33:
        STATE[0] = 1.0
    rows_kernel[(rows,)](x, bias, y, columns, alpha, BLOCK=64)
