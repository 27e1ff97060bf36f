"""Softmax over each row in three sweeps: the largest element, the sum of the exponentials, the division.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    most = tl.full((1,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((1,), dtype=tl.float32)

    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=float("-inf")).to(tl.float32)
        most = tl.maximum(most, tl.max(x, axis=0))

    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=float("-inf")).to(tl.float32)
        weights = tl.exp(x - most)
        total = total + tl.sum(weights, axis=0)

    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=0.0).to(tl.float32)
        y = tl.exp(x - most) / total
        tl.store(y_ptr + row + at, y.to(y_ptr.dtype.element_ty), mask=at < columns)


def softmax(x, y):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, y, columns, BLOCK=128, num_warps=4)
