# jury: winner | two outputs returned, an odd reduction
import torch
import triton
import triton.language as tl


@triton.jit
def better(v, i, w, j):
    first = (v > w) | ((v == w) & (i < j))
    return tl.where(first, v, w), tl.where(first, i, j)


@triton.jit
def winner(x, place, top, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    best, where = tl.reduce((value, at), 0, better)
    tl.store(place + row, where)
    tl.store(top + row, best)


def entry(x):
    rows, columns = x.shape
    place = torch.empty(rows, dtype=torch.int32, device=x.device)
    top = torch.empty(rows, dtype=x.dtype, device=x.device)
    winner[(rows,)](x, place, top, columns, BLOCK=triton.next_power_of_2(columns))
    return place, top
