# jury: normalize | two passes over a row, in halves
import torch
import triton
import triton.language as tl


@triton.jit
def normalize(x_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0) * columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x_ptr + base + at, mask=at < columns, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += value * value
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x_ptr + base + at, mask=at < columns, other=0.0, cache_modifier=".cg")
        tl.store(y_ptr + base + at, value.to(tl.float32) * scale, mask=at < columns)


def entry(x, eps):
    rows, columns = x.shape
    y = torch.empty((rows, columns), device=x.device, dtype=x.dtype)
    normalize[(rows,)](x, y, columns, eps, BLOCK=1024, num_warps=4)
    return (y,)
