# jury: segments | ragged segments, lengths read by the kernel
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, offsets, y, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    begin, end = tl.load(offsets + which), tl.load(offsets + which + 1)
    sums = tl.zeros((BLOCK,), tl.float32)
    start = begin
    while start < end:
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x + at, mask=at < end, other=0.0)
        start += BLOCK
    tl.store(y + which, tl.sum(sums))


def entry(x, offsets, y, count):
    total[(count,)](x, offsets, y, BLOCK=32)
