"""A matrix product and a bias in small tiles, multiplied and added without tensor cores.

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
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a_at = rows[:, None] * k + start + depths[None, :]
        b_at = (start + depths[:, None]) * n + columns[None, :]
        a = tl.load(a_ptr + a_at, mask=(rows[:, None] < m) & (depths[None, :] < k - start), other=0.0)
        b = tl.load(b_ptr + b_at, mask=(depths[:, None] < k - start) & (columns[None, :] < n), other=0.0)
        acc += tl.sum(a.to(tl.float32)[:, :, None] * b.to(tl.float32)[None, :, :], axis=1)

    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    y = (acc + bias[None, :]).to(y_ptr.dtype.element_ty)
    y_at = rows[:, None] * n + columns[None, :]
    tl.store(y_ptr + y_at, y, mask=(rows[:, None] < m) & (columns[None, :] < n))


def addmm(a, b, bias, y):
    m, k = a.shape
    n = b.shape[1]
    addmm_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, bias, y, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, num_warps=4, num_stages=1
    )
