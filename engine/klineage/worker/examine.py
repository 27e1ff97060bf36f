"""What a kernel left in its buffers, judged: one case, by someone who knows the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from klineage.worker import buffers, on_device
from klineage.worker.compare import Comparison, compare, describe
from klineage.worker.problem import Problem

Region = np.ndarray[Any, Any]
Slots = tuple[buffers.Slot, ...]


@dataclass
class Case:
    """One case as the judge knows it. On a GPU ``inputs`` and ``expected`` are tensors of ``device``."""

    problem: Problem
    told: dict[str, Any]  # size, dims, seed, recipe, variant
    inputs: dict[str, Any]
    expected: dict[str, Any]
    slots: Slots
    device: str | None = None
    atomics: bool = False
    outputs: dict[str, Any] = field(default_factory=dict)  # what the kernel wrote, if a later case asks

    @property
    def second(self) -> bool:
        """Whether the buffers lay elsewhere, with the other poison."""
        return bool(self.told["variant"] == "again")

    def slot(self, name: str) -> buffers.Slot:
        return next(slot for slot in self.slots if slot.name == name)


def examine(case: Case, region: Region, base: Case | None) -> dict[str, Any]:
    """What is in the region after the kernel: ``{"worst", "rtol", "rms"}``, plus a failure if there is one.

    base: the case that a variant repeats or changes.
    """
    failure = _outside(case, region) or _inputs(case, region)
    if failure:
        return failure
    variant = case.told["variant"]
    if variant == "ghost":
        return _ghost(case, region) or {"worst": 0.0, "rtol": 0.0, "rms": 0.0}
    outputs = {name: _stored(case, region, name) for name in case.problem.outputs}
    if case.told.get("keep"):
        case.outputs = {name: array.copy() for name, array in outputs.items()}
    if variant == "again" and base is not None:
        different = _different(case, base, outputs)
        if different is None or not case.atomics:
            return different or {"worst": 0.0, "rtol": 0.0, "rms": 0.0}
    elif case.told["recipe"] != "normal" and not _comparable(case):
        return {"worst": 0.0, "rtol": 0.0, "rms": 0.0, "skipped": True}
    return values_of(case, outputs, base if variant == "perturbed" else None)


def _stored(case: Case, region: Region, name: str) -> np.ndarray[Any, Any]:
    return buffers.stored(region, case.slot(name))


def _outside(case: Case, region: Region) -> dict[str, Any] | None:
    broken = buffers.broken_guard(region, case.slots, case.second)
    if not broken:
        return None
    name, side, distance = broken
    end = "after the end" if side == "after" else "before the start"
    return failure(case, "out_of_bounds", f"wrote {distance} bytes {end} of {name}", output=name)


def _inputs(case: Case, region: Region) -> dict[str, Any] | None:
    for name, original in case.inputs.items():
        if name in case.problem.mutates or name in case.problem.outputs:
            continue
        index: list[int] | None = []
        if case.device is None:
            index = _first_change(_stored(case, region, name), original)
        elif on_device.kept(region, case.slot(name), original):
            index = None
        if index is not None:
            text = f"changed its input {name}, which it may only read"
            return failure(case, "input_changed", text, output=name, index=index)
    return None


def _first_change(array: np.ndarray[Any, Any], original: np.ndarray[Any, Any]) -> list[int] | None:
    """The first element whose bits differ (so that a NaN equals itself), or None."""
    bits = np.dtype(f"<u{array.dtype.itemsize}")
    changed = array.reshape(-1).view(bits) != original.reshape(-1).view(bits)
    if not changed.any():
        return None
    return [int(i) for i in np.unravel_index(int(np.argmax(changed)), array.shape)] if array.shape else []


def _ghost(case: Case, region: Region) -> dict[str, Any] | None:
    """Nothing may have come into an output while the kernels were empty."""
    for name in case.problem.outputs:
        array, slot = _stored(case, region, name), case.slot(name)
        if name in case.inputs:
            initial = _host(case, case.inputs[name], slot)
        else:
            raw = np.frombuffer(buffers.poison(slot.type), array.dtype)
            initial = np.full(array.shape, raw[0], array.dtype)
        index = _first_change(array, initial)
        if index is not None:
            value = describe(buffers.decode(array[tuple(index)].reshape(1), slot.type)[0])
            text = (
                f"{_at(name, index)} is {_short(value)} although every kernel was empty: host code wrote it"
            )
            return failure(case, "host_output", text, output=name, index=index, got=value)
    return None


def _host(case: Case, original: Any, slot: buffers.Slot) -> np.ndarray[Any, Any]:
    if case.device is None:
        return np.asarray(original)
    raw = original.cpu().reshape(-1).view(on_device.dtype("uint8")).numpy()
    return np.asarray(raw.view(buffers.STORAGE[slot.type]).reshape(slot.shape))


def _different(case: Case, base: Case, outputs: dict[str, Any]) -> dict[str, Any] | None:
    """The first output that is not, bit for bit, what the same inputs gave before."""
    for name, array in outputs.items():
        before = base.outputs[name]
        index = _first_change(array, before)
        if index is None:
            continue
        type_, at = case.slot(name).type, tuple(index)
        if buffers.is_poison(array[at].reshape(1), type_, True)[0]:
            text = f"wrote {_at(name, index)} in one run and not in the next, on the same inputs"
            return failure(case, "unwritten", text, output=name, index=index, got="poison")
        one, other = (describe(buffers.decode(a[at].reshape(1), type_)[0]) for a in (before, array))
        text = (
            f"{_at(name, index)} is {_short(one)} in one run and {_short(other)} in the next, on the same inputs "
            "(other addresses, other poison)"
        )
        return failure(case, "nondeterministic", text, output=name, index=index, got=other, expected=one)
    return None


def _comparable(case: Case) -> bool:
    """Whether the reference stays in the range of the types: beyond it, rounding decides what is infinite."""
    for name, wanted in case.expected.items():
        type_ = case.slot(name).type
        if type_ in buffers.FLOATS and not bool((abs(wanted) <= buffers.LARGEST[type_] / 2).all()):
            return False
    return True


def values_of(case: Case, outputs: dict[str, Any], base: Case | None = None) -> dict[str, Any]:
    """Stored outputs against the expected ones: as ``examine``, whatever lies around them."""
    problem, dims = case.problem, case.told["dims"]
    if problem.compares:
        return _own_comparison(case, outputs)
    worst, tolerance, rms = 0.0, 0.0, 0.0
    for name in problem.outputs:
        type_ = case.slot(name).type
        rtol = problem.rtol(type_, dims)
        found = _compared(case, name, outputs[name], rtol)
        if not found.ok:
            return _mismatch(case, name, found, outputs[name], base)
        rms = max(rms, found.rms / rtol if rtol else 0.0)
        if rtol and (tolerance == 0 or found.worst / rtol > worst / tolerance):
            worst, tolerance = found.worst, rtol
    return {"worst": worst, "rtol": tolerance, "rms": rms}


def _compared(case: Case, name: str, array: np.ndarray[Any, Any], rtol: float) -> Comparison:
    type_, wanted = case.slot(name).type, case.expected[name]
    if case.device is not None:
        got = _upload(case, name, array)
        right, worst, rms = on_device.errors(got, wanted, type_, rtol, case.second)
        if right:
            return Comparison(0, 0, array.size, worst, rtol, rms=rms)
        wanted = wanted.cpu().numpy()
    return compare(array, wanted, type_, rtol, case.second)


def _upload(case: Case, name: str, array: np.ndarray[Any, Any]) -> Any:
    import torch

    raw = torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).to(case.device)
    return raw.view(on_device.dtype(case.slot(name).type)).view(array.shape)


def _own_comparison(case: Case, outputs: dict[str, Any]) -> dict[str, Any]:
    """Poison is ours to find; the rest is the workload's to say."""
    for name, array in outputs.items():
        type_ = case.slot(name).type
        left = buffers.is_poison(array, type_, case.second)
        if type_ in buffers.FLOATS and left.any():
            found = Comparison(int(left.sum()), int(left.sum()), array.size, 0.0, 0.0, (), "poison")
            return _mismatch(case, name, found, array, None)
    got: dict[str, Any] = outputs
    if case.device is not None:
        got = {name: _upload(case, name, array) for name, array in outputs.items()}
    said = case.problem.complaint(got, case.expected, case.inputs, case.told["dims"], case.device)
    if said is None:
        return {"worst": 0.0, "rtol": 0.0, "rms": 0.0}
    return failure(case, "mismatch", said)


