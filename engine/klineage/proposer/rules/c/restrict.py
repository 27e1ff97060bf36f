"""The promise that pointers do not overlap."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import declarators, home, place_of
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_WORDS = ("restrict", "__restrict", "__restrict__")


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    settings: dict[str, str] = {}
    for function in unit.functions:
        names = [name for name, node in declarators(function, unit) if _qualifier(unit, node) is not None]
        if names:
            settings[place_of(unit, function.locus)] = " ".join(names)
    words = {unit.text(q) for q in _qualifiers(unit)}
    if not settings or not any(f.exported for f in unit.functions):
        return ()
    if words != {"restrict"}:
        settings["spelling"] = min(words)
    locus = home(unit)
    return (Site(locus, (Feature(locus, "restrict"),), settings),)


def _qualifiers(unit: Unit) -> list[Node]:
    return [n for n in walk(unit.root) if n.type == "type_qualifier" and unit.text(n) in _WORDS]


def _qualifier(unit: Unit, name: Node) -> Node | None:
    """The qualifier in front of a declared name: ``*restrict x``."""
    pointer = name.parent
    if pointer is None or pointer.type != "pointer_declarator":
        return None
    return next((c for c in pointer.children if c.type == "type_qualifier" and unit.text(c) in _WORDS), None)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    edits = []
    for qualifier in _qualifiers(unit):
        end = qualifier.end_byte
        while unit.source[end : end + 1] == b" ":
            end += 1
        edits.append(Edit(qualifier.start_byte, end))
    return Rewrite(merge_edits(edits))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    word = settings.get("spelling", "restrict")
    edits = []
    for name, pointers in settings.items():
        if name == "spelling":
            continue
        function = unit.function_at(f"{unit.filename}::{name}")
        if function is None:
            raise NotApplicable(f"there is no function {name!r}")
        edits += [_promise(unit, function, pointer, word) for pointer in pointers.split()]
    if not edits:
        raise NotApplicable("the step records no pointer")
    return tuple(edits)


def _promise(unit: Unit, function: Function, pointer: str, word: str) -> Edit:
    for name, node in declarators(function, unit):
        if name == pointer and node.parent is not None and node.parent.type == "pointer_declarator":
            return Edit(node.start_byte, node.start_byte, f"{word} ".encode("utf-8", "surrogateescape"))
    raise NotApplicable(f"{function.name} has no pointer {pointer!r}")


RESTRICT = Rule(
    name="restrict",
    action="restrict",
    surface="c",
    title="Drop the promise that pointers do not overlap",
    adds="Promise that pointers do not overlap",
    at="The parameters of functions that read some arrays and write others",
    rationale="restrict lets the compiler keep what it loaded in registers across stores, and vectorise "
    "without checks; without it every store may have changed every input.",
    preconditions=(
        "Storage: no two of the pointers reach the same memory while one of them is written.",
        "Layout: outputs are buffers of their own, never views of an input.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
