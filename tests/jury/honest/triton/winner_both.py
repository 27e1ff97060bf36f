# jury: winner | two outputs, one of integers
import torch
import triton
import triton.language as tl


@triton.jit
def winner(x, place, top, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    best, where = tl.max(value, axis=0, return_indices=True)
    tl.store(place + row, where)
    tl.store(top + row, best)


def entry(x, place, top, rows, columns):
    winner[(rows,)](x, place, top, columns, BLOCK=512)
