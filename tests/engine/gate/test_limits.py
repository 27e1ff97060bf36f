"""The walls around a kernel, tried from inside, and what the server makes of each end."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.worker import landlock

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"),
    reason="system call filters are for Linux",
)


@linux
def test_a_confined_child_meets_its_walls(executor: LocalExecutor) -> None:
    answer = executor.submit("native", {"op": "layers"})
    assert answer["verdict"] == "pass"
    held = answer["layers"]
    assert held["files"] or landlock.version() == 0
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
        ("another's memory", "open(f'/proc/{os.getppid()}/mem', 'rb')", "PermissionError"),
        ("the clock", "time.clock_settime(time.CLOCK_REALTIME, 0)", "PermissionError"),
        ("its own limits", "resource.setrlimit(resource.RLIMIT_CPU, (9000, 9000))", "not allowed"),
        ("a smaller stack", "resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))", "exit 0"),
        ("to read its limits", "resource.getrlimit(resource.RLIMIT_CPU)", "exit 0"),
        ("to outlive its server", "assert limits._prctl(1, 0)", "AssertionError"),
    ],
)
def test_what_a_kernel_tries(name: str, code: str, end: str, tmp_path: Path) -> None:
    done = _confined(code, tmp_path)
    assert end in done, (name, done)


landlocked = pytest.mark.skipif(landlock.version() == 0, reason="needs Landlock (Linux 5.13)")


@landlocked
@pytest.mark.parametrize(
    ("name", "code", "end"),
    [
        ("the home folder", "os.listdir(os.path.expanduser('~'))", "PermissionError"),
        ("a file beside its folder", "open('../secret').read()", "PermissionError"),
        ("a file there", "open('../made', 'w')", "PermissionError"),
        ("to remove one", "os.remove('../secret')", "PermissionError"),
        ("passwords", "open('/etc/shadow').read()", "PermissionError"),
        ("its own files", "open('mine', 'w').write('x'); assert open('mine').read() == 'x'", "exit 0"),
        ("Python's files", "import xmlrpc.client, json.tool", "exit 0"),
    ],
)
def test_which_files_a_kernel_sees(name: str, code: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    done = _confined(code, tmp_path)
    assert end in done, (name, done)


def _confined(code: str, scratch: Path) -> str:
    """How a confined child ended that ran ``code``, and what it said."""
    program = f"""
import os, resource, signal, socket, threading, time
from klineage.worker import limits, process, watch

def body(channel):
    limits.apply(limits.Limits(memory=limits.GIB))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    {code}

os.environ["KLINEAGE_SCRATCH"] = {str(scratch)!r}
child = process.spawn("child", body)
said = "nothing"
for _, message in watch.watch([child], [time.monotonic() + 60], watch.Control(None), None):
    if "fault" in message:
        said = message["fault"]["summary"]
    if "exit" in message:
        print(child.death, said)
process.end([child])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
