# jury: rows | inside an autograd function
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


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, alpha):
        y = torch.empty_like(x)
        flat = x.view(-1, x.shape[-1])
        rows_kernel[(flat.shape[0],)](flat, bias, y, x.shape[-1], alpha, BLOCK=64)
        ctx.alpha = alpha
        return y


def entry(x, bias, alpha):
    return Rows.apply(x, bias, alpha)
