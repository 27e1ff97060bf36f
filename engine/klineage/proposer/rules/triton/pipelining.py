"""Software pipelining: loads of later iterations in flight while this one computes (num_stages)."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    jit_functions,
    keywords,
    launch_setting,
    only_launch,
    tl_call,
    tl_calls,
    value_of,
)
from klineage.proposer.rules.triton.descriptors import access_of
from klineage.surface.lists import add_element
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk


def detect(kernel: Kernel) -> tuple[Site, ...]:
    """The launch's stage count at the first loop that loads, and each ``tl.range`` with its own."""
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        loops = _loading_loops(unit, function)
        stages = launch_setting(kernel, function, "num_stages")
        if loops and stages is not None and stages != "1":
            locus = next(iter(loops))
            sites.append(Site(locus, (Feature(locus, "pipeline"),), {"num_stages": stages}))
        for locus, loop in _loops(unit, function).items():
            own = _own_stages(unit, loop)
            if own is not None and unit.text(value_of(own)) not in ("1", "None"):
                feature = Feature(locus, "loop_pipeline")
                sites.append(Site(locus, (feature,), {"tl.range.num_stages": unit.text(value_of(own))}))
    return tuple(sites)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    return Rewrite((_set(unit, site.locus, "tl.range.num_stages" in site.settings, "1"),))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    if "tl.range.num_stages" in settings:
        return (_set(unit, locus, True, settings["tl.range.num_stages"]),)
    return (_set(unit, locus, False, setting(settings, "num_stages")),)


def _set(unit: Unit, locus: str, in_loop: bool, stages: str) -> Edit:
    function, loop = unit.function_at(locus), unit.loci.get(locus)
    if function is None or loop is None:
        raise NotApplicable("no such loop")
    if in_loop:
        own = _own_stages(unit, loop)
        if own is None:
            raise NotApplicable("the loop is no tl.range with a stage count")
        return _replace(value_of(own), stages)
    launch = only_launch(unit, function)
    if launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    keyword = launch.keyword(unit, "num_stages")
    if keyword is None:
        return add_element(unit, launch.arguments, f"num_stages={stages}")
    return _replace(value_of(keyword), stages)


def _replace(node: Node, text: str) -> Edit:
    return Edit(node.start_byte, node.end_byte, text.encode("utf-8", "surrogateescape"))


def _loops(unit: Unit, function: Function) -> dict[str, Node]:
    inside, kinds = f"{function.locus}/", ("for_statement", "while_statement")
    return {p: n for p, n in unit.loci.items() if p.startswith(inside) and n.type in kinds}


def _loading_loops(unit: Unit, function: Function) -> dict[str, Node]:
    return {locus: loop for locus, loop in _loops(unit, function).items() if _loads(unit, loop)}


def _loads(unit: Unit, loop: Node) -> bool:
    """Whether the loop loads, through pointers or through descriptors."""
    if tl_calls(unit, loop, "load"):
        return True
    through = (access_of(unit, node) for node in walk(loop))
    return any(access is not None and access[1] == "load" for access in through)


def _own_stages(unit: Unit, loop: Node) -> Node | None:
    right = loop.child_by_field_name("right")
    if right is None or tl_call(unit, right) != "range":
        return None
    return keywords(unit, right).get("num_stages")


PIPELINING = Rule(
    name="pipelining",
    action="pipeline",
    surface="triton",
    title="Remove software pipelining",
    adds="Pipeline the loop in software",
    at="The loop over the depth of a product, and num_stages at the launch",
    rationale="num_stages keeps the loads of later iterations in flight while the current one computes; "
    "with one stage every iteration waits for its own loads.",
    preconditions=(
        "Pipeline: the loop has at least num_stages trips, or the prologue loads what nobody uses.",
        "Storage: num_stages buffers of every loaded tile fit in shared memory together, or the launch "
        "fails.",
        "Layout: each loaded row is contiguous and 16-byte aligned (4 bytes at least), or the copy cannot "
        "be asynchronous.",
        "Hardware: asynchronous copies from global to shared memory (sm_80 and later).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune",),
    known={
        "Storage": Known(change="setting", settings={"name": "*", "value": "x4"}),
        "Layout": Known(
            "row_alignment() >= 16", "misalign", {"buffer": "*", "bytes": "1", "code": "async_copy"}
        ),
        "Hardware": Known('satisfies("nvidia-sm80")', "platform", {"code": "async_copy"}),
    },
)
