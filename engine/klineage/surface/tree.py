"""Parse a kernel's bytes, name places in it stably, and edit it without touching another byte.

All offsets are byte offsets into the original source. What cannot be decoded or parsed is
carried along untouched: a broken file still has functions wherever the parser found some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module

from tree_sitter import Language, Node, Parser

from klineage.kernel import Kernel, Surface

_INVALID_UTF8 = re.compile(rb"[\x80-\xff]")
_LONE_CR = re.compile(rb"\r(?!\n)")
# What the C grammar trips over: a pragma between a loop's header and its body, alignment of an array.
_LOOP_PRAGMA = re.compile(
    rb"^[ \t]*#[ \t]*pragma[ \t]+(?:omp|(?:no)?unroll|GCC[ \t]+(?:unroll|ivdep)|clang[ \t]+loop)\b"
    rb"(?:\\\r?\n|[^\r\n])*",
    re.MULTILINE,
)
_ARRAY_ALIGNMENT = re.compile(rb"(?<=\])\s*__attribute__\s*\(\(\s*_*aligned_*\s*\([^()]*\)\s*\)\)")
# A macro that makes a function, on a line of its own: without a semicolon the grammar reads what follows as its body.
_TOP_LEVEL_MACRO = re.compile(
    rb"^[A-Z_][A-Z0-9_]*[ \t]*\([^()\r\n]*(?:\([^()\r\n]*\)[^()\r\n]*)*\)[ \t]*(?=\r?$)", re.MULTILINE
)
# CUDA attributes with arguments that the grammar does not know.
_CUDA_ATTRIBUTE = re.compile(rb"\b__(?:cluster_dims|block_size|maxnreg)__\s*\((?:[^()]|\([^()]*\))*\)")
_VISIBLE = re.compile(rb"[^\r\n]")


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the bytes ``start:end`` of a source by ``text``."""

    start: int
    end: int
    text: bytes = b""


