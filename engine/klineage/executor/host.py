"""Workers of another machine, over ssh. Nothing is installed there: the worker's source is sent each time.

``ssh HOST python3 -c BOOT`` reads exactly the source from its input and runs it; after that, the same lines go to
and fro as with a worker of this machine. Kernels and workloads travel inside the messages.
"""

from __future__ import annotations

import os
import re
import shlex
import threading
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.executor.base import Executor
from klineage.executor.bundle import worker_source
from klineage.executor.parent import Died, Parent
from klineage.platform import Machine, machine_from

IDLE_SECONDS = 3600
_OPTIONS = (
    "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
)  # fmt: skip
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSH_ASKPASS", "LANG", "LC_ALL", "TMPDIR")

# Runs under any Python 3; no single quote and no exclamation mark, so that every login shell passes it on whole.
_BOOT = r"""
import os, sys
if sys.version_info < (3, 9):
    print("{\"refused\": \"old_python\", \"summary\": \"%s\"}" % sys.version.split()[0])
    sys.exit(0)
data = b""
while len(data) < SIZE:
    piece = os.read(0, SIZE - len(data))
    if not piece:
        sys.exit(1)
    data += piece
sys.argv = ["klineage-worker", "--kind", "KIND", "--idle", "IDLE"]
exec(compile(data, "klineage-worker", "exec"), {"__name__": "__main__"})
"""


@dataclass(frozen=True)
class Host:
    """A machine that ``ssh address`` reaches, and the Python there that has torch and triton."""

    address: str
    python: str = "python3"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_\[][^\s'\"`$;&|<>()\\]*", self.address):
            raise KlineageError(f"{self.address!r} is no host; give one as ssh takes it, such as user@gpu")
        if not self.python or self.python.startswith("-") or "\n" in self.python:
            raise KlineageError(f"{self.python!r} is no Python; give the path of one on {self.address}")


class HostExecutor(Executor):
    """Workers of one host. A lost connection costs one gate; the next one connects again."""

    here = False

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.host, self.place = host, host.address
        self._environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._machine: Machine | None = None

    def _launch(self, kind: str, device: str) -> Parent:
        source = worker_source().encode()
        boot = _BOOT.strip().replace("SIZE", str(len(source))).replace("IDLE", str(IDLE_SECONDS))
        text = boot.replace("KIND", kind)
        chosen = f"env CUDA_VISIBLE_DEVICES={shlex.quote(device)} " if device else ""
        remote = f"exec {chosen}{shlex.quote(self.host.python)} -c '{_one_line(text)}'"
        try:
            return Parent(["ssh", *_OPTIONS, "--", self.host.address, remote], self._environment, source)
        except OSError as error:
            text = f"ssh cannot be started: {error.strerror}; install openssh-client"
            raise Died(text, "no_ssh", complete=True) from error

    def machine(self, cancel: threading.Event | None = None) -> Machine:
        if self._machine is None:
            answer = self.submit("native", {"op": "machine"}, None, 60, cancel)
            if answer["verdict"] != "pass":
                raise Died(answer["summary"], answer["reason"], complete=True)
            try:
                self._machine = machine_from(answer.get("machine"))
            except ValueError as error:
                raise Died(f"{self.place} sent {error}", complete=True) from error
        return self._machine

    def _explained(self, parent: Parent, died: Died) -> Died:
        host, words = self.host, parent.last_words()
        if died.reason == "old_python":
            text = f"{host.python} on {host.address} is Python {died}; the worker needs 3.9 or newer: name one with --host-python"
        elif died.reason != "worker":
            text = f"{host.address}: {died}"
            if died.reason == "no_numpy":
                text += "; install it there, or name a Python that has it with --host-python"
        elif parent.exit == 255:
            return Died(_unreachable(host, words), "unreachable", complete=True)
        elif parent.exit in (126, 127):
            text = f"{host.address} has no {host.python}; install Python 3.9 or newer there, or name one with --host-python"
            return Died(text, "no_python", complete=True)
        elif "No space left" in words or "Disk quota" in words:
            return Died(
                f"{host.address} has no room on its disk; make some in its /tmp", "disk", complete=True
            )
        else:
            text = f"the worker on {host.address} {died}: {_last_line(words) or 'it said nothing'}"
        return Died(text, died.reason, complete=True)

    def _failure(self, kind: str, died: Died, words: str) -> dict[str, object]:
        if not died.complete:
            said = f"the connection to {self.place} was lost in the middle: the {kind} worker {died}; the next gate connects again"
            if "closed by" in words or "Timeout, server" in words:
                said = f"{said} ({_last_line(words)})"
            died = Died(said, "connection", complete=True)
        return super()._failure(kind, died, words)


def _one_line(program: str) -> str:
    """The program as an argument that no shell takes apart."""
    escaped = program.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'exec("{escaped}")'


def _last_line(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1].strip()


def _unreachable(host: Host, words: str) -> str:
    said = _last_line(words) or "ssh said nothing"
    if "Permission denied" in said:
        return (
            f"{host.address} refused the login ({said}); a key must be enough: try ssh-copy-id {host.address}"
        )
    if "Host key verification failed" in said:
        return f"the key of {host.address} is not known or has changed; look at it once with: ssh {host.address} true"
    return f"{host.address} cannot be reached ({said}); try: ssh {host.address} true"
