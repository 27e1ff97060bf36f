"""SIMD through vector extensions: a vector type becomes its element type, one lane wide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import defines, home, macro_edit, macro_text
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Unit, parse_kernel, walk

#: Bytes of the element types that vectors are made of.
SIZES = {
    "char": 1,
    "int8_t": 1,
    "uint8_t": 1,
    "int16_t": 2,
    "uint16_t": 2,
    "_Float16": 2,
    "int": 4,
    "int32_t": 4,
}
SIZES |= {"uint32_t": 4, "unsigned": 4, "float": 4, "double": 8, "int64_t": 8, "uint64_t": 8, "long": 8}
_INTRINSIC = re.compile(
    rb"\b(?:_mm\d*_\w+|__m\d+[id]?|__builtin_shuffle\w*|__builtin_ia32_\w+|v\w+q_[fsu]\d+)\b"
)


@dataclass(frozen=True)
class _Vector:
    """``typedef float vec __attribute__((vector_size(BYTES), ...))`` with BYTES a macro."""

    name: str
    element: str
    attribute: Node
    attribute_text: str
    width: str  # the macro
    branches: tuple[
        tuple[str, dict[str, str]], ...
    ]  # (condition, macros); the last is "else", or the only one ""
    span: tuple[int, int]  # of the #if ... #endif, or of the macro's line


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    vector = _vector(unit)
    if vector is None or not any(f.exported for f in unit.functions):
        return ()
    settings = {"vector": vector.name, "attributes": vector.attribute_text, "width": vector.width}
    for number, (condition, macros) in enumerate(vector.branches, start=1):
        values = "; ".join(f"{name}={value}" for name, value in macros.items())
        settings[f"branch.{number}"] = f"{condition} ? {values}"
    locus = home(unit)
    return (Site(locus, (Feature(locus, "simd"),), settings),)


def _vector(unit: Unit) -> _Vector | None:
    """The file's vector type whose width is a macro, when there is just one and no intrinsic fixes the
    width."""
    found = []
    for node in walk(unit.root):
        attribute = next((c for c in node.children if c.type == "attribute_specifier"), None)
        if node.type != "type_definition" or attribute is None or "vector_size" not in unit.text(attribute):
            continue
        width = re.search(r"vector_size(?:__)?\s*\(\s*(\w+)\s*\)", unit.text(attribute))
        element, name = node.child_by_field_name("type"), node.child_by_field_name("declarator")
        branches = _branches(unit, width.group(1)) if width is not None else None
        if (
            width is None
            or element is None
            or name is None
            or unit.text(element) not in SIZES
            or branches is None
        ):
            continue  # a vector of fixed width is part of some other mechanism
        text = re.sub(r"^__attribute__\s*\(\((.*)\)\)$", r"\1", unit.text(attribute), flags=re.DOTALL)
        found.append(
            _Vector(
                unit.text(name), unit.text(element), attribute, text, width.group(1), branches[0], branches[1]
            )
        )
    return found[0] if len(found) == 1 and not _INTRINSIC.search(unit.source) else None


def _branches(
    unit: Unit, macro: str
) -> tuple[tuple[tuple[str, dict[str, str]], ...], tuple[int, int]] | None:
    """The macro's definition: plain, or in every branch of one ``#if`` chain that only defines macros."""
    plain = defines(unit).get(macro)
    if plain is not None:
        span = plain.start_byte, unit.line_end(plain.start_byte)
        return ((("", {macro: macro_text(unit, plain)}),), span)
    for node in unit.root.children:
        if node.type not in ("preproc_if", "preproc_ifdef"):
            continue
        chain = _chain(unit, node)
        if chain is not None and any(macro in macros for _, macros in chain):
            if chain[-1][0] != "else" or not all(macro in macros for _, macros in chain):
                return None
            return tuple(chain), (node.start_byte, unit.line_end(node.end_byte - 1))
    return None


