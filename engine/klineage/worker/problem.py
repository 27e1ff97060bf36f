"""A workload, executed: the buffers of a case, its inputs from a seed, and its reference in fp64.

Whatever goes wrong in here is the workload's fault, so it raises WorkerError with the file and the
function in its sentence, never a fault of the kernel.
"""

from __future__ import annotations

import contextlib
import inspect
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from klineage.worker import answers, on_device
from klineage.worker.buffers import (
    FLOATS,
    ITEMSIZE,
    PAGE,
    RECIPES,
    RELATIVE_TOLERANCE,
    Rng,
    Slot,
    encode,
    layout,
)
from klineage.worker.faults import WorkerError

Tensors = dict[str, tuple[str, tuple[int, ...]]]
LOAD_SECONDS = 60.0  # far more than any import, torch on a busy machine too; what the functions may take is the policy's business
# A child is in a session of its own: nobody interrupts it but the workload itself.
_RAISED = (Exception, SystemExit, KeyboardInterrupt)


@dataclass(frozen=True)
class Problem:
    """An executed workload.py for one element type. ``path`` is how messages name the file."""

    path: str
    element: str
    namespace: dict[str, Any]

    def error(self, function: str, complaint: str) -> WorkerError:
        return WorkerError("workload", f"{self.path}: {function} {complaint}")

    def function(self, name: str) -> Callable[..., Any]:
        function = self.namespace.get(name)
        if not callable(function):
            raise self.error(f"{name}()", "is missing; docs/workloads.md says what it must return")
        found: Callable[..., Any] = function
        return found

    def call(self, name: str, *values: Any, **named: Any) -> Any:
        function = self.function(name)
        try:
            return function(*values, **named)
        except MemoryError:
            raise self.error(f"{name}()", "needs more memory than a gate allows; use smaller sizes") from None
        except _RAISED as error:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self.path]
            where = f" (line {lines[-1]})" if lines else ""
            dims = ", ".join(f"{n}={v}" for n, v in named.items() if isinstance(v, int))
            at = f" for {dims}" if dims else ""
            raise self.error(f"{name}()", f"raised {type(error).__name__}: {error}{where}{at}") from error

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.namespace["OUTPUTS"])

    @property
    def mutates(self) -> tuple[str, ...]:
        return tuple(self.namespace.get("MUTATES", ()))

    @property
    def scalars(self) -> dict[str, float]:
        return dict(self.namespace.get("SCALARS", {}))

    @property
    def recipes(self) -> tuple[str, ...]:
        """The distributions that this workload is checked on."""
        return tuple(self.namespace.get("DISTRIBUTIONS", RECIPES))

    @property
    def as_drawn(self) -> tuple[str, ...]:
        """The inputs whose distribution no recipe changes."""
        return tuple(self.namespace.get("AS_DRAWN", ()))

    @property
    def oob_read(self) -> int:
        """Bytes beyond the end of a buffer that a kernel may read, and ignore."""
        return int(self.namespace.get("OOB_READ", 0))

    @property
    def atomics(self) -> bool:
        """Whether results may differ by rounding from run to run."""
        return bool(self.namespace.get("ATOMICS", False))

    @property
    def offsets(self) -> dict[str, int]:
        """Bytes by which buffers begin behind the boundary of a page; none by default."""
        return dict(self.namespace.get("OFFSETS", {}))

    @property
    def compares(self) -> bool:
        """Whether the workload says itself what is right, with ``compare()``."""
        return "compare" in self.namespace

    def tensors(self, dims: dict[str, int]) -> Tensors:
        """Every buffer, inputs first: name to (type, shape)."""
        answer = self.call("tensors", self.element, **dims)
        if not isinstance(answer, dict):
            raise self.error("tensors()", f"returned {type(answer).__name__}, not {{name: (type, shape)}}")
        checked: Tensors = {}
        for name, entry in answer.items():
            try:
                type_, shape = entry
                extents = tuple(int(extent) for extent in shape)
            except (TypeError, ValueError):
                raise self.error("tensors()", f"gives {entry!r} for {name}, not (type, shape)") from None
            if type_ not in ITEMSIZE:
                raise self.error(
                    "tensors()", f"gives {name} the unknown type {type_!r}; known: {', '.join(ITEMSIZE)}"
                )
            if any(extent < 1 for extent in extents):
                raise self.error(
                    "tensors()", f"gives {name} the shape {extents}; every extent must be positive"
                )
            checked[str(name)] = (type_, extents)
        for name in (*self.outputs, *self.mutates):
            if name not in checked:
                raise self.error("tensors()", f"has no buffer {name}, which OUTPUTS or MUTATES names")
        return checked

    def layout(self, dims: dict[str, int], second: bool = False) -> tuple[tuple[Slot, ...], int]:
        """Where the buffers of these dimensions lie (see ``buffers.layout``)."""
        tensors, offsets = self.tensors(dims), self.offsets
        for name, shift in offsets.items():
            if name not in tensors or shift % ITEMSIZE[tensors[name][0]] or not 0 <= shift < PAGE:
                raise self.error(
                    "OFFSETS",
                    f"shifts {name} by {shift} bytes; give a buffer whole elements, less than a page",
                )
        return layout(tensors, second, offsets)

    def inputs(
        self, seed: int, dims: dict[str, int], recipe: str = "normal", device: str | None = None
    ) -> dict[str, Any]:
        """The stored inputs of one case, reproducible from the seed in any process.

        Arrays, or tensors on ``device``: there the same seed gives other values than here.
        """
        tensors = self.tensors(dims)
        answer = self._drawn(seed, recipe, dims, device)
        needed = [name for name in tensors if name not in self.outputs or name in answer]
        if set(answer) != set(needed):
            missing = ", ".join(sorted(set(needed) ^ set(answer)))
            raise self.error("inputs()", f"and tensors() disagree about {missing}")
        if self.as_drawn and recipe != "normal":
            plain = self._drawn(seed, "normal", dims, device)
            answer = {**answer, **{name: plain[name] for name in self.as_drawn}}
        stored = {}
        for name in needed:
            type_, shape = tensors[name]
            array = encode(answer[name], type_) if device is None else on_device.encode(answer[name], type_)
            if tuple(array.shape) != shape:
                raise self.error(
                    "inputs()", f"gives {name} the shape {tuple(array.shape)}; tensors() says {shape}"
                )
            stored[name] = array
        return stored

    def _drawn(self, seed: int, recipe: str, dims: dict[str, int], device: str | None) -> dict[str, Any]:
        # What imports numpy may use it on what it drew, so it draws arrays of numpy wherever it runs.
        native = any(value is np for value in self.namespace.values())
        rng = Rng(seed, recipe) if device is None or native else on_device.DeviceRng(seed, recipe, device)
        library = {"xp": rng.library} if "xp" in inspect.signature(self.function("inputs")).parameters else {}
        answer = self.call("inputs", rng, **library, **dims)
        if not isinstance(answer, dict):
            raise self.error("inputs()", f"returned {type(answer).__name__}, not {{name: array}}")
        return {n: on_device.place(a, device) for n, a in answer.items()} if device else answer

    def reference(
        self,
        stored: dict[str, Any],
        dims: dict[str, int],
        device: str | None = None,
        decoded: bool = False,
    ) -> dict[str, Any]:
        """The expected outputs: float64 for floating outputs, 64-bit integers for the others.

        Computed with numpy, or with torch on ``device`` (and left there); with torch in any case when it
        takes no ``xp``. decoded: the inputs are numbers already, not as stored.
        """
        return answers.reference(self, stored, dims, device, decoded)

    def complaint(
        self,
        got: dict[str, Any],
        expected: dict[str, Any],
        stored: dict[str, Any],
        dims: dict[str, int],
        device: str | None = None,
    ) -> str | None:
        """What the workload's own ``compare()`` says against the stored outputs ``got``, or None."""
        return answers.complaint(self, got, expected, stored, dims, device)

    def rtol(self, type_: str, dims: dict[str, int]) -> float:
        """Relative tolerance of one output: the workload's own, or the default of its type."""
        if type_ not in FLOATS:
            return 0.0
        if "tolerance" not in self.namespace:
            return RELATIVE_TOLERANCE[type_]
        value = self.call("tolerance", self.element, **dims)
        if not isinstance(value, (int, float)) or not 0 < value < 1:
            raise self.error("tolerance()", f"returned {value!r}, not a number between 0 and 1")
        return float(value)

    def cost(self, dims: dict[str, int]) -> dict[str, float]:
        """Least traffic in bytes, and operations, of one run."""
        answer = self.call("cost", ITEMSIZE[self.element], **dims)
        try:
            return {"bytes": float(answer["bytes"]), "operations": float(answer["operations"])}
        except (TypeError, KeyError, ValueError):
            raise self.error("cost()", "must return {'bytes': number, 'operations': number}") from None

    def unsupported(self, dims: dict[str, int]) -> str | None:
        """A sentence that names the broken constraint of these dimensions, or None."""
        if "unsupported" not in self.namespace:
            return None
        answer = self.call("unsupported", **dims)
        return None if answer is None else str(answer)


