"""The buffers that an interpreted kernel may touch, and the check of every lane against them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from klineage.worker import triton_counts as counts
from klineage.worker.faults import KernelFault


@dataclass(frozen=True)
class Buffer:
    """Addresses ``start`` to ``end`` (exclusive); ``tensor`` keeps the memory from being reused."""

    name: str
    start: int
    end: int
    tensor: Any = None


_buffers: list[Buffer] = []
_state: dict[str, Any] = {"path": "", "kernel": "", "oob_read": 0}


def begin(path: str, tensors: dict[str, Any], oob_read: int = 0) -> None:
    """Forget all buffers and register the extents of ``tensors`` (a view's own extent, not its storage's).

    oob_read: how many bytes past the end of a buffer a load may reach.
    """
    _buffers.clear()
    _state.update(path=path, kernel="", oob_read=oob_read)
    for name, tensor in tensors.items():
        start = tensor.data_ptr()
        elements = 0
        if tensor.numel():
            elements = 1 + sum((n - 1) * s for n, s in _axes(tensor))
        _buffers.append(Buffer(name, start, start + elements * tensor.element_size(), tensor))


def _axes(tensor: Any) -> list[tuple[int, int]]:
    return [(tensor.shape[axis], tensor.stride(axis)) for axis in range(tensor.dim())]


def enter_kernel(name: str) -> None:
    _state["kernel"] = name


def buffer_of(tensor: Any, name: str) -> Buffer:
    """The buffer that holds a launch argument, under the kernel's own name for it.

    One that is not registered yet (allocated in the entry) is registered with its whole storage.
    """
    address = tensor.data_ptr()
    known = next((b for b in _buffers if b.start <= address < b.end), None)
    if known is None:
        storage = tensor.untyped_storage()
        known = Buffer(name, storage.data_ptr(), storage.data_ptr() + storage.nbytes(), tensor)
        _buffers.append(known)
    return Buffer(name, known.start, known.end)


def home_of(pointers: Any, address: int) -> Buffer | None:
    """The buffer that pointers came from, or else the one at ``address``."""
    origin = getattr(pointers, "origin", None)
    return origin if origin is not None else next((b for b in _buffers if b.start <= address < b.end), None)


def check(kind: str, pointers: Any, mask: Any, itemsize: int, program: tuple[int, ...]) -> int:
    """Count one memory operation and check its active lanes; returns how many lanes were active.

    ``pointers``: a handle whose ``data`` holds byte addresses, shape of the block; ``mask``: a handle or
    a bool array of the same shape, or None.
    Raises KernelFault("out_of_bounds") naming the line, the program and the first bad lane.
    """
    addresses = pointers.data
    on = mask if mask is None or isinstance(mask, np.ndarray) else mask.data
    if on is not None and on.dtype != np.bool_:
        on = on.astype(np.bool_)
    active = addresses.size if on is None else int(np.count_nonzero(on))
    counts.add("masked_lanes", addresses.size - active)
    if active == 0:
        return 0
    full = active == addresses.size
    touched = addresses if full else addresses[on]
    low, high = int(touched.min()), int(touched.max())
    counts.add("contiguous_runs", active - _neighbours(addresses, None if full else on, itemsize))
    origin = getattr(pointers, "origin", None)
    home = home_of(pointers, low)
    slack = _state["oob_read"] if kind == "load" else 0
    if home is None or low < home.start or high + itemsize > home.end + slack:
        _diagnose(kind, addresses, on, itemsize, program, origin, slack)
    return active


def _neighbours(addresses: Any, mask: Any, itemsize: int) -> int:
    """How many active lanes directly follow an active lane in memory, along the best axis of the block."""
    best = 0
    for axis, extent in enumerate(addresses.shape):
        if extent == 1:
            continue
        ahead = (slice(None),) * axis + (slice(1, None),)
        behind = (slice(None),) * axis + (slice(None, -1),)
        follows = addresses[ahead] - addresses[behind] == itemsize
        if mask is not None:
            follows &= mask[ahead] & mask[behind]
        best = max(best, int(np.count_nonzero(follows)))
    return best


def _diagnose(
    kind: str,
    addresses: Any,
    mask: Any,
    itemsize: int,
    program: tuple[int, ...],
    origin: Buffer | None,
    slack: int,
) -> None:
    """Raise for the first bad lane. Pointers of unknown origin may lie in any buffer, lane by lane."""
    allowed = [origin] if origin is not None else _buffers
    good = np.zeros(addresses.shape, dtype=bool)
    for buffer in allowed:
        last = (
            buffer.end + slack - itemsize
        )  # compared without adding to an address, which could wrap to zero
        if last >= buffer.start:
            good |= (addresses >= buffer.start) & (addresses <= last)
    bad = ~good if mask is None else ~good & mask
    if not bad.any():
        return
    lane = tuple(int(i) for i in np.argwhere(bad)[0])
    address = int(addresses[lane])
    target = origin or _nearest(address)
    function, line = where()
    message = f"line {line}: {kind} in {function}, program {program}, block lane {lane}"
    details: dict[str, object] = {
        "line": line,
        "program": list(program),
        "lane": list(lane),
        "lanes": int(bad.sum()),
    }
    if target is not None:
        offset = _signed(address - target.start) // itemsize
        extent = (target.end - target.start) // itemsize
        side = "before the start" if offset < 0 else "past the end"
        message += f", is {side} of {target.name}: element {offset} of {extent}"
        details.update(pointer=target.name, offset=offset, extent=extent)
    raise KernelFault("out_of_bounds", f"{message} ({int(bad.sum())} such lanes)", **details)


def _nearest(address: int) -> Buffer | None:
    return min(_buffers, key=lambda b: min(abs(address - b.start), abs(address - b.end)), default=None)


def _signed(distance: int) -> int:
    """A distance of addresses that may have wrapped at 64 bits."""
    wrapped = distance & (2**64 - 1)
    return wrapped - 2**64 if wrapped >= 2**63 else wrapped


def where() -> tuple[str, int]:
    """Function and line of the kernel's own source that is running now; ("kernel", 0) when none is."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _state["path"]:
            return frame.f_code.co_name, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return str(_state["kernel"]) or "kernel", 0
