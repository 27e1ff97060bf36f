"""Approximate functions of the special function unit become the accurate ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import arguments, calls, home
from klineage.proposer.rules.cuda.code import has_kernel
from klineage.proposer.rules.rewritten import Special, recorded, removed, restored
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, parse_kernel

_ACCURATE = {
    "__expf": "expf", "__exp10f": "exp10f", "__logf": "logf", "__log2f": "log2f", "__log10f": "log10f",
    "__sinf": "sinf", "__cosf": "cosf", "__tanf": "tanf", "__powf": "powf",
}  # fmt: skip
_ROOTS = {"rsqrtf": "1.0f / sqrtf", "__frsqrt_rn": "1.0f / sqrtf"}
_DIVISIONS = ("__fdividef", "__fdiv_rn")
_BASE = _ACCURATE | _ROOTS
_APPROXIMATE = (*_ACCURATE, *_DIVISIONS)
_LOOSE = (
    "init_declarator",
    "assignment_expression",
    "argument_list",
    "return_statement",
    "parenthesized_expression",
)
_SIMPLE = re.compile(r"[\w.]+(?:\([^()]*\)|\[[^\[\]]*\])*")


def _detect(kernel: Kernel, *, names: Iterable[str], feature: str) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not calls(unit, unit.root, *names) or not has_kernel(unit):
        return ()
    locus = home(unit)
    try:
        settings = recorded(unit, _found(unit, names))
    except NotApplicable:
        settings = {}  # removing says why
    return (Site(locus, (Feature(locus, feature),), settings),)


def _found(unit: Unit, names: Iterable[str]) -> list[Special]:
    found = []
    for call in calls(unit, unit.root, *names):
        function = call.child_by_field_name("function")
        name = unit.text(function) if function is not None else ""
        given = [unit.text(a) for a in arguments(call)]
        inside = ", ".join(given)
        if name in _DIVISIONS:
            if len(given) != 2:
                raise NotApplicable(f"line {unit.line(call.start_byte)}: {name} needs two arguments")
            plain = f"({_operand(given[0])} / {_operand(given[1])})"
        else:
            plain = f"{_BASE[name]}({inside})"
            if name in _ROOTS and (call.parent is None or call.parent.type not in _LOOSE):
                plain = f"({plain})"
        found.append(Special(call, f"{name}(_)", plain))
    return found


def _operand(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def _remove(kernel: Kernel, site: Site, *, names: Iterable[str]) -> Rewrite:
    unit = parse_kernel(kernel)
    found = _found(unit, names)
    recorded(unit, found)
    return Rewrite(removed(found))


def _written(spelling: str, plain: str) -> str | None:
    name = spelling.partition("(")[0]
    if name in _DIVISIONS:
        left, divided, right = plain.removeprefix("(").removesuffix(")").partition(" / ")
        return f"{name}({_bare(left)}, {_bare(right)})" if divided and " / " not in right else None
    if name not in _BASE:
        return None
    text = plain
    if name in _ROOTS and text.startswith("(1.0f"):
        text = text[1:-1]
    called = _BASE[name] + "("
    return f"{name}({text[len(called) : -1]})" if text.startswith(called) and text.endswith(")") else None


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    return restored(parse_kernel(kernel), settings, _written)


FAST_MATH = Rule(
    name="fast-math",
    action="math_approx",
    surface="cuda",
    title="Use the accurate functions",
    adds="Use the approximate functions",
    at="Calls of exp, division and their like in fp32",
    rationale="__expf, __fdividef and their like run on the special function unit and round less exactly; the "
    "accurate functions take several instructions more.",
    preconditions=(
        "Data types: fp32, with a tolerance that is wider than the approximation's error.",
        "Pipeline: arguments stay in the range where the approximation is good (no denormals, no huge angles).",
        "Hardware: a special function unit for that function.",
    ),
    detect=partial(_detect, names=_APPROXIMATE, feature="math_approx"),
    remove=partial(_remove, names=_APPROXIMATE),
    apply=apply,
)

RECIPROCAL_ROOT = Rule(
    name="reciprocal-root",
    action="math_approx",
    surface="cuda",
    title="Divide by a square root",
    adds="Take the reciprocal root at once",
    at="A division by a square root",
    rationale="rsqrtf is one approximate instruction; a square root and a division are two accurate sequences "
    "of several.",
    preconditions=(
        "Data types: fp32, with a tolerance of more than two units in the last place.",
        "Hardware: a reciprocal root in the special function unit.",
    ),
    detect=partial(_detect, names=tuple(_ROOTS), feature="fast_rsqrt"),
    remove=partial(_remove, names=tuple(_ROOTS)),
    apply=apply,
)
