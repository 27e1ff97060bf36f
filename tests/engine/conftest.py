"""Processes in which engine tests run Triton code."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., None]


def _child(environment: dict[str, str]) -> Iterator[Run]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("triton_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdin and process.stdout
    stdin, stdout = process.stdin, process.stdout

    def run(case: Callable[..., None], *arguments: object) -> None:
        request = {
            "path": inspect.getfile(case),
            "function": case.__name__,
            "arguments": [str(a) for a in arguments],
        }
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        assert answer, "the process of the Triton tests died"
        error = json.loads(answer)["error"]
        if error:
            pytest.fail(error, pytrace=False)

    yield run
    stdin.close()
    process.wait(timeout=120)


@pytest.fixture(scope="session")
def interpreted() -> Iterator[Run]:
    """Call it with a function and strings: they run in a child of a process with TRITON_INTERPRET=1."""
    pytest.importorskip("triton", reason="needs klineage-tui[triton]")
    yield from _child({"TRITON_INTERPRET": "1"})


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Likewise, in a process that can compile, with an empty Triton cache."""
    pytest.importorskip("triton", reason="needs klineage-tui[triton]")
    cache = str(tmp_path_factory.mktemp("triton-cache"))
    yield from _child({"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": cache})
