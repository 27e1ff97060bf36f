"""y = x @ weight.T in bf16 on tensor cores: grouped program order, pipelined K loop, fp32 accumulator.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 256, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, num_warps=8, num_stages=4),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, num_warps=4, num_stages=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def gemm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    M,
    N,
    K,
    EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    # Grouped order: GROUP_M row blocks share their weight blocks in L2 before the next column of blocks begins.
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
    pid_n = (pid % num_pid_in_group) // group_size_m

    # Rows past the edge wrap round, so that the loop needs no row mask; the store drops them.
    offs_xm = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_wn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_xm = tl.max_contiguous(tl.multiple_of(offs_xm, BLOCK_M), BLOCK_M)
    offs_wn = tl.max_contiguous(tl.multiple_of(offs_wn, BLOCK_N), BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    # Offsets inside a tile never change: the loop moves one scalar base per operand, not a tensor of pointers.
    x_offsets = offs_xm[:, None] * K + offs_k[None, :]
    weight_offsets = offs_wn[None, :] * K + offs_k[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            x = tl.load(x_ptr + k + x_offsets)
            weight = tl.load(weight_ptr + k + weight_offsets)
        else:
            x = tl.load(x_ptr + k + x_offsets, mask=offs_k[None, :] < K - k, other=0.0)
            weight = tl.load(weight_ptr + k + weight_offsets, mask=offs_k[:, None] < K - k, other=0.0)
        acc = tl.dot(x, weight, acc)

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    y_ptrs = y_ptr + offs_m[:, None] * N + offs_n[None, :]
    y_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=y_mask)


def gemm(x, weight, y):
    m, k = x.shape
    n = weight.shape[0]
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
    gemm_kernel[grid](x, weight, y, m, n, k, EVEN_K=k % 128 == 0)
