"""The transitions that cards are lifted from."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature
from klineage.lineage import Workspace
from klineage.skill.transitions import rejected, sealed_lineages, transitions

from .lineages import GPU, Showed, report


def test_each_transition_has_both_kernels_and_what_its_gate_showed(lineages: Workspace) -> None:
    steps = lineages.lineage("softmax-c")
    found = transitions(lineages, "softmax-c")
    assert [t.commit for t in found] == [step.commit for step in steps[1:]]
    for before, after in pairwise(found):
        assert before.after == after.before
    for simpler, t in zip(steps[:-1], found, strict=True):
        assert lineages.read(simpler.commit)["kernel.c"] == t.before.source
        assert lineages.read(t.commit)["kernel.c"] == t.after.source
        assert t.report is not None and (t.report.kernel, t.report.baseline) == (t.after.hash, t.before.hash)


def test_what_it_added_is_what_its_step_says_and_the_detectors_see(lineages: Workspace) -> None:
    found = transitions(lineages, "softmax-c")
    assert [[f.name for f in t.added] for t in found] == [
        ["restrict"], ["register_tiling"], ["alignment"], ["simd"], ["unroll"],
    ]  # fmt: skip
    assert found[0].features_before == ()
    assert {f.name for f in found[-1].features_after} == {
        "restrict", "register_tiling", "alignment", "simd", "unroll",
    }  # fmt: skip


def test_a_mechanism_that_only_moved_was_not_added(lineages: Workspace) -> None:
    t = transitions(lineages, "softmax-c")[-1]
    moved = replace(
        t,
        features_before=(Feature("kernel.c::softmax/for[r]", "simd"),),
        features_after=(Feature("kernel.c::softmax/for[c]", "simd"), *t.step.adds, Feature("kernel.c::softmax", "prefetch")),
    )  # fmt: skip
    assert [f.name for f in moved.added] == ["unroll", "prefetch"]


def test_a_rejected_attempt_keeps_the_state_it_was_tried_on(lineages: Workspace) -> None:
    first = rejected(lineages, "softmax-c")[0]
    assert first.tried.source == first.on.source + b"\n// 1\n"
    assert first.on.source == lineages.read(lineages.history("softmax-c")[0].commit)["kernel.c"]
    assert first.report is not None and first.report.why == "12 of 4096 elements differ"


def test_only_a_sealed_lineage_has_transitions(lineages: Workspace) -> None:
    assert sealed_lineages(lineages) == ("gemm-c", "gemm-triton", "layernorm-c", "softmax-c")
    with pytest.raises(KlineageError, match="not sealed yet; klineage seal conv2d-c"):
        transitions(lineages, "conv2d-c")


def test_of_each_platform_the_latest_comparison_counts(lineages: Workspace) -> None:
    t = transitions(lineages, "softmax-c")[0]
    again = report(t.after, t.before, t.workload, t.platform, Showed(0.5))
    elsewhere = report(t.after, t.before, t.workload, GPU, Showed(0.9))
    alone = replace(again, baseline=None)
    both = replace(t, reports=(*t.reports, again, elsewhere, alone))
    assert both.comparisons == (again, elsewhere)
    assert both.report == elsewhere
