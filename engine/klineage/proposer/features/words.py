"""Reading C and CUDA for single words: identifiers, pragmas and hand-written instructions, each with its function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.features.finding import Cue
from klineage.surface.tree import Function, Unit, ancestors, parse_kernel, walk

_NAMES = frozenset(
    (
        "identifier",
        "type_identifier",
        "field_identifier",
        "namespace_identifier",
        "primitive_type",
        "type_qualifier",
    )
)
_OPENING = ("using_declaration", "namespace_alias_definition")
_CONDITIONAL = ("preproc_if", "preproc_elif", "preproc_ifdef")
_KEYWORDS = ("__launch_bounds__", "__maxnreg__", "__cluster_dims__")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TEXT = re.compile(r'"((?:\\.|[^"\\])*)"')


@dataclass(frozen=True)
class Pattern:
    """Words, or pieces of assembly, that speak of one mechanism."""

    words: re.Pattern[str]
    name: str
    doubt: str = ""


@dataclass(frozen=True)
class Word:
    """An identifier in the code, or a keyword such as ``__launch_bounds__``. ``condition``: of the ``#if`` around it."""

    text: str
    offset: int
    function: Function | None
    condition: str = ""


class Reading:
    """A file of C or CUDA with its words, read once.

    Code that no kernel reaches, and code under ``#if 0``, is left out.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.unit = parse_kernel(kernel)
        self.kernels = self._entries()
        self.nodes = [node for node in walk(self.unit.root) if node.type != "comment"]
        self._conditionals = [n for n in self.nodes if n.type in _CONDITIONAL]
        self.macros = dict(self._macros())
        everything = [word for word in self._words() if word.condition != "0"]
        self._live = self._reachable(everything)
        self.words = [w for w in everything if w.function is None or w.function.name in self._live]

    def _entries(self) -> tuple[Function, ...]:
        unit = self.unit
        wanted = self.kernel.entry.split("+")
        found = [f for f in unit.functions if (f.jit if unit.surface == "cuda" else f.exported)]
        return tuple([f for f in found if f.name in wanted] or found)

    def _words(self) -> Iterator[Word]:
        opened = [(n.start_byte, n.end_byte) for n in self.nodes if n.type in _OPENING]
        for node in self.nodes:
            if any(start <= node.start_byte < end for start, end in opened):
                continue  # a namespace that is opened is not used yet
            if node.type in _NAMES or node.type in _KEYWORDS:
                yield Word(
                    self.unit.text(node), node.start_byte, self.function_of(node), self.condition(node)
                )

    def _reachable(self, words: Iterable[Word]) -> dict[str, str]:
        """The functions that a kernel calls, by any road, each with the locus of the first kernel that does.

        All of them where there is no kernel.
        """
        if not self.kernels:
            return dict.fromkeys((f.name for f in self.unit.functions), self.home)
        names = {f.name for f in self.unit.functions} - {k.name for k in self.kernels}
        mentioned: dict[str, set[str]] = {}
        for word in words:
            if word.function is not None:
                mentioned.setdefault(word.function.name, set()).add(word.text)
        bodies = {word for text, _ in self.macros.values() for word in _WORD.findall(text)}
        reached: dict[str, str] = {}
        for kernel in self.kernels:
            todo = [kernel.name, *sorted(bodies & names)]
            while todo:
                name = todo.pop()
                if name not in reached:
                    reached[name] = kernel.locus
                    todo += mentioned.get(name, set()) & names
        return reached

    def live(self, node: Node) -> bool:
        """Whether a node is in code that a kernel reaches."""
        function = self.function_of(node)
        return (function is None or function.name in self._live) and self.condition(node) != "0"

    def live_after(self, offset: int) -> bool:
        """Whether what follows an offset, such as the loop under a pragma, is in code that a kernel reaches."""
        node = next((n for n in self.nodes if n.start_byte >= offset and n.is_named), None)
        return node is None or self.live(node)

    def condition(self, node: Node) -> str:
        """What the innermost undecided ``#if`` around a node asks: "" where none does, "0" where it is never
        compiled."""
        around = [n for n in self._conditionals if n.start_byte < node.start_byte < n.end_byte]
        return _condition(self.unit, node) if around else ""

    def _macros(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """Every macro's text and offset, by name."""
        for node in self.nodes:
            if node.type in ("preproc_def", "preproc_function_def") and self.condition(node) != "0":
                name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
                if name is not None and value is not None:
                    yield self.unit.text(name), (self.unit.text(value), node.start_byte)

    def function_of(self, node: Node) -> Function | None:
        inside = [f for f in self.unit.functions if f.node.start_byte <= node.start_byte < f.node.end_byte]
        return inside[-1] if inside else None

    @property
    def home(self) -> str:
        """Where a mechanism of the whole file is said to be: the kernel that is entered first, else the file itself."""
        first = self.kernels[0].locus if self.kernels else ""
        return first or f"{self.unit.filename}::{self.kernel.entry.split('+')[0]}"

    def cue(self, name: str, offset: int, what: str, doubt: str = "") -> Cue:
        """A cue at the kernel that reaches the code at ``offset``."""
        inside = [f for f in self.unit.functions if f.node.start_byte <= offset < f.node.end_byte]
        locus = self._live.get(inside[-1].name, self.home) if inside else self.home
        return Cue(name, locus, self.unit.line(offset), what, doubt)

    def guarded(self, cue: Cue, under: str) -> Cue:
        """The cue, in doubt where an ``#if`` decides whether it is compiled."""
        if not under or cue.doubt:
            return cue
        return Cue(
            cue.name,
            cue.locus,
            cue.line,
            cue.what,
            f"it stands under #if {under}, which the text does not decide",
        )


