"""What can be said about a CUDA file without compiling it: launches, includes, host code, forbidden things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from klineage.kernel import Kernel
from klineage.surface.cuda_launch import Declared, Launch, declared
from klineage.surface.cuda_source import Parameter, constants, parameters
from klineage.surface.expression import Tree, names_of
from klineage.surface.problem import Problem
from klineage.surface.tree import Unit, parse_kernel, walk
from klineage.surface.triton_static import tensor_names

if TYPE_CHECKING:
    from klineage.workload import Workload

_HEADERS = re.compile(
    r"<(cuda(_(fp16|fp8|fp6|fp4|bf16|runtime|runtime_api|pipeline|pipeline_primitives|awbarrier|awbarrier_primitives))?\.h|"
    r"mma\.h|crt/mma\.h|cooperative_groups\.h|cooperative_groups/\w+\.h|cuda/(std/)?[a-z_]+|"
    r"(vector_types|vector_functions|math_constants|device_launch_parameters|sm_\w+_intrinsics)\.h|"
    r"(stdint|stddef|math|float|limits|stdbool|assert)\.h|"
    r"c(stdint|stddef|math|float|limits|assert)|type_traits|utility|limits|initializer_list)>"
)
_PREPROCESSED = re.compile(r"^\s*(?:#|%:|\?\?=)\s*(include(?:_next)?|import|embed)\b\s*(.*?)\s*$")
_COMMENTS = re.compile(
    rb"//(?:\\\r?\n|[^\r\n])*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\r\n])*\"|'(?:\\.|[^'\\\r\n])*'", re.DOTALL
)
_TENSOR_MAP = "CUtensorMap"
_VALUE_TYPES = re.compile(
    r"(unsigned |signed )?(char|short|int|long|long int|long long|long long int)|unsigned|signed|bool|size_t|ptrdiff_t|"
    r"u?int(8|16|32|64)_t|float|double"
)


def check(kernel: Kernel, workload: Workload) -> list[Problem]:
    """Everything wrong with the kernel, in the order of its lines. Empty when nothing is.

    Reasons: binary, empty, surface, include, forbidden, host_code, launch, no_entry, signature, no_output.
    """
    if b"\0" in kernel.source:
        return [Problem("binary", f"{kernel.filename} is a binary file, not CUDA source")]
    if not kernel.source.strip():
        return [Problem("empty", f"{kernel.filename} is empty")]
    if "cuda" not in workload.element:
        return [Problem("surface", f"the workload {workload.name} declares no element type for cuda kernels")]
    unit, found = parse_kernel(kernel), declared(kernel.source)
    # The parser knows no macros, so it alone cannot call a file broken: the compiler has the last word.
    problems = [*found.problems, *_includes(kernel.source)]
    if not problems:
        problems = [*_constructs(unit), *_entry(unit, kernel, workload, found)]
    return sorted(problems, key=lambda p: p.line)


def notes(kernel: Kernel) -> list[Problem]:
    """What nothing refuses, and a reader should know: inline_asm."""
    unit = parse_kernel(kernel)
    return [
        Problem("inline_asm", "inline PTX: its effect is seen only on a GPU", unit.line(node.start_byte))
        for node in walk(unit.root)
        if node.type == "gnu_asm_expression"
    ]


def _includes(source: bytes) -> Iterator[Problem]:
    """Read line by line, since a parser that stumbles over a macro could overlook one."""
    blanked = _COMMENTS.sub(lambda m: _blank(m.group()), source)
    spliced = re.sub(rb"\\\r?\n", b"\0", blanked).decode("utf-8", "replace")
    number = 1
    for line in spliced.splitlines():
        found = _PREPROCESSED.match(line.replace("\0", ""))
        if found and not (found[1] == "include" and _HEADERS.fullmatch(found[2])):
            text = "only CUDA's own device headers and plain C ones are allowed"
            yield Problem("include", f"{found[1]}s {found[2] or 'something'}; {text}", number)
        number += 1 + line.count("\0")


def _blank(token: bytes) -> bytes:
    """A comment without its text; a string stays, because an include may name its file in one."""
    return token if token[:1] in b"\"'" else re.sub(rb"[^\r\n]", b" ", token)


def _constructs(unit: Unit) -> Iterator[Problem]:
    for node in walk(unit.root):
        if node.type == "gnu_asm_expression" and re.search(r"\.(incbin|include)\b", unit.text(node)):
            yield Problem(
                "forbidden", "inline PTX reads a file, which a kernel may not", unit.line(node.start_byte)
            )
        elif node.type == "kernel_call_syntax":
            text = "launches a kernel with <<< >>>; declare it instead: // klineage: launch NAME grid=(...) block=(...)"
            yield Problem("host_code", text, unit.line(node.start_byte))
    for function in unit.functions:
        device = any(c.type in ("__global__", "__device__") for c in function.definition.children)
        if not device and function.name == "main":
            line = unit.line(function.definition.start_byte)
            yield Problem(
                "host_code", "has a main(); the file holds kernels, and klineage launches them", line
            )


def _entry(unit: Unit, kernel: Kernel, workload: Workload, found: Declared) -> Iterator[Problem]:
    names = kernel.entry.split("+")
    functions = {f.name: f for f in unit.functions if f.jit}
    for name in names:
        function = functions.get(name)
        launch = next((x for x in found.launches if x.kernel == name), None)
        if function is None:
            line = launch.line if launch else 0
            yield Problem("no_entry", f"has no __global__ function {name}; it has {listed(functions)}", line)
        elif launch is None:
            text = f"has no launch of {name}; add // klineage: launch {name} grid=(...) block=(...)"
            yield Problem("no_entry", text, unit.line(function.definition.start_byte))
        elif not function.exported:
            text = f'{name} needs C linkage, so that it can be found by its name: extern "C" __global__ void {name}(...)'
            around = function.definition.parent
            if around is not None and around.type == "template_declaration":
                text = f"{name} is a template and so has no name to be launched by; make constants of its parameters"
            yield Problem("no_entry", text, unit.line(function.definition.start_byte))
    known = _Known(unit, kernel, workload, found)
    maps = {m.name: m.buffer for m in found.tensor_maps}  # a const map may be stored through
    written: set[str] = set()
    for launch in found.of(kernel.entry):
        if launch.kernel in functions:
            listing = parameters(unit, functions[launch.kernel])
            yield from known.problems(launch, listing)
            given = zip(launch.arguments(listing), listing, strict=True)
            written |= {
                maps.get(a, a)
                for a, (_, type_, const) in given
                if isinstance(a, str)
                and (a in maps if type_ == _TENSOR_MAP else type_.endswith("*") and not const)
            }
    for output in workload.outputs:
        if all(name in functions for name in names) and output not in written:
            yield Problem(
                "no_output",
                f"no launch can write {output}, the workload's output: no pointer that is not const gets it, and no CUtensorMap",
            )


def listed(names: Iterable[str], most: int = 8) -> str:
    """``a, b, c and 42 more``."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (", ".join(every[:most]) or "none") + more


