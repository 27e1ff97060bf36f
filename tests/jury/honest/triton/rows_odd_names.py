# jury: rows | unusual names and layouts of the text
import torch
import triton
import triton.language as tl

_0 = tl.constexpr(32)


def noop(f): return f


@triton.jit
def K_9Z(ξ, b, ψ, n, α, Σ: tl.constexpr):
    for _ in range(0, n, Σ): ρ = _ + tl.arange(0, Σ); tl.store(ψ + tl.program_id(0) * n + ρ, tl.load(ξ + tl.program_id(0) * n + ρ, ρ < n) * α + tl.load(b + ρ, ρ < n), ρ < n)


@noop
def entry(x, bias, y, rows, columns, alpha, *, input=None, compile=False, **kwargs):
    class Launch:
        def __init__(self, n): self.n = n
        def __call__(self, meta): return (self.n, 1)
    K_9Z[Launch(rows)](x, bias, y, columns, alpha, Σ=_0)
