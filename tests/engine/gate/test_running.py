"""Around the stages: cancelling, caching, workers that die, missing tools, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.executor import Cancelled, LocalExecutor
from klineage.gate import GateEvent, GateRequest, Policy, Report, Verdict, capabilities, gate
from klineage.gate import cache as gate_cache
from klineage.kernel import Kernel
from klineage.worker import problem
from klineage.worker.faults import WorkerError
from klineage.workload import Workload

Gate = Callable[..., Report]
MakeC = Callable[..., Kernel]
SPIN = "volatile int go = 1; while (go) { }"


def children(pid: int) -> set[int]:
    """Every living descendant of a process."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == pid and state != "Z":
                found |= {int(entry.name)} | children(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def test_cancel_ends_a_spinning_kernel(executor: LocalExecutor, rows: Workload, c: MakeC) -> None:
    cancel = threading.Event()

    def on_event(event: GateEvent) -> None:
        if event.stage == "correctness" and "seed" in event.detail:
            cancel.set()

    report = gate(GateRequest(c(SPIN), rows, "cpu-native"), on_event, cancel, fresh=True, executor=executor)
    result = report.stage("correctness")
    assert result is not None
    assert (result.verdict, result.reason) == (Verdict.SKIPPED, "cancelled")  # else a timeout, in a minute
    assert report.verdict is Verdict.SKIPPED
    assert wait_until(lambda: not any(children(pid) for pid in executor.pids()))


def test_a_gate_cancelled_before_it_starts_runs_nothing(rows: Workload, c: MakeC, cache_home: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    workers = LocalExecutor()
    report = gate(GateRequest(c(), rows, "cpu-native"), None, cancel, fresh=True, executor=workers)
    assert report.verdict is Verdict.SKIPPED
    assert workers.pids() == ()


class NoWorkers(LocalExecutor):
    def submit(self, *_: object, **__: object) -> dict[str, object]:  # type: ignore[override]
        raise AssertionError("a cached gate needs no worker")


def test_a_result_is_found_again(executor: LocalExecutor, rows: Workload, c: MakeC) -> None:
    request = GateRequest(c("/* cached */"), rows, "cpu-native")
    first = gate(request, executor=executor)
    events: list[GateEvent] = []
    assert gate(request, events.append, executor=NoWorkers()) == first
    assert [e.stage for e in events] == ["static", "compile", "correctness", "profile"]
    again = gate(request, executor=executor, fresh=True)
    assert again.seeds != first.seeds
    assert gate(request, executor=NoWorkers()) == again


@pytest.mark.parametrize(
    "change",
    [
        lambda r, c: GateRequest(c("/* cachee */"), r.workload, r.platform),
        lambda r, c: GateRequest(r.kernel, r.workload, "cpu-x86-64-v2"),
        lambda r, c: GateRequest(r.kernel, r.workload, r.platform, baseline=c()),
        lambda r, c: GateRequest(r.kernel, r.workload, r.platform, seeds=(1, 2, 3)),
    ],
)
def test_a_result_belongs_to_all_that_it_depends_on(
    change: Callable[..., GateRequest], rows: Workload, c: MakeC
) -> None:
    request = GateRequest(c("/* cached */"), rows, "cpu-native")
    assert gate_cache.key(change(request, c), "1") != gate_cache.key(request, "1")
    assert gate_cache.key(request, "2") != gate_cache.key(request, "1")


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"kernel": 1}', b"null"])
def test_a_damaged_entry_is_a_miss_and_is_written_again(
    damage: bytes, executor: LocalExecutor, rows: Workload, c: MakeC
) -> None:
    request = GateRequest(c("/* damaged */"), rows, "cpu-native")
    gate(request, executor=executor)
    name = gate_cache.key(request, Policy().name)
    path = gate_cache.folder() / "reports" / name[:2] / f"{name}.json"
    path.write_bytes(damage)
    assert gate(request, executor=executor).verdict is Verdict.PASS
    assert gate_cache.load_report(name) is not None


def test_a_damaged_library_is_built_again(judge: Gate, c: MakeC, cache_home: Path) -> None:
    kernel = c("/* library */")
    before = set(cache_home.rglob("kernel.so"))
    judge(kernel)
    (library,) = set(cache_home.rglob("kernel.so")) - before
    library.write_bytes(library.read_bytes()[:100])
    report = judge(kernel)
    assert report.verdict is Verdict.PASS, report.why
    assert library.stat().st_size > 1000


def test_a_timeout_is_not_remembered(executor: LocalExecutor, rows: Workload, c: MakeC) -> None:
    request = GateRequest(c(SPIN), rows, "cpu-native")
    policy = Policy(run_seconds=0.3)
    assert gate(request, executor=executor, policy=policy).verdict is Verdict.TIMEOUT
    assert gate_cache.load_report(gate_cache.key(request, policy.name)) is None


def test_an_unwritable_cache_only_costs_time(
    executor: LocalExecutor, rows: Workload, c: MakeC, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    real = gate_cache.folder()
    monkeypatch.setattr(gate_cache, "folder", lambda: blocked)
    monkeypatch.setattr("klineage.gate.native.folder", lambda: real)
    assert gate(GateRequest(c(), rows, "cpu-native"), executor=executor).verdict is Verdict.PASS


def test_seeds_replay_a_failure(executor: LocalExecutor, rows: Workload, c: MakeC) -> None:
    kernel = c("if (columns == 13) { alpha = 1.25f; }")
    first = gate(GateRequest(kernel, rows, "cpu-native"), executor=executor, fresh=True)
    again = gate(GateRequest(kernel, rows, "cpu-native", seeds=first.seeds), executor=executor, fresh=True)
    assert again.seeds == first.seeds
    assert again.stage("correctness").case == first.stage("correctness").case  # type: ignore[union-attr]


def test_a_missing_compiler_says_how_to_get_one(rows: Workload, c: MakeC, cache_home: Path) -> None:
    workers = LocalExecutor(
        {"PATH": "", "XDG_CACHE_HOME": str(cache_home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    )
    try:
        report = gate(GateRequest(c("/* none */"), rows, "cpu-native"), executor=workers, fresh=True)
    finally:
        workers.close()
    result = report.stage("compile")
    assert result is not None
    assert (result.verdict, result.reason) == (Verdict.ERROR, "no_compiler")
    assert "install" in result.summary


def test_a_worker_that_dies_costs_one_gate(rows: Workload, c: MakeC, cache_home: Path) -> None:
    workers = LocalExecutor()
    try:
        policy = Policy(run_seconds=200, total_seconds=200)
        answers: list[Report] = []
        job = threading.Thread(
            target=lambda: answers.append(
                gate(GateRequest(c(SPIN), rows, "cpu-native"), fresh=True, executor=workers, policy=policy)
            )
        )
        job.start()
        assert wait_until(lambda: any(len(children(pid)) >= 2 for pid in workers.pids()))
        (parent,) = workers.pids()
        orphans = children(parent)
        os.kill(parent, signal.SIGKILL)
        job.join(60)
        assert answers[0].verdict is Verdict.ERROR
        assert "worker" in answers[0].why
        assert wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in orphans))
        assert (
            gate(GateRequest(c(), rows, "cpu-native"), fresh=True, executor=workers).verdict is Verdict.PASS
        )
    finally:
        workers.close()


APP = """
import sys, threading
from pathlib import Path
from klineage.gate import GateRequest, gate
from klineage.kernel import Kernel
from klineage.workload import load
source = Path(sys.argv[2]).read_bytes()
def say(event):
    if "seed" in event.detail:
        print("running", flush=True)
gate(GateRequest(Kernel("c", "kernel.c", "rows_kernel", source), load(sys.argv[1]), "cpu-native"), say, fresh=True)
"""


def test_an_app_that_is_killed_leaves_nothing(c: MakeC, tmp_path: Path, cache_home: Path) -> None:
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(c(SPIN).source)
    command = [sys.executable, "-c", APP, str(Path(__file__).parent), str(kernel)]
    app = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert app.stdout is not None
    assert app.stdout.readline() == "running\n"
    family = children(app.pid)
    assert len(family) >= 2
    app.kill()
    app.wait()
    app.stdout.close()
    assert wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in family))


