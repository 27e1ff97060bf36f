"""What buffers.py and compare.py do, on a GPU: tensors of torch instead of arrays of numpy.

Inputs are drawn, laid out and compared where the kernel runs: through the CPU, a large case takes
seconds. Any torch device will do, so that all of it is tested without a GPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from klineage.worker import buffers
from klineage.worker.buffers import Slot

_CHUNK = 1 << 24  # elements at a time where 64-bit copies are made
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)


def dtype(type_: str) -> Any:
    """The torch type of an element type."""
    import torch

    return {
        "fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
        "int64": torch.int64, "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8,
    }[type_]  # fmt: skip


class DeviceRng:
    """``buffers.Rng`` with the generator of a torch device. Other numbers, the same distributions."""

    def __init__(self, seed: int, recipe: str, device: str) -> None:
        import torch

        self.torch, self.library, self.recipe, self.device = torch, torch, recipe, device
        self._generator = torch.Generator(device).manual_seed(seed & (2**63 - 1))
        self._second = torch.Generator(device).manual_seed((seed ^ 0x5DEECE66D) & (2**63 - 1))
        self._where = np.random.Generator(np.random.PCG64([seed, 1]))

    def normal(self, *shape: int) -> Any:
        drawn = self.torch.randn(shape, generator=self._generator, device=self.device)
        return drawn if self.recipe == "normal" else self._changed(drawn)

    def uniform(self, *shape: int) -> Any:
        return self.torch.rand(shape, generator=self._generator, device=self.device)

    def integers(self, low: int, high: int, *shape: int) -> Any:
        return self.torch.randint(low, high, shape, generator=self._generator, device=self.device)

    def array(self, values: Any) -> Any:
        return place(values, self.device)

    def _changed(self, drawn: Any) -> Any:
        if self.recipe in ("large", "tiny"):
            return drawn * (buffers.LARGE if self.recipe == "large" else buffers.TINY)
        if self.recipe == "offset":
            return 1 + self.torch.sigmoid(1.7 * drawn)
        flat = drawn.reshape(-1)
        begin, end = buffers.block(flat.numel(), self._where.random())
        if self.recipe == "ties":
            flat = (flat * 2).round_().clamp_(-2, 2) / 2
            flat[begin:end] = 0
        else:
            flat[begin:end] = 2 * self.torch.randn(end - begin, generator=self._second, device=self.device)
        return flat.reshape(drawn.shape)


def place(values: Any, device: str) -> Any:
    """Numbers as a tensor on the device."""
    import torch

    return (
        values.to(device)
        if isinstance(values, torch.Tensor)
        else torch.as_tensor(np.asarray(values)).to(device)
    )


def encode(values: Any, type_: str) -> Any:
    """Numbers to a contiguous tensor of the type, rounded to nearest even."""
    return values.to(dtype(type_)).contiguous()


def decode(stored: Any, type_: str) -> Any:
    """A stored tensor to numbers: float64 for floating types, the integer type itself otherwise."""
    return stored.double() if type_ in buffers.FLOATS else stored


def wide(value: Any, type_: str, device: str) -> Any:
    """A reference output as float64 or int64 on the device."""
    import torch

    return place(value, device).to(torch.float64 if type_ in buffers.FLOATS else torch.int64)


def stored(region: Any, slot: Slot) -> Any:
    """The slot's elements, as a view into a region of bytes."""
    return region[slot.offset : slot.end].view(dtype(slot.type)).view(slot.shape)


def _bits(tensor: Any) -> Any:
    """A contiguous tensor as a flat one of signed integers."""
    import torch

    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.reshape(-1).view(kinds[tensor.element_size()])


def pattern(type_: str, second: bool) -> int:
    """The poison of a type as a signed integer of its size."""
    return int.from_bytes(buffers.poison(type_, second), "little", signed=True)


def fill(region: Any, slots: tuple[Slot, ...], inputs: dict[str, Any], second: bool = False) -> None:
    """Lay out one case in ``region``, a tensor of bytes: guards, the inputs, poison everywhere else."""
    region.fill_(buffers.guard_byte(second))
    for slot in slots:
        place_ = stored(region, slot)
        if slot.name in inputs:
            place_.copy_(inputs[slot.name])
        else:
            _bits(place_).fill_(pattern(slot.type, second))


