"""Each accepted step removes exactly what it claims; what no detector can tell needs a person's word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.gate import Verdict
from klineage.kernel import Feature, Kernel
from klineage.lineage import Settlement, Workspace, bundle_create, bundle_open
from klineage.proposer import rules
from klineage.proposer.candidate import Candidate
from klineage.proposer.features import Claim, audit, claim_problem, difference
from klineage.walk import Walk, open_workspace
from klineage.walk.settling import FalseClaim
from klineage.walk.settling import claim_problem as claim_problem_of

from .scripted import candidate, feature, version


def kernel(source: bytes) -> Kernel:
    return Kernel("c", "kernel.c", "row_norms", source)


def problem(before: bytes, after: bytes, *names: str, word: bool = False, known_edit: bool = False) -> str:
    claim = Claim(tuple(feature(name) for name in names), word, known_edit)
    return claim_problem(claim, audit(kernel(before)), audit(kernel(after)))


def test_the_claim_that_names_what_is_gone_is_taken() -> None:
    assert problem(version(5), version(4), "prefetch") == ""
    assert problem(version(5), version(3), "unroll", "prefetch") == ""
    assert problem(version(5), version(5) + b"/* longer */\n") == ""


@pytest.mark.parametrize(
    ("before", "after", "names", "said"),
    [
        (5, 3, ["prefetch"], "also removes kernel.c::row_norms / unroll (line 15)"),
        (5, 4, ["prefetch", "simd"], "does not remove kernel.c::row_norms / simd (line 12)"),
        (3, 4, ["simd"], "brings in kernel.c::row_norms / unroll (line 15)"),
        (5, 4, ["prefetch", "thread_parallel"], "that is not in the kernel"),
        (5, 4, ["prefetch", "fusion"], "no detector can tell"),
    ],
)
def test_the_difference_is_named(before: int, after: int, names: list[str], said: str) -> None:
    assert said in problem(version(before), version(after), *names)


def test_a_person_may_speak_of_what_no_detector_knows() -> None:
    assert problem(version(5), version(4), "prefetch", "fusion", "my_own_trick", word=True) == ""
    assert "not in the kernel" in problem(version(5), version(4), "prefetch", "thread_parallel", word=True)


COPY = b"    *(v4 *)y = *(const v4 *)x;\n"
COPYING = (
    b"typedef float v4 __attribute__((vector_size(16), aligned(4)));\n"
    b"void row_norms(const float *restrict x, float *restrict y)\n{\n" + COPY + b"    y[4] = x[4];\n}\n"
)


def test_a_doubt_that_goes_away_unclaimed_needs_a_word() -> None:
    """A vector that only copies may be SIMD or not."""
    simpler = COPYING.replace(COPY, b"    for (int i = 0; i < 4; i++) y[i] = x[i];\n")
    assert "may also remove kernel.c::row_norms / simd (line 4), which is unknown" in problem(
        COPYING, simpler
    )
    assert "no detector can tell" in problem(COPYING, simpler, "simd")
    assert problem(COPYING, simpler, "simd", word=True) == ""
    assert problem(COPYING, simpler, known_edit=True) == ""  # a rule takes out its own mechanism and no other
    doubt = next(f for f in audit(kernel(COPYING)) if f.name == "simd")
    said = [Settlement(doubt.feature, "absent", "it copies", "A. Curator", doubt.cue)]
    assert claim_problem(Claim(()), audit(kernel(COPYING), said), audit(kernel(simpler), said)) == ""


def packed_gemm() -> tuple[Kernel, Candidate]:
    """The expert of gemm walked by the rules until its panels can go, whose copies use vectors, and the step that does it."""
    source = (Path(__file__).parents[3] / "experts" / "gemm" / "c" / "kernel.c").read_bytes()
    now = Kernel("c", "kernel.c", "gemm", source)
    while True:
        step = next(rules.proposals(now, {"layout_pack"}), None)
        if step is not None:
            return now, step
        now = rules.after(now, next(rules.proposals(now)))


def test_a_doubt_about_the_text_of_a_mechanism_goes_with_it_whoever_takes_it_out() -> None:
    head, by_rule = packed_gemm()
    doubt = next(f for f in audit(head) if f.name == "simd")
    assert (doubt.state, doubt.cue) == ("unknown", "the vector type quad")
    by_model = replace(by_rule, proposer="model:any; prompt 0")
    assert claim_problem_of(head, rules.after(head, by_model), by_model, ()) == ""
    typed = head.source.replace(
        b"void gemm(", b"typedef float v4 __attribute__((vector_size(16)));\nvoid gemm("
    )
    richer = replace(
        head, source=with_body(typed, b"    *(v4 *)y = *(const v4 *)x;\n")
    )  # no rule knows this one
    assert "may also remove" in claim_problem_of(richer, rules.after(richer, by_model), by_model, ())


def with_body(source: bytes, line: bytes) -> bytes:
    """The kernel with a line more at the beginning of gemm."""
    start = source.index(b"{\n", source.index(b"void gemm(")) + 2
    return source[:start] + line + source[start:]


def test_what_only_moved_is_not_gone() -> None:
    text = version(5).replace(b"row_norms", b"lengths_of_rows")
    found = difference(audit(kernel(version(5))), audit(replace(kernel(text), entry="lengths_of_rows")))
    assert (found.gone, found.come) == ((), ())


def two_at_once(walk: Walk, *removes: Feature) -> Candidate:
    return candidate(version(3), "Two at once", removes)


def test_accepting_refuses_a_false_claim_and_changes_nothing(walk: Walk) -> None:
    false = two_at_once(walk, feature("prefetch"))
    report = walk.gate(false)
    assert report.verdict is Verdict.PASS
    assert "also removes" in walk.claim_problem(false, report)
    with pytest.raises(FalseClaim, match=r"also removes kernel\.c::row_norms / unroll \(line 15\)"):
        walk.accept(false, report)
    assert len(walk.state().steps) == 1
    step = walk.accept(two_at_once(walk, feature("prefetch"), feature("unroll")), report)
    assert {f.name for f in step.removes} == {"prefetch", "unroll"}


def state_of(walk: Walk, name: str) -> tuple[str, str]:
    found = next(f for f in walk.findings() if f.name == name)
    return found.state, found.who


def test_a_word_is_kept_undone_and_carried(walk: Walk, workspace: Workspace, tmp_path: Path) -> None:
    assert state_of(walk, "fusion") == ("unknown", "")
    said = walk.settle("fusion", "present", "the root is taken in the same pass")
    assert state_of(walk, "fusion") == ("present", said.who) and said.who
    assert feature("fusion") in walk.state().features
    assert walk.state().can_undo == "settle: kernel.c::row_norms / fusion is present"
    walk.undo()
    assert state_of(walk, "fusion") == ("unknown", "")
    walk.redo()
    bundle_create(workspace, walk.id, tmp_path / "one.bundle")
    there = open_workspace(tmp_path / "elsewhere", create=True)
    try:
        carried = Walk(there, bundle_open(tmp_path / "one.bundle", there))
        assert state_of(carried, "fusion") == ("present", said.who)
        assert carried.state().settled == walk.state().settled
    finally:
        there.close()
    walk.settle("fusion", "absent", "a second look")
    assert state_of(walk, "fusion") == ("absent", said.who)
    assert len(walk.state().settled) == 1


def test_a_word_on_what_no_text_shows_holds_until_a_step_takes_it_out(walk: Walk) -> None:
    walk.settle("fusion", "present", "the root is taken in the same pass")
    edited = walk.edited(version(4), removes=["prefetch", "fusion"])
    walk.accept(edited, walk.gate(edited))
    assert state_of(walk, "fusion")[0] == "absent"
    expert = walk.state().steps[0].commit
    assert next(f for f in walk.findings(expert) if f.name == "fusion").state == "present"


@pytest.mark.parametrize(
    ("name", "state", "why", "said"),
    [
        ("simd", "absent", "no", "simd is present (line 12)"),
        ("thread_parallel", "present", "no", "thread_parallel is absent"),
        ("fusoin", "present", "no", "did you mean 'fusion'"),
        ("fusion", "maybe", "no", "present or absent, not 'maybe'"),
        ("fusion", "present", " ", "needs a reason"),
        (
            "kernel.c::elsewhere / fusion",
            "present",
            "no",
            "nothing is known of fusion at kernel.c::elsewhere",
        ),
    ],
)
def test_what_cannot_be_settled_is_refused_with_a_sentence(
    walk: Walk, name: str, state: str, why: str, said: str
) -> None:
    with pytest.raises(KlineageError) as refusal:
        walk.settle(name, state, why)
    assert said in str(refusal.value)
    assert walk.state().settled == ()
