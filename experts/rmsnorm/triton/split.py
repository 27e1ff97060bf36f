"""Root mean square normalisation of few long rows: programs sum pieces of a row, then programs scale pieces of it.

SPDX-License-Identifier: MIT
"""

import torch
import triton
import triton.language as tl


@triton.jit
def squares_kernel(x_ptr, squares_ptr, hidden, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    cols = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * hidden + cols, mask=cols < hidden, other=0.0).to(tl.float32)
    tl.store(squares_ptr + row * tl.num_programs(1) + piece, tl.sum(x * x, axis=0))


@triton.jit
def scale_kernel(
    x_ptr, weight_ptr, y_ptr, squares_ptr, hidden, pieces, eps, PIECES: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    part = tl.arange(0, PIECES)
    squares = tl.load(squares_ptr + row * pieces + part, mask=part < pieces, other=0.0)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < hidden
    x = tl.load(x_ptr + row * hidden + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * hidden + cols, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm(x, weight, y, eps):
    rows, hidden = x.shape
    pieces = triton.cdiv(hidden, 1024)
    squares = x.new_empty((rows, pieces), dtype=torch.float32)
    squares_kernel[(rows, pieces)](x, squares, hidden, BLOCK=1024, num_warps=4)
    scale_kernel[(rows, triton.cdiv(hidden, 1024))](
        x,
        weight,
        y,
        squares,
        hidden,
        pieces,
        eps,
        PIECES=triton.next_power_of_2(pieces),
        BLOCK=1024,
        num_warps=4,
    )
