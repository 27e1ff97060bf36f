"""Load a Triton kernel file as its author wrote it, and call its entry by names.

Code of the file runs here and nowhere else; only a worker child calls this.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from klineage.worker import triton_guard, triton_host
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.triton_errors import translated

MODES = ("interpret", "compile", "ahead", "gpu")
_RESERVED = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class Entry:
    """The host function of a kernel file.

    parameters: its parameter names, in order. required: those without a default.
    oob_read: bytes past the end of a buffer that interpreted loads may reach.
    configurations: per autotuned kernel, the configurations its author wrote. pinned: the one that runs.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        path: str,
        mode: str,
        target: str,
        configurations: dict[str, list[dict[str, int]]],
        pinned: dict[str, dict[str, int]],
    ) -> None:
        self.function, self.path, self.mode, self.target = function, path, mode, target
        self.configurations, self.pinned = configurations, pinned
        self.oob_read = 0
        parameters = inspect.signature(function).parameters.values()
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.parameters = tuple(p.name for p in named)
        self.required = tuple(p.name for p in named if p.default is p.empty)

    def bind(self, values: dict[str, object]) -> dict[str, object]:
        """The arguments that the entry takes, of all that the workload offers.

        Raises KernelFault("unknown_parameter") when the workload has no value for a required one.
        """
        unknown = [name for name in self.required if name not in values]
        if unknown:
            known = ", ".join(sorted(values))
            raise KernelFault(
                "unknown_parameter",
                f"the entry {self.function.__name__} takes {', '.join(unknown)}; the workload offers {known}",
            )
        return {name: values[name] for name in self.parameters if name in values}

    def __call__(self, values: dict[str, object]) -> tuple[Any, ...] | None:
        """Run the entry on ``values`` (tensors, dimensions and scalars by name) and return its outputs.

        None when it returns nothing: then it wrote to its arguments. Memory that it allocates is poisoned,
        except in compile mode. Raises KernelFault or Unsupported, with the line of the kernel file.
        """
        arguments = self.bind(values)
        with self._surroundings(arguments), translated(self.path, "entry_raised"):
            with _watched(self.path, self.mode):
                result = self.function(**arguments)
            if self.mode == "gpu":
                import torch

                torch.cuda.synchronize()
        if result is None:
            return None
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    @contextlib.contextmanager
    def _surroundings(self, arguments: dict[str, object]) -> Iterator[None]:
        if self.mode == "ahead":
            triton_host.drive(self.target)
            yield
            return
        tensors = {name: value for name, value in arguments.items() if hasattr(value, "data_ptr")}
        if self.mode == "gpu":
            with triton_host.poisoned():
                yield
            return
        device = next((str(t.device) for t in tensors.values()), "cpu")  # type: ignore[attr-defined]
        with triton_host.pretend_gpu(self.target, device):
            if self.mode == "compile":
                yield
                return
            from klineage.worker import triton_memory

            triton_memory.begin(self.path, tensors, self.oob_read)
            with triton_host.poisoned():
                yield


def load(
    path: str,
    entry: str,
    config: dict[str, int] | None = None,
    mode: str = "interpret",
    target: str = "nvidia-sm90",
) -> Entry:
    """Run the file's module code and return its entry, with one autotune configuration pinned.

    config: the configuration to pin; empty or None takes the first that the author wrote.
    mode: "interpret" and "compile" need no GPU and cannot share a process; "gpu" runs the true kernels; "ahead" compiles
    without torch, for the cache alone (see triton_ahead).
    target: the device that host code is told of where there is none.
    Raises KernelFault: "syntax", "import_failed" (with the line), "no_entry".
    """
    if mode not in MODES:
        raise WorkerError("mode", f"no such mode: {mode!r} (one of {', '.join(MODES)})")
    path = str(Path(path).resolve())
    if mode == "interpret":
        from klineage.worker import triton_interpreter, triton_memory

        triton_interpreter.install()
        triton_memory.begin(path, {})
    code = _compile(path)
    module = types.ModuleType("klineage_kernel")
    module.__file__ = path
    sys.modules[module.__name__] = module
    if mode == "ahead":
        triton_host.drive(target)
    bare = mode in ("gpu", "ahead")
    surroundings = contextlib.nullcontext() if bare else triton_host.pretend_gpu(target, "cpu")
    guarded = translated(path, "import_failed"), _watched(path, mode)
    with surroundings, _pinning(config or {}) as (configurations, tuners), guarded[0], guarded[1]:
        exec(code, module.__dict__)
    pinned = {_kernel_name(t): _settings(t.configs[0]) for t in tuners}
    return Entry(_find_entry(module, entry), path, mode, target, configurations, pinned)


def _watched(path: str, mode: str) -> contextlib.AbstractContextManager[None]:
    """The watch over what the file does with tensors; where there are none, nothing that it does is used."""
    return contextlib.nullcontext() if mode == "ahead" else triton_guard.watching(path)


def _compile(path: str) -> types.CodeType:
    try:
        return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise KernelFault("syntax", f"line {error.lineno}: {error.msg}", line=error.lineno) from error
    except ValueError as error:
        raise KernelFault("syntax", f"not Python source: {error}") from error


def _find_entry(module: types.ModuleType, entry: str) -> Callable[..., Any]:
    function = getattr(module, entry, None)
    if inspect.isfunction(function):
        return function
    hosts = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__code__.co_filename == module.__file__
    ]
    found = f"it has {', '.join(hosts)}" if hosts else "it has no host function"
    kind = "is not a plain function" if function is not None else "is missing"
    raise KernelFault("no_entry", f"the entry {entry} {kind} in {Path(str(module.__file__)).name}; {found}")


@contextlib.contextmanager
def _pinning(wanted: dict[str, int]) -> Iterator[tuple[dict[str, list[dict[str, int]]], list[Any]]]:
    """Pin every Autotuner that is created inside, wherever the file keeps it, before it can run.

    Yields what their authors offered, by kernel, and the objects; both fill while the file loads.
    """
    from triton.runtime.autotuner import Autotuner

    offered: dict[str, list[dict[str, int]]] = {}
    created: list[Any] = []
    original = Autotuner.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        offered[_kernel_name(self)] = [_settings(c) for c in self.configs]
        self.configs = [pin(self.configs, wanted)]
        created.append(self)

    Autotuner.__init__ = __init__
    try:
        yield offered, created
    finally:
        Autotuner.__init__ = original


def _kernel_name(tuner: Any) -> str:
    function = tuner
    while not inspect.isfunction(function):
        function = function.fn
    return str(function.__name__)


def _settings(config: Any) -> dict[str, int]:
    """One configuration as plain numbers: meta-parameters, num_warps, num_stages and what else it sets."""
    settings = dict(config.kwargs)
    for name in _RESERVED:
        value = getattr(config, name, None)
        if value is not None and not (name == "num_ctas" and value == 1):
            settings[name] = value
    return settings


def pin(configs: list[Any], wanted: dict[str, int]) -> Any:
    """The configuration that agrees with ``wanted``; else the first one with ``wanted`` put over it.

    Names that no configuration here knows are left alone: they belong to another kernel of the file.
    """
    known = {name for config in configs for name in _settings(config)} | set(_RESERVED)
    relevant = {name: value for name, value in wanted.items() if name in known}
    for config in configs:
        settings = _settings(config)
        if all(settings.get(name) == value for name, value in relevant.items()):
            return config
    changed = copy.copy(configs[0])
    changed.kwargs = dict(changed.kwargs)
    for name, value in relevant.items():
        if name in _RESERVED:
            setattr(changed, name, value)
        else:
            changed.kwargs[name] = value
    return changed
