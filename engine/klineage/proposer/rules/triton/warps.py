"""Warps per program: a tuned count becomes the plain default."""

from __future__ import annotations

from collections.abc import Mapping

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import jit_functions, launch_setting, only_launch, value_of
from klineage.surface.lists import add_element
from klineage.surface.tree import Edit, Unit, parse_kernel

PLAIN = "4"  # what Triton takes when nothing is said


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        count = launch_setting(kernel, function, "num_warps")
        if count is not None and count != PLAIN and not _computed_elsewhere(count):
            sites.append(Site(function.locus, (Feature(function.locus, "warps"),), {"num_warps": count}))
    return tuple(sites)


def _computed_elsewhere(count: str) -> bool:
    """Whether the count is a variable: the statements that compute it would be left behind."""
    return count.isidentifier()


def remove(kernel: Kernel, site: Site) -> Rewrite:
    return Rewrite((_set(parse_kernel(kernel), site.locus, PLAIN),))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    return (_set(parse_kernel(kernel), locus, setting(settings, "num_warps")),)


def _set(unit: Unit, locus: str, count: str) -> Edit:
    function = unit.function_at(locus)
    launch = only_launch(unit, function) if function is not None else None
    if launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    keyword = launch.keyword(unit, "num_warps")
    if keyword is None:
        return add_element(unit, launch.arguments, f"num_warps={count}")
    value = value_of(keyword)
    return Edit(value.start_byte, value.end_byte, count.encode("utf-8", "surrogateescape"))


WARPS = Rule(
    name="warps",
    action="warps",
    surface="triton",
    title="Use the default number of warps",
    adds="Choose the number of warps",
    at="The number of warps, where the kernel is launched",
    rationale="More warps share the registers that a tile takes, and hide each other's latency; with fewer, each "
    "thread keeps more of the tile, and nobody computes while it waits.",
    preconditions=(
        "Storage: the tile holds enough elements to give every thread of every warp some, or warps idle.",
        "Hardware: num_warps times 32 threads and their registers fit on one multiprocessor.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune",),
    known={
        "Hardware": Known('setting("num_warps") * 32 <= threads_limit', "setting", {"name": "num_warps"}),
    },
)
