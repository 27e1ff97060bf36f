"""y = x @ weight.T in bf16: persistent programs that copy tiles by TMA, so that the next tile's loads run while one is stored.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def gemm_kernel(
    x_desc,
    weight_desc,
    y_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=True):
        # Grouped order: GROUP_M row blocks share their weight blocks in L2 before the next column of blocks begins.
        group_id = tile // num_pid_in_group
        first_pid_m = group_id * GROUP_M
        group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
        pid_m = first_pid_m + (tile % num_pid_in_group) % group_size_m
        pid_n = (tile % num_pid_in_group) // group_size_m

        # What lies beyond an edge arrives as zeros, and is not stored.
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            x = x_desc.load([pid_m * BLOCK_M, k])
            weight = weight_desc.load([pid_n * BLOCK_N, k])
            acc = tl.dot(x, weight.T, acc)

        # In two halves: the room in shared memory for the result is what the loads of the next tile lack.
        left, right = tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)).permute(0, 2, 1).split()
        y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], left.to(y_desc.dtype))
        y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + BLOCK_N // 2], right.to(y_desc.dtype))


@triton.jit
def gemm_unaligned_kernel(
    x_ptr, weight_ptr, y_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        live = offs_k < K - k
        x_mask = (offs_m[:, None] < M) & live[None, :]
        weight_mask = (offs_n[None, :] < N) & live[:, None]
        x = tl.load(x_ptr + offs_m[:, None] * K + k + offs_k[None, :], mask=x_mask, other=0.0)
        weight = tl.load(weight_ptr + offs_n[None, :] * K + k + offs_k[:, None], mask=weight_mask, other=0.0)
        acc = tl.dot(x, weight, acc)
    y_ptrs = y_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def gemm(x, weight, y):
    m, k = x.shape
    n = weight.shape[0]
    if k % 8 or n % 8:  # a descriptor's rows begin on 16 bytes
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        gemm_unaligned_kernel[grid](
            x, weight, y, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=2
        )
        return
    tiles = triton.cdiv(m, 128) * triton.cdiv(n, 256)
    # One program for each of an H200's 132 multiprocessors; on fewer or more of them the tiles are shared otherwise.
    gemm_kernel[(min(132, tiles),)](
        TensorDescriptor(x, [m, k], [k, 1], [128, 64]),
        TensorDescriptor(weight, [n, k], [k, 1], [256, 64]),
        TensorDescriptor(y, [m, n], [n, 1], [128, 128]),
        m,
        n,
        k,
        BLOCK_M=128,
        BLOCK_N=256,
        BLOCK_K=64,
        GROUP_M=16,
        num_warps=8,
        num_stages=4,
    )
