"""NHWC convolution as an implicit matrix product: pixels x filters on tensor cores, the image is never unfolded.

SPDX-License-Identifier: MIT
"""

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_C": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 256, "BLOCK_N": 128, "BLOCK_C": 64}, num_warps=8, num_stages=4),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_C": 64}, num_warps=8, num_stages=3),
    ],
    key=["pixels", "FILTERS", "CHANNELS"],
)
@triton.jit
def conv2d_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    pixels,
    height,
    width,
    CHANNELS: tl.constexpr,
    FILTERS: tl.constexpr,
    KERNEL: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    # All filters of one block of pixels run side by side, and share its image rows in L2.
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(FILTERS, BLOCK_N)
    pid_m = pid // num_pid_n
    pid_n = pid % num_pid_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_c = tl.arange(0, BLOCK_C)

    # Which rows and columns of the filter fall inside the image, one bit each: the loop tests two bits a pixel
    # instead of computing coordinates.
    row = offs_m // width % height
    column = offs_m % width
    rows_inside = tl.zeros((BLOCK_M,), dtype=tl.int32)
    columns_inside = tl.zeros((BLOCK_M,), dtype=tl.int32)
    for bit in tl.static_range(KERNEL):
        tap_row = row + (bit - KERNEL // 2)
        tap_column = column + (bit - KERNEL // 2)
        rows_inside |= ((tap_row >= 0) & (tap_row < height) & (offs_m < pixels)).to(tl.int32) << bit
        columns_inside |= ((tap_column >= 0) & (tap_column < width)).to(tl.int32) << bit

    # y is as large as x, so a tap is one distance for all pixels: offsets inside a tile never change, a scalar moves.
    x_offsets = offs_m[:, None] * CHANNELS + offs_c[None, :]
    weight_offsets = offs_c[:, None] * FILTERS + offs_n[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, KERNEL * KERNEL * tl.cdiv(CHANNELS, BLOCK_C)):
        tap = step // tl.cdiv(CHANNELS, BLOCK_C)
        c = step % tl.cdiv(CHANNELS, BLOCK_C) * BLOCK_C
        i = tap // KERNEL
        j = tap % KERNEL
        inside = (rows_inside >> i) & (columns_inside >> j) & 1
        x_base = x_ptr + ((i - KERNEL // 2) * width + (j - KERNEL // 2)) * CHANNELS + c
        weight_base = weight_ptr + (tap * CHANNELS + c) * FILTERS
        x_mask = (inside[:, None] != 0) & (offs_c[None, :] < CHANNELS - c)
        x = tl.load(x_base + x_offsets, mask=x_mask, other=0.0)
        if EVEN:
            weight = tl.load(weight_base + weight_offsets)
        else:
            weight = tl.load(
                weight_base + weight_offsets,
                mask=(offs_c[:, None] < CHANNELS - c) & (offs_n[None, :] < FILTERS),
                other=0.0,
            )
        acc = tl.dot(x, weight, acc)

    # Nobody reads y again: let the image and the filter keep the cache.
    y_ptrs = y_ptr + offs_m[:, None] * FILTERS + offs_n[None, :]
    y_mask = (offs_m[:, None] < pixels) & (offs_n[None, :] < FILTERS)
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=y_mask, eviction_policy="evict_first")


def conv2d(x, weight, y, kernel):
    batch, height, width, channels = x.shape
    filters = weight.shape[1]
    pixels = batch * height * width
    grid = lambda meta: (triton.cdiv(pixels, meta["BLOCK_M"]) * triton.cdiv(filters, meta["BLOCK_N"]),)
    conv2d_kernel[grid](
        x, weight, y, pixels, height, width,
        CHANNELS=channels, FILTERS=filters, KERNEL=kernel, EVEN=channels % 64 == 0 and filters % 128 == 0,
    )
