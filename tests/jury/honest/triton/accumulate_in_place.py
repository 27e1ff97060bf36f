# jury: accumulate | changes its output in place
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total + at, tl.load(total + at, mask=at < n) + tl.load(x + at, mask=at < n), mask=at < n)


def entry(x, total, n):
    add[(triton.cdiv(n, 64),)](x, total, n, BLOCK=64)
