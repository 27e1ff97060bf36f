"""What was recorded is said again to the same questions, and to no other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature
from klineage.proposer.base import Attempt, Goal, OnProposerEvent, ProposerEvent, Task, Tried
from klineage.proposer.candidate import Candidate
from klineage.proposer.recording import RecordedProposer, Recording, ReplayProposer, recorded
from klineage.proposer.registry import Context, proposer_named

from ...messages_server import MessagesServer, Reply
from .conftest import KERNEL, SIMPLER

CANDIDATE = Candidate(
    "restrict", "kernel.c::rows", "Let them overlap", "Why\nnot.", SIMPLER, (Feature("kernel.c::rows", "restrict"),),
    {"a": "1"}, ("Storage: no.",), (("BLOCK", 4),), "command:mine",
)  # fmt: skip


@dataclass
class Script:
    """A proposer that says what a test wrote down."""

    attempts_said: list[Attempt]
    name: str = "command:mine"
    closed: bool = False

    def attempts(
        self, task: Task, on_event: OnProposerEvent | None = None, cancel: threading.Event | None = None
    ) -> Iterator[Attempt]:
        try:
            for attempt in self.attempts_said:
                if on_event is not None:
                    on_event(ProposerEvent("status", "at work"))
                    for piece in ("one ", "two ", "\x1b[2Jthree"):
                        on_event(ProposerEvent("text", piece))
                yield attempt
        finally:
            self.closed = True


def record(path: Path, *attempts: Attempt) -> RecordedProposer:
    return RecordedProposer(Script(list(attempts)), Recording(path), lambda call: {"sent": call})


def replayed(attempt: Attempt) -> Attempt:
    """The attempt as a replay says it: marked, and free of charge."""
    candidate = attempt.candidate
    if candidate is not None:
        candidate = replace(candidate, proposer=f"{candidate.proposer}; replayed")
    return replace(attempt, proposer=f"{attempt.proposer}; replayed", candidate=candidate, call="")


def test_replay_says_exactly_what_was_recorded(tmp_path: Path, task: Callable[..., Task]) -> None:
    path = tmp_path / "talk.jsonl"
    odd = replace(CANDIDATE, source=SIMPLER + b"\xff\r\n", config=None)
    said = [
        Attempt("command:mine", CANDIDATE, call="20261129", notes=("it wrote elsewhere",)),
        Attempt("command:mine", problem="not valid JSON"),
        Attempt("command:mine", odd, problem="it does not parse"),
    ]
    heard: list[ProposerEvent] = []
    assert list(record(path, *said).attempts(task(), heard.append)) == said
    assert "".join(e.text for e in heard if e.kind == "text") == "one two \x1b[2Jthree" * 3
    for _ in range(2):  # as often as one likes
        again: list[ProposerEvent] = []
        proposer = proposer_named(f"replay:{path}", Context(tmp_path, "rows-c"))
        assert list(proposer.attempts(task(), again.append)) == [replayed(attempt) for attempt in said]
        assert "".join(e.text for e in again) == "".join(e.text for e in heard)
    assert b"\x1b" not in path.read_bytes()
    assert recorded(path)["conversations"][0]["attempts"][0]["raw"] == {"sent": "20261129"}


def test_answers_to_a_question_that_was_asked_twice_follow_one_another(
    tmp_path: Path, task: Callable[..., Task]
) -> None:
    path = tmp_path / "talk.jsonl"
    for problem in ("first", "second"):  # e.g. two runs with the same file
        assert list(record(path, Attempt("m", problem=problem)).attempts(task()))
    proposer = ReplayProposer(path)
    assert [next(iter(proposer.attempts(task()))).problem for _ in range(3)] == ["first", "second", "first"]


def test_one_answer_more_than_recorded_is_refused(tmp_path: Path, task: Callable[..., Task]) -> None:
    path = tmp_path / "talk.jsonl"
    proposer = record(path, Attempt("m", CANDIDATE), Attempt("m", problem="never asked for"))
    answers = proposer.attempts(task())
    next(iter(answers))
    answers.close()  # type: ignore[attr-defined]
    assert isinstance(proposer.proposer, Script)
    assert proposer.proposer.closed
    again = ReplayProposer(path).attempts(task())
    next(iter(again))
    with pytest.raises(KlineageError, match="has 1 answer to this question, and one more was asked for"):
        next(iter(again))


TRIED = Tried("Drop it", "simd", "kernel.c::rows", "worst error 3.2e-2 of 1e-3", "ab" * 32)
GOAL = Goal("restrict", "kernel.c::rows", "Promise it", "", (Feature("kernel.c::rows", "restrict"),))


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"kernel": replace(KERNEL, source=SIMPLER)}, "the kernel differs"),
        ({"platform": "cpu-aarch64"}, "the platform differs"),
        ({"hint": "smaller"}, "the hint differs"),
        ({"tried": ()}, "what was tried before differs"),
        ({"goal": GOAL, "platform": "x"}, "the platform and the goal differ"),
    ],
)
def test_another_question_is_refused_by_what_differs(
    tmp_path: Path, task: Callable[..., Task], change: dict[str, Any], differs: str
) -> None:
    path = tmp_path / "talk.jsonl"
    list(record(path, Attempt("m", CANDIDATE)).attempts(task(tried=(TRIED,))))
    with pytest.raises(KlineageError, match=f"has no answer to this question: {differs}") as caught:
        next(iter(ReplayProposer(path).attempts(task(**{"tried": (TRIED,), **change}))))
    assert "\n" not in str(caught.value)


def test_what_a_gate_measured_on_secret_inputs_may_differ(tmp_path: Path, task: Callable[..., Task]) -> None:
    path = tmp_path / "talk.jsonl"
    list(
        record(path, Attempt("m", CANDIDATE)).attempts(task(tried=(TRIED,), hint="it failed: 3.2e-2 of 1e-3"))
    )
    other = replace(TRIED, why="worst error 4.7e-2 of 1e-3")
    assert list(ReplayProposer(path).attempts(task(tried=(other,), hint="it failed: 4.7e-2 of 1e-3")))


def test_secrets_are_removed(
    tmp_path: Path, task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hush-hush-hush")
    path = tmp_path / "talk.jsonl"
    leaky = replace(CANDIDATE, rationale="hush-hush-hush", source=SIMPLER + b"// sk-ant-0123456789abcdef\n")
    list(record(path, Attempt("m", leaky), Attempt("m", problem="hush-hush-hush")).attempts(task()))
    text = path.read_text()
    assert "hush" not in text
    assert "sk-ant" not in text
    with pytest.raises(
        KlineageError, match="line 5: its code is not what was recorded: a secret was removed"
    ):
        list(ReplayProposer(path).attempts(task()))


def test_a_key_is_removed_however_it_streamed(tmp_path: Path, task: Callable[..., Task]) -> None:
    class Leaks:
        name = "m"

        def attempts(
            self, task: Task, on_event: OnProposerEvent | None = None, cancel: object = None
        ) -> Iterator[Attempt]:
            assert on_event is not None
            for piece in ("x" * 500 + " sk-ant-0123", "456789abcdef", "\n" * 500):
                on_event(ProposerEvent("text", piece))
            yield Attempt("m", problem="none")

    path = tmp_path / "talk.jsonl"
    list(RecordedProposer(Leaks(), Recording(path), lambda call: None).attempts(task()))
    text = recorded(path)["conversations"][0]["text"]
    assert text == "x" * 500 + " [secret]" + "\n" * 500


def test_a_recording_cannot_speak_for_a_person(tmp_path: Path, task: Callable[..., Task]) -> None:
    path = tmp_path / "talk.jsonl"
    list(
        record(path, Attempt("m", replace(CANDIDATE, proposer="person, from rules:unroll"))).attempts(task())
    )
    with pytest.raises(KlineageError, match="a recording cannot speak for a person"):
        list(ReplayProposer(path).attempts(task()))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a recording; klineage record ID FILE makes one"),
        ("hello\n", "line 1: this is no line of a recording"),
        ('{"recording": {"schema": 99}}\n', "its schema is 99, this klineage reads 1"),
        ('{"question": {}}\n', "is not a recording"),
        ('{"recording": {"schema": 1}}\n{"attempt": {}}\n', "line 2: an answer without a question"),
        ('{"recording": {"schema": 1}}\n{"question": {}}\n', "line 2: this is no question"),
        ('{"recording": {"schema": 1}}\n[]\n', "line 2: this is no line"),
        ('{"recording": {"schema": 1}}\n' + "[" * 100_000 + "\n", "line 2: this is no line"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(text)
    with pytest.raises(KlineageError, match=says) as caught:
        ReplayProposer(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("line", ['{"event": {"kind": "text", "text": 1}}', '{"attempt": {"candidate": {}}}'])
def test_an_edited_line_is_named(tmp_path: Path, task: Callable[..., Task], line: str) -> None:
    path = tmp_path / "talk.jsonl"
    list(record(path).attempts(task()))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(KlineageError, match=r"line 4: this is no (event|attempt) of a recording"):
        recorded(path)


def test_a_recording_goes_on_after_a_kill(tmp_path: Path, task: Callable[..., Task]) -> None:
    path = tmp_path / "talk.jsonl"
    list(record(path, Attempt("m", CANDIDATE)).attempts(task()))
    with path.open("ab") as file:
        file.write(b'{"attempt": {"prop')  # killed while it wrote
    assert len(list(ReplayProposer(path).attempts(task()))) == 1
    list(record(path, Attempt("m", CANDIDATE)).attempts(task(hint="more")))
    for hint in ("", "more"):
        assert len(list(ReplayProposer(path).attempts(task(hint=hint)))) == 1


def test_a_step_names_who_can_be_asked_again(tmp_path: Path) -> None:
    context = Context(tmp_path, "rows-c")
    for signed in (
        "model:claude-opus-5; prompt d01ca3c20fa7",
        "model:claude-opus-5; prompt d01ca3c20fa7; replayed",
    ):
        assert proposer_named(signed, context).name == "model:claude-opus-5"


def test_an_unknown_name_says_what_there_is(tmp_path: Path) -> None:
    for name in ("modle", "replay:", "person"):
        with pytest.raises(KlineageError, match="rules, model, model:ID, command:NAME, replay:FILE"):
            proposer_named(name, Context(tmp_path, "rows-c"))
    with pytest.raises(KlineageError, match="no id of a model"):
        proposer_named("model:a b", Context(tmp_path, "rows-c"))


def test_a_model_is_recorded_with_what_was_sent(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    path = tmp_path / "talk.jsonl"
    messages.say(Reply(good))
    proposer = proposer_named("model", Context(tmp_path, "rows-c", record=path))
    attempt = next(iter(proposer.attempts(task())))
    assert next(iter(ReplayProposer(path).attempts(task()))) == replayed(attempt)
    raw = recorded(path)["conversations"][0]["attempts"][0]["raw"]
    assert raw["sent"] | {"stream": True} == messages.requests[0].body
    assert json.loads(raw["outcome"]["text"]) == good
