"""Layer normalisation in two kernels: the rows without their means, then those divided by their deviation.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def centre_kernel(x_ptr, y_ptr, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    cols = tl.arange(0, BLOCK)
    mask = cols < hidden
    x = tl.load(x_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / hidden
    centred = tl.where(mask, x - mean, 0.0)
    tl.store(y_ptr + row + cols, centred.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def scale_kernel(weight_ptr, bias_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    cols = tl.arange(0, BLOCK)
    mask = cols < hidden
    centred = tl.load(y_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    deviation = tl.sqrt(tl.sum(centred * centred, axis=0) / hidden + eps)
    y = centred / deviation * weight + bias
    tl.store(y_ptr + row + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def layernorm(x, weight, bias, y, eps):
    rows, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    centre_kernel[(rows,)](x, y, hidden, BLOCK=block, num_warps=4)
    scale_kernel[(rows,)](weight, bias, y, hidden, eps, BLOCK=block, num_warps=4)
