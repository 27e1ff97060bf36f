# jury: rows | two launches and scratch between them
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, t, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(t + at, tl.load(x + at, mask=at < n) * alpha, mask=at < n)


@triton.jit
def shift(t, bias, y, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(t + at, mask=at < n) + tl.load(bias + at % columns, mask=at < n)
    tl.store(y + at, value, mask=at < n)


def entry(x, bias, y, rows, columns, alpha):
    scratch = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    scale[grid](x, scratch, n, alpha, BLOCK=128)
    shift[grid](scratch, bias, y, n, columns, BLOCK=64)