def _mismatch(
    case: Case, name: str, found: Comparison, array: np.ndarray[Any, Any], base: Case | None
) -> dict[str, Any]:
    numbers = {
        "wrong": found.wrong,
        "unwritten": found.unwritten,
        "total": found.total,
        "worst": found.worst,
        "rtol": found.rtol,
    }
    index = list(found.index or ())
    where = {"output": name, "index": index, "got": found.got, "expected": found.expected}
    if found.unwritten and found.unwritten == found.wrong:
        text = f"never wrote {found.unwritten:,} of {found.total:,} elements of {name}"
        return failure(case, "unwritten", text, numbers=numbers, **where)
    if base is not None and _same_bits(array, base.outputs[name], index):
        text = f"{_at(name, index)} stayed {_short(found.got)} when inputs that it depends on changed"
        return failure(case, "insensitive", text, numbers=numbers, **where)
    values = f"{_at(name, index)} is {_short(found.got)}, not {_short(found.expected)}"
    text = f"{values}; {found.wrong:,} of {found.total:,} elements are wrong"
    return failure(case, "mismatch", text, numbers=numbers, **where)


def _same_bits(array: np.ndarray[Any, Any], before: np.ndarray[Any, Any], index: list[int]) -> bool:
    return bool(array[tuple(index)].tobytes() == before[tuple(index)].tobytes())


def _at(name: str, index: list[int]) -> str:
    return f"{name}[{', '.join(str(i) for i in index)}]"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def failure(case: Case, reason: str, text: str, **details: Any) -> dict[str, Any]:
    """A failure as it travels, with the case that shows it."""
    told = case.told
    place = {"index": [], "output": "", "got": "", "expected": "", **details}
    character = "" if told["recipe"] in ("normal", "perturbed") else f", {told['recipe']} inputs"
    summary = f"{text} (size {told['size']}{character})"
    return {"failure": {"reason": reason, "summary": summary, "case": told, **place}}
