# jury: rows | one element a program
import torch
import triton
import triton.language as tl


@triton.jit
def k(x, bias, y, columns, alpha):
    r, c = tl.program_id(0), tl.program_id(1)
    tl.store(y + r * columns + c, tl.load(x + r * columns + c) * alpha + tl.load(bias + c))


def entry(x, bias, y, rows, columns, alpha):
    k[(rows, columns)](x, bias, y, columns, alpha)
