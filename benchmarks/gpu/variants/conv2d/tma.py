"""Blocks of pixels that are square in the image, copied by TMA: what lies outside the image arrives as zeros, without a mask.

SPDX-License-Identifier: MIT
"""
# tune: IMAGES=1 BLOCK_N=128 num_warps=4 num_stages=3
# tune: IMAGES=1 BLOCK_N=128 num_warps=4 num_stages=2
# tune: IMAGES=1 BLOCK_N=128 num_warps=8 num_stages=3
# tune: IMAGES=1 BLOCK_N=64 num_warps=4 num_stages=3
# tune: IMAGES=1 BLOCK_N=128 num_warps=4 num_stages=4
# tune: IMAGES=2 BLOCK_N=128 num_warps=8 num_stages=3
# tune: IMAGES=2 BLOCK_N=128 num_warps=8 num_stages=4
# tune: IMAGES=2 BLOCK_N=128 num_warps=4 num_stages=3
# tune: IMAGES=4 BLOCK_N=128 num_warps=8 num_stages=3
# tune: IMAGES=4 BLOCK_N=128 num_warps=8 num_stages=4
# tune: IMAGES=2 BLOCK_N=64 num_warps=4 num_stages=4

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def conv2d_kernel(
    x_desc,
    weight_desc,
    y_desc,
    down,
    across,
    CHANNELS: tl.constexpr,
    FILTERS: tl.constexpr,
    KERNEL: tl.constexpr,
    IMAGES: tl.constexpr,
    SIDE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(FILTERS, BLOCK_N)
    n = pid % num_pid_n * BLOCK_N
    square = pid // num_pid_n
    column = square % across * SIDE
    row = square // across % down * SIDE
    image = square // (across * down) * IMAGES
    acc = tl.zeros((IMAGES * SIDE * SIDE, BLOCK_N), dtype=tl.float32)
    for step in range(0, KERNEL * KERNEL * tl.cdiv(CHANNELS, BLOCK_C)):
        tap = step // tl.cdiv(CHANNELS, BLOCK_C)
        c = step % tl.cdiv(CHANNELS, BLOCK_C) * BLOCK_C
        i = row + tap // KERNEL - KERNEL // 2
        j = column + tap % KERNEL - KERNEL // 2
        x = x_desc.load([image, i, j, c]).reshape(IMAGES * SIDE * SIDE, BLOCK_C)
        weight = weight_desc.load([tap, c, n]).reshape(BLOCK_C, BLOCK_N)
        acc = tl.dot(x, weight, acc)
    y = acc.to(y_desc.dtype).reshape(IMAGES, SIDE, SIDE, BLOCK_N)
    y_desc.store([image, row, column, n], y)


def launched(x, weight, y, kernel, IMAGES, BLOCK_N, num_warps, num_stages):
    batch, height, width, channels = x.shape
    filters, side, block_c = weight.shape[1], 8, 64
    down, across = triton.cdiv(height, side), triton.cdiv(width, side)
    squares = triton.cdiv(batch, IMAGES) * down * across
    taps = [kernel * kernel, channels, filters]
    conv2d_kernel[(squares * triton.cdiv(filters, BLOCK_N),)](
        TensorDescriptor(x, list(x.shape), list(x.stride()), [IMAGES, side, side, block_c]),
        TensorDescriptor(weight, taps, [channels * filters, filters, 1], [1, block_c, BLOCK_N]),
        TensorDescriptor(y, list(y.shape), list(y.stride()), [IMAGES, side, side, BLOCK_N]),
        down, across, CHANNELS=channels, FILTERS=filters, KERNEL=kernel,
        IMAGES=IMAGES, SIDE=side, BLOCK_N=BLOCK_N, BLOCK_C=block_c, num_warps=num_warps, num_stages=num_stages,
    )


def conv2d(x, weight, y, kernel):
    launched(x, weight, y, kernel, IMAGES=4, BLOCK_N=128, num_warps=8, num_stages=4)
