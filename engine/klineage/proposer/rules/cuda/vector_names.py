"""Vector pointers that have a name: ``const float4 *rows = reinterpret_cast<const float4 *>(x + first);``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.proposer.rules.cuda.code import identifiers
from klineage.proposer.rules.rewritten import function_of, line_at, position
from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.tree import Edit, Unit

KEY = "pointer."
_CAST = r"(?P<type>\w+) ?(?:const ?)?\*(?:>|\)) ?\(?(?P<pointer>[^()]+)\)?;"
_MADE = re.compile(rf"(?P<text>.*\b(?P<name>\w+) = .*?{_CAST}) as statement (?P<at>\d+) of (?P<place>.+)")


@dataclass(frozen=True)
class Named:
    """One such pointer: its declaration, and every element that is read or written through it."""

    name: str
    declaration: Node
    elements: tuple[tuple[Node, str], ...]  # (the access, its index)


def named_pointer(unit: Unit, cast: Node) -> Named | None:
    """The pointer that a cast gives a name to; None when it stands elsewhere. Raises NotApplicable."""
    holder = cast.parent
    declaration = holder.parent if holder is not None and holder.type == "init_declarator" else None
    function = function_of(unit, cast)
    name = (
        next((n for n in identifiers(unit, holder, *_words(unit, holder))), None)
        if holder is not None
        else None
    )
    if declaration is None or declaration.type != "declaration" or function is None or name is None:
        return None
    line = f"line {unit.line(cast.start_byte)}"
    if len(declaration.children_by_field_name("declarator")) != 1:
        raise NotApplicable(f"{line}: a vector pointer is declared together with others")
    found = []
    for use in identifiers(unit, function.body, unit.text(name)):
        if declaration.start_byte <= use.start_byte < declaration.end_byte:
            continue
        outer = use.parent
        listing = outer.child_by_field_name("indices") if outer is not None else None
        if (
            outer is None
            or outer.type != "subscript_expression"
            or outer.children[0] != use
            or listing is None
        ):
            raise NotApplicable(
                f"line {unit.line(use.start_byte)}: {unit.text(use)} is used other than by its elements"
            )
        found.append((outer, unit.text(listing)[1:-1]))
    return Named(unit.text(name), declaration, tuple(found))


def _words(unit: Unit, holder: Node) -> tuple[str, ...]:
    """The name that a declarator declares."""
    declared = holder.child_by_field_name("declarator")
    return tuple(re.findall(r"\w+", unit.text(declared))[-1:]) if declared is not None else ()


def recorded_names(unit: Unit, found: list[Named]) -> dict[str, str]:
    """The declarations and where they stand, as settings."""
    gone = [n.declaration for n in found]
    return {
        f"{KEY}{number}": f"{' '.join(unit.text(n.declaration).split())} as {position(unit, n.declaration, gone)}"
        for number, n in enumerate(found, start=1)
    }


def declared_again(unit: Unit, settings: Mapping[str, str]) -> list[Edit]:
    """The declarations of recorded settings, each back in its place."""
    lines: dict[int, bytes] = {}
    for key, value in settings.items():
        match = _MADE.fullmatch(value) if key.startswith(KEY) else None
        if match is not None:
            at, indent, newline = line_at(unit, match["place"], int(match["at"]))
            lines[at] = (
                lines.get(at, b"") + indent + match["text"].encode("utf-8", "surrogateescape") + newline
            )
    return [Edit(at, at, text) for at, text in lines.items()]


def made_from(settings: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """(type, pointer) by the name of every recorded declaration."""
    found = (_MADE.fullmatch(value) for key, value in settings.items() if key.startswith(KEY))
    return {m["name"]: (m["type"], m["pointer"]) for m in found if m is not None}
