"""What runs around a kernel while it is checked: which device code it launched, or nothing at all.

A *ghost* run has the same host code, the same buffers and empty kernels: what is in an output afterwards
was put there by the host. On a GPU the profiler names every kernel that the device ran, whoever
launched it; only the candidate's own may be among them, beside the filling of fresh memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from klineage.worker.faults import KernelFault

# Where the order of additions is the machine's, results differ by rounding from run to run.
_UNORDERED = re.compile(rb"atomic|\breduction\s*\(")
_FILLING = re.compile(r"^Memset|FillFunctor|fill_kernel", re.IGNORECASE)
# The profiler's own entries beside those of kernels.
_NO_KERNEL = re.compile(
    r"^((Context|Stream|Event|Device) (Sync|Wait)|Activity Buffer|Instrumentation|Command Buffer|Lazy Function|"
    r"Resource$|Driver Compiler|Runtime Triggered)"
)


def unordered(source: bytes) -> bool:
    """Whether the text of a kernel names an atomic operation, or says ``klineage: atomics``."""
    return _UNORDERED.search(source) is not None


@dataclass
class Seen:
    """``launched``: own kernels and the sha256 of their PTX. ``ran``: what the device ran; None if unknown."""

    launched: dict[str, str] = field(default_factory=dict)
    ran: list[str] | None = None

    @property
    def kernels(self) -> dict[str, Any]:
        return {"launched": self.launched, "ran": self.ran}


@contextlib.contextmanager
def surroundings(kind: str, loaded: Any, case: dict[str, Any], backward: bool) -> Iterator[Seen]:
    """Everything that a case wants around its run. ``backward``: a second run may reverse the programs."""
    seen = Seen()
    with contextlib.ExitStack() as stack:
        if kind == "interpreter":
            if case["variant"] == "ghost":
                stack.enter_context(_empty_interpreter())
            if case["variant"] == "again" and backward:
                stack.enter_context(_programs_backward())
        elif kind == "gpu" and getattr(loaded, "entry", None) is not None:
            stack.enter_context(recorded(seen, empty=case["variant"] == "ghost"))
        if case["variant"] == "ghost":
            stack.enter_context(_fills_leave_poison())
        if case["variant"] == "again" and kind != "native":
            stack.enter_context(_other_poison())
        if kind == "gpu" and case.get("watched"):
            stack.enter_context(named(seen, tuple(getattr(loaded, "kernel_names", ()))))
        yield seen


def _other_poison() -> Any:
    from klineage.worker import triton_host

    return triton_host.other_poison()


@contextlib.contextmanager
def _empty_interpreter() -> Iterator[None]:
    from triton.runtime import interpreter

    original = interpreter.GridExecutor.__call__
    interpreter.GridExecutor.__call__ = lambda *_, **__: None
    try:
        yield
    finally:
        interpreter.GridExecutor.__call__ = original


@contextlib.contextmanager
def _programs_backward() -> Iterator[None]:
    from klineage.worker import triton_interpreter

    triton_interpreter.set_program_order(True)
    try:
        yield
    finally:
        triton_interpreter.set_program_order(False)


@contextlib.contextmanager
def recorded(seen: Seen, empty: bool = False) -> Iterator[None]:
    """Note every Triton kernel that is launched inside; with ``empty`` none of them runs."""
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = original(self, *args, **kwargs)
        asm = getattr(kernel, "asm", None)
        if asm is not None and "ptx" in asm:
            name = str(getattr(kernel.metadata, "name", self.__name__))
            codes = {*seen.launched.get(name, "").split(), hashlib.sha256(asm["ptx"].encode()).hexdigest()}
            seen.launched[name] = " ".join(sorted(codes))  # one name may stand for several specialisations
        return kernel

    JITFunction.run = (lambda *_, **__: None) if empty else run
    try:
        yield
    finally:
        JITFunction.run = original


def _fills_leave_poison() -> Any:
    """A context in which setting memory to a constant leaves poison there: it is no work of a kernel."""
    import torch
    from torch.overrides import TorchFunctionMode

    from klineage.worker.triton_host import poison

    fresh = {
        torch.zeros, torch.ones, torch.full, torch.zeros_like, torch.ones_like, torch.full_like,
        torch.Tensor.new_zeros, torch.Tensor.new_ones, torch.Tensor.new_full,
    }  # fmt: skip
    in_place = {torch.Tensor.zero_, torch.Tensor.fill_}

    class GhostMode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in in_place:
                return args[0]
            result = func(*args, **(kwargs or {}))
            if func in fresh and result.numel():
                poison(result)
            return result

    return GhostMode()


@contextlib.contextmanager
def named(seen: Seen, own: tuple[str, ...] = ()) -> Iterator[None]:
    """Let the profiler name what the device runs inside. Raises KernelFault("foreign_kernels", ...).

    own: further kernels that are the candidate's, beside those that were recorded in ``seen``.
    """
    import torch

    profiler = _started()
    try:
        yield
        torch.cuda.synchronize()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # after an illegal access the device answers nothing more
            _stop(profiler)
        raise
    _stop(profiler)
    device = torch.autograd.DeviceType.CUDA
    events = profiler.events() if profiler else []
    names = {str(event.name) for event in events if event.device_type == device}
    ran = sorted(name for name in names if not _NO_KERNEL.search(name))
    refuse_foreign(ran, {*seen.launched, *own})
    seen.ran = sorted({"filling" if _FILLING.search(name) else name for name in ran}) or None


def _started() -> Any:
    """torch's profiler of the device, running; None where there is none. What it prints is nobody's."""
    import torch

    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    with _quiet():
        try:
            profiler.__enter__()
        except (RuntimeError, AssertionError):
            return None
    return profiler


def _stop(profiler: Any) -> None:
    if profiler is not None:
        with _quiet():
            profiler.__exit__(None, None, None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def refuse_foreign(ran: list[str], own: set[str]) -> None:
    """Raises KernelFault when the device ran code that is neither the candidate's nor a filling."""
    foreign = [name for name in ran if name not in own and not _FILLING.search(name)]
    if foreign:
        names = ", ".join(_readable(name) for name in foreign[:4])
        raise KernelFault(
            "foreign_kernels",
            f"the device also ran {names}, which {'is' if len(foreign) == 1 else 'are'} not of this file",
            foreign=foreign,
        )


def _readable(name: str) -> str:
    """The name of a C++ kernel without its template arguments."""
    plain = name.split("<", 1)[0].removeprefix("void ")
    return plain if len(plain) <= 80 else plain[:77] + "..."


@functools.lru_cache(maxsize=1)
def open_profiler() -> None:
    """Start the profiler once in a process, before it is confined: it opens files and the driver's library."""
    import torch

    profiler = _started()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    _stop(profiler)
