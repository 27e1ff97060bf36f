"""A matrix product on tensor cores with the bias added in registers: grouped program order, a pipelined loop.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def addmm_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    y_ptr,
    m,
    n,
    k,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    # Grouped order: GROUP_M row blocks share their blocks of b in L2 before the next column of blocks begins.
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(m, BLOCK_M)
    num_pid_n = tl.cdiv(n, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
    pid_n = (pid % num_pid_in_group) // group_size_m

    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)
    # Rows and columns past the edge wrap round, so that the loop needs no mask for them; the store drops them.
    a_at = (rows % m)[:, None] * k + depths[None, :]
    b_at = depths[:, None] * n + (columns % n)[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN:
            a = tl.load(a_ptr + start + a_at)
            b = tl.load(b_ptr + start * n + b_at)
        else:
            a = tl.load(a_ptr + start + a_at, mask=depths[None, :] < k - start, other=0.0)
            b = tl.load(b_ptr + start * n + b_at, mask=depths[:, None] < k - start, other=0.0)
        acc = tl.dot(a, b, acc)

    y_at = rows[:, None] * n + columns[None, :]
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    y = (acc + bias[None, :]).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + y_at, y, mask=(rows[:, None] < m) & (columns[None, :] < n))


def addmm(a, b, bias, y):
    m, k = a.shape
    n = b.shape[1]

    def grid(meta):
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    addmm_kernel[grid](
        a,
        b,
        bias,
        y,
        m,
        n,
        k,
        EVEN=k % 64 == 0,
        BLOCK_M=128,
        BLOCK_N=128,
        BLOCK_K=64,
        GROUP_M=8,
        num_warps=8,
        num_stages=3,
    )
