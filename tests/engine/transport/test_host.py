"""Gates on another host: the same verdicts, and a sentence for everything that can be wrong with it."""

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
from klineage.errors import KlineageError
from klineage.executor import Host, HostExecutor
from klineage.executor import host as host_module
from klineage.gate import GateRequest, Report, Verdict, capabilities, gate
from klineage.kernel import Kernel
from klineage.workload import Workload

from .conftest import SSH, MakeHost, Ssh

MakeC = Callable[..., Kernel]
SPIN = "for (volatile int64_t i = 0; i >= 0; i++) ;"


def judged(workers: HostExecutor, kernel: Kernel, rows: Workload) -> Report:
    return gate(GateRequest(kernel, rows, "cpu-native"), executor=workers, fresh=True)


def test_a_kernel_is_gated_there_and_nothing_stays(
    host: MakeHost, c: MakeC, rows: Workload, tmp_path: Path
) -> None:
    workers = host()
    report = judged(workers, c(), rows)
    assert report.verdict is Verdict.PASS, report
    assert report.layers
    assert judged(workers, c("y[0] = 0; return;"), rows).verdict is Verdict.FAIL
    assert {row.name: row.detail for row in capabilities(workers)}["host"].startswith("me@gpu, Python 3")
    workers.close()
    assert wait_until(lambda: not list((tmp_path / "far").glob("klineage*")))
    assert not (tmp_path / "cache" / "klineage" / "c").exists()


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def family(root: int) -> list[int]:
    """Every process below ``root``."""
    listed = [(int(p.name), p) for p in Path("/proc").iterdir() if p.name.isdigit()]
    parents = {}
    for pid, path in listed:
        try:
            parents[pid] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = [root]
    for pid in below:
        below += [child for child, parent in parents.items() if parent == pid]
    return below[1:]


def test_a_lost_connection_costs_one_gate(host: MakeHost, c: MakeC, rows: Workload) -> None:
    workers = host()
    reports: list[Report] = []
    running = threading.Event()

    def watch(event: object) -> None:
        if "seed" in getattr(event, "detail", ""):
            running.set()

    def work() -> None:
        request = GateRequest(c(SPIN), rows, "cpu-native")
        reports.append(gate(request, watch, executor=workers, fresh=True))

    job = threading.Thread(target=work)
    job.start()
    assert running.wait(60)
    (connection,) = workers.pids()
    there = family(connection)
    assert len(there) >= 3  # the server, the candidate, the judge
    os.kill(connection, signal.SIGKILL)
    job.join(60)
    (report,) = reports
    result = report.stage("correctness")
    assert result is not None
    assert (result.verdict, result.reason) == (Verdict.ERROR, "connection")
    assert "me@gpu was lost" in result.summary
    assert "connects again" in result.summary
    assert wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in there))
    assert judged(workers, c(), rows).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("words", "reason", "says"),
    [
        ("ssh: connect to host gpu port 22: Connection refused", "unreachable", "Connection refused"),
        ("me@gpu: Permission denied (publickey).", "unreachable", "ssh-copy-id me@gpu"),
        ("Host key verification failed.", "unreachable", "look at it once"),
    ],
)
def test_a_host_that_cannot_be_reached(
    words: str, reason: str, says: str, ssh: Ssh, host: MakeHost, c: MakeC, rows: Workload
) -> None:
    ssh(f"#!/bin/sh\necho '{words}' >&2\nexit 255\n")
    workers = host()
    for _ in range(2):
        report = judged(workers, c(), rows)
        assert [s.verdict for s in report.stages][:2] == [Verdict.PASS, Verdict.ERROR]
        assert report.stages[1].reason == reason
        assert says in report.why
    ssh(SSH)
    assert judged(workers, c(), rows).verdict is Verdict.PASS  # the next gate connects again


@pytest.mark.parametrize(
    ("line", "reason", "says"),
    [
        ("exit 127", "no_python", "install Python 3.9"),
        ('exec $PYTHON -S "$@"', "no_numpy", "numpy is not installed"),
        ('ulimit -f 0; exec $PYTHON "$@"', "disk", "make room"),
        ("echo 'Segmentation fault' >&2; exit 139", "worker", "Segmentation fault"),
    ],
)
def test_a_host_that_lacks_something(
    line: str, reason: str, says: str, host: MakeHost, wrapped: Callable[[str], str], c: MakeC, rows: Workload
) -> None:
    report = judged(host(wrapped(line)), c(), rows)
    assert report.verdict is Verdict.ERROR
    assert (report.stages[1].reason, says in report.why) == (reason, True), report.why
    assert "me@gpu" in report.why


def test_a_host_that_hangs_can_be_left(
    host: MakeHost, wrapped: Callable[[str], str], c: MakeC, rows: Workload
) -> None:
    workers, cancel = host(wrapped("cat > /dev/null")), threading.Event()
    threading.Timer(0.5, cancel.set).start()
    report = gate(GateRequest(c(), rows, "cpu-native"), None, cancel, executor=workers, fresh=True)
    assert report.stages[1].reason in ("cancelled", "earlier")


def test_a_worker_forgets_what_a_login_knows(host: MakeHost, wrapped: Callable[[str], str]) -> None:
    workers = host(wrapped('HF_TOKEN=sesame CUDA_API_KEY=sesame exec $PYTHON "$@"'))
    assert workers.submit("native", {"op": "layers"})["verdict"] == "pass"  # it works without
    (connection,) = workers.pids()
    seen = {pid: Path(f"/proc/{pid}/environ").read_bytes() for pid in family(connection)}
    assert seen
    assert not any(b"sesame" in environment for environment in seen.values())


def test_what_is_kept_is_still_there() -> None:
    program = (
        "import ctypes, os; from klineage.worker.environment import forget; forget(); "
        "get = ctypes.CDLL(None).getenv; get.restype = ctypes.c_char_p; "
        "print(get(b'CUDA_CACHE_DISABLE'), get(b'HF_TOKEN'), os.environ['LC_ALL']); os.system('echo $CUDA_CACHE_DISABLE')"
    )
    environment = {**os.environ, "HF_TOKEN": "sesame", "CUDA_CACHE_DISABLE": "1", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["b'1'", "None", "C", "1"] or done.stdout.split() == [
        "1",
        "b'1'",
        "None",
        "C",
    ]


def test_an_old_python_is_named(
    host: MakeHost, c: MakeC, rows: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "_BOOT", host_module._BOOT.replace("(3, 9)", "(3, 99)"))
    report = judged(host(), c(), rows)
    assert report.stages[1].reason == "old_python"
    version = ".".join(str(part) for part in sys.version_info[:3])
    assert f"is Python {version}; the worker needs 3.9" in report.why


def test_what_a_login_shell_prints_first_is_passed_over(
    host: MakeHost, wrapped: Callable[[str], str], c: MakeC, rows: Workload
) -> None:
    workers = host(wrapped('echo Welcome to gpu; echo "{}}"; exec $PYTHON "$@"'))
    assert judged(workers, c(), rows).verdict is Verdict.PASS


def test_no_ssh_at_all(host: MakeHost, c: MakeC, rows: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    report = judged(host(), c(), rows)
    assert (report.stages[1].reason, "openssh-client" in report.why) == ("no_ssh", True)


@pytest.mark.parametrize(
    "address", ["-oProxyCommand=reboot", "", "gpu; reboot", "a b", "$(reboot)", "gpu\nx"]
)
def test_an_address_is_no_option_and_no_command(address: str) -> None:
    with pytest.raises(KlineageError):
        Host(address)
