"""Loads and stores that say how the caches shall treat them become plain ones."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import arguments, calls, home
from klineage.proposer.rules.cuda.code import has_kernel
from klineage.proposer.rules.rewritten import Special, recorded, removed, restored
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, parse_kernel

_LOADS = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu")  # __ldcv must see what others write: it stays
_STORES = ("__stwb", "__stcg", "__stcs", "__stwt")


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not calls(unit, unit.root, *_LOADS, *_STORES) or not has_kernel(unit):
        return ()
    locus = home(unit)
    try:
        settings = recorded(unit, _found(unit))
    except NotApplicable:
        settings = {}  # removing says why
    return (Site(locus, (Feature(locus, "cache_policy"),), settings),)


def _found(unit: Unit) -> list[Special]:
    found = []
    for call in calls(unit, unit.root, *_LOADS, *_STORES):
        function, given = call.child_by_field_name("function"), arguments(call)
        name = unit.text(function) if function is not None else ""
        if len(given) != (1 if name in _LOADS else 2):
            raise NotApplicable(
                f"line {unit.line(call.start_byte)}: {name} with other arguments than expected"
            )
        address, target = _target(unit, given[0])
        if name in _LOADS:
            found.append(Special(call, f"{name}({address})", target))
        elif call.parent is not None and call.parent.type == "expression_statement":
            found.append(Special(call, f"{name}({address}, _)", f"{target} = {unit.text(given[1])}"))
        else:
            raise NotApplicable(f"line {unit.line(call.start_byte)}: {name} inside an expression")
    return found


def _target(unit: Unit, pointer: Node) -> tuple[str, str]:
    """(how the address is written, what stands there): ``&x[i]`` is ``x[i]``, ``p + i`` is ``*(p + i)``."""
    text = unit.text(pointer)
    inner = pointer.child_by_field_name("argument") if pointer.type == "pointer_expression" else None
    if inner is not None and text.startswith("&"):
        return "&_", unit.text(inner)
    simple = pointer.type in ("identifier", "call_expression", "subscript_expression")
    return "_", f"*{text}" if simple else f"*({text})"


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    found = _found(unit)
    recorded(unit, found)
    return Rewrite(removed(found))


def _written(spelling: str, plain: str) -> str | None:
    name, _, rest = spelling.partition("(")
    target, value = plain, ""
    if name in _STORES:
        target, stored, value = plain.partition(" = ")
        if not stored:
            return None
        value = f", {value}"
    if rest.startswith("&"):
        return f"{name}(&{target}{value})"
    if not target.startswith("*"):
        return None
    pointer = target[1:]
    return f"{name}({pointer[1:-1] if pointer.startswith('(') else pointer}{value})"


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    return restored(parse_kernel(kernel), settings, _written)


CACHE_OPERATORS = Rule(
    name="cache-operators",
    action="cache_policy",
    surface="cuda",
    title="Load and store without cache operators",
    adds="Say how the caches shall treat an access",
    at="Single loads and stores of global memory",
    rationale="__ldg reads through the read-only cache, and the __ld and __st operators say what streams "
    "through and what stays; a plain access leaves that to the compiler and the hardware.",
    preconditions=(
        "Storage: what is read through the read-only cache is not written while the kernel runs.",
        "Pipeline: data marked as streaming is not read again soon, or it comes from memory twice.",
        "Hardware: cache operators and the read-only data cache (sm_35 and later).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
