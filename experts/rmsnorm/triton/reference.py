"""Root mean square normalisation of each row, which is read once and stays in registers.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x_ptr, weight_ptr, y_ptr, hidden, eps, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    cols = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    if EVEN:
        x = tl.load(x_ptr + row + cols).to(tl.float32)
        weight = tl.load(weight_ptr + cols).to(tl.float32)
    else:
        x = tl.load(x_ptr + row + cols, mask=cols < hidden, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < hidden, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / hidden + eps)
    y = (x * scale * weight).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row + cols, y, mask=cols < hidden)


def rmsnorm(x, weight, y, eps):
    rows, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    rmsnorm_kernel[(rows,)](x, weight, y, hidden, eps, EVEN=hidden == block, BLOCK=block, num_warps=16)
