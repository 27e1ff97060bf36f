"""The text of a model becomes a candidate, or one sentence that says why not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from klineage.kernel import Feature
from klineage.proposer.answer import Unusable
from klineage.proposer.base import Task
from klineage.proposer.candidate import Candidate
from klineage.proposer.model.readable import Readable
from klineage.proposer.model.reply import Nothing, edited, read_reply, with_old_bytes
from klineage.proposer.question import Outcome

from .conftest import KERNEL, SIMPLER, SOURCE


def read(task: Task, said: object, stop: str = "end_turn", **outcome: Any) -> Candidate | Nothing:
    text = said if isinstance(said, str) else json.dumps(said)
    return read_reply(task, Outcome("answered", text, stop, **outcome), "model:m; prompt p")


def test_a_good_answer_is_a_candidate(task: Callable[..., Task], good: dict[str, Any]) -> None:
    candidate = read(task(), good)
    assert isinstance(candidate, Candidate)
    assert candidate.source == SIMPLER
    assert candidate.removes == (Feature("kernel.c::rows", "restrict"),)
    assert candidate.settings == {"pointers": "2"}
    assert candidate.preconditions == ("Storage: x and y must not overlap, or stores are lost.",)
    assert candidate.proposer == "model:m; prompt p"


def test_edits_are_as_good_as_a_whole_file(task: Callable[..., Task], good: dict[str, Any]) -> None:
    edits = [{"search": "*restrict x, float *restrict y", "replace": "*x, float *y"}]
    candidate = read(task(), good | {"source": "", "edits": edits})
    assert isinstance(candidate, Candidate)
    assert candidate.source == SIMPLER


def test_nothing_left_is_an_answer(task: Callable[..., Task], good: dict[str, Any]) -> None:
    empty = {name: type(value)() for name, value in good.items()}
    answer = read(task(), empty | {"decision": "nothing", "rationale": "It is\nplain."})
    assert answer == Nothing("It is plain.")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"source": "", "edits": []}, "no code"),
        ({"edits": [{"search": "x", "replace": "y"}]}, "a whole file and with edits"),
        (
            {"source": "", "edits": [{"search": "nowhere", "replace": "y"}]},
            "edit 1 of 1 does not apply: .* nowhere",
        ),
        (
            {"source": "", "edits": [{"search": "float", "replace": "y"}]},
            "edit 1 of 1 does not apply: .* at 5 places",
        ),
        ({"source": "", "edits": [{"search": "", "replace": "y"}]}, "searches for nothing"),
        ({"source": SOURCE.decode()}, "unchanged"),
        ({"source": "```c\n" + SIMPLER.decode() + "```\n"}, "Markdown fence"),
        ({"source": SIMPLER.decode() + SIMPLER.decode()}, "2 kernels: rows is defined more than once"),
        ({"source": SIMPLER.decode().replace("void rows", "void other")}, "has no rows"),
        ({"source": SIMPLER.decode() + "void f( {"}, "does not parse"),
        ({"locus": "other.c::rows"}, "does not have"),
        ({"title": ""}, "has no title"),
        ({"action": "`rm -rf`"}, "names no action"),
        ({"source": "\ud800"}, "half of a character"),
        ({"decision": "maybe"}, "decision of its answer is not one of"),
        ({"settings": {"a": 1}}, "settings of its answer is not an array"),
        ({"removes": [1]}, "an item of removes of its answer is not a string"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    task: Callable[..., Task], good: dict[str, Any], change: dict[str, Any], says: str
) -> None:
    with pytest.raises(Unusable, match=says) as caught:
        read(task(), good | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("Sure! Here is the kernel.", "not valid JSON at character 1"),
        ('{"decision": "propose", "rat', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("3", "its answer is not an object"),
        ("[{}]", "several proposals"),
        ("{} {}", "several proposals"),
        ("{}\nThat is all.", "goes on after"),
        ("{}", "has no decision"),
    ],
)
def test_text_that_is_no_answer(task: Callable[..., Task], text: str, says: str) -> None:
    with pytest.raises(Unusable, match=says):
        read(task(), text)


@pytest.mark.parametrize(
    ("stop", "problem", "says"),
    [
        ("refusal", "policy", "refused to answer: policy"),
        ("refusal", "", "refused to answer$"),
        ("max_tokens", "", "cut off at max_tokens; raise max_tokens"),
        ("model_context_window_exceeded", "", "more than the model can hold"),
    ],
)
def test_an_answer_that_was_not_finished(
    task: Callable[..., Task], good: dict[str, Any], stop: str, problem: str, says: str
) -> None:
    with pytest.raises(Unusable, match=says):
        read(task(), good, stop, problem=problem)


def test_several_edits_apply_to_the_kernel_as_it_was() -> None:
    edits = [{"search": "b", "replace": "a"}, {"search": "a", "replace": "b"}]
    assert edited("a b c\n", edits) == "b a c\n"
    with pytest.raises(Unusable, match="overlap"):
        edited("abc\n", [{"search": "ab", "replace": ""}, {"search": "bc", "replace": ""}])


@pytest.mark.parametrize("seed", range(20))
def test_lines_that_stay_keep_their_bytes(seed: int) -> None:
    """Whatever endings, missing last ends and undecodable bytes: the lines that the model left alone."""
    rng = random.Random(seed)
    bodies = [
        rng.choice([b"a", b"", b"b\xff", b"\xc3\xa9", b"x" * 5]) + b"%d" % n
        for n in range(rng.randrange(1, 9))
    ]
    old = b"".join(body + rng.choice([b"\n", b"\r\n", b"\r"]) for body in bodies)
    old = old.rstrip(b"\r\n") if rng.random() < 0.4 else old
    seen = old.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    assert with_old_bytes(old, seen) == old
    added = with_old_bytes(old, "new line\n" + seen)
    assert added.endswith(old)
    assert added.splitlines()[0] == b"new line"
    lines = old.splitlines(keepends=True)
    cut = rng.randrange(len(lines))
    rest = with_old_bytes(
        old, "".join(seen.splitlines(keepends=True)[:cut] + seen.splitlines(keepends=True)[cut + 1 :])
    )
    assert rest.splitlines() == b"".join(lines[:cut] + lines[cut + 1 :]).splitlines()


@pytest.mark.timeout(60)
def test_a_model_that_repeats_itself_holds_nobody_up() -> None:
    old = b"}\r\n\r\n" * 100 + b"a\r\n" * 100
    new = with_old_bytes(old, "\n}\na\n" * 20_000)
    assert new == b"\r\n}\r\na\r\n" * 20_000


def test_crlf_kernels_get_crlf_lines(task: Callable[..., Task], good: dict[str, Any]) -> None:
    kernel = replace(KERNEL, source=SOURCE.replace(b"\n", b"\r\n"))
    candidate = read(task(kernel=kernel), good)
    assert isinstance(candidate, Candidate)
    assert candidate.source == SIMPLER.replace(b"\n", b"\r\n")


def test_an_answer_is_readable_while_it_comes(good: dict[str, Any]) -> None:
    said = good | {
        "source": 'a "quoted" line\n\\ \u00e9\t\U0001f600\n',
        "edits": [{"search": "old", "replace": "new"}],
    }
    whole = Readable().feed(json.dumps(said))
    for size in (1, 3, 7):
        text, reader = json.dumps(said), Readable()
        assert "".join(reader.feed(text[i : i + size]) for i in range(0, len(text), size)) == whole
    for part in (good["rationale"], good["title"], said["source"], "old", "new"):
        assert part in whole
    assert "decision" not in whole
    assert "Storage:" not in whole


@pytest.mark.parametrize("seed", range(10))
def test_what_is_no_json_does_not_stop_the_reader(seed: int) -> None:
    rng = random.Random(seed)
    reader = Readable()
    for _ in range(200):
        reader.feed("".join(rng.choice('{}[]":,\\u12dntitlesource\x1b\n') for _ in range(20)))
