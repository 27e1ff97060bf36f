"""A host that is this machine: an ``ssh`` in PATH that really runs the command, with the protocol over its pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.executor import Host, HostExecutor
from klineage.kernel import Kernel
from klineage.workload import Workload, load

ROWS = Path(__file__).parent.parent / "gate"

# As sshd does: the command runs in a process group of its own, and sees the end of its input when we are gone.
SSH = f"""#!{sys.executable}
import os, subprocess, sys, threading
words = sys.argv[1:]
command = " ".join(words[words.index("--") + 2:])
remote = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
def pump(source, write, done):
    while True:
        piece = os.read(source, 65536)
        if not piece:
            break
        try:
            write(piece)
        except BrokenPipeError:
            break
    done()
def send(piece):
    remote.stdin.write(piece)
    remote.stdin.flush()
threading.Thread(target=pump, args=(0, send, remote.stdin.close), daemon=True).start()
pump(remote.stdout.fileno(), lambda piece: os.write(1, piece), lambda: None)
sys.exit(remote.wait())
"""

Ssh = Callable[[str], None]
MakeHost = Callable[..., HostExecutor]


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    """Put a program of the name ssh first in PATH."""

    def install(text: str) -> None:
        program = tmp_path / "bin" / "ssh"
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")

    install(SSH)
    return install


@pytest.fixture
def host(ssh: Ssh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeHost]:
    """Make executors of the host "me@gpu"; its temporary files are in ``tmp_path/far``."""
    far = tmp_path / "far"
    far.mkdir()
    monkeypatch.setenv("TMPDIR", str(far))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[HostExecutor] = []

    def make(python: str = sys.executable) -> HostExecutor:
        made.append(HostExecutor(Host("me@gpu", python)))
        return made[-1]

    yield make
    for workers in made:
        workers.close()


@pytest.fixture
def wrapped(tmp_path: Path) -> Callable[[str], str]:
    """A Python that runs a line of shell first; ``$PYTHON`` is the real one."""

    def make(line: str) -> str:
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\nPYTHON={sys.executable}\n{line}\n")
        program.chmod(0o755)
        return str(program)

    return make


@pytest.fixture
def rows() -> Workload:
    return load(ROWS)


@pytest.fixture
def c() -> Callable[[str], Kernel]:
    """A C kernel for ``rows``; the given statements come before its loops."""

    def make(body: str = "") -> Kernel:
        text = (
            "#include <stdint.h>\n#include <stdlib.h>\n"
            "void rows_kernel(const float *x, const float *bias, float *y,\n"
            "                 int64_t rows, int64_t columns, float alpha) {\n  " + body + "\n"
            "  for (int64_t i = 0; i < rows; i++)\n"
            "    for (int64_t j = 0; j < columns; j++)\n"
            "      y[i * columns + j] = alpha * x[i * columns + j] + bias[j];\n}\n"
        )
        return Kernel("c", "kernel.c", "rows_kernel", text.encode())

    return make
