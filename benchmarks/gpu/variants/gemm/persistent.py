"""Persistent programs that copy tiles by TMA: the next tile's loads are on their way while this one is written.

SPDX-License-Identifier: MIT
"""
# tune: BLOCK_M=128 BLOCK_N=256 BLOCK_K=64 GROUP_M=8 num_warps=8 num_stages=3
# tune: BLOCK_M=128 BLOCK_N=256 BLOCK_K=64 GROUP_M=8 num_warps=8 num_stages=4
# tune: BLOCK_M=128 BLOCK_N=256 BLOCK_K=64 GROUP_M=16 num_warps=8 num_stages=4
# tune: BLOCK_M=256 BLOCK_N=128 BLOCK_K=64 GROUP_M=8 num_warps=8 num_stages=3
# tune: BLOCK_M=256 BLOCK_N=128 BLOCK_K=64 GROUP_M=4 num_warps=8 num_stages=4
# tune: BLOCK_M=128 BLOCK_N=128 BLOCK_K=64 GROUP_M=8 num_warps=8 num_stages=4

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def place(tile, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = tile // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (tile % num_pid_in_group) % group_size_m
    pid_n = (tile % num_pid_in_group) // group_size_m
    return pid_m, pid_n


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
    HALVES: tl.constexpr,
):
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=True):
        pid_m, pid_n = place(tile, num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            x = x_desc.load([pid_m * BLOCK_M, k])
            weight = weight_desc.load([pid_n * BLOCK_N, k])
            acc = tl.dot(x, weight.T, acc)
        if HALVES:
            halves = tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)).permute(0, 2, 1).split()
            y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], halves[0].to(y_desc.dtype))
            y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + BLOCK_N // 2], halves[1].to(y_desc.dtype))
        else:
            y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(y_desc.dtype))


def launched(x, weight, y, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages):
    m, k = x.shape
    n = weight.shape[0]
    multiprocessors = torch.cuda.get_device_properties(x.device).multi_processor_count
    tiles = triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)
    gemm_kernel[(min(multiprocessors, tiles),)](
        TensorDescriptor(x, [m, k], [k, 1], [BLOCK_M, BLOCK_K]),
        TensorDescriptor(weight, [n, k], [k, 1], [BLOCK_N, BLOCK_K]),
        TensorDescriptor(y, [m, n], [n, 1], [BLOCK_M, BLOCK_N // 2]),
        m, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, HALVES=True,
        num_warps=num_warps, num_stages=num_stages,
    )


def gemm(x, weight, y):
    launched(x, weight, y, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3)