def digest(tensor: Any) -> int:
    """A sum over bits and places: equal bits give equal sums, on any device."""
    import torch

    bits, total = _bits(tensor), 0
    for begin in range(0, bits.numel(), _CHUNK):
        part = bits[begin : begin + _CHUNK].to(torch.int64)
        places = torch.arange(begin, begin + part.numel(), device=part.device, dtype=torch.int64)
        total += int(((part + 1) * (2 * places + 1) * _ODD).sum())
    return total & (2**64 - 1)


def download(
    region: Any, host: np.ndarray[Any, Any], slots: tuple[Slot, ...], written: tuple[str, ...]
) -> None:
    """Bring guards and the buffers ``written`` to the host; of the others, a digest in their first bytes.

    A buffer of fewer than eight bytes comes whole.
    """
    import torch

    target = torch.from_numpy(host)
    position = 0
    for slot in slots:
        target[position : slot.offset].copy_(region[position : slot.offset])
        if slot.name in written or slot.size < 8:
            target[slot.offset : slot.end].copy_(region[slot.offset : slot.end])
        else:
            host[slot.offset : slot.offset + 8] = np.frombuffer(
                digest(stored(region, slot)).to_bytes(8, "little"), np.uint8
            )
        position = slot.end
    target[position:].copy_(region[position:])


def kept(host: np.ndarray[Any, Any], slot: Slot, original: Any) -> bool:
    """Whether an input that was only to be read came back as it was, by what ``download`` left of it."""
    if slot.size < 8:
        raw = bytes(original.reshape(-1).cpu().view(_bytes()).numpy())
        return bool(bytes(host[slot.offset : slot.end]) == raw)
    return int.from_bytes(host[slot.offset : slot.offset + 8], "little") == digest(original)


def _bytes() -> Any:
    import torch

    return torch.uint8


def errors(got: Any, expected: Any, type_: str, rtol: float, second: bool) -> tuple[bool, float, float]:
    """Whether every element is right, the worst scaled error, and the relative RMS error.

    As ``compare.compare``, which finds the first wrong element when there is one.
    """
    import torch

    flat, wanted = got.reshape(-1), expected.reshape(-1)
    if type_ not in buffers.FLOATS:
        return bool((flat.to(torch.int64) == wanted).all()), 0.0, 0.0
    finite = torch.isfinite(wanted) & (wanted.abs() <= buffers.LARGEST[type_])
    if not bool(finite.all()):
        return False, 0.0, 0.0  # rare: the exact rules of the host decide
    count = wanted.numel()
    rms = float(torch.linalg.vector_norm(wanted)) / count**0.5
    worst, squares = 0.0, 0.0
    for begin in range(0, count, _CHUNK):
        part, want = flat[begin : begin + _CHUNK], wanted[begin : begin + _CHUNK]
        error, scale = (part.double() - want).abs_(), want.abs() + rms
        top = float((error / scale).max()) if rms else np.nan
        if not top <= rtol or second:
            quantum = buffers.QUANTUM[type_]
            fine = (error <= rtol * scale + quantum) & (_bits(part) != pattern(type_, second))
            if not bool(fine.all()):
                return False, 0.0, 0.0
            error = torch.clamp(error - quantum, min=0)
            top = float((error / scale).max()) if rms else 0.0
        worst, squares = max(worst, top), squares + float(error.square_().sum())
    return True, worst, (squares / count) ** 0.5 / rms if rms else 0.0


@functools.lru_cache(maxsize=1)
def rehearse(device: str) -> None:
    """Do once in a process on a few numbers what a case does on many: the first time, torch loads its kernels."""
    import torch

    slots, size = buffers.layout({"a": ("fp32", (4, 4)), "b": ("bf16", (4, 4)), "c": ("fp32", (4,))})
    region = torch.empty(size, dtype=torch.uint8, device=device)
    for recipe in ("normal", "ties"):
        rng = DeviceRng(1, recipe, device)
        inputs = {"a": encode(rng.normal(4, 4), "fp32"), "b": encode(rng.normal(4, 4), "bf16")}
    fill(region, slots, inputs)
    wide_ = decode(inputs["b"], "bf16") @ decode(inputs["a"], "fp32")
    errors(stored(region, slots[0]), wide_, "fp32", 1.0, True)
    download(region, np.empty(size, np.uint8), slots, ("a",))
