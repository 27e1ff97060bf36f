"""Root mean square normalisation of each row, four warps to a row whatever its length.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x_ptr, weight_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    cols = tl.arange(0, BLOCK)
    mask = cols < hidden
    x = tl.load(x_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / hidden + eps)
    tl.store(y_ptr + row + cols, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm(x, weight, y, eps):
    rows, hidden = x.shape
    rmsnorm_kernel[(rows,)](x, weight, y, hidden, eps, BLOCK=triton.next_power_of_2(hidden), num_warps=4)
