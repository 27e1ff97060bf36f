"""Layer normalisation of rows of any length in three sweeps of blocks: the mean, the variance, the result.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    cols = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        live = start + cols < hidden
        x = tl.load(x_ptr + row + start + cols, mask=live, other=0.0)
        sums += x.to(tl.float32)
    mean = tl.sum(sums, axis=0) / hidden

    # Squares of distances from the mean: of the squares of x alone, less the mean's, little would be left of a narrow row.
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        live = start + cols < hidden
        x = tl.load(x_ptr + row + start + cols, mask=live, other=0.0)
        centred = tl.where(live, x.to(tl.float32) - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)

    for start in range(0, hidden, BLOCK):
        inside = start + cols < hidden
        x = tl.load(x_ptr + row + start + cols, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + cols, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + start + cols, mask=inside, other=0.0).to(tl.float32)
        y = (x - mean) * scale * weight + bias
        tl.store(y_ptr + row + start + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


def layernorm(x, weight, bias, y, eps):
    rows, hidden = x.shape
    layernorm_kernel[(rows,)](x, weight, bias, y, hidden, eps, BLOCK=256, num_warps=4)