class _Known:
    """What the expressions of a launch may name."""

    def __init__(self, unit: Unit, kernel: Kernel, workload: Workload, found: Declared) -> None:
        self.workload = workload
        self.scratch = {s.name for s in found.scratch}
        self.tensors = tensor_names(workload)
        self.numbers = set(workload.dims) | set(constants(unit, kernel.flags))
        self.maps = {m.name: m for m in found.tensor_maps}
        self.shapes = [
            *((s.line, tree) for s in found.scratch for tree in s.shape),
            *((m.line, tree) for m in found.tensor_maps for tree in (*m.shape, *m.box, m.swizzle)),
        ]

    def problems(self, launch: Launch, listing: tuple[Parameter, ...]) -> Iterator[Problem]:
        for tree in (*launch.grid, *launch.block, launch.shared, launch.when):
            yield from self._unknown(names_of(tree), launch.line)
        for line, tree in self.shapes:
            yield from self._unknown(names_of(tree), line)
        own = {name for name, _, _ in listing}
        for name, _ in launch.named:
            if name not in own:
                yield Problem(
                    "launch", f"{launch.kernel} has no parameter {name}; it has {listed(own)}", launch.line
                )
        if launch.positional is not None and len(launch.positional) > len(listing):
            text = f"{launch.kernel} takes {len(listing)} arguments, {len(launch.positional)} are given"
            yield Problem("launch", text, launch.line)
        for argument, (name, type_, _) in zip(launch.arguments(listing), listing, strict=True):
            yield from self._argument(launch, argument, name, type_)

    def _unknown(self, names: Iterator[str], line: int) -> Iterator[Problem]:
        for name in names:
            if name not in self.numbers:
                dims = ", ".join(self.workload.dims)
                text = f"{name} is no dimension of {self.workload.name} ({dims}) and no integer constant of this file"
                yield Problem("launch", text, line)

    def _argument(self, launch: Launch, argument: Tree, name: str, type_: str) -> Iterator[Problem]:
        buffers = self.tensors | self.scratch | set(self.workload.outputs)
        place = f"parameter {name or type_} of {launch.kernel}"
        if type_.endswith("*"):
            if not isinstance(argument, str) or (self.tensors and argument not in buffers):
                shown = argument if isinstance(argument, str) else "an expression"
                yield Problem(
                    "signature",
                    f"{place} is a pointer; {shown} is no buffer ({listed(sorted(buffers))})",
                    launch.line,
                )
            return
        if type_ == _TENSOR_MAP:
            found = self.maps.get(argument) if isinstance(argument, str) else None
            if found is None:
                text = (
                    f"{place} is a CUtensorMap; declare it: // klineage: tensor_map {name} BUFFER box=(...)"
                )
                yield Problem("signature", text, launch.line)
            elif self.tensors and found.buffer not in buffers:
                text = f"tensor_map {found.name}: {found.buffer} is no buffer ({listed(sorted(buffers))})"
                yield Problem("launch", text, found.line)
            return
        if not _VALUE_TYPES.fullmatch(type_):
            yield Problem(
                "signature",
                f"{place} is a {type_}, which cannot be passed; pass pointers, integers, floats, a CUtensorMap",
                launch.line,
            )
        for used in names_of(argument):
            if used not in self.numbers and used not in self.workload.scalars:
                known = listed([*self.workload.dims, *self.workload.scalars])
                yield Problem(
                    "signature", f"{place}: {used} is no dimension, scalar or constant ({known})", launch.line
                )
