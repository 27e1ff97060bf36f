"""Spare children: a job takes one that waits; none is lost, none stays, and none that fails does harm."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateEvent, GateRequest, Report, Verdict, gate
from klineage.kernel import Kernel
from klineage.worker.device import lock_path
from klineage.workload import Workload

from .conftest import QUICK
from .test_running import SPIN, children, wait_until

MakeC = Callable[..., Kernel]
Make = Callable[..., LocalExecutor]


@pytest.fixture
def spared(tmp_path: Path, cache_home: Path) -> Iterator[Make]:
    made: list[LocalExecutor] = []

    def make(how: str = "opens", idle: float = 60.0) -> LocalExecutor:
        script = str(Path(__file__).with_name("spare_worker.py"))
        made.append(LocalExecutor(command=(sys.executable, script, how, str(tmp_path), str(idle))))
        made[-1].versions("native")
        return made[-1]

    yield make
    for executor in made:
        executor.close()


def noted(folder: Path, what: str = "open") -> set[int]:
    return {int(path.name.partition("-")[2]) for path in folder.glob(f"{what}-*")}


def ready(folder: Path, parent: int, number: int = 2) -> set[int]:
    """The spares of a worker, once so many are open."""
    assert wait_until(lambda: len(children(parent) & noted(folder)) == number)
    return children(parent)


def run(executor: LocalExecutor, kernel: Kernel, rows: Workload, **more: object) -> Report:
    return gate(GateRequest(kernel, rows, "cpu-native"), fresh=True, policy=QUICK, executor=executor, **more)  # type: ignore[arg-type]


def test_a_job_takes_spares_and_new_ones_come(spared: Make, rows: Workload, c: MakeC, tmp_path: Path) -> None:
    executor = spared()
    (parent,) = executor.pids()
    before = ready(tmp_path, parent)
    report = run(executor, c(), rows)
    assert report.verdict is Verdict.PASS, report.why
    after = ready(tmp_path, parent)
    assert not before & after
    assert not any(Path(f"/proc/{pid}").exists() for pid in before)
    crashed = run(executor, c("abort();"), rows).stages[2]
    assert (crashed.reason, crashed.log) == ("crashed", "")  # not a word of what the spare said before
    ready(tmp_path, parent)


def test_spares_are_as_confined_as_forked_children(
    spared: Make, executor: LocalExecutor, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    other = spared()
    ready(tmp_path, other.pids()[0])
    probe = c("if (fork() == 0) _exit(0);", before="#include <unistd.h>")
    with_spare, forked = run(other, probe, rows), run(executor, probe, rows)
    assert with_spare.why == forked.why
    assert with_spare.layers == forked.layers


def test_cancel_ends_a_kernel_in_a_spare(spared: Make, rows: Workload, c: MakeC, tmp_path: Path) -> None:
    executor = spared()
    (parent,) = executor.pids()
    before = ready(tmp_path, parent)
    cancel = threading.Event()

    def on_event(event: GateEvent) -> None:
        if "seed" in event.detail:
            cancel.set()

    report = run(executor, c(SPIN), rows, on_event=on_event, cancel=cancel)
    assert report.stages[2].reason == "cancelled"
    assert wait_until(lambda: not children(parent) & before)
    assert executor.pids() == (parent,)
    assert run(executor, c(), rows).verdict is Verdict.PASS


@pytest.mark.parametrize("how", ["raises", "crashes"])
def test_a_spare_that_cannot_open_its_device_does_no_harm(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path, how: str
) -> None:
    executor = spared(how)
    (parent,) = executor.pids()
    assert wait_until(lambda: len(noted(tmp_path, "begun")) == 2 and not children(parent))
    assert not wait_until(
        lambda: len(noted(tmp_path, "begun")) > 2, 0.5
    )  # none is made until a job was there
    assert run(executor, c(), rows).verdict is Verdict.PASS
    assert executor.pids() == (parent,)


def test_a_spare_that_was_killed_is_replaced(spared: Make, rows: Workload, c: MakeC, tmp_path: Path) -> None:
    executor = spared()
    (parent,) = executor.pids()
    for pid in ready(tmp_path, parent):
        os.kill(pid, signal.SIGKILL)
    assert run(executor, c(), rows).verdict is Verdict.PASS
    ready(tmp_path, parent)


def test_spares_end_with_their_parent_and_when_nothing_is_asked(spared: Make, tmp_path: Path) -> None:
    killed, closed = spared(), spared()
    own = [ready(tmp_path, executor.pids()[0]) for executor in (killed, closed)]
    before = noted(tmp_path)
    idle = spared(idle=1.0)
    assert wait_until(lambda: len(noted(tmp_path) - before) == 2)
    own.append(noted(tmp_path) - before)
    (parent,) = idle.pids()
    os.kill(killed.pids()[0], signal.SIGKILL)
    closed.close()
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pids in own for pid in pids))
    assert idle.pids() == (parent,)


def test_what_a_job_took_is_made_anew_while_it_runs(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared()
    ready(tmp_path, executor.pids()[0])
    cancel = threading.Event()

    def on_event(event: GateEvent) -> None:
        if "seed" in event.detail and wait_until(lambda: len(noted(tmp_path)) == 4):
            cancel.set()

    report = run(executor, c(SPIN), rows, on_event=on_event, cancel=cancel)
    assert report.stages[2].reason == "cancelled"


def test_what_the_first_gate_needs_opens_first(spared: Make, tmp_path: Path) -> None:
    executor = spared("many")
    ready(tmp_path, executor.pids()[0], 4)
    times = {
        what: sorted(p.stat().st_mtime_ns for p in tmp_path.glob(f"{what}-*")) for what in ("begun", "open")
    }
    assert times["begun"][2] < times["open"][0]  # three at once
    assert times["open"][0] <= times["begun"][3]


def state(pid: int) -> str:
    """How a process is: "T" when it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def test_a_spare_that_opens_its_device_stands_still_beside_a_measurement(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared("long")
    assert wait_until(lambda: len(noted(tmp_path, "begun")) == 3)
    report = run(executor, c(), rows)
    assert report.stages[3].verdict in (Verdict.PASS, Verdict.NOISY), report.why
    assert (tmp_path / "states").read_text().split()[0] == "T"  # the one that correctness left
    left = noted(tmp_path, "begun") & children(executor.pids()[0]) - noted(tmp_path)
    (tmp_path / "enough").touch()
    assert wait_until(lambda: left <= noted(tmp_path))  # it went on where it was
    assert left


def test_a_job_opens_its_device_alone(spared: Make, rows: Workload, c: MakeC, tmp_path: Path) -> None:
    executor = spared("long")
    assert wait_until(lambda: len(noted(tmp_path, "begun")) == 3)
    assert run(executor, c(), rows, profiled=False).verdict is Verdict.PASS
    told = [path.read_text().split() for path in tmp_path.glob("beside-*")]
    assert any(states.count("T") == 1 for states in told)  # the third, when the candidate was called


def test_a_spare_that_is_stopped_holds_no_lock_of_its_server(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared("late")
    report = run(executor, c(), rows, profiled=False)
    assert report.verdict is Verdict.PASS, report.why
    executor.close()
    for part in ("", "-door"):
        lock_path(tmp_path.name + part).unlink()


def test_no_spare_opens_its_device_while_somebody_else_holds_it(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared("long")
    (parent,) = executor.pids()
    assert wait_until(lambda: len(noted(tmp_path, "begun")) == 3)
    (tmp_path / "held").touch()
    assert run(executor, c(), rows, profiled=False).verdict is Verdict.PASS
    assert wait_until(lambda: [state(pid) for pid in children(parent)] == ["T", "T", "T"])
    (tmp_path / "held").unlink()
    assert wait_until(lambda: "T" not in [state(pid) for pid in children(parent)])
    assert wait_until(lambda: children(parent) <= noted(tmp_path, "begun"))


def test_a_job_does_not_wait_for_all_that_a_spare_would_do(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared("called")
    assert wait_until(lambda: len(noted(tmp_path, "begun")) == 2)
    report = run(executor, c(), rows, profiled=False)
    assert report.stages[2].verdict is Verdict.PASS, report.why
    assert len(noted(tmp_path, "called")) >= 2
