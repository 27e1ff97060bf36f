"""Anchors: a tree-sitter query that finds the place of an optimization again, on any kernel of its surface.

A query captures the place as ``@anchor``. Beside tree-sitter's own predicates it may use four that look further than
one pattern can, after those of the same names in nvim-treesitter::

    (#has-ancestor? @anchor "for_statement")                     something around it has that type
    (#has-descendant? @anchor "assignment_expression" "\\\\+=")    something in it has that type, and that text in it

and the same with ``not-`` before. No match, and ten, are answers and no errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast

from tree_sitter import Node, Query, QueryCursor, QueryError

from klineage.errors import KlineageError
from klineage.kernel import Kernel, Surface
from klineage.surface.tree import Unit, ancestors, language, parse_kernel, walk

if TYPE_CHECKING:
    from tree_sitter import QueryPredicate

CAPTURE = "anchor"
_LONGEST = 4000  # characters of a query
_MOST_MATCHES = 4096
_LONGEST_PATTERN = 200
#: A quantifier on a group that has one inside: what makes matching take forever on a long line.
_RUNAWAY = re.compile(r"\([^()]*[+*}][^()]*\)[+*{]")

_ANY = re.compile("")
_OWN = ("has-ancestor", "has-descendant")
_PREDICATES = {
    *(f"{no}{name}?" for no in ("", "not-") for name in (*_OWN, "eq", "match", "any-of")),
    *(f"any-{name}?" for name in ("eq", "match", "not-eq", "not-match")),
    "set!",
}


@dataclass(frozen=True, order=True)
class Place:
    """One place that a query finds.

    start, end: byte offsets. line, last_line: from 1. locus: of the innermost named place that it is, or lies in,
    ``kernel.c::gemm/for[k]``; empty for one outside every function.
    """

    start: int
    end: int
    line: int
    last_line: int
    locus: str
    type: str


def find_anchor(query: str, kernel: Kernel) -> tuple[Place, ...]:
    """Every place of ``kernel`` that the query finds, in the order of the text; empty for none.

    Raises KlineageError when the query is none of the kernel's language, or captures no ``@anchor``.
    """
    unit = parse_kernel(kernel)
    return tuple(place_of(unit, node) for node in matches(unit, query))


def matches(unit: Unit, query: str) -> list[Node]:
    """The nodes that a query captures as its anchor, each once, in the order of the text."""
    cursor = QueryCursor(compiled_query(unit.surface, query), match_limit=_MOST_MATCHES)
    return sorted(_captured(unit, cursor, unit.root), key=lambda node: (node.start_byte, -node.end_byte))


def is_match(unit: Unit, query: str, node: Node) -> bool:
    """Whether a query of one pattern finds exactly this node; the same as looking for it, without the search."""
    cursor = QueryCursor(compiled_query(unit.surface, query), match_limit=_MOST_MATCHES)
    cursor.set_max_start_depth(0)
    return any(found.id == node.id for found in _captured(unit, cursor, node))


def _captured(unit: Unit, cursor: QueryCursor, start: Node) -> Collection[Node]:
    problems: list[str] = []
    matched = cursor.matches(start, _asking(unit, problems))
    if problems:
        raise KlineageError(problems[0])
    return {node.id: node for _, captures in matched for node in captures.get(CAPTURE, ())}.values()


def place_of(unit: Unit, node: Node) -> Place:
    """A node as a place with its names."""
    last = max(node.start_byte, node.end_byte - 1)
    return Place(
        node.start_byte, node.end_byte, unit.line(node.start_byte), unit.line(last), locus_of(unit, node), node.type
    )  # fmt: skip


def locus_of(unit: Unit, node: Node) -> str:
    """The innermost named place that a node is or lies in; empty outside every function."""
    around = {node.id, *(above.id for above in ancestors(node))}
    named = [
        (place.end_byte - place.start_byte, name) for name, place in unit.loci.items() if place.id in around
    ]
    return min(named, default=(0, ""))[1]


@lru_cache(maxsize=512)
def compiled_query(surface: Surface, query: str) -> Query:
    """The query, ready to run. Raises KlineageError with its line and what is wrong with it."""
    if len(query) > _LONGEST:
        raise KlineageError(
            f"the anchor's query has {len(query):,} characters, more than {_LONGEST:,}; name fewer things in it"
        )
    for pattern in re.findall(r'"((?:[^"\\]|\\.)*)"', query):
        _refuse_runaway(pattern)
    unknown = set(re.findall(r"#([\w-]+[?!])", query)) - _PREDICATES
    if unknown:
        raise KlineageError(
            f"the anchor's query asks #{min(unknown)}, which nobody answers; known are {', '.join(sorted(_PREDICATES))}"
        )
    try:
        compiled = Query(language(surface), query)
    except (QueryError, ValueError) as error:
        message = " ".join(str(error).split())
        raise KlineageError(f"the anchor's query is none of {surface}: {_with_line(message)}") from error
    count = cast("int", compiled.capture_count)  # a property, whatever the stubs say
    names = {compiled.capture_name(i) for i in range(count)}
    if CAPTURE not in names:
        raise KlineageError(
            f"the anchor's query captures no @{CAPTURE}; write @{CAPTURE} after the place that is meant"
        )
    return compiled


def _with_line(message: str) -> str:
    """tree-sitter counts rows from 0."""
    return re.sub(r"\brow (\d+)", lambda match: f"line {int(match[1]) + 1}", message)


def _refuse_runaway(pattern: str) -> None:
    if len(pattern) > _LONGEST_PATTERN or _RUNAWAY.search(re.sub(r"\\\\?\\?.", "x", pattern)):
        raise KlineageError(
            f"the anchor's query has a pattern that could take forever: {pattern[:60]!r}; write a simpler one"
        )


@lru_cache(maxsize=512)
def _pattern(text: str) -> re.Pattern[str] | None:
    """The regular expression; None for what is none."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return None


def _asking(unit: Unit, problems: list[str]) -> QueryPredicate:
    """What answers the predicates that tree-sitter leaves to its host.

    It is called from C, which no exception may pass: what is wrong with a predicate is added to ``problems``.
    """

    def answer(
        predicate: str,
        args: list[tuple[str, Literal["capture", "string"]]],
        pattern_index: int,
        captures: dict[str, list[Node]],
    ) -> bool:
        if (
            len(args) not in (2, 3)
            or [kind for _, kind in args] != ["capture", "string", "string"][: len(args)]
        ):
            problems.append(
                f'the anchor\'s query asks #{predicate} of nothing; write (#{predicate} @{CAPTURE} "type") or add a pattern'
            )
            return False
        pattern = _pattern(args[2][0]) if len(args) == 3 else _ANY
        if pattern is None:
            problems.append(f"the anchor's query has a pattern that is no regular expression: {args[2][0]!r}")
            return False
        around = _inside if predicate.removeprefix("not-").startswith("has-descendant") else ancestors
        found = any(
            node.type == args[1][0] and pattern.search(unit.text(node))
            for start in captures.get(args[0][0], [])
            for node in around(start)
        )
        return found != predicate.startswith("not-")

    return answer


def _inside(node: Node) -> Iterator[Node]:
    nodes = walk(node)
    next(nodes)
    return nodes
