"""Tensor maps: what the copy engine of Hopper is told of a buffer (``CUtensorMap``), declared, checked and encoded."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from klineage.worker.faults import KernelFault, WorkerError

BYTES = 128
_ALIGNED = 64
_ELEMENTS = {  # bytes, CUtensorMapDataType
    "int8": (1, 0), "uint8": (1, 0), "int32": (4, 3), "int64": (8, 5),
    "fp16": (2, 6), "fp32": (4, 7), "fp64": (8, 8), "bf16": (2, 9),
}  # fmt: skip
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # bytes: CUtensorMapSwizzle
_L2_PROMOTION_128B = 2
_LARGEST_BOX = 256
_LARGEST_EXTENT, _LARGEST_STRIDE = 1 << 32, 1 << 40


@dataclass(frozen=True)
class TensorMap:
    """A map at given dimensions. ``shape`` and ``box`` in elements, the fastest extent last; ``swizzle`` in bytes."""

    buffer: str
    type: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index to the next, of every extent but the fastest."""
        size = _ELEMENTS[self.type][0]
        return tuple(math.prod(self.shape[i + 1 :]) * size for i in range(len(self.shape) - 1))


def planned(
    declared: dict[str, Any], type_: str, shape: tuple[int, ...], whole: Callable[[Any, str], int], place: str
) -> TensorMap:
    """The declared map of a buffer of this type and shape; ``whole`` gives the number of a tree.

    Raises KernelFault("launch") for what the copy engine cannot do.
    """
    own = tuple(whole(tree, f"{place}: shape") for tree in declared["shape"]) or shape
    box = tuple(whole(tree, f"{place}: box") for tree in declared["box"])
    found = TensorMap(declared["buffer"], type_, own, box, whole(declared["swizzle"], f"{place}: swizzle"))
    wrong = _wrong(found, math.prod(shape))
    if wrong:
        raise KernelFault("launch", f"{place}: {wrong}")
    return found


def _wrong(found: TensorMap, elements: int) -> str:
    """What the copy engine cannot do with this map; empty when nothing."""
    size, inner = _ELEMENTS[found.type][0], found.box[-1] * _ELEMENTS[found.type][0] if found.box else 0
    stride = next((s for s in found.strides if s % 16 or s >= _LARGEST_STRIDE), None)
    if not 1 <= len(found.shape) <= 5 or len(found.box) != len(found.shape):
        return f"shape {found.shape} and box {found.box} must have the same one to five extents"
    if not all(1 <= extent <= _LARGEST_EXTENT for extent in found.shape) or math.prod(found.shape) > elements:
        return f"shape {found.shape} does not fit the {elements} elements of {found.buffer}"
    if not all(1 <= extent <= _LARGEST_BOX for extent in found.box):
        return f"box {found.box} is not between 1 and {_LARGEST_BOX} in each extent"
    if inner % 16:
        return f"box {found.box} has rows of {inner} bytes, which are no multiple of 16"
    if stride is not None:
        return (
            f"shape {found.shape} has {stride} bytes from row to row; the copy engine needs a multiple of 16"
        )
    if found.swizzle not in _SWIZZLES:
        return f"swizzle={found.swizzle} is not 0, 32, 64 or 128 bytes"
    if found.swizzle and inner > found.swizzle:
        return f"box {found.box} has rows of {inner} bytes, more than swizzle={found.swizzle} ({size} an element)"
    return ""


def encoded(found: TensorMap, address: int, driver: Any) -> Any:
    """The 128 bytes that a kernel gets, for the buffer at this address. Raises WorkerError where the driver refuses."""
    rank = len(found.shape)
    room = (ctypes.c_ubyte * (BYTES + _ALIGNED))()
    made = (ctypes.c_ubyte * BYTES).from_buffer(room, -ctypes.addressof(room) % _ALIGNED)
    try:
        encode = driver.cuTensorMapEncodeTiled
    except AttributeError as error:
        raise WorkerError(
            "no_gpu", "the NVIDIA driver here knows no tensor maps; it must be 12.0 or newer"
        ) from error
    status = encode(
        ctypes.byref(made),
        _ELEMENTS[found.type][1],
        rank,
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*reversed(found.shape)),
        (ctypes.c_uint64 * max(1, rank - 1))(*reversed(found.strides)),
        (ctypes.c_uint32 * rank)(*reversed(found.box)),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        0,  # not interleaved
        _SWIZZLES[found.swizzle],
        _L2_PROMOTION_128B,
        0,  # what lies outside reads as zero
    )
    if status != 0:
        raise WorkerError("cuda", f"the driver refuses the tensor map of {found.buffer} ({status})")
    return made
