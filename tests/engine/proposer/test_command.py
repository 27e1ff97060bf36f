"""Any agent's command line as a proposer, with a real program that stands in for one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.ledger import Ledger, Limit, OverBudget, Usage, load_prices
from klineage.proposer.base import Attempt, Goal, ProposerEvent, Task, Tried
from klineage.proposer.command import PRESETS, PROMPT, Agent, CommandProposer, agent_named, running, runs
from klineage.proposer.command.scratch import prepare
from klineage.proposer.command.streams import ClaudeStream, CodexStream, Stream
from klineage.workload import parse

STAND_IN = Path(__file__).parents[2] / "agents" / "stand_in.py"
SOURCE = b"""\
void scale(const float * restrict x, float * restrict y, long n) {
#pragma GCC unroll 4
  for (long i = 0; i < n; i++) y[i] = 2.0f * x[i];
}
"""
KERNEL = Kernel("c", "kernel.c", "scale", SOURCE)
WORKLOAD = parse(
    b'''"""y = 2 x"""
ELEMENT = {"c": "fp32"}
SIZES = {"small": {"n": 64}, "ragged": {"n": 63}, "bench": {"n": 4096}, "paper": {"n": 4096}}
HIDDEN = {"n": 100}
OUTPUTS = ("y",)
def tensors(element, n):
    return {"x": (element, (n,)), "y": (element, (n,))}
def inputs(rng, n):
    return {"x": rng.normal(n)}
def reference(xp, x):
    return {"y": 2 * x}
def cost(itemsize, n):
    return {"bytes": 2 * itemsize * n, "operations": n}
''',
    name="scale",
    path=Path("workload.py"),
)
TASK = Task(KERNEL, WORKLOAD, "cpu-x86-64", features=(Feature("kernel.c::scale", "restrict"),))


def agent(behaviour: str, stream: Callable[[], Stream] = PRESETS["claude"].stream) -> Agent:
    return Agent("mine", (sys.executable, str(STAND_IN), behaviour), stream)


def one(behaviour: str, seconds: float = 60, **changes: object) -> tuple[Attempt, list[ProposerEvent]]:
    events: list[ProposerEvent] = []
    proposer = CommandProposer(agent(behaviour), seconds, **changes)  # type: ignore[arg-type]
    return next(proposer.attempts(TASK, events.append)), events


def said(events: list[ProposerEvent]) -> str:
    return "".join(event.text for event in events)


def test_an_answer_becomes_a_candidate_and_its_output_is_streamed() -> None:
    attempt, events = one("good")
    assert attempt.problem == "" and attempt.notes == ()
    assert attempt.candidate is not None
    assert attempt.candidate.source == SOURCE.replace(b" restrict ", b" ")
    assert attempt.candidate.proposer == attempt.proposer == "command:mine"
    assert attempt.candidate.removes == (Feature("kernel.c::scale", "restrict"),)
    assert "reading the kernel\n" in said(events)
    assert "\x1b[31mwriting" in said(events)  # foreign text as it is: the app makes it visible


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("nothing", "it wrote no kernel to answer/kernel.c"),
        (
            "in_place",
            "it wrote no kernel to answer/kernel.c; it changed the kernel beside it, which is not taken",
        ),
        ("two", "it answered with 2 kernels (kernel.c, other.c); one is asked for"),
        ("unchanged", "it answered with the kernel that it was given, unchanged"),
        ("broken", "its kernel does not parse: line 3 is no C"),
        ("unnamed", "it wrote a kernel and no answer/answer.json that says what it does"),
        ("garbled", "its answer.json is not JSON: "),
        ("linked", "its kernel.c cannot be read: "),
        ("piped", "its kernel.c is not a plain file"),
        ("fails", "it ended with status 3: no credit left"),
        ("refuses", "it gave up: too many turns"),
    ],
)
def test_an_answer_that_cannot_be_used_is_one_attempt_with_one_sentence(behaviour: str, problem: str) -> None:
    attempt, _ = one(behaviour)
    assert attempt.problem.startswith(problem)
    assert "\n" not in attempt.problem
    assert (attempt.candidate is not None) == (behaviour == "broken")  # these bytes are evidence


def test_a_change_outside_the_answer_is_ignored_and_told() -> None:
    attempt, _ = one("meddles")
    assert attempt.candidate is not None
    assert attempt.notes == (
        "it changed workload.py, which is not taken",
        "it removed TASK.md, which is not taken",
        "it made answer/log.txt, notes.txt, ../mine/plan.txt, which is not taken",
    )


def test_a_key_that_a_command_shows_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct-horse-battery")
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    attempt, events = one("babbles", ledger=ledger)
    assert attempt.problem == "it ended with status 1: refused: [secret]"
    assert "using [secret]" in said(events)
    assert "horse" not in said(events) + ledger.path.read_text()


def test_a_command_that_hangs_is_ended() -> None:
    attempt, _ = one("hangs", seconds=1)
    assert attempt.problem == "it did not answer within 1 s and was ended"
    assert attempt.candidate is None


def test_everything_that_a_hanging_command_started_is_ended_too() -> None:
    attempt, texts = cancelled_when_it_says("forks", "pids ")
    stay, away = pids(texts)
    assert attempt.problem == "it was cancelled"
    until(lambda: not alive(stay))
    if sys.platform == "linux":
        until(lambda: not alive(away))
        assert any(note.endswith("behind, now ended") for note in attempt.notes)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that leaves its group gets away")
def test_what_a_finished_command_left_behind_is_ended() -> None:
    attempt, events = one("leaves")
    assert attempt.candidate is not None
    until(lambda: not alive(pids(said(events))[0]))
    assert attempt.notes == ("it left a process behind, now ended",)


def test_a_cancel_ends_a_command_that_will_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "GRACE", 0.3)
    attempt, texts = cancelled_when_it_says("stubborn", "pid ")
    assert attempt.problem == "it was cancelled"
    until(lambda: not alive(pids(texts)[0]))


def cancelled_when_it_says(behaviour: str, word: str) -> tuple[Attempt, str]:
    cancel = threading.Event()
    texts: list[str] = []

    def hear(event: ProposerEvent) -> None:
        texts.append(event.text)
        if word in event.text:
            cancel.set()

    attempts = CommandProposer(agent(behaviour)).attempts(TASK, hear, cancel)
    attempt = next(attempts)
    assert list(attempts) == []  # no further run
    return attempt, "".join(texts)


def test_a_flood_of_output_is_shown_in_part_and_counted() -> None:
    attempt, events = one("floods")
    assert attempt.candidate is not None
    assert any(re.fullmatch(r"[\d,]+ characters of its output not shown", event.text) for event in events)
    assert max(len(event.text) for event in events) < 20_000


def watched_and_killed(folder: Path, behaviour: str, number: signal.Signals) -> None:
    """Watch a command from a process of its own until it says its number, and end that process: the command ends, too."""
    program = (
        # A suite that was started in the background ignores SIGINT, and so would everything that it starts.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import test_command as t\n"
        "ledger = t.Ledger(Path(sys.argv[2]) / 'ledger.jsonl', t.load_prices())\n"
        "tell = lambda e: print(e.text, flush=True)\n"
        "next(t.CommandProposer(t.agent(sys.argv[3]), ledger=ledger, lineage='scale-c').attempts(t.TASK, tell))"
    )
    words = [sys.executable, "-c", program, str(Path(__file__).parent), str(folder), behaviour]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watcher:
        assert watcher.stdout is not None
        line = next(line for line in watcher.stdout if "pid " in line)
        os.kill(watcher.pid, number)
        until(lambda: not alive(pids(line)[0]))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_cut_off_is_charged_with_what_it_said_and_its_answer_is_offered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    watched_and_killed(tmp_path, "lingers", number)
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    runs.recover(ledger)
    (entry,) = ledger.read().entries
    assert (entry.state, entry.outcome, entry.dollars) == ("settled", runs.CUT_OFF, None)
    assert entry.usage == Usage(input=12, cached=4000, cache_write=300, output=50)
    if number is signal.SIGINT:  # who presses Ctrl-C wants no answer
        assert not list((tmp_path / "runs").iterdir()) and not list(tmp_path.glob("klineage-*"))
        return
    elsewhere = CommandProposer(agent("good"), ledger=ledger, lineage="other-c").attempts(TASK)
    assert next(elsewhere).call != entry.call.id
    attempts = CommandProposer(agent("good"), ledger=ledger, lineage="scale-c").attempts(TASK)
    adopted = next(attempts)
    assert adopted.candidate is not None and adopted.call == entry.call.id
    assert adopted.notes == ("its run was cut off after it had answered",)
    attempts.close()  # type: ignore[attr-defined]
    assert not list((tmp_path / "runs").iterdir()) and not list(tmp_path.glob("klineage-*"))
    assert len(ledger.read().entries) == 2


def test_a_run_that_was_cut_off_without_an_answer_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    watched_and_killed(tmp_path, "hangs", signal.SIGKILL)
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    assert len(list(tmp_path.glob("klineage-*"))) == 1
    attempts = CommandProposer(agent("good"), ledger=ledger, lineage="scale-c").attempts(TASK)
    assert next(attempts).notes == ()
    assert [e.state for e in ledger.read().entries] == ["settled", "settled"]
    assert not list((tmp_path / "runs").iterdir()) and not list(tmp_path.glob("klineage-*"))


def test_a_command_that_is_not_there_stops_everything(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    missing = CommandProposer(Agent("mine", ("no-such-agent-here",)), ledger=ledger)
    with pytest.raises(KlineageError, match="no-such-agent-here cannot be started: No such file"):
        next(missing.attempts(TASK))
    assert [entry.state for entry in ledger.read().entries] == ["released"]


def test_a_second_attempt_is_told_of_the_first() -> None:
    attempts = CommandProposer(agent("good")).attempts(TASK)
    assert next(attempts).candidate is not None
    assert next(attempts).problem == "it proposed a kernel that was rejected on this state already"


def test_a_second_run_is_told_what_was_wrong_with_the_first() -> None:
    attempts = CommandProposer(agent("learns")).attempts(TASK)
    assert next(attempts).problem.startswith("it wrote no kernel")
    assert next(attempts).candidate is not None


def test_a_command_may_say_that_nothing_is_left(tmp_path: Path) -> None:
    plain = replace(KERNEL, source=SOURCE.replace(b"#pragma GCC unroll 4\n", b"").replace(b" restrict", b""))
    events: list[ProposerEvent] = []
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    proposer = CommandProposer(agent("walk"), ledger=ledger)
    assert list(proposer.attempts(replace(TASK, kernel=plain), events.append)) == []
    assert "mine sees nothing left to take out: one plain loop" in said(events)
    assert [entry.state for entry in ledger.read().entries] == ["settled"]


def test_what_a_command_reports_is_written_down_and_nothing_else(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    priced, events = one("claude", ledger=ledger, lineage="scale-c")
    silent, _ = one("good", ledger=ledger, lineage="scale-c")
    first, second = ledger.read().entries
    assert (first.call.id, second.call.id) == (priced.call, silent.call)
    assert first.dollars == Decimal("0.0123")
    assert first.usage == Usage(input=12, cached=4000, cache_write=300, output=50)
    assert second.dollars is None and second.unpriced
    assert (first.call.proposer, first.call.step, first.call.lineage) == (
        "command:mine",
        KERNEL.hash,
        "scale-c",
    )
    assert "I take restrict out.\n" in said(events) and "Write answer/kernel.c" in said(events)


def test_under_a_limit_a_command_without_a_price_is_not_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", load_prices())
    with pytest.raises(OverBudget, match="nobody knows before a run of command:mine"):
        one("good", ledger=ledger, limits=(Limit(Decimal(10)),))
    assert ledger.read().entries == ()


# -- the task, the presets, and what they write ------------------------------------------------------


def test_the_task_says_what_to_do_and_what_was_tried(tmp_path: Path) -> None:
    tried = Tried("Remove simd", "simd", "kernel.c::scale", "wrong\nat n=63")
    place = prepare(tmp_path, Task(KERNEL, WORKLOAD, "cpu-x86-64", TASK.features, (tried,), "mind\nthe tail"))
    text, folder = place.task, place.folder
    assert text.startswith("# Simplify this kernel by one step")
    assert "- Remove simd (simd at kernel.c::scale): wrong at n=63\n" in text
    assert "> mind\n> the tail\n" in text
    assert "- kernel.c::scale / restrict\n" in text
    assert "- kernel.c::scale/for[i]\n" in text
    assert "`answer/kernel.c`" in text
    assert (folder / "kernel.c").read_bytes() == SOURCE
    assert "reference" in (folder / "workload.py").read_text()
    assert "HIDDEN" not in (folder / "workload.py").read_text()
    assert list((folder / "answer").iterdir()) == []


def test_a_forward_task_says_what_to_add_and_shows_no_difference(tmp_path: Path) -> None:
    goal = Goal("unroll", "kernel.c::scale/for[i]", "Remove the unrolling", "It hides latency.",
                (Feature("kernel.c::scale/for[i]", "unroll"),), {"factor": "4"})  # fmt: skip
    plain = Kernel("c", "kernel.c", "scale", SOURCE.replace(b"#pragma GCC unroll 4\n", b""))
    text = prepare(tmp_path, Task(plain, WORKLOAD, "cpu-x86-64", goal=goal)).task
    assert text.startswith("# Add one optimization to this kernel")
    assert "factor=4" in text and "kernel.c::scale/for[i] / unroll" in text
    assert "#pragma" not in text


def test_presets_put_the_prompt_where_the_tools_want_it(tmp_path: Path) -> None:
    assert PRESETS["claude"].command(tmp_path)[:3] == ["claude", "-p", PROMPT]
    assert PRESETS["codex"].command(tmp_path)[-1] == PROMPT
    assert Agent("a", ("a", "--in", "{folder}", "--do", "{task}")).command(tmp_path) == [
        "a", "--in", str(tmp_path), "--do", str(tmp_path / "TASK.md"),
    ]  # fmt: skip


def test_commands_are_found_by_name() -> None:
    own = {"fast": ("claude", "-p", "{prompt}", "--output-format", "stream-json"), "shell": ("sh", "-c", "x")}
    assert agent_named("codex", {}) is PRESETS["codex"]
    assert agent_named("fast", own).stream is ClaudeStream
    assert agent_named("", {"only": ("x",)}).name == "only"
    assert agent_named("claude", {"claude": ("x",)}).words == ("x",)
    with pytest.raises(KlineageError, match="did you mean 'codex'"):
        agent_named("kodex", own)
    with pytest.raises(KlineageError, match="one of fast, shell, claude, codex"):
        agent_named("", own)


@pytest.mark.parametrize("stream", [ClaudeStream, CodexStream])
@pytest.mark.parametrize(
    "line",
    ["", "plain", "[]", "null", '{"type": "assistant", "message": {"content": 3}}', '{"type": "item.completed"}',
     '{"type": "result", "total_cost_usd": "NaN", "usage": {"input_tokens": -3, "output_tokens": true}}',
     '{"type": "turn.completed", "usage": []}', '{"type": "turn.failed"}', "[" * 100_000],
)  # fmt: skip
def test_a_strange_line_breaks_no_stream(stream: type, line: str) -> None:
    reader = stream()
    assert all(isinstance(event, ProposerEvent) for event in reader.read(line))
    assert reader.facts.dollars is None


def test_codex_counts_the_cache_inside_its_prompt_and_names_no_price() -> None:
    stream = CodexStream()
    stream.read(
        '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":80,"output_tokens":7}}'
    )
    stream.read(
        '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":1}}'
    )
    assert stream.facts.usage == Usage(input=30, cached=80, output=8)
    assert stream.facts.dollars is None
    stream.read('{"type":"turn.failed","error":{"message":"out\\nof credit"}}')
    assert stream.facts.failed == "out of credit"


def pids(text: str) -> list[int]:
    found = re.search(r"pids? ([\d ]+)", text)
    assert found is not None
    return [int(word) for word in found.group(1).split()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":  # a dead one that nobody has waited for yet
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    return True


def until(condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        time.sleep(0.05)
