"""Fits of ``panel-copy``: rows that are passed on with their distance, from inside a loop over parts of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.c.code import arguments, home, place_of
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.surface.tree import Unit, parse_kernel, walk


def panels(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every loop that knows the recorded depth and passes on ``pointer + ... , distance``, the same rows throughout it."""
    unit = parse_kernel(kernel)
    for locus, loop in unit.loci.items():
        function = unit.function_at(locus)
        body = loop.child_by_field_name("body") if loop.type == "for_statement" else None
        if function is None or body is None or settings.get("depth", "") not in _declared(unit, body):
            continue
        for source, lead in _rows(unit, body):
            made = {"source": source, "lead": lead, "loop": place_of(unit, locus), "above": function.name}
            told = f"the rows are those of {source}, {lead} apart, in {made['loop']} here"
            yield Fit(home(unit), {**settings, **made}, (told,))


def _rows(unit: Unit, body: Node) -> list[tuple[str, str]]:
    """(pointer, distance) of neighbouring arguments that mean the same in every call of a loop's body."""
    moving = {name for n in walk(body) if n.type == "for_statement" for name in _counted(unit, n)}
    found = []
    for call in (n for n in walk(body) if n.type == "call_expression"):
        texts = [unit.text(argument) for argument in arguments(call)]
        for source, lead in pairwise(texts):
            words = set(re.findall(r"[A-Za-z_]\w*", source))
            if lead.isidentifier() and re.search(rf"\* {lead}\b", source) and not words & moving:
                found.append((source, lead))
    return list(dict.fromkeys(found))


def _counted(unit: Unit, loop: Node) -> set[str]:
    """The variables that a loop counts."""
    update = loop.child_by_field_name("update")
    return {unit.text(n) for n in walk(update) if n.type == "identifier"} if update is not None else set()


def _declared(unit: Unit, body: Node) -> set[str]:
    names = (n for d in body.named_children if d.type == "declaration" for n in walk(d))
    return {unit.text(n) for n in names if n.type == "identifier"}