def _chain(unit: Unit, node: Node) -> list[tuple[str, dict[str, str]]] | None:
    """(condition, macros) of each branch; None when a branch holds anything but macros."""
    chain = []
    current: Node | None = node
    while current is not None:
        condition, name = current.child_by_field_name("condition"), current.child_by_field_name("name")
        following = current.child_by_field_name("alternative")
        macros: dict[str, str] = {}
        for child in current.named_children:
            if child in (condition, name, following) or child.type == "comment":
                continue
            label = child.child_by_field_name("name") if child.type == "preproc_def" else None
            if label is None:
                return None
            macros[unit.text(label)] = macro_text(unit, child)
        word = "else" if current.type == "preproc_else" else ""
        if condition is not None:
            word = unit.text(condition)
        elif name is not None:
            word = f"{'!' * unit.text(current).startswith('#ifndef')}defined({unit.text(name)})"
        chain.append((word, macros))
        current = following
    return chain


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    vector = _vector(unit)
    if vector is None:
        raise NotApplicable("the file has no single vector type whose width is a macro")
    macros = dict(vector.branches[-1][1])
    macros[vector.width] = str(SIZES[vector.element])
    newline = unit.newline(vector.span[0])
    lines = b"".join(
        f"#define {name} {value}".encode("utf-8", "surrogateescape") + newline
        for name, value in macros.items()
    )
    start = vector.attribute.start_byte
    while unit.source[start - 1 : start] in (b" ", b"\t"):
        start -= 1
    return Rewrite((Edit(vector.span[0], vector.span[1], lines), Edit(start, vector.attribute.end_byte)))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    name, attributes, width = (setting(settings, n) for n in ("vector", "attributes", "width"))
    known = defines(unit)
    types = [n for n in walk(unit.root) if n.type == "type_definition"]
    declared = [
        d for n in types if (d := n.child_by_field_name("declarator")) is not None and unit.text(d) == name
    ]
    if len(declared) != 1 or width not in known:
        raise NotApplicable(f"no element type {name!r} with a width {width!r} to make a vector of")
    at = declared[0].end_byte
    edits = [Edit(at, at, f" __attribute__(({attributes}))".encode("utf-8", "surrogateescape"))]
    chain = dict(_branch(value) for key, value in settings.items() if key.startswith("branch."))
    if list(chain) == [""]:
        return (*edits, macro_edit(unit, known[width], chain[""][width]))
    macros = list(next(iter(chain.values()), {}))
    if not macros or any(m not in known for m in macros):
        raise NotApplicable("the macros that depend on the vector's width are not all defined here")
    nodes = sorted((known[m] for m in macros), key=lambda n: n.start_byte)
    newline = unit.newline(nodes[0].start_byte)
    edits += [Edit(n.start_byte, unit.line_end(n.start_byte)) for n in nodes[1:]]
    text = _chain_text(chain, newline)
    return (*edits, Edit(nodes[0].start_byte, unit.line_end(nodes[0].start_byte), text))


def _branch(text: str) -> tuple[str, dict[str, str]]:
    """(condition, macros) of a setting such as ``defined(X) ? A=1; B=2``."""
    condition, _, values = text.rpartition(" ? ")
    pairs = [value.partition("=") for value in values.split("; ")]
    return condition.strip(), {name: value for name, _, value in pairs}


def _chain_text(chain: Mapping[str, Mapping[str, str]], newline: bytes) -> bytes:
    lines, word = [], "#if"
    for condition, macros in chain.items():
        lines.append("#else" if condition == "else" else f"{word} {condition}")
        lines += [f"#define {macro} {value}" for macro, value in macros.items()]
        word = "#elif"
    return b"".join(line.encode("utf-8", "surrogateescape") + newline for line in [*lines, "#endif"])


VECTORS = Rule(
    name="vector-types",
    action="simd",
    surface="c",
    title="Compute one lane at a time",
    adds="Compute with vectors",
    at="The loops over lanes, and the type of what they compute with",
    rationale="A vector type computes all lanes of a register in one instruction; with one lane it is the "
    "element type, and the loops over vectors become loops over elements.",
    preconditions=(
        "Data types: every lane has the same type and does the same operation.",
        "Layout: the lanes of a vector are neighbours in memory, or it cannot be loaded at once.",
        "Storage: vectors are aligned as their type demands.",
        "Pipeline: the trip count is a multiple of the lanes, or a scalar loop finishes the rest.",
        "Hardware: vector registers of that width (AVX-512, AVX2, SSE, NEON).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll",),
    known={
        "Storage": Known("alignment() >= vector_bytes", "misalign", {"buffer": "*", "bytes": "1"}),
        "Hardware": Known(change="platform", settings={"platform": "cpu-x86-64-v2"}),
    },
)
