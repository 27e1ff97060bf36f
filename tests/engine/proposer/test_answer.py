"""An untrusted answer becomes a candidate, or one sentence that says why not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from klineage.kernel import Feature, Kernel
from klineage.proposer.answer import LARGEST, Unusable, answer_from, candidate_of
from klineage.proposer.base import Goal, Task, Tried
from klineage.resources import shipped
from klineage.workload import load

SOURCE = b"""\
static float total(const float *x, long n) {
  float s = 0;
  for (long i = 0; i < n; i++) s += x[i];
  return s;
}

static float largest(const float *x, long n) {
  float m = x[0];
  for (long i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
  return m;
}

void rows(const float *restrict x, float *restrict y, long rows, long n) {
  for (long r = 0; r < rows; r++) y[r] = total(x + r * n, n) + largest(x + r * n, n);
}
"""
KERNEL = Kernel("c", "kernel.c", "rows", SOURCE)
FIELDS: dict[str, Any] = {
    "action": "restrict",
    "locus": "kernel.c::rows",
    "title": "Let the pointers overlap",
    "rationale": "Nothing hangs on it.",
}
SIMPLER = SOURCE.replace(b"*restrict ", b"*")


def task(**changes: Any) -> Task:
    workload = load(str(shipped("experts") / "softmax" / "workload.py"))
    return replace(Task(KERNEL, workload, "cpu-x86-64"), **changes)


def test_a_good_answer_is_a_candidate() -> None:
    record = {**FIELDS, "title": " Let  the\npointers overlap ", "settings": {"pointers": 2, "all": True}}
    candidate = candidate_of(task(), answer_from(record), SIMPLER, "command:mine")
    assert candidate.source == SIMPLER
    assert candidate.title == "Let the pointers overlap"
    assert candidate.settings == {"pointers": "2", "all": "true"}
    assert candidate.removes == (Feature("kernel.c::rows", "restrict"),)
    assert candidate.proposer == "command:mine"


def test_what_it_claims_to_remove_is_its_own_word() -> None:
    record = {**FIELDS, "action": "tidying", "removes": ["restrict", "kernel.c::total / order"]}
    candidate = candidate_of(task(), answer_from(record), SIMPLER, "x")
    assert candidate.action == "tidying"
    assert [str(f) for f in candidate.removes] == ["kernel.c::rows / restrict", "kernel.c::total / order"]


def test_a_forward_answer_removes_nothing() -> None:
    goal = Goal("restrict", "kernel.c::rows", "Promise it", "", (Feature("kernel.c::rows", "restrict"),))
    plain = replace(KERNEL, source=SIMPLER)
    candidate = candidate_of(task(kernel=plain, goal=goal), answer_from(FIELDS), SOURCE, "x")
    assert candidate.removes == ()


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (None, "not a JSON object"),
        ([], "not a JSON object"),
        ({**FIELDS, "action": ""}, "has no action"),
        ({**FIELDS, "title": 3}, "has no title"),
        ({k: v for k, v in FIELDS.items() if k != "locus"}, "has no locus"),
        ({**FIELDS, "action": "rm -rf /"}, "names no action"),
        ({**FIELDS, "settings": {"a": {"b": 1}}}, "settings"),
        ({**FIELDS, "settings": {str(i): i for i in range(41)}}, "41 settings"),
        ({**FIELDS, "removes": "restrict"}, "not a list"),
    ],
)
def test_a_malformed_answer_is_one_sentence(record: object, says: str) -> None:
    with pytest.raises(Unusable, match=says) as caught:
        answer_from(record)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (SOURCE, "unchanged"),
        (b" \n", "empty"),
        (SIMPLER.replace(b"return m;", b"return m"), "does not parse: line 1"),
        (SIMPLER + b"\0", "binary"),
        (SIMPLER + b"/" * LARGEST, "more than"),
    ],
)
def test_a_kernel_that_cannot_be_meant_is_one_sentence(source: bytes, says: str) -> None:
    with pytest.raises(Unusable, match=says):
        candidate_of(task(), answer_from(FIELDS), source, "x")


def test_a_change_at_another_place_is_refused() -> None:
    source = SOURCE.replace(b"float s = 0", b"float s = 1").replace(b"float m = x[0]", b"float m = *x")
    with pytest.raises(
        Unusable, match=r"says that it changes kernel\.c::largest, but it changes kernel\.c::total"
    ):
        candidate_of(task(), answer_from({**FIELDS, "locus": "kernel.c::largest"}), source, "x")


def test_what_a_function_calls_is_a_part_of_it() -> None:
    source = SOURCE.replace(b"float s = 0", b"float s = 0.0f")
    assert candidate_of(task(), answer_from(FIELDS), source, "x").source == source


def test_a_place_that_is_not_there_is_refused() -> None:
    with pytest.raises(Unusable, match=r"does not have: 'kernel\.c::gemm'"):
        candidate_of(task(), answer_from({**FIELDS, "locus": "kernel.c::gemm"}), SIMPLER, "x")


def test_who_calls_the_changed_function_may_change_with_it() -> None:
    source = SOURCE.replace(b"total(const float *x, long n)", b"total(long n, const float *x)")
    source = source.replace(b"total(x + r * n, n)", b"total(n, x + r * n)")
    answer = answer_from({**FIELDS, "action": "order", "locus": "kernel.c::total/for[i]"})
    assert candidate_of(task(), answer, source, "x").source == source


def test_the_same_proposal_again_is_refused() -> None:
    tried = Tried("Let it", "restrict", "kernel.c::rows", "slower", replace(KERNEL, source=SIMPLER).hash)
    with pytest.raises(Unusable, match="rejected on this state already"):
        candidate_of(task(tried=(tried,)), answer_from(FIELDS), SIMPLER, "x")
