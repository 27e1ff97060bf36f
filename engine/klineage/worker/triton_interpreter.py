"""Run Triton kernels on the CPU as a gate needs it: right, checked and counted.

``install`` changes triton's own interpreter for the whole process, once. Set TRITON_INTERPRET=1
before triton is imported; a process that interprets can never compile.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

from klineage.worker import triton_counts, triton_guard
from klineage.worker.faults import WorkerError

_installed = False


def install() -> None:
    """Give triton's interpreter bfloat16, bounds checks, counts and libdevice. Later calls do nothing.

    Raises WorkerError when triton was imported without TRITON_INTERPRET=1.
    """
    global _installed
    if _installed:
        return
    import numpy as np
    import triton

    if not triton.knobs.runtime.interpret:
        raise WorkerError("not_interpreting", "TRITON_INTERPRET=1 must be set before triton is imported")
    np.seterr(all="ignore")  # a GPU says nothing of overflow either
    from triton.runtime import interpreter

    from klineage.worker import triton_reduce, triton_rewrite
    from klineage.worker.triton_builder import CheckedBuilder

    interpreter.interpreter_builder.__class__ = CheckedBuilder
    _patch_language_once(interpreter)
    _patch_launches(interpreter)
    triton_reduce.install(interpreter)
    triton_rewrite.install(interpreter)
    _patch_extras(interpreter)
    _installed = True


def reset_counts() -> None:
    """Start counting from zero."""
    triton_counts.reset()


def counts() -> dict[str, int]:
    """What the kernels did since ``reset_counts``: ``triton_counts.NAMES``, plus ``operations``."""
    return triton_counts.read()


def set_program_order(reverse: bool) -> None:
    """Run the programs of a grid backward: a result that changes shows a race between programs."""
    from klineage.worker.triton_builder import CheckedBuilder

    CheckedBuilder.reverse_programs = reverse


class _NoScope:
    def restore(self) -> None:
        """Nothing was patched for this launch: everything is patched for good."""

    def set_attr(self, obj: Any, name: str, value: Any) -> None:
        setattr(obj, name, value)


def _patch_language_once(interpreter: Any) -> None:
    """Patch triton.language for good. Triton does it again at every device-function call, at great cost."""
    import triton.language as tl

    probe = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    interpreter._patch_lang(probe)
    interpreter._patch_lang = lambda fn: _NoScope()
    # Triton before 3.8 hands int() an array with an axis, which numpy 2.5 refuses.
    tl.core.tensor.__index__ = lambda self: int(self.handle.data.squeeze())


def _patch_launches(interpreter: Any) -> None:
    """Name the buffers of each launch, so that a bad lane can be told by the kernel's own words."""
    import triton.language as tl

    from klineage.worker import triton_memory as memory
    from klineage.worker import triton_races

    names: dict[int, str] = {}
    run, convert = interpreter.GridExecutor.__call__, interpreter._implicit_cvt

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        triton_counts.add("launches")
        memory.enter_kernel(self.fn.__name__)
        triton_races.begin_launch()
        self.constexprs = [n for n in self.arg_names if "constexpr" in _annotation(self.fn, n)]
        self.grid = _as_tuple(self.grid)
        names.clear()
        for name, arg in [*_named(self.arg_names, args), *kwargs.items()]:
            arg = getattr(arg, "base", arg) if type(arg).__name__ == "TensorDescriptor" else arg
            if hasattr(arg, "data_ptr"):
                names.setdefault(arg.data_ptr(), name)
        with triton_guard.trusted():
            return run(self, *args, **kwargs)

    def to_handle(arg: Any) -> Any:
        if isinstance(arg, float):  # a number that is no constexpr reaches a kernel as fp32
            return interpreter.interpreter_semantic.full([], arg, tl.float32)
        result = convert(arg)
        if hasattr(arg, "data_ptr") and hasattr(result, "handle"):
            tensor = getattr(arg, "base", arg) if type(arg).__name__ == "TensorWrapper" else arg
            result.handle.origin = memory.buffer_of(tensor, names.get(arg.data_ptr(), "a tensor"))
        return result

    materialize = interpreter.TensorDescHandle.materialize_pointers

    def materialize_pointers(self: Any, offsets: Any) -> Any:
        pointers, masks = materialize(self, offsets)
        pointers.origin = getattr(self.base, "origin", None)
        return pointers, masks

    interpreter.GridExecutor.__call__ = launch
    interpreter._implicit_cvt = to_handle
    interpreter.TensorDescHandle.materialize_pointers = materialize_pointers
    _patch_warmup(interpreter)


def _annotation(function: Any, name: str) -> str:
    """The annotation of a parameter as text: ``"tl.constexpr"`` in quotes says constexpr too."""
    found = function.__annotations__.get(name, "")
    return found if isinstance(found, str) else getattr(found, "__name__", str(found))


def _as_tuple(grid: Any) -> Any:
    """Triton takes a list or one number for a grid as well; its interpreter takes tuples only."""
    if callable(grid):
        given = triton_guard.distrusted(grid)
        return lambda meta: _as_tuple(given(meta))
    return tuple(grid) if isinstance(grid, (list, tuple)) else (grid,)


def _named(names: list[str], args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return [(names[i], arg) for i, arg in enumerate(args) if i < len(names)]


class _Warm:
    """What ``kernel.warmup`` returns here: typical resources, and launchable."""

    n_regs, n_spills = 32, 0
    metadata = types.SimpleNamespace(shared=1024, num_warps=4, num_stages=2)

    def __init__(self, function: Any) -> None:
        self.function = function

    def _init_handles(self) -> None:
        """No device code to load."""

    def __getitem__(self, grid: Any) -> Any:
        return self.function[grid]


def _patch_warmup(interpreter: Any) -> None:
    run = interpreter.InterpretedFunction.run

    def run_or_warm(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return _Warm(self) if warmup else run(self, *args, grid=grid, warmup=False, **kwargs)

    interpreter.InterpretedFunction.run = run_or_warm
    # Its text says no more of where it runs than that of a compiled kernel.
    interpreter.InterpretedFunction.__repr__ = lambda self: (
        f"JITFunction({self.fn.__module__}:{self.fn.__name__})"
    )


def _patch_extras(interpreter: Any) -> None:
    """libdevice by numpy; other device extensions reach the builder, which says that they need a GPU."""
    import triton.language as tl

    from klineage.worker import triton_libdevice

    for name in ("libdevice", "cuda.libdevice", "hip.libdevice"):
        triton_libdevice.install(importlib.import_module(f"triton.language.extra.{name}"))
    cuda = importlib.import_module("triton.language.extra.cuda")
    for name, member in list(vars(cuda).items()):
        if tl.core.is_builtin(member):
            setattr(cuda, name, _with_semantic(member, interpreter.interpreter_semantic))
    for name in ("gdc_wait", "gdc_launch_dependents"):  # order between launches: here they run one by one
        if hasattr(cuda, name):
            setattr(cuda, name, lambda **_: None)


def _with_semantic(member: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_semantic", None)
        return member(*args, _semantic=semantic, **kwargs)

    return call
