"""Residual add and RMSNorm of few long rows, piece by piece: all add, then all sum squares, then all scale.

SPDX-License-Identifier: MIT
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, residual_ptr, residual_out_ptr, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < hidden
    x = tl.load(x_ptr + row * hidden + cols, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * hidden + cols, mask=mask, other=0.0).to(tl.float32)
    added = (x + residual).to(residual_out_ptr.dtype.element_ty)
    tl.store(residual_out_ptr + row * hidden + cols, added, mask=mask)


@triton.jit
def squares_kernel(residual_out_ptr, squares_ptr, hidden, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    added = tl.load(residual_out_ptr + row * hidden + cols, mask=cols < hidden, other=0.0).to(tl.float32)
    tl.store(squares_ptr + row * tl.num_programs(1) + part, tl.sum(added * added, axis=0))


@triton.jit
def scale_kernel(
    residual_out_ptr,
    weight_ptr,
    y_ptr,
    squares_ptr,
    hidden,
    parts,
    eps,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    squares = tl.load(squares_ptr + row * parts + part, mask=part < parts, other=0.0)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < hidden
    added = tl.load(residual_out_ptr + row * hidden + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * hidden + cols, (added * scale * weight).to(y_ptr.dtype.element_ty), mask=mask)


def add_rmsnorm(x, residual, weight, y, residual_out, eps):
    rows, hidden = x.shape
    parts = triton.cdiv(hidden, 1024)
    squares = x.new_empty((rows, parts), dtype=torch.float32)
    add_kernel[(rows, triton.cdiv(hidden, 1024))](x, residual, residual_out, hidden, BLOCK=1024, num_warps=4)
    squares_kernel[(rows, parts)](residual_out, squares, hidden, BLOCK=1024, num_warps=4)
    scale_kernel[(rows, triton.cdiv(hidden, 1024))](
        residual_out,
        weight,
        y,
        squares,
        hidden,
        parts,
        eps,
        PARTS=triton.next_power_of_2(parts),
        BLOCK=1024,
        num_warps=4,
    )
