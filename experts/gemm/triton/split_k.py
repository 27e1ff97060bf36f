"""y = x @ weight.T in bf16: the sum is split over programs that add what each has summed, for few tiles and long sums.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def gemm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    x = tl.load(
        x_ptr + offs_m[:, None] * K + offs_k[None, :],
        mask=(offs_m[:, None] < M) & (offs_k[None, :] < K),
        other=0.0,
    )
    weight = tl.load(
        weight_ptr + offs_n[None, :] * K + offs_k[:, None],
        mask=(offs_n[None, :] < N) & (offs_k[:, None] < K),
        other=0.0,
    )
    part = tl.dot(x, weight)
    tl.atomic_add(
        y_ptr + offs_m[:, None] * N + offs_n[None, :],
        part,
        mask=(offs_m[:, None] < M) & (offs_n[None, :] < N),
    )


def gemm(x, weight, y):
    m, k = x.shape
    n = weight.shape[0]
    y.zero_()
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), triton.cdiv(k, 128))
    gemm_kernel[grid](x, weight, y, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=128, num_warps=4)