@contextlib.contextmanager
def _within(seconds: float, what: str) -> Iterator[None]:
    """Raise WorkerError in a block of Python code that does not end. Only for the main thread of a child."""

    def late(number: int, frame: FrameType | None) -> None:
        raise WorkerError("workload_timeout", f"{what} did not finish within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def load(source: bytes, path: str, element: str) -> Problem:
    """Execute a workload file. Raises WorkerError naming ``path`` and what is wrong with it."""
    if element not in ITEMSIZE:
        raise WorkerError(
            "workload", f"{path}: ELEMENT names the unknown type {element!r}; known: {', '.join(ITEMSIZE)}"
        )
    namespace: dict[str, Any] = {"__name__": "workload", "__file__": path}
    try:
        with _within(LOAD_SECONDS, f"{path}: importing it"):
            exec(compile(source, path, "exec"), namespace)
    except WorkerError:
        raise
    except _RAISED as error:
        raise WorkerError(
            "workload", f"{path}: importing it raised {type(error).__name__}: {error}"
        ) from error
    if "torch" in sys.modules:  # it may have come with the workload, into a child that may have no threads
        sys.modules["torch"].set_num_threads(1)
    problem = Problem(path, element, namespace)
    for name in ("tensors", "inputs", "reference", "cost"):
        problem.function(name)
    if not isinstance(namespace.get("OUTPUTS"), (tuple, list)) or not namespace["OUTPUTS"]:
        raise problem.error("OUTPUTS", "must name at least one output buffer")
    return problem
