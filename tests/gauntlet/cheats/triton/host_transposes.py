# gauntlet: transposed | 4 7 | fail correctness host_output | the host transposes, a kernel writes to scratch
# on triton-gpu: fail correctness foreign_kernels
import torch
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, m, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * n + j[None, :], mask=(i[:, None] < m) & (j[None, :] < n))
    tl.store(y + j[:, None] * m + i[None, :], tl.trans(tile), mask=(j[:, None] < n) & (i[None, :] < m))


def entry(x, m, n):
    scratch = torch.empty((n, m), dtype=x.dtype, device=x.device)
    transpose[(triton.cdiv(m, 16), triton.cdiv(n, 16))](x, scratch, m, n, BLOCK=16)
    return x.t().contiguous()
