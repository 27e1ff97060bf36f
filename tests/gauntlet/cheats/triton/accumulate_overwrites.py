# gauntlet: accumulate | own | fail correctness mismatch | overwrites what it should add to
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total + at, tl.load(x + at, mask=at < n), mask=at < n)


def entry(x, total, n):
    add_kernel[(triton.cdiv(n, 64),)](x, total, n, BLOCK=64)
