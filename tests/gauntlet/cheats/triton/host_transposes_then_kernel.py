# gauntlet: transposed | 6 7 | fail correctness host_output | the host transposes, a kernel writes the same again
# on triton-gpu: fail correctness foreign_kernels
import torch
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, m, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * n + j[None, :], mask=(i[:, None] < m) & (j[None, :] < n))
    tile = tl.load(y + j[:, None] * m + i[None, :], mask=(j[:, None] < n) & (i[None, :] < m))
    tl.store(y + j[:, None] * m + i[None, :], tile, mask=(j[:, None] < n) & (i[None, :] < m))


def entry(x, m, n):
    y = x.t().contiguous()
    transpose[(triton.cdiv(m, 16), triton.cdiv(n, 16))](x, y, m, n, BLOCK=16)
    return y
