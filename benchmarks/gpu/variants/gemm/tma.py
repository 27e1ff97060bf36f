"""One tile a program, copied by TMA: no pointers in registers, one thread issues a copy.

SPDX-License-Identifier: MIT
"""
# tune: BLOCK_M=128 BLOCK_N=256 BLOCK_K=64 GROUP_M=8 num_warps=8 num_stages=4
# tune: BLOCK_M=128 BLOCK_N=256 BLOCK_K=64 GROUP_M=16 num_warps=8 num_stages=3
# tune: BLOCK_M=256 BLOCK_N=128 BLOCK_K=64 GROUP_M=8 num_warps=8 num_stages=4
# tune: BLOCK_M=128 BLOCK_N=128 BLOCK_K=64 GROUP_M=8 num_warps=4 num_stages=3
# tune: BLOCK_M=128 BLOCK_N=256 BLOCK_K=128 GROUP_M=8 num_warps=8 num_stages=2

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
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
    pid_n = (pid % num_pid_in_group) // group_size_m
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = x_desc.load([pid_m * BLOCK_M, k])
        weight = weight_desc.load([pid_n * BLOCK_N, k])
        acc = tl.dot(x, weight.T, acc)
    y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(y_desc.dtype))


def launched(x, weight, y, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages):
    m, k = x.shape
    n = weight.shape[0]
    gemm_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)](
        TensorDescriptor(x, [m, k], [k, 1], [BLOCK_M, BLOCK_K]),
        TensorDescriptor(weight, [n, k], [k, 1], [BLOCK_N, BLOCK_K]),
        TensorDescriptor(y, [m, n], [n, 1], [BLOCK_M, BLOCK_N]),
        m, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M,
        num_warps=num_warps, num_stages=num_stages,
    )


def gemm(x, weight, y):
    launched(x, weight, y, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3)
