# gauntlet: normalize | 32 | fail correctness mismatch or insensitive | the root mean square of the first quarter
import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first = tl.arange(0, BLOCK)
    sample = tl.load(x + row * columns + first).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(sample * sample) / BLOCK + eps)
    for start in range(0, columns, BLOCK):
        at = start + first
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        tl.store(y + row * columns + at, value * scale, mask=at < columns)


def entry(x, y, rows, columns, eps):
    part_kernel[(rows,)](x, y, columns, eps, BLOCK=1024)
