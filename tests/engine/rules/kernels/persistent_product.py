"""Tiles of a product, taken one after the other by few programs, with warps of different tasks."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * across
    for tile in tl.range(pid, tiles, tl.num_programs(0), warp_specialize=True):
        i = tile // across * BM + tl.arange(0, BM)
        j = tile % across * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            p = start + tl.arange(0, BK)
            left = tl.load(
                a + i[:, None] * k + p[None, :], mask=(i[:, None] < m) & (p[None, :] < k), other=0.0
            )
            right = tl.load(
                b + p[:, None] * n + j[None, :], mask=(p[:, None] < k) & (j[None, :] < n), other=0.0
            )
            total = tl.dot(left, right, total, input_precision="ieee")
        tl.store(y + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


def entry(a, b, y, m, n, k):
    product[(4,)](a, b, y, m, n, k, BM=16, BN=16, BK=32)
