"""What all executors share: warm parents by kind and device, taken in turn, checked and replaced."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from klineage.executor.parent import CANCEL_POLL, Cancelled, Died, Parent, Progress
from klineage.platform import Machine

MOST_FAILURES = 3
_SHORT = 0.05  # seconds for a worker that has nothing to finish
_DEVICE_ERROR = re.compile(
    r"CUDA error|CUDA_ERROR|cudaError|device-side assert|illegal memory access|misaligned address|"
    r"unspecified launch failure|fallen off the bus|uncorrectable ECC"
)


@dataclass
class Slot:
    """A place for one worker. ``device`` is what CUDA_VISIBLE_DEVICES says there; empty when it says nothing."""

    kind: str
    device: str = ""
    parent: Parent | None = None
    starting: Parent | None = None  # not ready yet
    busy: bool = False
    warming: bool = False  # busy only because it starts: it will be free in a moment
    suspect: bool = False  # its device must show that it works before the next job
    failures: int = 0  # of the device, in a row


class Executor(ABC):
    """Workers of one machine. Safe from several threads: one job a kind, and one a GPU, at a time.

    ``place`` names the machine in sentences. ``here``: files of this machine are files of its workers.
    """

    place = "this machine"
    here = True

    def __init__(self) -> None:
        self._slots: dict[str, list[Slot]] = {}
        self._turn = threading.Condition()
        self._closings = 0

    @abstractmethod
    def _launch(self, kind: str, device: str) -> Parent:
        """Start a worker. Raises Died when it cannot be started."""

    @abstractmethod
    def machine(self, cancel: threading.Event | None = None) -> Machine:
        """What the machine is. Raises Died when it cannot be asked."""

    def sees_gpu(self) -> bool:
        """Whether there is a sign of a GPU that needs no question; without one, ``machine`` knows."""
        return False

    def _devices(self, cancel: threading.Event | None) -> list[str]:
        """The GPUs to share jobs among: those that are like the first. An only one is left to the driver to find."""
        gpus = self.machine(cancel).gpus
        alike = [gpu.uuid for gpu in gpus if gpu.name == gpus[0].name and gpu.uuid]
        return alike if len(alike) > 1 else [""]

    def submit(
        self,
        kind: str,
        job: dict[str, Any],
        on_progress: Progress | None = None,
        timeout: float = 600.0,
        cancel: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Run a job and return its result, a dict with ``verdict``, ``reason`` and ``summary``.

        A worker that dies is replaced; the job that it had becomes an error result, never an exception.
        Raises Cancelled within a tenth of a second of ``cancel``, with the job's processes gone.
        """
        try:
            with self._taken(kind, cancel) as slot:
                return self._run(slot, job, on_progress, timeout, cancel)
        except Died as died:
            return self._failure(kind, died, "")

    def _run(
        self,
        slot: Slot,
        job: dict[str, Any],
        on_progress: Progress | None,
        timeout: float,
        cancel: threading.Event | None,
    ) -> dict[str, Any]:
        try:
            ill = self._examine(slot, cancel)
            if ill is not None:
                return ill
            answer = self._running(slot, cancel).submit(job, on_progress, timeout, cancel)
        except Died as died:
            words = self._discard(slot) or died.words
            return self._failure(slot.kind, died, words)
        if slot.kind == "gpu" and device_error(answer):
            slot.suspect = True
        return answer

    def _failure(self, kind: str, died: Died, words: str) -> dict[str, Any]:
        said = (
            str(died) if died.complete else f"the {kind} worker {died}; a new one starts with the next gate"
        )
        return {"verdict": "error", "reason": died.reason, "summary": said, "log": words}

    def _examine(self, slot: Slot, cancel: threading.Event | None) -> dict[str, Any] | None:
        """After a device error: does the device still work? An error result when it does not."""
        if not slot.suspect:
            return None
        name = slot.device or "the GPU"
        if slot.failures < MOST_FAILURES:
            health = self._running(slot, cancel).submit({"op": "health"}, None, 90, cancel)
            if health["verdict"] == "pass":
                slot.suspect, slot.failures = False, 0
                return None
            slot.failures += 1
            self._discard(slot)
            if slot.failures < MOST_FAILURES:
                text = f"{name} on {self.place} failed its check before the gate: {health['summary']}; gate again"
                return {"verdict": "error", "reason": "device", "summary": text}
        text = (
            f"{name} on {self.place} failed {MOST_FAILURES} checks in a row and is used no more; "
            "look at nvidia-smi, reset or restart the machine, then start klineage again"
        )
        return {"verdict": "error", "reason": "device", "summary": text}

    def versions(self, kind: str, cancel: threading.Event | None = None) -> dict[str, str]:
        """Versions of what the kind's worker, started if need be, could import; empty if it cannot start."""
        try:
            with self._taken(kind, cancel, warming=True) as slot:
                try:
                    return dict(self._running(slot, cancel).versions)
                except Died:
                    self._discard(slot)
                    return {}
        except Died:
            return {}

    def runs(self, kind: str) -> bool:
        """Whether a worker of the kind has started and is there."""
        parents = [slot.parent for slot in self._slots.get(kind, [])]
        return any(parent is not None and parent.alive() for parent in parents)

    @property
    def closings(self) -> int:
        """How often it was closed: whoever begins something for later looks whether it still should."""
        return self._closings

    def pids(self) -> tuple[int, ...]:
        """The workers' own processes on this machine that run now."""
        parents = [slot.parent for slots in list(self._slots.values()) for slot in slots]
        return tuple(parent.pid for parent in parents if parent is not None and parent.alive())

    def close(self) -> None:
        """End every worker and all of their children; one that is just starting too, by whoever waits for it.

        A job that runs has an error for an answer.
        """
        idle: list[Parent] = []
        busy: list[Parent] = []
        with self._turn:
            self._closings += 1
            for slot in (slot for slots in self._slots.values() for slot in slots):
                if slot.starting is not None:
                    slot.starting.dismiss(starting=True)
                if slot.parent is not None:
                    slot.parent.dismiss(starting=False)  # all at once: each takes its time
                    (busy if slot.busy else idle).append(slot.parent)
                slot.parent = slot.parent if slot.busy else None
        for parent in idle:
            self._put_away(parent)
        for parent in busy:  # whoever has a job there reads to the end, and puts its lines away
            parent.end()
            if self.here:
                parent.tidy()

    @contextmanager
    def _taken(self, kind: str, cancel: threading.Event | None, warming: bool = False) -> Iterator[Slot]:
        """A free place for the kind, waited for if need be; also while a worker starts: a second would take longer."""
        slots = self._of(kind, cancel)
        with self._turn:
            while True:
                free = [slot for slot in slots if not slot.busy]
                slot = min(free, key=lambda s: (s.failures, s.parent is None), default=None)
                if slot and (slot.parent is not None or not any(other.warming for other in slots)):
                    slot.busy, slot.warming = True, warming
                    break
                self._turn.wait(CANCEL_POLL if cancel is not None else 1.0)
                if cancel is not None and cancel.is_set():
                    raise Cancelled
        try:
            yield slot
        finally:
            with self._turn:
                slot.busy = slot.warming = False
                self._turn.notify_all()

    def _of(self, kind: str, cancel: threading.Event | None) -> list[Slot]:
        if kind not in self._slots:
            devices = self._devices(cancel) if kind == "gpu" else [""]
            with self._turn:
                self._slots.setdefault(kind, [Slot(kind, device) for device in devices])
        return self._slots[kind]

    def _running(self, slot: Slot, cancel: threading.Event | None) -> Parent:
        parent = slot.parent
        if parent is not None and parent.alive():
            return parent
        self._discard(slot)
        closings = self._closings
        parent = self._launch(slot.kind, slot.device)
        try:
            with self._turn:
                slot.starting = parent
                if closings != self._closings:  # between the look and the launch
                    parent.dismiss(starting=True)
            parent.greet(cancel)
            with self._turn:
                if closings != self._closings:
                    raise Died("was ended while it started")
                slot.parent = parent
        except Died as died:
            explained = self._explained(parent, died)
            explained.words = parent.last_words()
            self._give_up(parent)
            if cancel is not None and cancel.is_set():  # whoever cancels does not care how it ended
                raise Cancelled from died
            raise explained from died
        except BaseException:
            self._give_up(parent)
            raise
        finally:
            slot.starting = None
        return parent

    def _give_up(self, parent: Parent) -> None:
        """End a worker that has not started, and remove what it leaves."""
        parent.dismiss(starting=True)
        parent.close(_SHORT)
        if self.here:
            parent.tidy()

    def _explained(self, parent: Parent, died: Died) -> Died:
        """What a death means here."""
        return died

    def _discard(self, slot: Slot) -> str:
        parent, slot.parent = slot.parent, None
        if parent is None:
            return ""
        return self._put_away(parent)

    def _put_away(self, parent: Parent) -> str:
        words = parent.last_words()
        parent.close()
        if self.here:
            parent.tidy()
        return words


def device_error(answer: dict[str, Any]) -> bool:
    """Whether the device, and not only the kernel, may be in a bad state after this."""
    if answer["verdict"] == "timeout" or answer["reason"] == "crashed":
        return True
    return bool(_DEVICE_ERROR.search(f"{answer['summary']} {answer.get('log') or ''}"))
