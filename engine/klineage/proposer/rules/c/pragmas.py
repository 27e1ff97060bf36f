"""Mechanisms that are one pragma on a loop: threads and unrolling."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import (
    LoopPragma,
    home,
    loop_pragmas,
    node_at,
    pragma_added,
    pragma_removed,
)
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, parse_kernel

_THREADS = r"omp\s+(?:parallel|for|taskloop|teams|distribute)\b"
_SIMD = r"(?:omp\s+simd|clang\s+loop\s+vectorize)\b"
FLAGS = "flags"  # of the compiler, where a kernel that never had such a pragma declares none
_LAYOUT = "layout"  # "indented": every pragma begins in the column of its loop
_UNROLL = r"(?:GCC\s+unroll|unroll|nounroll|clang\s+loop\s+unroll)\b"


def _detect(pattern: str, name: str) -> Callable[[Kernel], tuple[Site, ...]]:
    def detect(kernel: Kernel) -> tuple[Site, ...]:
        unit = parse_kernel(kernel)
        pragmas = loop_pragmas(unit, pattern)
        if not pragmas or not any(f.exported for f in unit.functions):
            return ()
        if name == "thread_parallel" and b"omp_get_" in kernel.source:
            return ()  # the code asks which thread it is: without threads it would answer for one of many
        settings: dict[str, str] = {}
        for pragma in pragmas:
            settings[pragma.place] = "; ".join(filter(None, (settings.get(pragma.place), pragma.words)))
        if all(_indented(unit, pragma) for pragma in pragmas):
            settings[_LAYOUT] = "indented"
        locus = home(unit)
        return (Site(locus, (Feature(locus, name),), settings),)

    return detect


def _indented(unit: Unit, pragma: LoopPragma) -> bool:
    """Whether the pragma begins under its loop, and not in the first column."""
    own = unit.indent(pragma.start)
    return bool(own) and own == unit.indent(node_at(unit, pragma.place).start_byte)


def _remove(pattern: str) -> Callable[[Kernel, Site], Rewrite]:
    def remove(kernel: Kernel, site: Site) -> Rewrite:
        unit = parse_kernel(kernel)
        return Rewrite(tuple(pragma_removed(unit, p) for p in loop_pragmas(unit, pattern) or ()))

    return remove


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """One pragma in front of each loop that the settings name; ``flags`` are declared in front of the first include."""
    unit = parse_kernel(kernel)
    loops = {place: words for place, words in settings.items() if place not in (_LAYOUT, FLAGS)}
    if not loops:
        raise NotApplicable("the step records no loop")
    edits = tuple(
        pragma_added(unit, place, word, indented=_LAYOUT in settings)
        for place, words in loops.items()
        for word in words.split("; ")
    )
    return (_declared(unit, settings[FLAGS]), *edits) if FLAGS in settings else edits


def _declared(unit: Unit, flags: str) -> Edit:
    first = next((n for n in unit.root.children if n.type == "preproc_include"), None)
    at = unit.line_start(first.start_byte) if first is not None else 0
    text = f"// klineage: flags {flags}".encode("utf-8", "surrogateescape")
    return Edit(at, at, text + unit.newline(at))


def _detect_simd(kernel: Kernel) -> tuple[Site, ...]:
    """Each loop that the compiler is told to vectorise."""
    unit = parse_kernel(kernel)
    found: dict[str, dict[str, str]] = {}
    for pragma in loop_pragmas(unit, _SIMD) or ():
        settings = found.setdefault(pragma.place, {})
        settings[pragma.place] = "; ".join(filter(None, (settings.get(pragma.place), pragma.words)))
        if _indented(unit, pragma):
            settings[_LAYOUT] = "indented"
    loci = {place: f"{unit.filename}::{place}" for place in found}
    return tuple(Site(loci[p], (Feature(loci[p], "simd"),), settings) for p, settings in found.items())


def _remove_simd(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    own = [p for p in loop_pragmas(unit, _SIMD) or () if p.place in site.settings]
    return Rewrite(tuple(pragma_removed(unit, p) for p in own))


THREADS = Rule(
    name="threads",
    action="thread_parallel",
    surface="c",
    title="Run on one thread",
    adds="Run on several threads",
    at="A loop whose iterations are independent",
    rationale="Iterations of a loop are dealt out to threads; without the pragma one thread runs them all.",
    preconditions=(
        "Pipeline: iterations of the loop are independent, or what they share is reduced or protected.",
        "Storage: scratch buffers are private to a thread.",
        "Hardware: more than one core, and enough work an iteration to pay for starting the threads.",
    ),
    detect=_detect(_THREADS, "thread_parallel"),
    remove=_remove(_THREADS),
    apply=apply,
    known={
        "Hardware": Known(change="size", settings={"dim": "*", "value": "/16"}),
    },
)

UNROLL = Rule(
    name="unroll",
    action="unroll",
    surface="c",
    title="Drop the unrolling pragmas",
    adds="Unroll the inner loops",
    at="Short loops over arrays of accumulators, or over the items of a thread",
    rationale="Unrolled loops keep arrays of accumulators in registers and save the loop's own "
    "instructions; without the pragmas the compiler decides.",
    preconditions=(
        "Pipeline: the trip count is a small constant, or the unrolled code outgrows the instruction cache.",
        "Storage: what the unrolled iterations hold fits in the registers, and none is left a loop, for an array that "
        "a loop counts through stays in memory.",
    ),
    detect=_detect(_UNROLL, "unroll"),
    remove=_remove(_UNROLL),
    apply=apply,
    known={
        "Pipeline": Known(change="setting", settings={"name": "*", "value": "x16"}),
        "Storage": Known(change="setting", settings={"name": "*", "value": "/8"}),
    },
)

SIMD_PRAGMA = Rule(
    name="simd-pragma",
    action="simd",
    surface="c",
    title="Let the compiler decide what to vectorise",
    adds="Tell the compiler to vectorise a loop",
    at="An innermost loop over neighbouring elements",
    rationale="The pragma promises that iterations may run together, also where sums are then added in another "
    "order; without it the compiler must prove that, and often cannot.",
    preconditions=(
        "Pipeline: iterations do not depend on each other, or only through the sums that the pragma names.",
        "Layout: neighbouring iterations touch neighbouring elements, or vectors are gathered one by one.",
        "Hardware: vector registers.",
    ),
    detect=_detect_simd,
    remove=_remove_simd,
    apply=apply,
    after=("unroll",),
    known={
        "Hardware": Known("vector_bytes >= 2 * itemsize"),
    },
)
