# jury: product16 | tensor descriptors made on the device, where strides allow them
import torch
import triton
import triton.language as tl


@triton.jit
def described(a, b, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, (m, k), (k, 1), (BM, BK))
    right = tl.make_tensor_descriptor(b, (k, n), (n, 1), (BK, BN))
    out = tl.make_tensor_descriptor(y, (m, n), (n, 1), (BM, BN))
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for p in range(0, k, BK):
        total = tl.dot(left.load([i, p]), right.load([p, j]), total)
    out.store([i, j], total.to(tl.float16))


@triton.jit
def plain(a, b, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        p = start + tl.arange(0, BK)
        left = tl.load(a + i[:, None] * k + p[None, :], mask=(i[:, None] < m) & (p[None, :] < k), other=0.0)
        right = tl.load(b + p[:, None] * n + j[None, :], mask=(p[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(y + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


def entry(a, b, y, m, n, k):
    def scratch(size: int, alignment: int, stream):
        return torch.empty(size, device="cuda", dtype=torch.int8)

    triton.set_allocator(scratch)
    kernel = described if n % 8 == 0 and k % 8 == 0 else plain
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](a, b, y, m, n, k, BM=16, BN=16, BK=16)
