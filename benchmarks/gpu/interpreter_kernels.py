"""The kernels that the interpreter and a GPU are compared on. ``run`` launches one; TRITON_INTERPRET decides where."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def multiply_add(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n), tl.load(z + i, mask=i < n)
    tl.store(out + i, a * b + c, mask=i < n)


@triton.jit
def fused(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n), tl.load(z + i, mask=i < n)
    tl.store(out + i, tl.fma(a, b, c), mask=i < n)


@triton.jit
def divide(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) / tl.load(y + i, mask=i < n, other=1.0), mask=i < n)


@triton.jit
def integers(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n, other=1)
    tl.store(out + i, ((a * 31 + b) ^ (a >> 3)) + (a // b) * 7 + (a % b), mask=i < n)


@triton.jit
def chosen(x, y, out, n, BLOCK: tl.constexpr):
    """Masks, ``other`` values, comparisons with NaN, and where."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=(i < n) & (i % 3 != 0), other=-2.0)
    b = tl.load(y + i, mask=i < n)
    tl.store(out + i, tl.where((a < b) | (b != b), a * -1.0, tl.abs(b)), mask=i < n)


@triton.jit
def extremes(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, tl.maximum(a, b) - tl.minimum(a, 0.25), mask=i < n)


@triton.jit
def function(x, out, n, NAME: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1.0)
    if NAME == "exp":
        v = tl.exp(v)
    elif NAME == "exp2":
        v = tl.exp2(v)
    elif NAME == "log":
        v = tl.log(v)
    elif NAME == "log2":
        v = tl.log2(v)
    elif NAME == "sqrt":
        v = tl.sqrt(v)
    elif NAME == "rsqrt":
        v = tl.rsqrt(v)
    elif NAME == "sin":
        v = tl.sin(v)
    elif NAME == "cos":
        v = tl.cos(v)
    elif NAME == "erf":
        v = tl.erf(v)
    elif NAME == "sigmoid":
        v = tl.sigmoid(v)
    elif NAME == "floor":
        v = tl.floor(v)
    tl.store(out + i, v, mask=i < n)


@triton.jit
def cast(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def cast_toward_zero(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(out.dtype.element_ty, fp_downcast_rounding="rtz")
    tl.store(out + i, v, mask=i < n)


@triton.jit
def reduce(x, out, COLUMNS: tl.constexpr, NAME: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    if NAME == "sum":
        tl.store(out + row, tl.sum(v, axis=0))
    elif NAME == "max":
        tl.store(out + row, tl.max(v, axis=0))
    elif NAME == "argmax":
        tl.store(out + row, tl.argmax(v, axis=0))
    elif NAME == "cumsum":
        tl.store(out + row * COLUMNS + tl.arange(0, COLUMNS), tl.cumsum(v, axis=0))
    elif NAME == "softmax":
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * COLUMNS + tl.arange(0, COLUMNS), e / tl.sum(e, axis=0))


@triton.jit
def product(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x + i[:, None] * K + k[None, :])
    b = tl.load(y + k[:, None] * N + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(a, b, input_precision=PRECISION))


@triton.jit
def scatter(x, where, out, n, NAME: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v, place = tl.load(x + i, mask=i < n), tl.load(where + i, mask=i < n)
    if NAME == "add":
        tl.atomic_add(out + place, v, mask=i < n)
    else:
        tl.atomic_max(out + place, v, mask=i < n)


@triton.jit
def random(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(1234, i) + tl.load(x + i, mask=i < n), mask=i < n)


_PLAIN = {
    "add": add, "multiply_add": multiply_add, "fused": fused, "divide": divide, "integers": integers, "chosen": chosen,
    "extremes": extremes, "cast": cast, "cast_toward_zero": cast_toward_zero, "random": random,
}  # fmt: skip


def run(kernel: str, inputs: list[torch.Tensor], out: torch.Tensor) -> None:
    """Launch ``kernel``, such as ``add``, ``function:exp``, ``reduce:sum``, ``product:tf32`` or ``scatter:add``."""
    name, _, option = kernel.partition(":")
    first: Any = inputs[0]
    n = first.numel()
    grid = (triton.cdiv(n, BLOCK),)
    if name in _PLAIN:
        _PLAIN[name][grid](*inputs, out, n, BLOCK=BLOCK)
    elif name == "function":
        function[grid](first, out, n, NAME=option, BLOCK=BLOCK)
    elif name == "reduce":
        reduce[(first.shape[0],)](first, out, COLUMNS=first.shape[1], NAME=option)
    elif name == "product":
        (m, k), columns = first.shape, inputs[1].shape[1]
        product[(1,)](*inputs, out, M=m, N=columns, K=k, PRECISION=option)
    elif name == "scatter":
        scatter[grid](*inputs, out, n, NAME=option, BLOCK=BLOCK)
    else:
        raise ValueError(kernel)
