"""The walls around a kernel, tried from inside, and what the server makes of each end."""

from __future__ import annotations

import platform
import sys

import pytest
from klineage.executor import LocalExecutor

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"),
    reason="system call filters are for Linux",
)


@linux
def test_a_confined_child_meets_its_walls(executor: LocalExecutor) -> None:
    answer = executor.submit("native", {"op": "layers"})
    assert answer["verdict"] == "pass"
    held = answer["layers"]
    for name in ("cpu_time", "file_size", "open_files", "no_core_dump", "parent_death", "memory"):
        assert held[name], name
    assert held["no_processes"] == held["no_new_privileges"] == held["no_signals_or_sockets"]


def test_an_unknown_request_is_an_error_not_an_end(executor: LocalExecutor) -> None:
    answer = executor.submit("native", {"op": "dance"})
    assert (answer["verdict"], answer["reason"]) == ("error", "protocol")
    assert executor.submit("native", {"op": "layers"})["verdict"] == "pass"


@linux
@pytest.mark.parametrize(
    ("name", "code", "end"),
    [
        ("fork", "os.fork()", "SIGSYS"),
        ("exec", "os.execv('/bin/true', ['true'])", "SIGSYS"),
        ("a program", "os.posix_spawn('/bin/true', ['true'], {})", "SIGSYS"),
        ("a thread", "t = threading.Thread(target=lambda: None); t.start(); t.join()", "exit 0"),
        ("kill", "os.kill(os.getppid(), 0)", "PermissionError"),
        ("a socket", "socket.socket()", "PermissionError"),
        ("its own group", "os.setsid()", "PermissionError"),
        ("a large file", "open('big', 'wb').write(bytes(65 << 20))", "OSError"),
    ],
)
def test_what_a_kernel_tries(name: str, code: str, end: str, tmp_path: object) -> None:
    import subprocess

    program = f"""
import os, signal, socket, threading, time
from klineage.worker import limits, process, watch

def body(channel):
    limits.apply(limits.Limits(memory=limits.GIB))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    {code}

os.chdir({str(tmp_path)!r})
child = process.spawn("child", body)
said = "nothing"
for _, message in watch.watch([child], [time.monotonic() + 10], watch.Control(None), None):
    if "fault" in message:
        said = message["fault"]["summary"]
    if "exit" in message:
        print(child.death, said)
process.end([child])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert end in done.stdout, (name, done.stdout)
