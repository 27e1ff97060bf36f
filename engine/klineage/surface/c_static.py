"""What can be said about a C kernel without compiling it: shape, includes, forbidden constructs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.surface.problem import Problem
from klineage.surface.tree import Function, Unit, parse_kernel, walk

if TYPE_CHECKING:
    from klineage.workload import Workload

_HEADERS = re.compile(
    r"<(stdint|stddef|stdlib|string|math|stdbool|stdalign|float|limits|assert|tgmath|complex|inttypes|stdio|omp|"
    r"arm_neon|arm_sve|arm_acle|[a-z0-9]*intrin)\.h>"
)
_ATTRIBUTES = re.compile(
    rb"\b_*(constructor|destructor|ifunc|optimize|init_priority|alias|weakref|weak|section|target|target_clones|used|retain|"
    rb"cleanup)_*\b"
)
_OMP = re.compile(rb"\s*#\s*pragma\s+omp\b")
_FLAGS = re.compile(r"^//\s*klineage:\s*flags\s+(.*)$")

Parameter = tuple[str, str, bool]  # (name, type such as "float *" or "int64_t", const)


def declared_flags(source: bytes) -> tuple[str, ...]:
    """Compiler flags of ``// klineage: flags ...`` comments, in order, as written."""
    if b"klineage:" not in source:
        return ()
    flags: list[str] = []
    for line in source.decode("utf-8", "replace").splitlines():
        found = _FLAGS.match(line.strip())
        if found:
            flags += found.group(1).split()
    return tuple(flags)


def signature(kernel: Kernel) -> tuple[Parameter, ...]:
    """The entry's parameters; empty when there is no such function."""
    unit = parse_kernel(kernel)
    function = unit.function(kernel.entry)
    return _parameters(unit, function) if function else ()


def _parameters(unit: Unit, function: Function) -> tuple[Parameter, ...]:
    declarator = next((n for n in walk(function.definition) if n.type == "function_declarator"), None)
    listed = declarator.child_by_field_name("parameters") if declarator else None
    if listed is None:
        return ()
    found = [_parameter(unit, node) for node in listed.named_children if node.type == "parameter_declaration"]
    return tuple(p for p in found if p[0] or p[1] != "void")


def _parameter(unit: Unit, node: Node) -> Parameter:
    declarator = node.child_by_field_name("declarator")
    pointer = declarator is not None and declarator.type in ("pointer_declarator", "array_declarator")
    names = [n for n in walk(declarator)] if declarator is not None else []
    name = next((unit.text(n) for n in names if n.type == "identifier"), "")
    type_node = node.child_by_field_name("type")
    base = " ".join(unit.text(type_node).split()) if type_node is not None else ""
    qualifiers = [unit.text(c) for c in node.children if c.type == "type_qualifier"]
    return name, f"{base} *" if pointer else base, "const" in qualifiers


def check(kernel: Kernel, workload: Workload) -> list[Problem]:
    """Everything wrong with the kernel, in the order of its lines. Empty when nothing is."""
    if b"\0" in kernel.source:
        return [Problem("binary", f"{kernel.filename} is a binary file, not C source")]
    if not kernel.source.strip():
        return [Problem("empty", f"{kernel.filename} is empty")]
    if "c" not in workload.element:
        return [Problem("surface", f"the workload {workload.name} declares no element type for c kernels")]
    unit = parse_kernel(kernel)
    broken = unit.broken_lines()
    # The parser knows no macros, so it alone cannot call a file broken: the compiler has the last word,
    # except where even the entry cannot be found.
    problems = [*_constructs(unit), *_entry(unit, kernel, workload, broken)]
    return sorted(problems, key=lambda p: p.line)


