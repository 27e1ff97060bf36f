"""What every surface answers about a kernel's text, whichever language it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.kernel import Kernel, Surface
from klineage.surface import autotune
from klineage.surface.problem import Problem
from klineage.surface.tree import Function, Unit, parse, parse_kernel, walk

if TYPE_CHECKING:
    from klineage.workload import Workload


def check(kernel: Kernel, workload: Workload) -> Sequence[Problem]:
    """Everything that the static rules of the kernel's language refuse, in the order of its lines."""
    if kernel.surface == "c":
        from klineage.surface.c_static import check as check_c

        return check_c(kernel, workload)
    if kernel.surface == "cuda":
        from klineage.surface.cuda_static import check as check_cuda

        return check_cuda(kernel, workload)
    from klineage.surface.triton_static import check as check_triton

    return check_triton(kernel, workload)


def notes(kernel: Kernel) -> Sequence[Problem]:
    """What no rule refuses and a person should know, in the order of its lines."""
    if kernel.surface == "c":
        from klineage.surface.c_static import notes as notes_c

        return notes_c(kernel)
    return ()


def entry_of(
    surface: Surface, filename: str, source: bytes, workload: Workload, wanted: str | None = None
) -> str:
    """The function to enter: ``wanted``, else the one named like the workload, else the only one there is,
    else (Triton) the only one that launches a kernel.

    Raises KlineageError naming the file and what there is to choose from.
    """
    unit = parse(surface, filename, source)
    if surface == "cuda":
        return _cuda_entry(unit, wanted)
    possible = [f for f in unit.functions if _can_be_entry(surface, f)]
    names = entries(unit)
    if wanted is not None:
        if wanted not in [f.name for f in possible]:
            raise KlineageError(
                f"{filename} has no function {wanted!r} to enter; it has {', '.join(names) or 'none'}"
            )
        return wanted
    if workload.name in names:
        return workload.name
    if len(names) == 1:
        return names[0]
    if not names:
        broken = unit.broken_lines()
        if broken:
            raise KlineageError(
                f"{filename}:{broken[0]}: this is not valid {_LANGUAGE[surface]}, and no function to enter was found in it"
            )
        raise KlineageError(f"{filename} has no function to enter; {_NEEDED[surface]}")
    launching = names if surface == "c" else [f.name for f in possible if _launches(unit, f)]
    if len(launching) == 1:
        return launching[0]
    raise KlineageError(_several(unit, names, bool(launching)))


def entries(unit: Unit) -> list[str]:
    """The functions of a Triton or C file that may be entered, in order."""
    possible = [f for f in unit.functions if _can_be_entry(unit.surface, f)]
    return [f.name for f in possible if unit.surface != "c" or _returns_void(unit, f)]


def _several(unit: Unit, names: list[str], launching: bool) -> str:
    listed = ", ".join(names)
    if unit.surface == "triton" and not any(f.jit for f in unit.functions):
        return f"{unit.filename} has no @triton.jit function: there is no kernel text to walk"
    if not launching:
        return (
            f"no function at the top of {unit.filename} launches a kernel as kernel[grid](...), and what is generated or launched "
            f"elsewhere cannot be walked; add a host function that launches it, or choose one with --entry: {listed}"
        )
    return f"{unit.filename} has several functions that could be entered; choose one with --entry: {listed}"


def _returns_void(unit: Unit, function: Function) -> bool:
    kind, declarator = (function.definition.child_by_field_name(n) for n in ("type", "declarator"))
    pointer = declarator is not None and declarator.type == "pointer_declarator"
    return kind is not None and unit.text(kind) == "void" and not pointer


def _launches(unit: Unit, function: Function) -> bool:
    """Whether a host function launches a kernel of the file, ``kernel[grid](...)``."""
    kernels = {f.name for f in unit.functions if f.jit}
    for node in walk(function.body):
        called = node.child_by_field_name("function") if node.type == "call" else None
        value = (
            called.child_by_field_name("value") if called is not None and called.type == "subscript" else None
        )
        if value is not None and unit.text(value) in kernels:
            return True
    return False


_LANGUAGE = {"triton": "Python", "c": "C", "cuda": "CUDA C++"}
_NEEDED = {
    "triton": "add a host function that launches its @triton.jit kernels (docs/workloads.md shows one)",
    "cuda": "add one, with a comment that says how it is launched (docs/workloads.md shows some)",
    "c": "add one exported function whose parameters are named like the workload's buffers (docs/workloads.md shows one)",
}


def _cuda_entry(unit: Unit, wanted: str | None) -> str:
    """The launched kernels, ``a+b`` for several; ``wanted`` chooses among them in the same form."""
    from klineage.surface.cuda_launch import declared
    from klineage.surface.cuda_static import listed

    kernels = [f.name for f in unit.functions if f.jit]
    found = declared(unit.source)
    launched = found.launched
    if found.problems:
        raise KlineageError(f"{unit.filename}:{found.problems[0].line}: {found.problems[0].message}")
    broken = unit.broken_lines()
    if not kernels and broken:
        raise KlineageError(
            f"{unit.filename}:{broken[0]}: this is not valid {_LANGUAGE['cuda']}, and no __global__ function was found in it"
        )
    if not kernels:
        raise KlineageError(f"{unit.filename} has no __global__ function; {_NEEDED['cuda']}")
    names = wanted.split("+") if wanted is not None else list(launched)
    for name in names:
        if wanted is not None and name not in kernels:
            raise KlineageError(
                f"{unit.filename} has no __global__ function {name!r}; it has {listed(kernels)}"
            )
        if name not in launched:
            names = []
    if not names:
        example = wanted.split("+")[0] if wanted is not None else kernels[0]
        chosen = "" if wanted is not None or len(kernels) == 1 else f" (of {listed(kernels)})"
        raise KlineageError(
            f"{unit.filename} does not say how {example} is launched; add a comment "
            f"// klineage: launch {example} grid=(...) block=(...) for the kernel you mean{chosen} (docs/workloads.md shows some)"
        )
    return "+".join(names)


def _can_be_entry(surface: Surface, function: Function) -> bool:
    if surface == "c":
        return function.exported and function.name != "main"
    parent = function.node.parent
    return not function.jit and parent is not None and parent.type == "module"


def flags_of(surface: Surface, source: bytes) -> tuple[str, ...]:
    """The compiler flags that the source declares for itself."""
    if surface == "triton":
        return ()
    from klineage.surface.c_static import declared_flags

    return declared_flags(source)


def autotune_configs(kernel: Kernel) -> tuple[autotune.Config, ...]:
    """The configurations that an autotuned kernel offers, in order; empty for any other kernel."""
    if kernel.surface != "triton":
        return ()
    unit = parse_kernel(kernel)
    for function in unit.functions:
        found = autotune.configurations(unit, function)
        if found:
            return found
    return ()
