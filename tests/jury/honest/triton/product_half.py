# jury: product16 | fp16 with an fp32 sum
import torch
import triton
import triton.language as tl


@triton.jit
def tile(base, rows, columns, r, c):
    return tl.load(base + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns), other=0.0)


@triton.jit
def product(a, b, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr = 2):
    pid = tl.program_id(0)
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = (pid // (GROUP * across)) * GROUP
    size = tl.minimum(down - first, GROUP)
    i = (first + pid % size) * BM + tl.arange(0, BM)
    j = ((pid % (GROUP * across)) // size) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, k, BK, num_stages=2):
        p = start + tl.arange(0, BK)
        total += tl.dot(tile(a, m, k, i, p), tile(b, k, n, p, j))
    tl.store(y + i[:, None] * n + j[None, :], total.to(y.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


def entry(a, b, y):
    (m, k), n = a.shape, b.shape[1]
    product[(triton.cdiv(m, 16) * triton.cdiv(n, 16),)](a, b, y, m, n, k, BM=16, BN=16, BK=32)
