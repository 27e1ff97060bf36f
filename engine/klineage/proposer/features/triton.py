"""Mechanisms in the text of Triton kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.features.finding import Cue
from klineage.proposer.features.python_words import Calls
from klineage.surface.tree import Function, Unit, parse_kernel, walk

#: what is called -> (mechanism, doubt)
_CALLS: dict[str, tuple[str, str]] = {
    "dot": ("mma", ""),
    "dot_scaled": ("mma", ""),
    "make_tensor_descriptor": ("tensor_descriptor", ""),
    "_experimental_make_tensor_descriptor": ("tensor_descriptor", ""),
    "_experimental_descriptor_load": ("tensor_descriptor", ""),
    "_experimental_descriptor_store": ("tensor_descriptor", ""),
    "load_tensor_descriptor": ("tensor_descriptor", ""),
    "store_tensor_descriptor": ("tensor_descriptor", ""),
    "multiple_of": ("alignment", ""),
    "max_contiguous": ("alignment", ""),
    "max_constancy": ("alignment", ""),
    "assume": ("alignment", "what is assumed may be a size and no alignment"),
    "rsqrt": ("fast_rsqrt", ""),
    "exp2": ("math_approx", "base two may be the algorithm's own"),
    "static_range": ("unroll", ""),
    "swizzle2d": ("l2_raster", ""),
    "async_task": ("warp_specialize", ""),
    "inline_asm_elementwise": ("inline_asm", ""),
    "gdc_wait": ("launch_overlap", ""),
    "gdc_launch_dependents": ("launch_overlap", ""),
    "atomic_add": ("split_or_cluster", "sums of several programs, which may be the algorithm's own"),
}
_FAST = re.compile(r"fast_\w+|fdividef|div_rn_ftz")
_HINTS = ("eviction_policy", "cache_modifier")
_NOTHING = ('""', "''", "None", "False", "0", "1")
_LAUNCH_WORDS = {
    "num_ctas": "split_or_cluster",
    "launch_pdl": "launch_overlap",
    "num_consumer_groups": "warp_specialize",
}
_LOOP_WORDS = {
    "warp_specialize": "warp_specialize",
    "loop_unroll_factor": "unroll",
    "num_stages": "loop_pipeline",
}
_SPLIT = re.compile(r"SPLIT_?K|split_?k|pid_k|NUM_SPLITS?|num_splits?|NUM_KV_SPLITS", re.IGNORECASE)
_GROUPED = re.compile(r"GROUP_M|GROUP_SIZE_M|GROUP_SIZE|num_pid_in_group|group_id")


def cues(kernel: Kernel) -> Iterator[Cue]:
    """Everything in the text that speaks of a mechanism."""
    unit = parse_kernel(kernel)
    calls = Calls(unit, kernel.entry)
    for function in calls.kernels:
        yield from _called(calls, function)
        yield from _loops(calls, function)
        yield from _named(calls, function)
        yield from _decorated(calls, function)
        yield from _left_early(calls, function)
        yield from _launched(calls, function)


def _cue(unit: Unit, function: Function, name: str, node: Node, what: str, doubt: str = "") -> Cue:
    return Cue(name, function.locus, unit.line(node.start_byte), what, doubt)


def _called(calls: Calls, function: Function) -> Iterator[Cue]:
    for node, callee in calls.inside(function):
        spoken = calls.unit.text(node).split("(", 1)[0]
        if callee in _CALLS:
            name, doubt = _CALLS[callee]
            yield _cue(calls.unit, function, name, node, spoken, doubt)
        elif _FAST.fullmatch(callee):
            yield _cue(calls.unit, function, "math_approx", node, spoken)
        for hint, value in calls.keywords(node).items():
            if hint in _HINTS and value not in _NOTHING:
                yield _cue(calls.unit, function, "cache_policy", node, f"{hint}={value}")


def _loops(calls: Calls, function: Function) -> Iterator[Cue]:
    unit = calls.unit
    programs = calls.programs(function)
    for node in walk(function.body):
        right = node.child_by_field_name("right") if node.type == "for_statement" else None
        if right is None or right.type != "call":
            continue
        for word, value in calls.keywords(right).items():
            if word in _LOOP_WORDS and value not in _NOTHING:
                yield _cue(unit, function, _LOOP_WORDS[word], node, f"{word}={value}")
        given = calls.positional(right)
        if len(given) < 3:
            continue
        start, step = given[0], given[2]
        text = " ".join(unit.text(step).split())
        if not (calls.mentions(start, programs) or calls.calls(start, "program_id")):
            continue
        if _SPLIT.search(f"{unit.text(start)} {text}"):
            yield _cue(unit, function, "split_or_cluster", node, f"a loop in steps of {text}")
        elif unit.text(start) in programs and "*" not in text:
            yield _cue(unit, function, "persistent_schedule", node, f"a loop over tiles in steps of {text}")
        else:
            doubt = "programs may take tiles in turn here, or share the work on one"
            yield _cue(unit, function, "persistent_schedule", node, f"a loop in steps of {text}", doubt)


def _named(calls: Calls, function: Function) -> Iterator[Cue]:
    """Names by which people call a mechanism whose form no detector is certain of."""
    for node in walk(function.node):
        if node.type != "identifier":
            continue
        text = calls.unit.text(node)
        if _SPLIT.fullmatch(text):
            yield _cue(
                calls.unit, function, "split_or_cluster", node, text, "the name alone does not prove it"
            )
        elif _GROUPED.fullmatch(text):
            yield _cue(calls.unit, function, "l2_raster", node, text, "the name alone does not prove it")
        elif text.startswith("EVEN_"):
            yield _cue(
                calls.unit, function, "mask_specialize", node, text, "the name alone does not prove it"
            )


def _decorated(calls: Calls, function: Function) -> Iterator[Cue]:
    for node in function.node.children:
        if node.type == "decorator" and re.match(r"@\s*(?:\w+\.)*autotune\b", calls.unit.text(node)):
            yield _cue(calls.unit, function, "autotune", node, "@triton.autotune")


def _left_early(calls: Calls, function: Function) -> Iterator[Cue]:
    for node in walk(function.body):
        if node.type == "if_statement" and any(n.type == "return_statement" for n in walk(node)):
            doubt = "it may be a bound that keeps programs inside the data"
            yield _cue(calls.unit, function, "early_exit", node, "a return before the end", doubt)


def _launched(calls: Calls, function: Function) -> Iterator[Cue]:
    """What the host says when it launches the kernel, and tiles whose width only the host knows."""
    unit = calls.unit
    for launch in calls.launches(function):
        given = calls.keywords(launch)
        for word, name in _LAUNCH_WORDS.items():
            if word in given and given[word] not in _NOTHING:
                yield _cue(unit, function, name, launch, f"{word}={given[word]}")
        if any(callee == "TensorDescriptor" for _, callee in calls.under(launch)):
            yield _cue(unit, function, "tensor_descriptor", launch, "TensorDescriptor")
        yield from _stages(calls, function, launch, given)
        for word, value in given.items():
            if word.isupper() and not value.isdigit() and calls.spans(function, word):
                doubt = "its value is computed by the host, so how large a tile is is not in the text"
                yield _cue(unit, function, "tiling", launch, f"{word}={value}", doubt)
    if calls.host_descriptors and calls.loads_descriptor(function):
        for node in calls.host_descriptors:
            yield _cue(unit, function, "tensor_descriptor", node, "TensorDescriptor")


def _stages(calls: Calls, function: Function, launch: Node, given: dict[str, str]) -> Iterator[Cue]:
    loops = [n for n in walk(function.body) if n.type == "for_statement"]
    loading = [n for n in loops if any(callee == "load" for _, callee in calls.under(n))]
    if not loading:
        return
    stages = given.get("num_stages")
    if stages is None and not any(
        c.type == "decorator" and "autotune" in calls.unit.text(c) for c in function.node.children
    ):
        doubt = "the launch names no stage count, and Triton's own may run loads ahead"
        yield _cue(calls.unit, function, "pipeline", loading[0], "a loop with loads", doubt)
    elif stages is not None and not stages.isdigit():
        doubt = "the stage count is computed by the host"
        yield _cue(calls.unit, function, "pipeline", launch, f"num_stages={stages}", doubt)
