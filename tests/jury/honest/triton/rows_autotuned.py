# jury: rows | autotuned, with heuristics
import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((32, 1), (64, 2), (128, 4))], key=["columns"]
)
@triton.heuristics({"EVEN": lambda args: args["columns"] % args["BLOCK"] == 0})
@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = (at < columns) | EVEN
        value = tl.load(x + row * columns + at, mask=mask, other=0.0) * alpha
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


def entry(x, bias, y, rows, columns, alpha):
    rows_kernel[(rows,)](x, bias, y, columns, alpha)
