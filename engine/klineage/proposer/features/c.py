"""Mechanisms in the text of C kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.features.finding import Cue
from klineage.proposer.features.words import Reading, compiled, word_cues
from klineage.surface.tree import walk

_WORDS = compiled(
    {
        r"_mm\d*_(?:maskz?_)?stream_\w+|__builtin_nontemporal_store": ("nontemporal_store", ""),
        r"_mm_prefetch|_m_prefetch\w*|__builtin_prefetch|__builtin_ia32_prefetch\w*": ("prefetch", ""),
        r"_mm\d*_(?!prefetch|pause|\w*stream)\w+|__m\d+[id]?h?|(?:float|int|uint)\d+x\d+_t|v(?:ld|st|fma|mla|add|mul)\w*q?_[fsu]\d+": (
            "simd", "",
        ),
        r"omp_get_\w+|pthread_\w+|thrd_\w+": ("thread_parallel", ""),
        r"restrict|__restrict|__restrict__": ("restrict", ""),
        r"__builtin_assume_aligned|_Alignas|alignas|aligned_alloc": ("alignment", ""),
        r"_mm\d*_(?:rcp|rsqrt)\w*|v(?:rsqrte|recpe)\w*": ("math_approx", ""),
    }
)  # fmt: skip
_PRAGMAS = (
    (re.compile(r"omp\s+(?:\w+\s+)*simd\b"), "simd", ""),
    (re.compile(r"omp\s+(?:parallel|for|taskloop|teams|distribute|sections|task)\b"), "thread_parallel", ""),
    (
        re.compile(r"(?:GCC\s+unroll|unroll|clang\s+loop\s+unroll)\b(?!\s*\(?\s*(?:0|1|disable)\b)"),
        "unroll",
        "",
    ),
    (re.compile(r"clang\s+loop\s+vectorize"), "simd", ""),
    (
        re.compile(r"GCC\s+ivdep\b"),
        "simd",
        "the compiler may vectorise here, whether it does is not in the text",
    ),
)


def cues(kernel: Kernel) -> Iterator[Cue]:
    """Everything in the text that speaks of a mechanism."""
    reading = Reading(kernel)
    yield from word_cues(reading, _WORDS)
    yield from _pragmas(reading)
    yield from _vector_types(reading)
    yield from _aligned_arrays(reading)
    yield from _written_out(reading)
    yield from _blocked(reading)


def _pragmas(reading: Reading) -> Iterator[Cue]:
    unit = reading.unit
    for start, end in unit.loop_pragmas:
        if not reading.live_after(end):
            continue
        words = re.sub(r"^\s*#\s*pragma\s+", "", unit.source[start:end].decode("utf-8", "replace")).strip()
        for pattern, name, doubt in _PRAGMAS:
            if pattern.match(words):
                yield reading.cue(name, start, f"#pragma {' '.join(words.split())}", doubt)


def _vector_types(reading: Reading) -> Iterator[Cue]:
    """Types with ``vector_size``: certain where arithmetic is done with them, for a vector may also serve a copy."""
    unit = reading.unit
    types = set()
    for node in reading.nodes:
        name = node.child_by_field_name("declarator") if node.type == "type_definition" else None
        if name is not None and "vector_size" in unit.text(node):
            types.add(unit.text(name))
    computing = {name for name in types if _computes(reading, name)}
    for word in reading.words:
        if word.text in types and word.function is not None:
            doubt = (
                "" if word.text in computing else "nothing is computed with it, so it may serve a copy only"
            )
            yield reading.cue("simd", word.offset, f"the vector type {word.text}", doubt)


def _computes(reading: Reading, vector: str) -> bool:
    """Whether a sum, product or the like has a value of this type as a side."""
    unit = reading.unit
    values = {vector}
    for node in reading.nodes:
        kind = (
            node.child_by_field_name("type")
            if node.type in ("declaration", "parameter_declaration")
            else None
        )
        if kind is not None and unit.text(kind) == vector:
            values |= {_declared(reading, n) for n in node.children_by_field_name("declarator")}
    for node in reading.nodes:
        sign = node.child_by_field_name("operator")
        arithmetic = sign is not None and unit.text(sign).rstrip("=") in ("+", "-", "*", "/", "&", "|", "^")
        if not arithmetic or node.type not in ("binary_expression", "assignment_expression"):
            continue
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        if any(side is not None and _base(reading, side) in values for side in sides):
            return True
    return False


def _declared(reading: Reading, declarator: Node) -> str:
    """The name that a declarator declares."""
    current: Node | None = declarator
    while current is not None and current.type != "identifier":
        current = current.child_by_field_name("declarator") or next(
            (c for c in current.named_children if c.type.endswith("declarator") or c.type == "identifier"),
            None,
        )
    return reading.unit.text(current) if current is not None else ""


def _base(reading: Reading, node: Node) -> str:
    """The variable that an operand is, or is an element of; for ``*(const vec *)p`` the type."""
    current: Node | None = node
    while current is not None and current.type in (
        "subscript_expression",
        "pointer_expression",
        "parenthesized_expression",
    ):
        if current.type == "subscript_expression" and current.parent is not None and _lane(current):
            return ""
        current = current.child_by_field_name("argument") or next(iter(current.named_children), None)
    if current is not None and current.type == "cast_expression":
        kind = current.child_by_field_name("type")
        return (
            next((reading.unit.text(n) for n in walk(kind) if n.type == "type_identifier"), "")
            if kind
            else ""
        )
    return reading.unit.text(current) if current is not None and current.type == "identifier" else ""


def _lane(subscript: Node) -> bool:
    """Whether a subscript has a literal index, as lanes of a vector are taken out with."""
    index = subscript.child_by_field_name("index")
    return index is not None and index.type == "number_literal"


def _aligned_arrays(reading: Reading) -> Iterator[Cue]:
    for start, _ in reading.unit.array_alignments:
        yield reading.cue("alignment", start, "an aligned array")


def _written_out(reading: Reading) -> Iterator[Cue]:
    """Loops that go on by a number above one, with as many statements of one shape."""
    unit = reading.unit
    for node in reading.nodes:
        update = node.child_by_field_name("update") if node.type == "for_statement" else None
        body = node.child_by_field_name("body") if node.type == "for_statement" else None
        match = re.search(r"\+=\s*(\d+)$", unit.text(update)) if update is not None else None
        if match is None or body is None or int(match[1]) < 2 or not reading.live(node):
            continue
        shapes = [re.sub(r"\d+", "#", unit.text(c)) for c in body.named_children]
        most = max((shapes.count(shape) for shape in shapes), default=0)
        if most >= int(match[1]):
            yield reading.cue(
                "unroll",
                node.start_byte,
                f"{most} statements of one shape in a loop that goes on by {match[1]}",
            )
        elif most >= 2:
            doubt = "statements repeat in a loop of wider steps"
            yield reading.cue("unroll", node.start_byte, f"a loop that goes on by {match[1]}", doubt)


def _blocked(reading: Reading) -> Iterator[Cue]:
    """Loops over blocks, in forms that need a person: a step by a name, and a bound that takes a minimum inside."""
    unit = reading.unit
    for node in reading.nodes:
        update = node.child_by_field_name("update") if node.type == "for_statement" else None
        body = node.child_by_field_name("body") if node.type == "for_statement" else None
        match = re.search(r"\+=\s*([A-Za-z_]\w*)$", unit.text(update)) if update is not None else None
        if match is None or body is None or not reading.live(node) or match[1] not in reading.macros:
            continue
        if any(n.type == "for_statement" and _bounded(reading, n, match[1]) for n in walk(body)):
            doubt = "the block may be one of registers, of vectors, or of a cache"
            yield reading.cue("cache_block", node.start_byte, f"a loop over blocks of {match[1]}", doubt)


def _bounded(reading: Reading, loop: Node, size: str) -> bool:
    """Whether an inner loop's bound speaks of the block's size."""
    bound = loop.child_by_field_name("condition")
    return bound is not None and any(
        n.type == "identifier" and reading.unit.text(n) == size for n in walk(bound)
    )