def test_workers_see_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    workers = LocalExecutor()
    try:
        assert workers.versions("native")
        (pid,) = workers.pids()
        assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        workers.close()
    assert wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_waiting_for_a_busy_worker_can_be_cancelled(executor: LocalExecutor) -> None:
    cancel = threading.Event()
    with executor._taken("native", None):
        threading.Timer(0.1, cancel.set).start()
        with pytest.raises(Cancelled):
            executor.versions("native", cancel)


def test_capabilities_say_what_holds(executor: LocalExecutor) -> None:
    rows = {row.name: row for row in capabilities(executor)}
    assert rows["C compiler"].ok
    assert {"torch", "triton", "GPU"} <= set(rows)
    assert all(row.ok or row.remedy for row in rows.values())
    assert any(name.startswith("safety: ") for name in rows)


@pytest.mark.parametrize(
    "platform", ["nvidia-sm90", "cpu-aarch64" if os.uname().machine == "x86_64" else "cpu-x86-64", "moon"]
)
def test_another_platform_is_unsupported_not_failed(platform: str, judge: Gate, c: MakeC) -> None:
    report = judge(c(), platform=platform)
    assert report.verdict is Verdict.UNSUPPORTED
    assert platform in report.why


def test_a_callback_that_raises_does_not_block_the_next_gate(
    executor: LocalExecutor, rows: Workload, c: MakeC
) -> None:
    def on_event(event: GateEvent) -> None:
        if event.stage == "correctness" and event.detail:
            raise RuntimeError("the screen is gone")

    endless = Policy(run_seconds=3600, total_seconds=3600)
    spins = GateRequest(c(SPIN), rows, "cpu-native")
    with pytest.raises(RuntimeError, match="the screen is gone"):
        gate(spins, on_event, fresh=True, executor=executor, policy=endless)
    # The spinning kernel is stopped, not waited for: the worker is free.
    assert gate(GateRequest(c(), rows, "cpu-native"), fresh=True, executor=executor).verdict is Verdict.PASS


