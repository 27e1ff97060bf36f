"""Element types, seeded values, and buffers with poison inside and guard zones around.

bf16 has no numpy type: it is carried as its 16 bits and converted here, rounding to nearest even.
Wherever an array is called *stored*, it holds the bits that a kernel sees, in the type's storage type.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np

ITEMSIZE = {
    "fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1,
}  # fmt: skip
STORAGE: dict[str, np.dtype[Any]] = {
    "fp64": np.dtype("<f8"), "fp32": np.dtype("<f4"), "fp16": np.dtype("<f2"), "bf16": np.dtype("<u2"),
    "int64": np.dtype("<i8"), "int32": np.dtype("<i4"), "int8": np.dtype("i1"), "uint8": np.dtype("u1"),
}  # fmt: skip
FLOATS = ("fp64", "fp32", "fp16", "bf16")
LARGEST = {
    "fp64": 1.7976931348623157e308,
    "fp32": 3.4028234663852886e38,
    "fp16": 65504.0,
    "bf16": 3.3895313892515355e38,
}
# The smallest step of a type: an absolute error that no kernel can avoid.
QUANTUM = {"fp64": 2.0**-1074, "fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}
RELATIVE_TOLERANCE = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}

# Quiet NaNs with a payload that no arithmetic produces; for integers the byte 0xA5. The second
# poison is a large number, because some code ignores NaN: what depends on poison then differs.
_POISON_BITS = (
    {"fp64": 0x7FF8A5A5A5A5A5A5, "fp32": 0x7FE5A5A5, "fp16": 0x7FA5, "bf16": 0x7FE5},
    {"fp64": 0x7B5A5A5A5A5A5A5A, "fp32": 0x7B5A5A5A, "fp16": 0x7A5A, "bf16": 0x7B5A},
)
_POISON_BYTE = (0xA5, 0x5A)
_GUARD_BYTE = (0xC3, 0x3C)
PAGE = mmap.PAGESIZE
GUARD = max(4096, PAGE)
_SHIFT = 3 * PAGE


def poison(type_: str, second: bool = False) -> bytes:
    """The bytes of one element that was never written."""
    size, bits = ITEMSIZE[type_], _POISON_BITS[second]
    return bits[type_].to_bytes(size, "little") if type_ in bits else bytes([_POISON_BYTE[second]]) * size


def guard_byte(second: bool = False) -> int:
    return _GUARD_BYTE[second]


def is_poison(stored: np.ndarray[Any, Any], type_: str, second: bool = False) -> np.ndarray[Any, Any]:
    """Boolean mask of the elements that still hold the poison pattern."""
    bits = np.dtype(f"<u{ITEMSIZE[type_]}")
    return np.asarray(stored.view(bits) == int.from_bytes(poison(type_, second), "little"))


def encode(array: Any, type_: str) -> np.ndarray[Any, Any]:
    """Numbers to a contiguous stored array, rounding to nearest even; out of range becomes infinity."""
    values = np.asarray(array)
    if type_ != "bf16":
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype=STORAGE[type_], order="C")
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=np.float32, order="C")
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = np.isnan(single)
    if quiet.any():
        rounded = np.where(quiet, (bits >> np.uint32(16)) | np.uint32(0x40), rounded)
    return rounded.astype(np.uint16)


def decode(stored: np.ndarray[Any, Any], type_: str) -> np.ndarray[Any, Any]:
    """Stored bits to numbers: float64 for floating types (exact), the integer type itself otherwise."""
    if type_ == "bf16":
        single = (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return single.astype(np.float64)
    return stored.astype(np.float64) if type_ in FLOATS else stored


RECIPES = ("normal", "ties", "large", "offset", "tiny")
LARGE, TINY = 1e3, 1e-3


def recipe_of(seed: int) -> str:
    """The distribution that a seed stands for, so that one number replays a case."""
    return RECIPES[seed % len(RECIPES)]


class Rng:
    """The values that a workload may draw. Equal seeds give equal values in every process.

    recipe: what ``normal`` gives. All recipes draw the same numbers and then change their character.
    library: the module that computes with what is drawn.
    """

    library: Any = np

    def __init__(self, seed: int, recipe: str = "normal") -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))
        self._second = np.random.Generator(np.random.PCG64([seed, 1]))
        self.recipe = recipe

    def normal(self, *shape: int) -> np.ndarray[Any, Any]:
        drawn = np.asarray(self._generator.standard_normal(shape, dtype=np.float32))
        return drawn if self.recipe == "normal" else self._changed(drawn)

    def uniform(self, *shape: int) -> np.ndarray[Any, Any]:
        return self._generator.random(shape, dtype=np.float32)

    def integers(self, low: int, high: int, *shape: int) -> np.ndarray[Any, Any]:
        return self._generator.integers(low, high, shape)

    def array(self, values: Any) -> np.ndarray[Any, Any]:
        return np.asarray(values)

    def _changed(self, drawn: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """``normal`` with another character; docs/gate.md has the list."""
        if self.recipe in ("large", "tiny"):
            return drawn * np.float32(LARGE if self.recipe == "large" else TINY)
        if self.recipe == "offset":  # nearly uniform on (1, 2)
            return 1 + 1 / (1 + np.exp(np.float32(-1.7) * drawn))
        flat = drawn.reshape(-1)
        begin, end = block(flat.size, self._second.random())
        if self.recipe == "ties":  # five values, and a block of exact zeros
            flat = np.clip(np.rint(flat * 2), -2, 2) / 2
            flat[begin:end] = 0
        else:  # "perturbed": the same numbers but in one block
            flat[begin:end] = 2 * self._second.standard_normal(end - begin, dtype=np.float32)
        return flat.reshape(drawn.shape)


def block(size: int, where: float) -> tuple[int, int]:
    """An eighth of ``size`` elements, at least one, beginning at the part ``where`` of what is possible."""
    length = max(1, size // 8)
    begin = int(where * (size - length + 1))
    return begin, begin + length


@dataclass(frozen=True)
class Slot:
    """Where one buffer lies: ``offset`` and ``size`` in bytes, page-aligned but for its own shift, guards on both
    sides."""

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


def layout(
    tensors: dict[str, tuple[str, tuple[int, ...]]],
    second: bool = False,
    shifts: dict[str, int] | None = None,
) -> tuple[tuple[Slot, ...], int]:
    """Place every buffer in one region. Returns the slots and the bytes that the region needs.

    second: another placement, in which every buffer has another address and other neighbours.
    shifts: bytes, less than a page, that a buffer begins behind the boundary of one.
    """
    slots: list[Slot] = []
    position = GUARD + (_SHIFT if second else 0)
    order = reversed(tensors.items()) if second else tensors.items()
    for name, (type_, shape) in order:
        size = ITEMSIZE[type_]
        for extent in shape:
            size *= extent
        position += (shifts or {}).get(name, 0)
        slots.append(Slot(name, type_, shape, position, size))
        position = -(-(position + size + GUARD) // PAGE) * PAGE
    return tuple(slots), position


def fill(
    region: np.ndarray[Any, Any], slots: tuple[Slot, ...], inputs: dict[str, Any], second: bool = False
) -> None:
    """Lay out one case in ``region`` (bytes): guard bytes, the stored inputs, poison everywhere else."""
    position = 0
    for slot in slots:
        region[position : slot.offset] = guard_byte(second)
        data = region[slot.offset : slot.end]
        if slot.name in inputs:
            data[:] = inputs[slot.name].reshape(-1).view(np.uint8)
        else:
            data.reshape(-1, ITEMSIZE[slot.type])[:] = np.frombuffer(poison(slot.type, second), np.uint8)
        position = slot.end
    region[position : _end(slots)] = guard_byte(second)


def _end(slots: tuple[Slot, ...]) -> int:
    return -(-(slots[-1].end + GUARD) // PAGE) * PAGE if slots else GUARD


def stored(region: np.ndarray[Any, Any], slot: Slot) -> np.ndarray[Any, Any]:
    """The slot's elements, as a view into the region, in storage type and shape."""
    return region[slot.offset : slot.end].view(STORAGE[slot.type]).reshape(slot.shape)


def broken_guard(
    region: np.ndarray[Any, Any], slots: tuple[Slot, ...], second: bool = False
) -> tuple[str, str, int] | None:
    """The first guard zone that was written to: (buffer, "before" or "after", bytes away from it)."""
    position = 0
    previous: Slot | None = None
    for slot in (*slots, None):
        stop = slot.offset if slot else _end(slots)
        changed = np.flatnonzero(region[position:stop] != guard_byte(second))
        if changed.size:
            first, last = int(changed[0]), int(changed[-1])
            if previous is not None and first < GUARD:
                return previous.name, "after", first
            return (slot or slots[-1]).name, "before", stop - position - last
        position, previous = (slot.end, slot) if slot else (stop, previous)
    return None
