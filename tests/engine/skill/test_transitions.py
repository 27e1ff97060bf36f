"""The transitions that cards are lifted from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature
from klineage.lineage import Workspace
from klineage.skill.transitions import rejected, sealed_lineages, transitions

from .lineages import GPU, Lineage, Showed, failed, made, report


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with made(tmp_path_factory.mktemp("transitions")) as workspace:
        lineage = Lineage.open(workspace, "softmax")
        lineage.reject(
            b"void softmax(void) {}\n", "simd", "Drop vectors",
            gated=failed(lineage.expert, lineage.workload, lineage.platform, "3 of 9 elements differ"),
        )  # fmt: skip
        lineage.seal({"vector-types": Showed(0.25)})
        Lineage.open(workspace, "layernorm")
        yield workspace


def test_each_transition_has_both_kernels_and_what_its_gate_showed(workspace: Workspace) -> None:
    steps = workspace.lineage("softmax-c")
    found = transitions(workspace, "softmax-c")
    assert [t.commit for t in found] == [step.commit for step in steps[1:]]
    for before, after in pairwise(found):
        assert before.after == after.before
    for t in found:
        assert workspace.read(t.commit)["kernel.c"] == t.after.source
        assert workspace.read(t.before_commit)["kernel.c"] == t.before.source
        assert t.report is not None and (t.report.kernel, t.report.baseline) == (t.after.hash, t.before.hash)


def test_what_it_added_is_what_its_step_says_and_the_detectors_see(workspace: Workspace) -> None:
    found = transitions(workspace, "softmax-c")
    assert [[f.name for f in t.added] for t in found] == [
        ["restrict"], ["register_tiling"], ["alignment"], ["simd"], ["unroll"],
    ]  # fmt: skip
    assert found[0].features_before == ()
    assert {f.name for f in found[-1].features_after} == {
        "restrict", "register_tiling", "alignment", "simd", "unroll",
    }  # fmt: skip


def test_a_mechanism_that_only_moved_was_not_added(workspace: Workspace) -> None:
    t = transitions(workspace, "softmax-c")[-1]
    moved = replace(
        t,
        features_before=(Feature("kernel.c::softmax/for[r]", "simd"),),
        features_after=(Feature("kernel.c::softmax/for[c]", "simd"), *t.step.adds, Feature("kernel.c::softmax", "prefetch")),
    )  # fmt: skip
    assert [f.name for f in moved.added] == ["unroll", "prefetch"]


def test_a_rejected_attempt_keeps_the_state_it_was_tried_on(workspace: Workspace) -> None:
    (attempt,) = rejected(workspace, "softmax-c")
    assert attempt.tried.source == b"void softmax(void) {}\n"
    assert attempt.on.source == workspace.read(workspace.history("softmax-c")[0].commit)["kernel.c"]
    assert attempt.report is not None and attempt.report.why == "3 of 9 elements differ"


def test_only_a_sealed_lineage_has_transitions(workspace: Workspace) -> None:
    assert sealed_lineages(workspace) == ("softmax-c",)
    with pytest.raises(KlineageError, match="not sealed yet; klineage seal layernorm-c"):
        transitions(workspace, "layernorm-c")


def test_of_each_platform_the_latest_comparison_counts(workspace: Workspace) -> None:
    t = transitions(workspace, "softmax-c")[0]
    again = report(t.after, t.before, t.workload, t.platform, Showed(0.5))
    elsewhere = report(t.after, t.before, t.workload, GPU, Showed(0.9))
    alone = replace(again, baseline=None)
    both = replace(t, reports=(*t.reports, again, elsewhere, alone))
    assert both.comparisons == (again, elsewhere)
    assert both.report == elsewhere
