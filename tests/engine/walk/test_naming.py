"""A person's step: what it is called is offered from what is seen, and may not be false."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.proposer import rules
from klineage.resources import shipped
from klineage.surface.dispatch import autotune_configs
from klineage.surface.tree import Function, parse_kernel
from klineage.walk import Walk, naming, new_lineage, open_workspace
from klineage.walk.putting_back import turned_round
from klineage.walk.reading import read_kernel
from klineage.workload import load

GEMM = shipped("experts") / "gemm" / "c" / "kernel.c"
TRITON = shipped("experts") / "gemm" / "triton" / "kernel.py"
PREFETCH = b"        __builtin_prefetch(b + 16 * NR);\n"


@pytest.fixture(scope="module")
def head() -> Kernel:
    return read_kernel(GEMM, load("gemm"))


@pytest.fixture(scope="module")
def without_prefetch(head: Kernel) -> bytes:
    assert PREFETCH in head.source
    return head.source.replace(PREFETCH, b"")


def test_what_is_seen_gone_is_suggested(head: Kernel, without_prefetch: bytes) -> None:
    step = naming.by_person(head, without_prefetch)
    assert (step.action, step.title, step.proposer) == ("prefetch", "Remove prefetch", "person")
    assert [str(feature) for feature in step.removes] == ["kernel.c::gemm / prefetch"]
    assert step.by_hand


def test_an_edit_in_which_nothing_is_seen_gone_is_placed_where_it_is(head: Kernel) -> None:
    source = head.source.replace(
        b"for (int64_t p = 0; p < depth; ++p) {", b"for (int64_t p = 0; p != depth; ++p) {", 1
    )
    step = naming.by_person(head, source)
    assert (step.action, step.title, step.removes) == ("edit", "Edit by hand", ())
    assert step.locus in {function.locus for function in _functions(head)}


def test_a_person_names_the_step(head: Kernel, without_prefetch: bytes) -> None:
    step = naming.by_person(
        head, without_prefetch, title="  No  hints ", action="Cache-Policy", removes=["prefetch"]
    )
    assert (step.action, step.title) == ("cache_policy", "No hints")
    assert step.removes == (Feature("kernel.c::gemm", "prefetch"),)


def test_the_action_follows_the_features_that_are_named(head: Kernel, without_prefetch: bytes) -> None:
    step = naming.by_person(
        head, without_prefetch, removes=["prefetch", "kernel.c::micro_kernel/for[p] / touching_ahead"]
    )
    assert step.action == "prefetch+touching_ahead"
    assert Feature("kernel.c::micro_kernel/for[p]", "touching_ahead") in step.removes


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"action": "prefech"}, "did you mean 'prefetch'"),
        ({"removes": ["prefech"]}, "did you mean 'prefetch'"),
        ({"removes": ["unroll", "prefetch"]}, "does not remove kernel.c::gemm / unroll: it is still there"),
        ({"removes": []}, "also removes kernel.c::gemm / prefetch"),
        ({"removes": ["kernel.c::nowhere / prefetch"]}, "has no place 'kernel.c::nowhere'"),
        ({"removes": ["simd+prefetch"]}, "two features"),
        ({"action": "two words?"}, "no name of an action"),
    ],
)
def test_a_false_or_mistyped_name_is_refused(
    head: Kernel, without_prefetch: bytes, said: dict[str, object], problem: str
) -> None:
    with pytest.raises(KlineageError) as caught:
        naming.by_person(head, without_prefetch, **said)  # type: ignore[arg-type]
    assert problem in str(caught.value)


def test_a_person_may_insist_on_a_word(head: Kernel, without_prefetch: bytes) -> None:
    assert naming.by_person(head, without_prefetch, action="prefech", new_word=True).action == "prefech"


def test_the_same_bytes_are_no_step(head: Kernel) -> None:
    with pytest.raises(KlineageError, match="same as the current one"):
        naming.by_person(head, head.source)


def test_bytes_without_autotuning_are_not_pinned_to_one_of_its_configurations() -> None:
    head = read_kernel(TRITON, load("gemm"))
    tuned = naming.configuration(head, head.source)
    assert tuned is None
    plain = next(c for c in rules.propose(_pinned(head)) if c.action == "autotune")
    assert naming.by_person(_pinned(head), plain.source + b"# by hand\n").config == ()


def test_a_part_of_a_proposal_is_a_persons_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = open_workspace(tmp_path / "w", create=True)
    try:
        walk = Walk(workspace, new_lineage(workspace, GEMM, "gemm"))
        state = walk.state()
        whole = next(c for c in walk.candidates(state) if c.proposer == "rules:unroll")
        part = walk.part(whole, {1})
        assert part.proposer == "person, from rules:unroll"
        assert part.removes == () and part.title == f"Part of: {whole.title}"
        assert (
            part.source.count(b"#pragma GCC unroll") == state.kernel.source.count(b"#pragma GCC unroll") - 1
        )
        assert walk.part(whole, {1, 2, 3, 4, 5}) is whole
        with pytest.raises(KlineageError, match="no change is chosen"):
            walk.part(whole, set())
    finally:
        workspace.close()


def _functions(kernel: Kernel) -> tuple[Function, ...]:
    return parse_kernel(kernel).functions


def _pinned(kernel: Kernel) -> Kernel:
    return replace(kernel, config=autotune_configs(kernel)[0])


def test_settings_are_those_that_a_rule_knows_so_that_it_may_add_the_feature_again(
    head: Kernel, without_prefetch: bytes
) -> None:
    step = naming.by_person(head, without_prefetch)
    simpler = replace(head, source=without_prefetch)
    assert rules.derive(step.action, simpler, step.locus, step.settings) == head.source
    assert naming.settings_of(head, ()) == {}


@pytest.mark.parametrize(
    ("back", "forth"),
    [
        ("Remove simd", "Add simd"),
        ("Undo: Use vectors", "Use vectors"),
        ("Drop the hints", "Undo: Drop the hints"),
    ],
)
def test_a_title_is_turned_round(back: str, forth: str) -> None:
    assert turned_round(back) == forth
