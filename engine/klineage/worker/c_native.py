"""A compiled C kernel in this process: bind its parameters by name, and call it on buffers."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from klineage.worker.buffers import Slot
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.problem import Problem

_POINTEES = {
    "fp64": ("double",), "fp32": ("float",), "fp16": ("uint16_t", "_Float16", "unsigned short"),
    "bf16": ("uint16_t", "__bf16", "unsigned short"), "int64": ("int64_t", "long", "long long"),
    "int32": ("int32_t", "int"), "int8": ("int8_t", "signed char"), "uint8": ("uint8_t", "unsigned char"),
}  # fmt: skip
_INTEGERS = {
    "int64_t": ctypes.c_int64, "long": ctypes.c_long, "size_t": ctypes.c_size_t, "int": ctypes.c_int,
    "int32_t": ctypes.c_int32, "long long": ctypes.c_longlong, "ptrdiff_t": ctypes.c_ssize_t,
}  # fmt: skip
_REALS = {"float": ctypes.c_float, "double": ctypes.c_double}

Parameters = list[tuple[str, str, bool]]  # (name, C type such as "float *", const)


@dataclass(frozen=True)
class Binding:
    """One parameter: what it is called with. ``buffer`` for a pointer, else a dimension or a scalar."""

    name: str
    ctype: Any
    buffer: bool


def bind(parameters: Parameters, problem: Problem, dims: dict[str, int]) -> tuple[Binding, ...]:
    """Match an entry's parameters with the workload. Raises KernelFault("signature", ...)."""
    tensors, scalars = problem.tensors(dims), problem.scalars
    bindings = []
    for name, type_, const in parameters:
        pointer = type_.endswith("*")
        base = type_.rstrip("* ").strip()
        if pointer and name in tensors:
            _check_pointer(name, base, const, tensors[name][0], problem)
            bindings.append(Binding(name, ctypes.c_void_p, True))
        elif not pointer and name in dims and base in _INTEGERS:
            bindings.append(Binding(name, _INTEGERS[base], False))
        elif not pointer and name in scalars and base in _REALS:
            bindings.append(Binding(name, _REALS[base], False))
        else:
            raise KernelFault("signature", _mismatch(name, type_, tensors, dims, scalars))
    given = {name for name, _, _ in parameters}
    for output in problem.outputs:
        if output not in given:
            raise KernelFault("signature", f"the entry has no parameter {output}, the workload's output")
    return tuple(bindings)


def _check_pointer(name: str, base: str, const: bool, element: str, problem: Problem) -> None:
    if base not in _POINTEES[element]:
        wanted = _POINTEES[element][0]
        raise KernelFault(
            "signature", f"parameter {name} is {base} *; the buffer is {element}, so it must be {wanted} *"
        )
    if const and name in problem.outputs:
        raise KernelFault("signature", f"parameter {name} is const, but it is an output")


def _mismatch(name: str, type_: str, tensors: Any, dims: Any, scalars: Any) -> str:
    if name in tensors:
        return f"parameter {name} is {type_}; it names a buffer, so it must be a pointer"
    if name in dims:
        return f"parameter {name} is {type_}; it names a dimension, so it must be int64_t"
    if name in scalars:
        return f"parameter {name} is {type_}; it names a scalar, so it must be float or double"
    known = ", ".join([*tensors, *dims, *scalars])
    return f"parameter {name} is unknown to the workload, which has {known}"


class Function:
    """The entry of a loaded library, callable on one layout of buffers."""

    def __init__(self, library: str, entry: str, bindings: tuple[Binding, ...]) -> None:
        try:
            # The handle stays open for the life of the child: unloading code that ran is no gain.
            self._pointer = getattr(ctypes.CDLL(library), entry)
        except OSError as error:
            raise WorkerError("load", f"the compiled kernel cannot be loaded: {error}") from error
        except AttributeError:
            raise KernelFault("entry", f"the compiled kernel exports no function {entry}") from None
        self._pointer.restype = None
        self._pointer.argtypes = [b.ctype for b in bindings]
        self._bindings = bindings

    def arguments(
        self,
        region: np.ndarray[Any, Any],
        slots: tuple[Slot, ...],
        dims: dict[str, int],
        scalars: dict[str, float],
    ) -> tuple[Any, ...]:
        """Ready-made arguments: addresses inside ``region``, dimensions and scalars."""
        start = region.ctypes.data
        offsets = {slot.name: start + slot.offset for slot in slots}
        values = {**scalars, **dims}
        return tuple(b.ctype(offsets[b.name] if b.buffer else values[b.name]) for b in self._bindings)

    def __call__(self, *arguments: Any) -> None:
        self._pointer(*arguments)

    @property
    def pointer(self) -> Any:
        """The bare foreign function, for a timing loop that cannot afford another call."""
        return self._pointer
