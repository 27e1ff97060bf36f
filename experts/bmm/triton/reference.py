"""Products of many pairs of matrices on tensor cores: tiles in registers, a pipelined loop, masks only where needed.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def bmm_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    m,
    n,
    k,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * m * k
    b_ptr += batch * k * n
    y_ptr += batch * m * n
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
    tl.store(y_ptr + y_at, acc.to(y_ptr.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


def bmm(a, b, y):
    batch, m, k = a.shape
    n = b.shape[2]
    grid = (triton.cdiv(m, 128), triton.cdiv(n, 128), batch)
    bmm_kernel[grid](
        a, b, y, m, n, k, EVEN=k % 64 == 0, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3
    )
