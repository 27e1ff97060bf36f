"""Syntax roles of the visible rows: one parse a source, one query a screenful.

tree-sitter and its grammars are imported when the first source is shown, never before. Without a
grammar for a language the text is shown plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from klineage_tui.text.line import Span

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query, Tree

_CHUNK = 64  # rows a query: more than a screen seldom is
_LONGEST = 4000  # columns: a longer line is generated or minified, and is shown plain
_SUFFIXES = {
    ".py": "python",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".cu": "cuda",
    ".cuh": "cuda",
}


def language_of(filename: str) -> str:
    """``python``, ``c``, ``cpp`` or ``cuda`` by the file name's suffix; empty for plain text."""
    dot = filename.rfind(".")
    return _SUFFIXES.get(filename[dot:].lower(), "") if dot >= 0 else ""


def split_lines(text: str) -> tuple[list[str], bool]:
    """The lines of a text without their line feeds, and whether the last one ended with one.

    A carriage return belongs to its line, so that a changed line ending is seen.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1], bool(text)
    return lines, False


class Highlighter:
    """The syntax spans of one source, computed for the rows that are asked for."""

    def __init__(self, lines: Sequence[str], language: str) -> None:
        self._lines = lines
        self._language = language
        self._tree: Tree | None = None
        self._chunks: dict[int, list[tuple[Span, ...]]] = {}

    def spans(self, row: int) -> tuple[Span, ...]:
        """Non-overlapping spans of ``row``, in characters of the source line, left to right."""
        if not self._language:
            return ()
        chunk = row // _CHUNK
        if chunk not in self._chunks:
            self._chunks[chunk] = self._query(chunk * _CHUNK)
        return self._chunks[chunk][row % _CHUNK]

    def _query(self, first: int) -> list[tuple[Span, ...]]:
        from tree_sitter import QueryCursor

        language, query = _grammar(self._language)
        if self._tree is None:
            from tree_sitter import Parser

            source = "\n".join(self._lines).encode("utf-8", errors="replace")
            self._tree = Parser(language).parse(source)
        last = min(first + _CHUNK, len(self._lines))
        cursor = QueryCursor(query)
        cursor.set_point_range((first, 0), (last, 0))
        found = [
            (pattern, name, node)
            for pattern, captures in cursor.matches(self._tree.root_node)
            for name, nodes in captures.items()
            for node in nodes
        ]
        found.sort(key=lambda item: item[0])
        return _paint(self._lines[first:last], first, found)


def _paint(
    lines: Sequence[str], first: int, found: Sequence[tuple[int, str, Node]]
) -> list[tuple[Span, ...]]:
    """Later captures over earlier ones, then runs of equal role."""
    rows: list[list[str]] = [[] if len(line) > _LONGEST else [""] * len(line) for line in lines]
    for _, name, node in found:
        role = "" if name == "plain" else f"syntax-{name}"
        (top, left), (bottom, right) = node.start_point, node.end_point
        for row in range(max(top, first), min(bottom + 1, first + len(lines))):
            roles, line = rows[row - first], lines[row - first]
            if not roles:
                continue
            start = _characters(line, left) if row == top else 0
            end = _characters(line, right) if row == bottom else len(line)
            roles[start:end] = [role] * (end - start)
    return [_runs(roles) for roles in rows]


def _characters(line: str, octets: int) -> int:
    """The character index of a byte column of the UTF-8 line."""
    if line.isascii():
        return min(octets, len(line))
    return len(line.encode("utf-8", errors="replace")[:octets].decode("utf-8", errors="ignore"))


def _runs(roles: Sequence[str]) -> tuple[Span, ...]:
    spans: list[Span] = []
    start = 0
    for index in range(1, len(roles) + 1):
        if index == len(roles) or roles[index] != roles[start]:
            if roles[start]:
                spans.append(Span(start, index, roles[start]))
            start = index
    return tuple(spans)


@lru_cache(maxsize=4)
def _grammar(name: str) -> tuple[Language, Query]:
    from importlib import import_module

    from tree_sitter import Language, Query

    from klineage_tui.text import queries

    patterns = {
        "python": queries.PYTHON,
        "c": queries.C,
        "cpp": queries.C + queries.CPP,
        "cuda": queries.C + queries.CPP + queries.CUDA,
    }[name]
    language = Language(import_module(f"tree_sitter_{name}").language())
    return language, Query(language, patterns)
