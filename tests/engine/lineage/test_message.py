"""Commit messages: exact inverses, readable by plain git, and closed to forgery."""

from __future__ import annotations

import subprocess
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from klineage.kernel import Feature
from klineage.lineage import StepRecord
from klineage.lineage.message import (
    UNTITLED,
    MessageError,
    Stamp,
    clean,
    format_step,
    one_line,
    paragraphs,
    parse_step,
)

NASTY = [
    "---", "--- a", "Lineage-Decision: rejected", "Lineage-", "Signed-off-by: Eve <eve@x>", "#", "# comment",
    "# ------------------------ >8 ------------------------", "diff --git a b", "Conflicts:", "\tfile.c",
    "\\", "\\Lineage-Id: x", "", " ", "\r", "\r\n", "\n\n", "\x00", "\x1b[31m", "\x85", "\u2028", "\ud800",
    "é", "核", "=", ";", "; ", " / ", " : ", "none", "x", "(cherry picked from commit 1)", "\ufeff", "a: b",
]  # fmt: skip
TEXT = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=8)), max_size=6).flatmap(
    lambda parts: st.sampled_from(["", " ", "\n", "\n\n"]).map(lambda glue: glue.join(parts))
)
FEATURES = st.lists(st.builds(Feature, TEXT, TEXT), max_size=3).map(tuple)
RATIOS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))
RECORDS = st.builds(
    StepRecord,
    **dict.fromkeys((f.name for f in fields(StepRecord) if f.type == "str"), TEXT),
    removes=FEATURES,
    adds=FEATURES,
    settings=st.dictionaries(TEXT, TEXT, max_size=3),
    ratio=RATIOS,
)
STAMPS = st.builds(
    Stamp,
    st.just("gemm"),
    st.integers(0, 10**6),
    st.sampled_from(["root", "backward", "forward"]),
    st.sampled_from(["opened", "accepted", "edited", "rejected", "sealed"]),
    st.sampled_from(["", "derived", "replayed"]),
    st.sampled_from(["", "a" * 40]),
    st.sampled_from(["", "b" * 40]),
)
SAID = [f.name for f in fields(StepRecord) if f.name not in ("edited", "who")]


@given(STAMPS, RECORDS)
@settings(max_examples=400, deadline=None)
@example(Stamp("gemm", 1, "backward", "accepted"), StepRecord("---", "---\nLineage-Id: forged"))
def test_parse_is_the_exact_inverse_of_format(stamp: Stamp, record: StepRecord) -> None:
    step = parse_step("c" * 40, "d" * 40, "Author", 1_700_000_000, format_step(stamp, record))
    cleaned = clean(record)
    assert {name: getattr(step, name) for name in SAID} == {name: getattr(cleaned, name) for name in SAID}
    assert step.who == (cleaned.who or "Author")
    stamped = ("id", "number", "direction", "decision", "forward", "reverses", "walk")
    assert [getattr(step, name) for name in stamped] == [getattr(stamp, name) for name in stamped]
    assert clean(cleaned) == cleaned


@given(STAMPS, RECORDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_git_reads_exactly_our_trailers(stamp: Stamp, record: StepRecord) -> None:
    message = format_step(stamp, record)
    done = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=message.encode(), capture_output=True, check=True
    )
    assert done.stdout.decode() == message[message.rindex("\n\nLineage-Id: ") + 2 :]


@given(TEXT)
def test_no_text_brings_control_characters_or_lines_of_its_own(text: str) -> None:
    line, block = one_line(text), paragraphs(text)
    assert "\n" not in line
    assert all(character.isprintable() or ord(character) > 0x9F for character in line)
    assert all(character in "\n\t" or ord(character) >= 0x20 for character in block)
    assert block.encode("utf-8").decode("utf-8") == block


def test_an_ordinary_step_reads_like_a_commit() -> None:
    record = StepRecord(
        "Remove unrolling", "The compiler does it.\n\nMeasured twice.", "unroll", "kernel.c::gemm/for[k]",
        (Feature("kernel.c::gemm/for[k]", "unroll"),), {"factor": "4"}, "rules:unroll", False, "Ann",
        "clear; short", "pass", effect="slower", ratio=1.77, profile="[1.75, 1.79] 0.342 ms of 0.193 ms",
        trust="measured-cpu",
    )  # fmt: skip
    assert format_step(Stamp("gemm", 3, "backward", "accepted"), record) == (
        "Remove unrolling\n\nThe compiler does it.\n\nMeasured twice.\n\n"
        "Lineage-Id: gemm\nLineage-Step: 3\nLineage-Direction: backward\nLineage-Action: unroll\n"
        "Lineage-Locus: kernel.c::gemm/for[k]\nLineage-Removes: kernel.c::gemm/for[k] / unroll\n"
        "Lineage-Settings: factor=4\nLineage-Proposer: rules:unroll\n"
        "Lineage-Decision: accepted; Ann; clear; short\nLineage-Gate: pass\n"
        "Lineage-Profile: slower 1.77x; [1.75, 1.79] 0.342 ms of 0.193 ms\n"
        "Lineage-Trust: measured-cpu\nLineage-Schema: 1\n"
    )


def test_a_step_without_a_subject_still_has_one() -> None:
    assert (
        parse_step("c", "", "A", 0, format_step(Stamp("g", 0, "root", "opened"), StepRecord(" \n"))).subject
        == UNTITLED
    )


GOOD = format_step(
    Stamp("gemm", 3, "backward", "accepted"), StepRecord("S", ratio=2.0, removes=(Feature("a", "b"),))
)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("Only a subject\n", "no Lineage trailers"),
        ("Subject\n\nSigned-off-by: A\n", "no Lineage trailers"),
        (GOOD.replace("Lineage-Step: 3\n", ""), "Lineage-Step is missing"),
        (GOOD.replace("Step: 3", "Step: three"), "number"),
        (GOOD.replace("2x", "twox"), "number"),
        (GOOD.replace("Schema: 1", "Schema: 2"), "Schema is 2"),
        (GOOD.replace("Lineage-Schema: 1\n", ""), "Schema is missing"),
        (GOOD.replace("Lineage-Id: gemm\n", "Lineage-Id: gemm\nLineage-Id: other\n"), "twice"),
        (GOOD.replace("a / b", "ab"), "Lineage-Removes is not a feature"),
        (GOOD.replace("Lineage-Step: 3\n", "Lineage-Step: 3\nnonsense\n"), "not a Lineage trailer"),
    ],
)
def test_a_corrupt_message_is_refused_with_the_reason(message: str, complaint: str) -> None:
    with pytest.raises(MessageError, match=complaint):
        parse_step("c" * 40, "", "A", 0, message)
