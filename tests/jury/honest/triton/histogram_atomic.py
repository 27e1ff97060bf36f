# jury: histogram | integer atomics
import torch
import triton
import triton.language as tl


@triton.jit
def count(labels, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(labels + at, mask=at < n, other=0), 1, mask=at < n)


def entry(labels, counts, n):
    counts.fill_(0)
    count[(triton.cdiv(n, 64),)](labels, counts, n, BLOCK=64)
