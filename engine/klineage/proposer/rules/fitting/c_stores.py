"""Fits of ``nontemporal-stores``: the aligned vector stores of a kernel, all of which may pass the caches by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from klineage.kernel import Kernel
from klineage.proposer.rules.c.code import home, place_of
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.surface.tree import Unit, parse_kernel, walk

_ALIGNED = re.compile(r"_mm\d*_store_(?:ps|pd|si128|si256|si512)")
_FENCE = "_mm_sfence();"


def stores(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every aligned vector store, and the fence at the end of the function that is entered where one was recorded."""
    unit = parse_kernel(kernel)
    made: dict[str, str] = {}
    places: list[str] = []
    for function in unit.functions:
        seen: dict[str, int] = {}
        place = place_of(unit, function.locus)
        for node in walk(function.node):
            name = node.child_by_field_name("function") if node.type == "call_expression" else None
            plain = unit.text(name) if name is not None else ""
            if _ALIGNED.fullmatch(plain):
                seen[plain] = seen.get(plain, 0) + 1
                special = plain.replace("_store_", "_stream_")
                made[f"{place}.{sum(seen.values())}"] = f"{special} of {plain} #{seen[plain]}"
        places += [place] if seen else []
    if made:
        fence = _fence(unit, kernel.entry) if any(_FENCE in text for text in settings.values()) else {}
        yield Fit(home(unit), {**made, **fence}, (f"it is every aligned store of {', '.join(places)}",))


def _fence(unit: Unit, entry: str) -> dict[str, str]:
    function = unit.function(entry)
    if function is None:
        return {}
    statements = [child for child in function.body.named_children if child.type != "comment"]
    return {"fence.1": f"{_FENCE} as statement {len(statements)} of {place_of(unit, function.locus)}"}
