# jury: normalize | bf16 with libdevice and a constexpr helper
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.constexpr_function
def block_of(columns):
    return triton.next_power_of_2(columns)


@triton.jit
def normalize(x, y, columns, eps, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block_of(WIDTH))
    value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    scale = libdevice.rsqrt(tl.sum(value * value) / columns + eps)
    tl.store(y + row * columns + at, (value * scale).to(tl.bfloat16), mask=at < columns)


def entry(x, y, rows, columns, eps):
    normalize[(rows,)](x, y, columns, eps, WIDTH=columns)
