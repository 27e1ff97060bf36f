"""What the experts in C are measured against: torch on one thread, and what the machine can do at most."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from klineage.worker import c_build

Call = Callable[[], Any]
Tensors = dict[str, Any]

_CEILINGS = b"""
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif
#include <stdint.h>
typedef float vec __attribute__((vector_size(BYTES)));
/* In four streams, which is faster than one; memcpy would pass the caches by for large copies, which the experts do not. */
void copy(const float *from, float *to, int64_t count)
{
    int64_t part = count / 4 / 1024 * 1024;
    for (int64_t i = 0; i < part; i += BYTES / 4)
#pragma GCC unroll 4
        for (int64_t stream = 0; stream < 4; ++stream)
            *(vec *)(to + stream * part + i) = *(const vec *)(from + stream * part + i);
    for (int64_t i = 4 * part; i + BYTES / 4 <= count; i += BYTES / 4)
        *(vec *)(to + i) = *(const vec *)(from + i);
}
/* Twelve independent sums of 4096 multiply-adds each: out receives lanes, so that nothing is left out. */
void peak(float *out, float factor)
{
    vec sums[12] = {0}, a = factor - (vec){0};
    for (int64_t i = 0; i < 4096; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < 12; ++j)
            sums[j] = sums[j] * a + a;
    for (int j = 0; j < 12; ++j)
        *(vec *)(out + j * (BYTES / 4)) = sums[j];
}
"""


def references(workload: str, t: Tensors, dims: dict[str, int], scalars: dict[str, float]) -> dict[str, Call]:
    """What the expert is measured against, by name. Outputs go to buffers of their own where torch allows it."""
    import torch
    import torch.nn.functional as functional

    outputs = {name: torch.empty_like(tensor) for name, tensor in t.items()}
    if workload == "gemm":
        arrays = {name: t[name].numpy() for name in ("x", "weight")}
        return {
            "torch.mm": lambda: torch.mm(t["x"], t["weight"].T, out=outputs["y"]),
            "numpy matmul": lambda: np.matmul(arrays["x"], arrays["weight"].T, out=outputs["y"].numpy()),
        }
    if workload == "conv2d":
        taps = t["weight"].view(dims["kernel"], dims["kernel"], dims["channels"], dims["filters"])
        filters = taps.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        images = t["x"].permute(0, 3, 1, 2)
        return {"conv2d": lambda: functional.conv2d(images, filters, padding=dims["kernel"] // 2)}
    if workload == "softmax":
        return {"softmax": lambda: torch.softmax(t["x"], -1, out=outputs["y"])}
    if workload == "layernorm":
        shape = (dims["hidden"],)
        return {
            "layer_norm": lambda: functional.layer_norm(t["x"], shape, t["weight"], t["bias"], scalars["eps"])
        }
    if workload == "add_rmsnorm":
        return {"add, rms_norm": lambda: _add_rmsnorm(t["x"], t["residual"], t["weight"], scalars["eps"])}
    found = (outputs["values"], outputs["indices"])
    return {"topk": lambda: torch.topk(t["x"], dims["k"], sorted=False, out=found)}


def _add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float) -> Any:
    import torch

    total = x + residual
    return torch.nn.functional.rms_norm(total, weight.shape, weight, eps), total


def compiled_references(workload: str, t: Tensors, scalars: dict[str, float]) -> dict[str, Call]:
    """The same through torch.compile, for what it fuses."""
    import torch

    if workload == "add_rmsnorm":
        fused = torch.compile(_add_rmsnorm)
        return {"torch.compile": lambda: fused(t["x"], t["residual"], t["weight"], scalars["eps"])}
    if workload == "softmax":
        fused = torch.compile(lambda x: torch.softmax(x, -1))
        return {"torch.compile": lambda: fused(t["x"])}
    if workload == "layernorm":
        fused = torch.compile(
            lambda x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b, scalars["eps"])
        )
        return {"torch.compile": lambda: fused(t["x"], t["weight"], t["bias"])}
    return {}


def ceiling_calls(cost: dict[str, float], cache: Path) -> tuple[dict[str, Call], int]:
    """A copy that reads and writes half of the cost's bytes each, a loop of multiply-adds, and its operations."""
    import ctypes

    library = ctypes.CDLL(c_build.build(_CEILINGS, "ceilings.c", (), cache)["library"])
    half = int(cost["bytes"]) // 8
    room = np.frombuffer(pages(8 * half + 16384), np.float32)
    room[:] = 1.0  # pages that nobody wrote are all one page of zeros
    left, right, out = room[:half], room[half + 1024 :], room[-1024:]
    lanes = 16 if b"avx512f" in _flags() else 8 if b"avx2" in _flags() else 4
    pointer, count, factor = ctypes.c_void_p, ctypes.c_int64(half), ctypes.c_float(0.5)
    calls: dict[str, Call] = {
        "copy": lambda: library.copy(pointer(left.ctypes.data), pointer(right.ctypes.data), count),
        "peak": lambda: library.peak(pointer(out.ctypes.data), factor),
    }
    return calls, 4096 * 12 * 2 * lanes


def _flags() -> bytes:
    text = Path("/proc/cpuinfo").read_bytes() if Path("/proc/cpuinfo").exists() else b""
    return next((line for line in text.splitlines() if line.startswith(b"flags")), b"")


def pages(total: int) -> Any:
    """So many bytes from the start of a page on."""
    return mmap.mmap(-1, total)
