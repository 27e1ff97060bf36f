"""Races between the programs of one interpreted launch: who wrote, who read, and did they take turns?

Programs run one after the other here, so a race never shows in the result. It shows in who touched what: two
programs of one launch may share memory only by atomics, or where both write the same value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from klineage.worker import triton_memory as memory
from klineage.worker.faults import KernelFault

_MANY = -1  # read by several programs
_KEPT = 256  # addresses of atomics remembered for each program


class _Launch:
    """Per byte of each buffer: 1 + the number of the program that wrote it last, and that read it."""

    def __init__(self) -> None:
        self.writers: dict[int, Any] = {}
        self.readers: dict[int, Any] = {}
        self.atomics: dict[int, set[int]] = {}

    def of(self, buffer: memory.Buffer) -> tuple[Any, Any]:
        if buffer.start not in self.writers:
            size = buffer.end - buffer.start
            self.writers[buffer.start] = np.zeros(size, np.int32)
            self.readers[buffer.start] = np.zeros(size, np.int32)
        return self.writers[buffer.start], self.readers[buffer.start]

    def took_turns(self, one: int, other: int) -> bool:
        """Whether both programs used an atomic at the same address: a lock, a counter, a flag.

        Of several readers nobody knows who: then it is enough that one other program took turns.
        """
        if other == _MANY:
            return any(self.took_turns(one, known) for known in self.atomics if known != one)
        return bool(self.atomics.get(one, set()) & self.atomics.get(other, set()))


_state = [_Launch()]


def begin_launch() -> None:
    """Forget the launch before: launches are ordered."""
    _state[0] = _Launch()


def _touched(pointers: Any, mask: Any) -> tuple[memory.Buffer | None, Any, Any]:
    """The buffer, the active lanes' offsets in it, and the flat mask."""
    addresses = pointers.data.reshape(-1)
    on = mask if mask is None or isinstance(mask, np.ndarray) else mask.data
    lanes = None if on is None else np.broadcast_to(on, pointers.data.shape).reshape(-1).astype(np.bool_)
    active = addresses if lanes is None else addresses[lanes]
    if active.size == 0:
        return None, active, lanes
    buffer = memory.home_of(pointers, int(active.min()))
    if buffer is None or int(active.max()) >= buffer.end:
        return None, active, lanes
    return buffer, (active - np.uint64(buffer.start)).astype(np.int64), lanes


def loaded(pointers: Any, mask: Any, program: int) -> None:
    """Program number ``program`` (from 0) reads. Raises KernelFault("race")."""
    buffer, at, _ = _touched(pointers, mask)
    if buffer is None:
        return
    launch, me = _state[0], program + 1
    writers, readers = launch.of(buffer)
    _check("reads", "wrote", buffer, at, writers[at], None, me)
    before = readers[at]
    readers[at] = np.where((before == 0) | (before == me), me, _MANY)


def stored(pointers: Any, mask: Any, changed: Any, program: int) -> None:
    """Program number ``program`` writes. ``changed`` says which active lanes change what is there, when called."""
    buffer, at, lanes = _touched(pointers, mask)
    if buffer is None:
        return
    launch, me = _state[0], program + 1
    writers, readers = launch.of(buffer)
    wrote, read = writers[at], readers[at]
    if ((wrote != 0) & (wrote != me)).any() or ((read != 0) & (read != me)).any():
        differs = changed().reshape(-1)
        differs = differs if lanes is None else differs[lanes]
        _check("overwrites", "wrote", buffer, at, wrote, differs, me)
        _check("overwrites", "read", buffer, at, read, differs, me)
    writers[at] = me


def atomic(pointers: Any, mask: Any, program: int) -> None:
    """Program number ``program`` uses an atomic."""
    buffer, at, _ = _touched(pointers, mask)
    if buffer is None:
        return
    launch, me = _state[0], program + 1
    known = launch.atomics.setdefault(me, set())
    if len(known) < _KEPT:
        known.update((at[:_KEPT] + buffer.start).tolist())
    writers, _ = launch.of(buffer)
    _check("updates", "wrote", buffer, at, writers[at], None, me)


def _check(does: str, did: str, buffer: memory.Buffer, at: Any, owner: Any, differs: Any, me: int) -> None:
    """Raise when a lane belongs to another program that took no turns with this one."""
    foreign = (owner != 0) & (owner != me)
    if differs is not None:
        foreign &= differs
    if not foreign.any():
        return
    for other in np.unique(owner[foreign]).tolist():
        if _state[0].took_turns(me, other):
            continue
        first = int(np.argmax(foreign & (owner == other)))
        function, line = memory.where()
        whom = "another program" if other == _MANY else f"program {other - 1}"
        raise KernelFault(
            "race",
            f"line {line}: program {me - 1} of {function} {does} byte {int(at[first])} of {buffer.name}, which {whom} of the "
            f"same launch {did} without an atomic between them",
            line=line,
        )
