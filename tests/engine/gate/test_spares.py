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


def test_a_first_gate_finds_its_own_three_and_the_others_come_after_it(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    """A driver opens its device for one after the other: more would delay what the first gate waits for."""
    executor = spared("many")
    (parent,) = executor.pids()
    ready(tmp_path, parent, 3)
    assert not wait_until(lambda: len(noted(tmp_path, "begun")) > 3, 0.5)
    assert run(executor, c(), rows).verdict is Verdict.PASS
    ready(tmp_path, parent, 5)


def test_gates_without_a_rest_make_what_they_lack_beside_correctness(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared("busy")
    ready(tmp_path, executor.pids()[0], 3)
    for gates in (1, 2, 3):
        report = run(executor, c(), rows)
        assert report.verdict is Verdict.PASS, report.why
        assert len(noted(tmp_path)) == 1 + 2 * gates, "two judge, and one more waits for what times"


def test_a_job_does_not_wait_for_all_that_a_spare_would_do(
    spared: Make, rows: Workload, c: MakeC, tmp_path: Path
) -> None:
    executor = spared("called")
    assert wait_until(lambda: len(noted(tmp_path, "begun")) == 2)
    report = run(executor, c(), rows, profiled=False)
    assert report.stages[2].verdict is Verdict.PASS, report.why
    assert len(noted(tmp_path, "called")) >= 2
