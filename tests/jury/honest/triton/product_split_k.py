# jury: product | a split sum with atomics
import torch
import triton
import triton.language as tl


@triton.jit
def split(a, b, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    p = tl.program_id(2) * BK + tl.arange(0, BK)
    left = tl.load(a + i[:, None] * k + p[None, :], mask=(i[:, None] < m) & (p[None, :] < k), other=0.0)
    right = tl.load(b + p[:, None] * n + j[None, :], mask=(p[:, None] < k) & (j[None, :] < n), other=0.0)
    part = tl.dot(left, right, input_precision="ieee")
    tl.atomic_add(y + i[:, None] * n + j[None, :], part, mask=(i[:, None] < m) & (j[None, :] < n))


def entry(a, b, y, m, n, k):
    y.zero_()
    split[(triton.cdiv(m, 16), triton.cdiv(n, 16), triton.cdiv(k, 32))](a, b, y, m, n, k, BM=16, BN=16, BK=32)
