"""Several GPUs, one job each; a device that fails is checked, and given up after three checks; a lock between processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from klineage.executor import Cancelled, LocalExecutor
from klineage.executor.base import device_error
from klineage.platform import Gpu, Machine
from klineage.worker import device
from klineage.worker.watch import Control

GOOD = {"verdict": "pass", "reason": "ok", "summary": ""}
BROKEN = {
    "verdict": "fail",
    "reason": "raised",
    "summary": "CUDA error: an illegal memory access was encountered",
}
ILL = {
    "verdict": "error",
    "reason": "device",
    "summary": "the device does not work: CUDA error: unknown error",
}
MACHINE = Machine("Linux", "cpu", "cpu-x86-64", 2, 0, None, None, None, None, {})


class Plan:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.health(GOOD)

    def health(self, answer: dict[str, str]) -> None:
        self.path.write_text(json.dumps({"health": answer}))

    def slow_start(self, seconds: float) -> None:
        self.path.write_text(json.dumps({"start": seconds}))

    def log(self) -> Counter[str]:
        return Counter(line.split()[0] for line in Path(f"{self.path}.log").read_text().splitlines())


class Workers(LocalExecutor):
    def __init__(self, plan: Plan, gpus: int) -> None:
        super().__init__(
            {"PATH": "/usr/bin"},
            command=(sys.executable, str(Path(__file__).with_name("fake_worker.py")), str(plan.path)),
        )
        found = tuple(Gpu("H200", "nvidia-sm90", 1, "1", f"GPU-{i}") for i in range(gpus))
        self.found = Machine(**{**vars(MACHINE), "gpus": found, "gpu": found[0] if found else None})

    def machine(self, cancel: threading.Event | None = None) -> Machine:
        return self.found

    def _has_only_gpu(self) -> bool:
        return len(self.found.gpus) == 1


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(tmp_path / "plan")


@pytest.fixture
def workers(plan: Plan) -> Iterator[Workers]:
    made = Workers(plan, 2)
    yield made
    made.close()


def run(workers: Workers, say: dict[str, str] = GOOD, **more: Any) -> dict[str, Any]:
    return workers.submit("gpu", {"op": "work", "say": say, **more})


def test_jobs_are_spread_over_the_gpus_and_each_has_one_at_a_time(
    plan: Plan, workers: Workers, tmp_path: Path
) -> None:
    answers: list[dict[str, Any]] = []
    go = tmp_path / "go"
    threads = [threading.Thread(target=lambda: answers.append(run(workers, hold=str(go)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    log = Path(f"{plan.path}.log")
    while not log.exists() or plan.log()["work"] < 2:
        time.sleep(0.01)
    begun = [line for line in log.read_text().splitlines() if line.startswith("work")]
    assert sorted(begun) == ["work GPU-0", "work GPU-1"]
    assert len(workers.pids()) == 2
    go.touch()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert {answer["device"] for answer in answers} == {"GPU-0", "GPU-1"}


def test_an_only_gpu_is_left_to_the_driver_to_find(plan: Plan) -> None:
    for gpus in (0, 1):
        workers = Workers(plan, gpus)
        try:
            assert run(workers)["device"] == "-"
        finally:
            workers.close()


def test_one_caller_stays_on_one_gpu(workers: Workers) -> None:
    assert {run(workers)["device"] for _ in range(3)} == {"GPU-0"}
    assert len(workers.pids()) == 1


def test_a_job_waits_for_the_worker_that_starts_and_starts_no_second(plan: Plan, workers: Workers) -> None:
    plan.slow_start(0.5)
    warming = threading.Thread(target=workers.versions, args=("gpu",))
    warming.start()
    log = Path(f"{plan.path}.log")
    while not log.exists():
        time.sleep(0.01)
    assert run(workers)["device"] == "GPU-0"
    warming.join()
    assert plan.log()["start"] == 1


def test_after_a_device_error_the_device_is_checked(plan: Plan) -> None:
    workers = Workers(plan, 1)
    try:
        before = run(workers) and workers.pids()
        assert run(workers, BROKEN)["verdict"] == "fail"
        assert run(workers)["verdict"] == "pass"
        assert workers.pids() == before  # it never had the device open itself
        assert plan.log()["health"] == 1
        run(workers)
        assert plan.log() == {"start": 1, "work": 4, "health": 1}
    finally:
        workers.close()


def test_a_worker_whose_check_fails_is_replaced(plan: Plan) -> None:
    workers = Workers(plan, 1)
    try:
        before = run(workers, BROKEN) and workers.pids()
        plan.health(ILL)
        assert run(workers)["reason"] == "device"
        assert workers.pids() == ()
        plan.health(GOOD)
        assert run(workers)["verdict"] == "pass"
        assert workers.pids() != before
        assert plan.log() == {"start": 2, "work": 2, "health": 2}
    finally:
        workers.close()


def test_kernels_that_fail_on_a_device_that_works_stop_nothing(plan: Plan) -> None:
    workers = Workers(plan, 1)
    try:
        assert [run(workers, BROKEN)["verdict"] for _ in range(6)] == ["fail"] * 6
    finally:
        workers.close()


def test_three_failed_checks_end_the_use_of_a_device(plan: Plan) -> None:
    workers = Workers(plan, 1)
    try:
        run(workers, BROKEN)
        plan.health(ILL)
        answers = [run(workers) for _ in range(4)]
        assert [(a["verdict"], a["reason"]) for a in answers] == [("error", "device")] * 4
        assert "failed its check" in answers[0]["summary"]
        assert "the GPU on this machine failed 3 checks in a row and is used no more" in answers[2]["summary"]
        assert answers[3]["summary"] == answers[2]["summary"]
        assert plan.log()["health"] == 3
    finally:
        workers.close()


def test_the_other_device_takes_over(workers: Workers, plan: Plan) -> None:
    run(workers, BROKEN)
    plan.health(ILL)
    run(workers)  # the check of the first device fails
    plan.health(GOOD)
    assert run(workers)["device"] == "GPU-1"


def test_visible_devices_are_the_pool(plan: Plan) -> None:
    workers = Workers(plan, 4)
    workers._environment["CUDA_VISIBLE_DEVICES"] = "3"
    try:
        assert run(workers)["device"] == "3"
        assert len(workers._slots["gpu"]) == 1
    finally:
        workers.close()


@pytest.mark.parametrize(
    ("answer", "bad"),
    [
        (GOOD, False),
        (BROKEN, True),
        ({"verdict": "timeout", "reason": "timeout", "summary": "ran longer than 60 s"}, True),
        ({"verdict": "fail", "reason": "crashed", "summary": "crashed with SIGABRT"}, True),
        ({"verdict": "fail", "reason": "mismatch", "summary": "y[0] is 1, not 2"}, False),
    ],
)
def test_what_is_a_device_error(answer: dict[str, str], bad: bool) -> None:
    assert device_error(answer) is bad


HOLD = """
import sys, time
from klineage.worker import device
from klineage.worker.watch import Control
with device.reserved("test-device", Control(None), 1, lambda p: print(p["detail"], flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_device_has_one_user_across_processes(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin"}

    def hold() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    first = hold()
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    second = hold()
    assert second.stdout is not None
    assert "another gate" in second.stdout.readline()
    first.kill()  # however it ends, the device is free
    first.wait()
    assert second.stdout.readline() == "held\n"
    second.communicate("")
    assert second.returncode == 0
    first.stdout.close()


def test_those_who_share_a_device_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "root", lambda: tmp_path)
    order: list[str] = []

    def told(_: object) -> None:
        if "waits" not in order:
            order.append("waits")

    def alone() -> None:
        with device.reserved("d", Control(None), 1, told):
            order.append("alone")
            assert device.try_share("d") is None

    def shared() -> None:
        with device.reserved("d", Control(None), 2, lambda _: None, shared=True):
            order.append("shared")

    with device.reserved("d", Control(None), 3, told, shared=True):
        leave = device.try_share("d")
        assert leave is not None
        leave()
        first = threading.Thread(target=alone)
        first.start()
        while "waits" not in order:
            time.sleep(0.01)
        assert device.try_share("d") is None  # somebody waits to be alone
        second = threading.Thread(target=shared)
        second.start()
        time.sleep(0.2)
    first.join(60)
    second.join(60)
    assert order == ["waits", "alone", "shared"]


def test_waiting_for_a_gpu_can_be_cancelled(plan: Plan) -> None:
    workers, cancel = Workers(plan, 1), threading.Event()
    try:
        with workers._taken("gpu", None):
            threading.Timer(0.1, cancel.set).start()
            with pytest.raises(Cancelled):
                workers.submit("gpu", {"op": "work", "say": GOOD}, cancel=cancel)
    finally:
        workers.close()
