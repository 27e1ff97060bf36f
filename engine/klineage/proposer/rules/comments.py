"""Comments that a removed mechanism takes along, kept with the step so that they can come back with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from klineage.surface.tree import Edit, Unit, apply_edits, walk

_PREFIX = "comment."
_ABOVE = " <- "  # "code line <- comment line": the comment stands above the code


def lost_comments(unit: Unit, edits: Iterable[Edit]) -> dict[str, str]:
    """The one-line comments that the edits delete, each with the line of code that it stands above."""
    deletions = [e for e in edits if not e.text]
    found: dict[str, str] = {}
    for node in walk(unit.root):
        if node.type != "comment" or not unit.alone(node.start_byte, node.end_byte):
            continue
        text = unit.text(node)
        if "\n" in text or not any(e.start <= node.start_byte and node.end_byte <= e.end for e in deletions):
            continue
        code = node.next_sibling
        while code is not None and code.type == "comment":
            code = code.next_sibling
        line = _first_line(unit, code.start_byte if code is not None else unit.line_end(node.end_byte))
        if line and _ABOVE not in line:
            found[f"{_PREFIX}{len(found) + 1}"] = f"{line}{_ABOVE}{text}"
    return found


def _first_line(unit: Unit, offset: int) -> str:
    line = unit.source[unit.line_start(offset) : unit.line_end(offset)]
    return line.decode("utf-8", "surrogateescape").strip()


def without_comments(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of the mechanism itself."""
    return {name: value for name, value in settings.items() if not name.startswith(_PREFIX)}


def restore_comments(unit: Unit, settings: Mapping[str, str]) -> bytes:
    """The source with each recorded comment above its line of code, where that line is there exactly once."""
    edits = []
    for name, value in settings.items():
        code, found, comment = value.partition(_ABOVE)
        if not name.startswith(_PREFIX) or not found:
            continue
        places = _lines(unit, code)
        if len(places) == 1:
            at = places[0]
            text = unit.indent(at) + comment.encode("utf-8", "surrogateescape") + unit.newline(at)
            edits.append(Edit(at, at, text))
    return apply_edits(unit.source, edits)


def _lines(unit: Unit, code: str) -> list[int]:
    """The offsets of the lines that read ``code``."""
    wanted, offset, found = code.encode("utf-8", "surrogateescape"), 0, []
    for line in unit.source.splitlines(keepends=True):
        if line.strip() == wanted:
            found.append(offset)
        offset += len(line)
    return found