def notes(kernel: Kernel) -> list[Problem]:
    """What nothing refuses, and a reader should know: pragmas that the compiler passes over (idle_pragma)."""
    flags = (*kernel.flags, *declared_flags(kernel.source))
    if b"omp" not in kernel.source or any(flag.startswith("-fopenmp") for flag in flags):
        return []
    unit = parse_kernel(kernel)
    others = (node for node in walk(unit.root) if node.type == "preproc_call")
    spans = [*unit.loop_pragmas, *((node.start_byte, node.end_byte) for node in others)]
    said = "#pragma omp does nothing, for no line says // klineage: flags -fopenmp"
    return [
        Problem("idle_pragma", said, unit.line(start))
        for start, end in sorted(spans)
        if _OMP.match(unit.source[start:end])
    ]


def _constructs(unit: Unit) -> Iterator[Problem]:
    for node in walk(unit.root):
        line = unit.line(node.start_byte) if node.type in _VISITED else 0
        if node.type == "preproc_include":
            path = node.child_by_field_name("path")
            text = unit.text(path) if path is not None else ""
            if not _HEADERS.fullmatch(text):
                yield Problem(
                    "include",
                    f"includes {text or 'something'}; only standard and intrinsics headers are allowed",
                    line,
                )
        elif node.type == "gnu_asm_expression":
            yield Problem(
                "inline_asm", "contains inline assembly, which a kernel may not; use intrinsics", line
            )
        elif node.type in ("attribute_specifier", "attribute_declaration", "ms_declspec_modifier"):
            found = _ATTRIBUTES.search(unit.text(node).encode())
            if found:
                yield Problem(
                    "attribute", f"uses the attribute {found.group(1).decode()}, which a kernel may not", line
                )
        elif node.type == "preproc_call" and re.search(
            r"#\s*(pragma\s+GCC\s+(optimize|target|push_options)|embed|include_next|import)", unit.text(node)
        ):
            yield Problem(
                "pragma",
                f"{unit.text(node).strip()[:60]} changes how the file is compiled; declare flags instead",
                line,
            )


_VISITED = (
    "preproc_include",
    "gnu_asm_expression",
    "attribute_specifier",
    "attribute_declaration",
    "ms_declspec_modifier",
    "preproc_call",
)


def _entry(unit: Unit, kernel: Kernel, workload: Workload, broken: tuple[int, ...]) -> Iterator[Problem]:
    function = unit.function(kernel.entry)
    if function is None:
        if broken:
            yield Problem("syntax", "is not valid C here, and no entry can be found", broken[0])
        else:
            yield Problem("no_entry", f"has no function {kernel.entry}, the entry of this kernel")
        return
    line = unit.line(function.definition.start_byte)
    if not function.exported:
        yield Problem("no_entry", f"the entry {kernel.entry} is static; it must be exported", line)
    others = [f for f in unit.functions if f.exported and f.name != kernel.entry]
    for other in others:
        text = f"exports {other.name}() beside the entry {kernel.entry}; make it static"
        yield Problem("exports", text, unit.line(other.definition.start_byte))
    returned = function.definition.child_by_field_name("type")
    if returned is not None and unit.text(returned) != "void":
        yield Problem(
            "signature", f"the entry {kernel.entry} returns {unit.text(returned)}; it must return void", line
        )
    parameters = _parameters(unit, function)
    for name, type_, const in parameters:
        pointer = type_.endswith("*")
        if pointer and (name in workload.dims or name in workload.scalars):
            yield Problem(
                "signature", f"parameter {name} is a pointer; it names a dimension or a scalar", line
            )
        if not pointer and name not in workload.dims and name not in workload.scalars:
            known = ", ".join([*workload.dims, *workload.scalars])
            yield Problem(
                "signature",
                f"parameter {name or type_} is no dimension or scalar of {workload.name} ({known})",
                line,
            )
        if const and name in workload.outputs:
            yield Problem("signature", f"parameter {name} is const, but it is an output", line)
    for output in workload.outputs:
        if output not in {name for name, _, _ in parameters}:
            yield Problem(
                "signature",
                f"the entry {kernel.entry} has no parameter {output}, the workload's output",
                line,
            )
