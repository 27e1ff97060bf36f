"""Products of many pairs of matrices, where columns beyond the edge become the first one, so that loads of b need no mask for them.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def bmm_kernel(
    a_ptr, b_ptr, y_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    first_row = tl.program_id(0) * BLOCK_M
    first_column = tl.program_id(1) * BLOCK_N
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * m * k
    b_ptr += batch * k * n
    y_ptr += batch * m * n
    rows = first_row + tl.arange(0, BLOCK_M)
    depths = tl.arange(0, BLOCK_K)
    # The choice hides from the compiler that eight columns stand side by side. They do where eight divides n, and where
    # it does not, rows of b begin anywhere and nothing is loaded eight at a time.
    columns = first_column + tl.arange(0, BLOCK_N)
    columns = tl.where(columns < n, columns, 0)
    columns = tl.max_contiguous(tl.multiple_of(columns, 8), 8)
    a_at = (rows % m)[:, None] * k + depths[None, :]
    b_at = depths[:, None] * n + columns[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_ptr + start + a_at, mask=depths[None, :] < k - start, other=0.0)
        b = tl.load(b_ptr + start * n + b_at, mask=depths[:, None] < k - start, other=0.0)
        acc = tl.dot(a, b, acc)

    stored = first_column + tl.arange(0, BLOCK_N)
    y_at = rows[:, None] * n + stored[None, :]
    tl.store(y_ptr + y_at, acc.to(y_ptr.dtype.element_ty), mask=(rows[:, None] < m) & (stored[None, :] < n))


def bmm(a, b, y):
    batch, m, k = a.shape
    n = b.shape[2]
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 128), batch)
    bmm_kernel[grid](a, b, y, m, n, k, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=3)