def word_cues(reading: Reading, patterns: Iterable[Pattern]) -> Iterator[Cue]:
    """Cues of identifiers, those in the bodies of macros included, where the macro is used."""
    table = tuple(patterns)
    told = {
        name: [
            (pattern, word, offset)
            for word in _WORD.findall(text)
            for pattern in table
            if pattern.words.fullmatch(word)
        ]
        for name, (text, offset) in reading.macros.items()
    }
    for word in reading.words:
        for pattern in table:
            if pattern.words.fullmatch(word.text):
                cue = reading.cue(pattern.name, word.offset, word.text, pattern.doubt)
                yield reading.guarded(cue, word.condition)
        for pattern, inner, offset in told.get(word.text, ()):
            if word.function is not None:
                cue = reading.cue(pattern.name, offset, f"{inner} in the macro {word.text}", pattern.doubt)
                yield reading.guarded(cue, word.condition)


def assembly_cues(reading: Reading, patterns: Iterable[Pattern], other: str) -> Iterator[Cue]:
    """Cues of hand-written instructions; those that no pattern knows are ``other``."""
    table = tuple(patterns)
    for text, offset, under in _assembly(reading):
        known = [(p, m.group()) for p in table if (m := p.words.search(text))]
        for pattern, piece in known:
            yield reading.guarded(reading.cue(pattern.name, offset, piece, pattern.doubt), under)
        if not known and text.strip():
            first = text.strip().replace("\\n", " ").replace("\\t", " ").split(";")[0]
            cue = reading.cue(other, offset, " ".join(first.split())[:40] or "asm")
            yield reading.guarded(cue, under)


def _assembly(reading: Reading) -> Iterator[tuple[str, int, str]]:
    """(text, offset, condition) of every piece of assembly in live code, macros that are used included."""
    unit = reading.unit
    for node in reading.nodes:
        if node.type == "gnu_asm_expression" and reading.live(node):
            code = [
                c
                for c in node.named_children
                if c.type in ("string_literal", "concatenated_string", "raw_string_literal")
            ]
            yield (
                "".join(unit.text(c) for c in code[:1]).replace('"', " "),
                node.start_byte,
                reading.condition(node),
            )
    used = {word.text: word.condition for word in reading.words if word.function is not None}
    for name, (text, offset) in reading.macros.items():
        if name in used and re.search(r"\b(asm|__asm__)\b", text):
            yield " ".join(_TEXT.findall(text)), offset, used[name]


def _condition(unit: Unit, node: Node) -> str:
    inside: Node = node
    for outer in ancestors(node):
        if outer.type in _CONDITIONAL:
            asked = outer.child_by_field_name("condition") or outer.child_by_field_name("name")
            text = " ".join(unit.text(asked).split()) if asked is not None else "?"
            otherwise = outer.child_by_field_name("alternative") == inside
            if asked is not None and inside == asked:
                return ""
            if text in ("0", "1"):
                if (text == "0") is not otherwise:
                    return "0"
            elif not _guard(unit, outer):
                return f"not {text}" if otherwise else text
        inside = outer
    return ""


def _guard(unit: Unit, node: Node) -> bool:
    """Whether an ``#ifndef`` is the guard of a header or of a macro's default value."""
    if not unit.text(node).startswith("#ifndef"):
        return False
    first = next((c for c in node.named_children if c.type in ("preproc_def", "preproc_function_def")), None)
    name = node.child_by_field_name("name")
    label = first.child_by_field_name("name") if first is not None else None
    return name is not None and label is not None and unit.text(name) == unit.text(label)


def compiled(patterns: Mapping[str, tuple[str, str]]) -> tuple[Pattern, ...]:
    """Patterns from ``{words: (name, doubt)}``."""
    return tuple(Pattern(re.compile(words), name, doubt) for words, (name, doubt) in patterns.items())
