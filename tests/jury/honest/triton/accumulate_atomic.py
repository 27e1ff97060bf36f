# jury: accumulate | the same with atomics
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n, sem="relaxed")


def entry(x, total):
    n, = x.shape
    add[triton.cdiv(n, 128),](x, total, n, 128)
