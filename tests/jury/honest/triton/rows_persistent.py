# jury: rows | persistent programs that stride over the rows
import torch
import triton
import triton.language as tl


@triton.jit
def persistent(x, bias, y, rows, columns, alpha, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, PROGRAMS):
        for start in tl.range(0, columns, BLOCK, num_stages=2):
            at = start + tl.arange(0, BLOCK)
            value = tl.load(x + row * columns + at, mask=at < columns)
            tl.store(y + row * columns + at, value * alpha + tl.load(bias + at, mask=at < columns), mask=at < columns)


def entry(x, bias, y, rows, columns, alpha):
    persistent[(3,)](x, bias, y, rows, columns, alpha, PROGRAMS=3, BLOCK=32)
