# gauntlet: rows | own | fail compile shared_memory | more shared memory than the device has
# on triton-gpu: fail compile shared_memory or out_of_resources
import torch
import triton
import triton.language as tl


@triton.jit
def big(x, y, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, 128)
    k = tl.arange(0, BLOCK)
    total = tl.zeros((128, 128), tl.float32)
    for start in tl.range(0, columns, BLOCK, num_stages=5):
        left = tl.load(x + i[:, None] * columns + (start + k)[None, :])
        total += tl.dot(left, tl.load(x + i[None, :] * columns + (start + k)[:, None]))
    tl.store(y + i[:, None] * columns + i[None, :], total)


def entry(x, bias, y, rows, columns, alpha):
    big[(1,)](x, y, columns, BLOCK=64, num_warps=8)
