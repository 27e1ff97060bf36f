"""Products of many pairs of matrices: the sum is split over programs that add what each has summed, for few tiles and long sums.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def bmm_kernel(
    a_ptr, b_ptr, y_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    tile = tl.program_id(0)
    num_tiles_n = tl.cdiv(n, BLOCK_N)
    batch = tl.program_id(1).to(tl.int64)
    a_ptr += batch * m * k
    b_ptr += batch * k * n
    y_ptr += batch * m * n
    rows = tile // num_tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile % num_tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    y_mask = (rows[:, None] < m) & (columns[None, :] < n)
    depths = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    a_mask = (rows[:, None] < m) & (depths[None, :] < k)
    b_mask = (depths[:, None] < k) & (columns[None, :] < n)
    a = tl.load(a_ptr + rows[:, None] * k + depths[None, :], mask=a_mask, other=0.0)
    b = tl.load(b_ptr + depths[:, None] * n + columns[None, :], mask=b_mask, other=0.0)
    product = tl.dot(a, b)
    tl.atomic_add(y_ptr + rows[:, None] * n + columns[None, :], product, mask=y_mask)


def bmm(a, b, y):
    batch, m, k = a.shape
    n = b.shape[2]
    y.zero_()  # programs add to it
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64), batch, triton.cdiv(k, 64))
    bmm_kernel[grid](a, b, y, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_warps=4)
