# gauntlet: rows | own | fail compile memory or raised or entry_raised or timeout | asks for more memory than there is
# on triton-gpu: fail compile entry_raised or memory
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        value = tl.load(x + row * columns + at, mask=mask, other=0.0) * alpha
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


def entry(x, bias, y, rows, columns, alpha):
    torch.empty(1 << 40, device=x.device).zero_()
    rows_kernel[(rows,)](x, bias, y, columns, alpha, BLOCK=64)
