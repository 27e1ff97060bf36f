"""Layer normalisation of each row, which is read once and stays in registers.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, hidden, eps, EVEN: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * hidden
    cols = tl.arange(0, BLOCK)
    mask = cols < hidden
    if EVEN:
        x = tl.load(x_ptr + row + cols).to(tl.float32)
        weight = tl.load(weight_ptr + cols).to(tl.float32)
        bias = tl.load(bias_ptr + cols).to(tl.float32)
    else:
        x = tl.load(x_ptr + row + cols, mask=cols < hidden, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < hidden, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=cols < hidden, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / hidden
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / hidden + eps)
    y = centred * scale * weight + bias
    tl.store(y_ptr + row + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def layernorm(x, weight, bias, y, eps):
    rows, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    layernorm_kernel[(rows,)](
        x, weight, bias, y, hidden, eps, EVEN=hidden == block, BLOCK=block, num_warps=16
    )