def apply_edits(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The source with all edits made; every byte outside them is unchanged.

    Insertions at the same offset keep their order. Raises ValueError when edits overlap or leave the source.
    """
    parts: list[bytes] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < position or edit.end < edit.start or edit.end > len(source):
            raise ValueError(f"edit {edit.start}:{edit.end} overlaps another or leaves the source")
        parts += (source[position : edit.start], edit.text)
        position = edit.end
    parts.append(source[position:])
    return b"".join(parts)


def merge_edits(*groups: Iterable[Edit]) -> tuple[Edit, ...]:
    """All edits in order, each once; a deletion that overlaps another deletion becomes part of it."""
    joined: list[Edit] = []
    for edit in sorted({e for group in groups for e in group}):
        last = joined[-1] if joined else None
        if last is not None and edit.start < last.end and not edit.text and not last.text:
            joined[-1] = Edit(last.start, max(last.end, edit.end))
        else:
            joined.append(edit)
    return tuple(joined)


@dataclass(frozen=True)
class Function:
    """One function definition. ``node`` includes decorators, ``definition`` does not."""

    name: str
    locus: str
    node: Node
    definition: Node
    body: Node
    jit: bool = False  # a Triton device function; CUDA: ``__global__``
    exported: bool = True  # C: not static; CUDA: with C linkage


@dataclass(frozen=True, eq=False)
class Unit:
    """A parsed kernel file."""

    surface: Surface
    filename: str
    source: bytes
    root: Node

    def text(self, node: Node) -> str:
        """The node's exact source text; undecodable bytes survive a round trip through ``encode``."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every named function in source order; a repeated name is numbered ``name#2``."""
        found = _python_functions(self) if self.surface == "triton" else _c_functions(self)
        return tuple(found)

    @cached_property
    def loci(self) -> dict[str, Node]:
        """Every named place: functions, their loops (``/for[k]``) and their launches
        (``/launch[kernel]``)."""
        places: dict[str, Node] = {}
        for function in self.functions:
            places[function.locus] = function.node
            _name_places(self, function.body, function.locus, places)
        return places

    def function(self, name: str) -> Function | None:
        return next((f for f in self.functions if f.name == name), None)

    def function_at(self, locus: str) -> Function | None:
        """The function that a locus lies in, or None."""
        head = function_locus(locus)
        return next((f for f in self.functions if f.locus == head), None)

    @cached_property
    def loop_pragmas(self) -> tuple[tuple[int, int], ...]:
        """C, CUDA: the spans of pragmas on loops (omp, unroll, ivdep); they are not in the tree."""
        return self._outside_comments(_LOOP_PRAGMA)

    @cached_property
    def array_alignments(self) -> tuple[tuple[int, int], ...]:
        """C, CUDA: the spans of ``__attribute__((aligned(n)))`` after an array's ``]``; they are not in the
        tree."""
        return self._outside_comments(_ARRAY_ALIGNMENT)

    def _outside_comments(self, pattern: re.Pattern[bytes]) -> tuple[tuple[int, int], ...]:
        spans = []
        for match in pattern.finditer(self.source) if self.surface != "triton" else ():
            inside = self.root.descendant_for_byte_range(match.start(), match.end())
            if inside is None or inside.type not in ("comment", "string_literal", "string_content"):
                spans.append(match.span())
        return tuple(spans)

    def line(self, offset: int) -> int:
        """The line number, from 1, of a byte offset."""
        return len(_LINE_END.findall(self.source, 0, offset)) + 1

    def broken_lines(self) -> tuple[int, ...]:
        """Line numbers where the parser met something that is not the language; empty when it parses."""
        if not self.root.has_error:
            return ()
        bad = {self.line(n.start_byte) for n in walk(self.root) if n.is_error or n.is_missing}
        return tuple(sorted(bad))

    def newline(self, offset: int) -> bytes:
        """The line ending in use around ``offset``: of its own line, else of the line before, else
        ``\\n``."""
        after = _LINE_END.search(self.source, offset)
        if after:
            return after.group()
        before = _LINE_END.findall(self.source, 0, offset)
        return before[-1] if before else b"\n"

    def line_start(self, offset: int) -> int:
        while offset > 0 and self.source[offset - 1] not in b"\r\n":
            offset -= 1
        return offset

    def line_end(self, offset: int) -> int:
        """The offset just after the line ending of the line that holds ``offset``."""
        found = _LINE_END.search(self.source, offset)
        return found.end() if found else len(self.source)

    def indent(self, offset: int) -> bytes:
        """The white space that the line of ``offset`` begins with."""
        start = self.line_start(offset)
        end = start
        while end < len(self.source) and self.source[end] in b" \t":
            end += 1
        return self.source[start:end]

    def alone(self, start: int, end: int) -> bool:
        """Whether nothing but white space, a ``;`` and a comment shares the lines of ``start:end``."""
        before = self.source[self.line_start(start) : start]
        after = self.source[end : self.line_end(end)]
        comment = rb"[ \t;]*(#.*)?\s*" if self.surface == "triton" else rb"[ \t;]*(//.*|/\*[^*]*\*/\s*)?\s*"
        return not before.strip(b" \t\xef\xbb\xbf") and re.fullmatch(comment, after) is not None

    def lines_of(self, node: Node) -> tuple[int, int]:
        """The span of the node's whole lines, endings included, when it stands alone on them, else the
        node's."""
        if not self.alone(node.start_byte, node.end_byte):
            return node.start_byte, node.end_byte
        return self.line_start(node.start_byte), self.line_end(node.end_byte)


_LINE_END = re.compile(rb"\r\n|\n|\r")


def function_locus(locus: str) -> str:
    """``a/kernel.py::gemm`` of ``a/kernel.py::gemm/for[k]``."""
    filename, separator, place = locus.partition("::")
    return filename + separator + place.split("/", 1)[0]


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def ancestors(node: Node) -> Iterator[Node]:
    """The node's parents, innermost first."""
    current = node.parent
    while current is not None:
        yield current
        current = current.parent


@lru_cache(maxsize=256)
def parse(surface: Surface, filename: str, source: bytes) -> Unit:
    """Parse bytes of any kind; never fails (see ``Unit.broken_lines``)."""
    return Unit(surface, filename, source, _parser(surface).parse(readable(surface, source)).root_node)


def parse_kernel(kernel: Kernel) -> Unit:
    """The parsed source of a kernel."""
    return parse(kernel.surface, kernel.filename, kernel.source)


def _parser(surface: Surface) -> Parser:
    """A parser of its own for every call: parsers are not safe to share between threads."""
    return Parser(language(surface))


@lru_cache(maxsize=4)
def language(surface: Surface) -> Language:
    """The grammar that kernels of a surface are parsed with."""
    grammar = import_module(
        {"triton": "tree_sitter_python", "c": "tree_sitter_c", "cuda": "tree_sitter_cuda"}[surface]
    )
    return Language(grammar.language())


def readable(surface: Surface, source: bytes) -> bytes:
    """What the grammar can read, of the same length.

    Lone CRs end lines, bytes that are no UTF-8 are ``?``. In C and CUDA blank are: loop pragmas, array alignments,
    and macros on lines of their own.
    """
    source = _LONE_CR.sub(b"\n", source)
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        source = _INVALID_UTF8.sub(b"?", source)
    if surface != "triton":
        extra = (_CUDA_ATTRIBUTE,) if surface == "cuda" else ()
        for pattern in (_LOOP_PRAGMA, _ARRAY_ALIGNMENT, _TOP_LEVEL_MACRO, *extra):
            source = pattern.sub(lambda match: _VISIBLE.sub(b" ", match.group()), source)
    return source


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _python_functions(unit: Unit) -> Iterator[Function]:
    jitted_later = set(re.findall(rb"=\s*(?:triton\.)?jit\(\s*(\w+)\s*[,)]", unit.source))
    seen: dict[str, int] = {}
    for node in walk(unit.root):
        if node.type != "function_definition":
            continue
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None:
            continue
        outer = (
            node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
        )
        decorators = [unit.text(d) for d in outer.children if d.type == "decorator"]
        name = unit.text(name_node)
        jit = any(re.match(r"@\s*(triton\.)?jit\b", d) for d in decorators)
        jit = jit or name.encode("utf-8", "surrogateescape") in jitted_later
        locus = f"{unit.filename}::{_numbered(name, seen)}"
        yield Function(name, locus, outer, node, body, jit)


def _c_functions(unit: Unit) -> Iterator[Function]:
    seen: dict[str, int] = {}
    for node in walk(unit.root):
        body = node.child_by_field_name("body") if node.type == "function_definition" else None
        if body is None:
            continue
        name = next((n for n in _declared(node) if n.type == "identifier"), None)
        if name is None:
            continue
        static = any(c.type == "storage_class_specifier" and unit.text(c) == "static" for c in node.children)
        launched = any(c.type == "__global__" for c in node.children)
        exported = not static and (unit.surface == "c" or _c_linkage(unit, node))
        locus = f"{unit.filename}::{_numbered(unit.text(name), seen)}"
        yield Function(unit.text(name), locus, node, node, body, jit=launched, exported=exported)


def _c_linkage(unit: Unit, node: Node) -> bool:
    """Whether a definition stands under ``extern "C"``, alone or in braces."""
    named = (n.child_by_field_name("value") for n in ancestors(node) if n.type == "linkage_specification")
    return any(unit.text(n) == '"C"' for n in named if n is not None)


def _declared(node: Node) -> Iterator[Node]:
    """The chain of declarators from a definition down to its name."""
    current = node.child_by_field_name("declarator")
    while current is not None:
        yield current
        current = current.child_by_field_name("declarator")


def _name_places(unit: Unit, body: Node, locus: str, places: dict[str, Node]) -> None:
    """Record the loops and launches below ``body``, nested loops below their own loops."""
    seen: dict[str, int] = {}
    stack: list[Node] = list(reversed(body.children))
    while stack:
        node = stack.pop()
        if node.type in ("function_definition", "decorated_definition"):
            continue
        segment = _segment(unit, node)
        if segment is None:
            stack.extend(reversed(node.children))
            continue
        place = f"{locus}/{_number_inside(segment, seen)}"
        places[place] = node
        _name_places(unit, node, place, places)


def _number_inside(segment: str, seen: dict[str, int]) -> str:
    seen[segment] = seen.get(segment, 0) + 1
    if seen[segment] == 1:
        return segment
    head, bracket, tail = segment.partition("]")
    return f"{head}#{seen[segment]}{bracket}{tail}"


def _segment(unit: Unit, node: Node) -> str | None:
    """The name of a loop or a launch inside its parent, or None for anything else."""
    if node.type == "for_statement":
        return f"for[{loop_variable(unit, node)}]"
    if node.type in ("while_statement", "do_statement"):
        return "while[]"
    if node.type == "call":
        function = node.child_by_field_name("function")
        value = function.child_by_field_name("value") if function is not None else None
        if function is not None and function.type == "subscript" and value is not None:
            return f"launch[{unit.text(value)}]"
    return None


def loop_variable(unit: Unit, loop: Node) -> str:
    """The variable that a ``for`` loop counts with; empty when it has none."""
    if unit.surface == "triton":
        left = loop.child_by_field_name("left")
        return unit.text(left) if left is not None else ""
    for field in ("initializer", "update"):
        part = loop.child_by_field_name(field)
        if part is not None:
            name = next((n for n in walk(part) if n.type == "identifier"), None)
            if name is not None:
                return unit.text(name)
    return ""