def test_several_threads_gate_at_once(executor: LocalExecutor, rows: Workload, c: MakeC) -> None:
    reports: dict[int, Report] = {}

    def work(number: int) -> None:
        kernel = c(f"/* {number} */" if number % 2 else "y[0] = 0; return;")
        reports[number] = gate(GateRequest(kernel, rows, "cpu-native"), fresh=True, executor=executor)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [reports[n].verdict for n in range(4)] == [Verdict.FAIL, Verdict.PASS, Verdict.FAIL, Verdict.PASS]


def test_a_folder_that_cannot_be_written_is_named(
    executor: LocalExecutor, c: MakeC, judge: Gate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr("klineage.gate.native.folder", lambda: blocked)
    report = judge(c("/* nowhere */"))
    assert (report.verdict, report.stages[1].reason) == (Verdict.ERROR, "cache")
    assert str(blocked) in report.why


def test_a_worker_that_cannot_start_is_an_error(
    rows: Workload, c: MakeC, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    report = gate(GateRequest(c(), rows, "cpu-native"), fresh=True, executor=LocalExecutor())
    assert (report.verdict, report.stages[1].reason) == (Verdict.ERROR, "worker")
    assert "cannot start" in report.why


def test_a_worker_that_dies_while_it_starts_shows_its_last_words(
    rows: Workload, c: MakeC, cache_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('numpy is broken here')")
    workers = LocalExecutor({"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)})
    report = gate(GateRequest(c(), rows, "cpu-native"), fresh=True, executor=workers)
    result = report.stage("compile")
    assert result is not None
    assert (result.verdict, result.reason) == (Verdict.ERROR, "broken_package")
    assert "numpy is broken here" in result.summary
    assert 'numpy.py", line 1' in result.log


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("while True: pass", "importing it did not finish within"),
        ("raise SystemExit(0)", "importing it raised SystemExit"),
        ("raise KeyboardInterrupt", "importing it raised KeyboardInterrupt"),
    ],
    ids=["loops", "exits", "interrupts"],
)
def test_a_workload_that_does_not_load(ending: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "while" in ending:
        monkeypatch.setattr(problem, "LOAD_SECONDS", 0.2)
    with pytest.raises(WorkerError, match=said) as fault:
        problem.load(f"{ending}\n".encode(), "mine/workload.py", "fp32")
    assert str(fault.value).startswith("mine/workload.py: ")


def test_a_workload_that_floods_is_named(
    rows: Workload, judge: Gate, changed: Callable[[str, str], Workload], c: MakeC
) -> None:
    flooding = rows.source.decode()
    name = flooding.index("def reference(")
    end = flooding.index(":\n", name) + 2
    loud = changed(flooding[name:end], flooding[name:end] + '    print("x" * (1 << 22))\n')
    stage = judge(c(), loud).stage("correctness")
    assert stage is not None
    assert (stage.verdict, stage.reason) == (Verdict.ERROR, "workload")
    assert "mine/workload.py: printed more than 1 MB" in stage.summary
