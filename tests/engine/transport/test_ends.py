"""How a kernel's process can end or misbehave beyond what its text can: each is a verdict, and the next gate is unharmed."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import POLICY
from klineage.gate.request import case, workload_job
from klineage.workload import Workload

SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *sleeper(void *p) { sleep(100); return p; }
void rows_kernel(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha) {
  %s
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
"""
PARAMETERS = [
    ["x", "float *", True], ["bias", "float *", True], ["y", "float *", False],
    ["rows", "int64_t", False], ["columns", "int64_t", False], ["alpha", "float", False],
]  # fmt: skip


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalExecutor]:
    made = LocalExecutor()
    yield made
    made.close()


def judged(workers: LocalExecutor, rows: Workload, body: str, folder: Path) -> dict[str, Any]:
    """Correctness alone of a library that no compile stage has looked at."""
    source = SOURCE % body
    (folder / "kernel.c").write_text(source)
    library = folder / "kernel.so"
    build = ["gcc", "-O1", "-w", "-shared", "-fPIC", "-pthread", "-o", str(library), str(folder / "kernel.c")]
    subprocess.run(build, check=True)
    kernel = {
        "surface": "c", "filename": "kernel.c", "entry": "rows_kernel", "library": str(library), "flags": [],
        "config": [], "parameters": PARAMETERS, "source": base64.b64encode(source.encode()).decode(),
    }  # fmt: skip
    job = {
        "op": "correctness",
        "kernel": kernel,
        "cases": [case("small", rows.sizes["small"], seed, seed, "normal") for seed in range(1, 5)],
        "limits": POLICY.limits,
        "workload": workload_job(rows, "c"),
    }
    return workers.submit("native", job)


SLEEP = "struct timespec t = {0, 50000000}; nanosleep(&t, 0);"


@pytest.mark.parametrize(
    ("name", "body", "verdict", "reason"),
    [
        ("a good one", "", "pass", "ok"),
        ("threads that stay", "pthread_t t; pthread_create(&t, 0, sleeper, 0);", "fail", "threads_left"),
        ("exit 0", "exit(0);", "fail", "no_output"),
        ("_exit 0 after the output", "for (int64_t i = 0; i < rows * columns; i++) y[i] = 0; _exit(0);", "fail", "no_output"),
        ("its own end", "raise(SIGTERM);", "fail", "crashed"),
        ("a fork", "fork();", "fail", "forbidden_call"),
        ("a program", 'execl("/bin/true", "true", (char *)0);', "fail", "forbidden_call"),
        ("a shell", 'system("true");', "fail", "forbidden_call"),
        ("a huge file", 'int f = open("f", O_CREAT | O_WRONLY, 0600); ftruncate(f, 1L << 30);', "fail", "disk"),
        ("stdout", 'for (int i = 0; i < 200000; i++) puts("a flood"); fflush(stdout);', "fail", "output_flood"),
        ("memory", "volatile char *p = malloc(64UL << 30); p[5] = 1;", "fail", "crashed"),
        ("closed descriptors", "for (int f = 0; f < 256; f++) close(f);", "fail", "no_output"),
    ],
)  # fmt: skip
def test_each_end_is_a_verdict_of_its_own(
    name: str, body: str, verdict: str, reason: str, workers: LocalExecutor, rows: Workload, tmp_path: Path
) -> None:
    answer = judged(workers, rows, body, tmp_path)
    assert (answer["verdict"], answer["reason"]) == (verdict, reason), answer
    assert judged(workers, rows, "", tmp_path)["verdict"] == "pass"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a full folder", 'char z[1 << 16] = {0}; for (int n = 0; n < 12; n++) { char p[9]; sprintf(p, "f%d", n); '
                          'int f = open(p, O_CREAT | O_WRONLY, 0600); for (int i = 0; i < 900; i++) write(f, z, sizeof z); }'),
        ("the clock", "struct timespec t = {0, 0}; if (!clock_settime(CLOCK_REALTIME, &t)) abort();"),
        ("a kill", "if (!kill(getppid(), SIGKILL)) abort();"),
        ("a longer life", "if (!prctl(PR_SET_PDEATHSIG, 0)) abort();"),
        ("the judge's memory", 'for (int p = 1; p < 70000; p++) { char n[32]; sprintf(n, "/proc/%d/mem", p); '
                               "if (p != getpid() && open(n, O_RDONLY) >= 0) abort(); }"),
        ("the arena", "for (int f = 3; f < 256; f++) ftruncate(f, 0);"),
        ("others' files", 'if (open("/etc/shadow", O_RDONLY) >= 0 || open("../secret", O_CREAT | O_WRONLY, 0600) >= 0) abort();'),
        ("threads that end", "pthread_t t; pthread_create(&t, 0, (void *(*)(void *))abs, 0); pthread_join(t, 0);"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(
    name: str, body: str, workers: LocalExecutor, rows: Workload, tmp_path: Path
) -> None:
    answer = judged(workers, rows, body, tmp_path)
    if not all(answer["layers"].get(layer) for layer in ("files", "small_folder", "no_signals_or_sockets")):
        pytest.skip("this system lacks a layer")
    assert answer["verdict"] == "pass", answer


def eventually(condition: Callable[[], bool]) -> bool:
    patience = time.monotonic() + 60
    while not condition() and time.monotonic() < patience:
        time.sleep(0.01)
    return condition()


def test_a_worker_that_still_starts_ends_with_its_executor(tmp_path: Path) -> None:
    """Whether it is in the middle of its imports or has just done them: it leaves no process and no folder."""
    executor = LocalExecutor({**os.environ, "TMPDIR": str(tmp_path)})
    starting = threading.Thread(target=executor.versions, args=("compiler",))
    starting.start()
    assert eventually(lambda: any(tmp_path.glob("klineage-server-*")))
    executor.close()
    starting.join(120)
    assert not starting.is_alive()
    assert executor.pids() == ()
    assert eventually(lambda: not any(tmp_path.iterdir()))
