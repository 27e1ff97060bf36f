"""A C kernel as a program of its own: for sanitizers and instruction counters, which cannot be loaded into Python.

The program reads the buffers of one case from a file, calls the entry once, and ends. Every buffer is an
allocation of exactly its size, so that a sanitizer sees the first byte beyond it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from klineage.worker import buffers, c_build, limits
from klineage.worker.check import confinement
from klineage.worker.faults import KernelFault, Unsupported
from klineage.worker.jobs import Context, Result, single
from klineage.worker.problem import Problem
from klineage.worker.process import Channel
from klineage.worker.runners import problem_of, source_of

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-fno-omit-frame-pointer")
COUNTED = ("-march=x86-64-v3", "-g")  # valgrind knows no AVX-512
_KEPT = 16000  # characters of a sanitizer's report

_HEAD = """#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
/* Not through the environment: a sanitizer reads that from /proc, which a confined program may not see. */
const char *__asan_default_options(void) { return "detect_leaks=0:disable_coredump=0:exitcode=86"; }
const char *__ubsan_default_options(void) { return "halt_on_error=1:exitcode=86"; }
static void *take(FILE *file, size_t size, size_t beyond, size_t shift) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, shift + size + beyond)) exit(3);
  memory = (char *)memory + shift;
  if (fread(memory, 1, size, file) != size) exit(4);
  return memory;
}
"""


def program(
    parameters: list[list[Any]],
    entry: str,
    slots: tuple[buffers.Slot, ...],
    values: dict[str, Any],
    beyond: int,
) -> str:
    """The C source of ``main``. ``values``: dimensions and scalars; ``beyond``: bytes a kernel may read past an end."""
    names = {slot.name: number for number, slot in enumerate(slots)}
    types = ["void *" if name in names else str(type_) for name, type_, _ in parameters]
    given = [f"b{names[name]}" if name in names else _literal(values[name]) for name, _, _ in parameters]
    takes = "".join(
        f"  void *b{names[s.name]} = take(file, {s.size}, {beyond}, {s.offset % buffers.PAGE});\n"
        for s in slots
    )
    return (
        f"{_HEAD}void {entry}({', '.join(types)});\n"
        'int main(void) {\n  FILE *file = fopen("buffers", "rb");\n  if (!file) return 2;\n'
        f"{takes}  fclose(file);\n  {entry}({', '.join(given)});\n  return 0;\n}}\n"
    )


def _literal(value: float) -> str:
    return f"{value}LL" if isinstance(value, int) else float(value).hex()


def _prepare(request: dict[str, Any], problem: Problem) -> str:
    """Write the kernel, ``main.c`` and the buffers into the current folder. Returns the kernel's file name."""
    kernel, dims = request["kernel"], request["dims"]
    slots, total = problem.layout(dims)
    region = np.zeros(total, np.uint8)
    buffers.fill(region, slots, problem.inputs(request["seed"], dims))
    name = Path(kernel["filename"]).name
    Path(name).write_bytes(source_of(kernel))
    text = program(
        kernel["parameters"], kernel["entry"], slots, {**problem.scalars, **dims}, problem.oob_read
    )
    Path("main.c").write_text(text, encoding="utf-8")
    with Path("buffers").open("wb") as file:
        for slot in slots:
            file.write(region[slot.offset : slot.end].tobytes())
    return name


def _compile(compiler: str, kernel: dict[str, Any], name: str, flags: tuple[str, ...]) -> str:
    """Build the program. Returns what the compiler said when it could not, else nothing."""
    declared = [
        flag for flag in kernel["flags"] if not (flag.startswith("-march") and "-march=x86-64-v3" in flags)
    ]
    command = [compiler, *c_build.DEFAULT_FLAGS, *declared, *flags, name, "main.c", "-lm", "-o", "program"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stderr[:4000] if done.returncode else ""


def _confine(request: dict[str, Any]) -> dict[str, bool]:
    """As a compiler; a sanitizer maps terabytes that it never touches, so memory has no ceiling here."""
    wanted = confinement(request, "compiler")
    return limits.apply(replace(wanted, memory=None), "harness")


def sanitize_c(request: dict[str, Any], context: Context) -> Result:
    """Run the kernel once under AddressSanitizer and UndefinedBehaviorSanitizer.

    The result passes, fails with "sanitizer", or is unsupported where the compiler has no sanitizers.
    """
    c_build.compiler()

    def body(channel: Channel) -> None:
        problem = problem_of(request)
        held = _confine(request)
        name = _prepare(request, problem)
        # Without optimization it builds in half the time; intrinsics that need constants ask for some.
        complaint = _compile(c_build.compiler()[0], request["kernel"], name, (*SANITIZERS, "-O0"))
        if complaint:
            complaint = _compile(c_build.compiler()[0], request["kernel"], name, (*SANITIZERS, "-O1"))
        if complaint:
            raise Unsupported("no_sanitizer", "the compiler cannot build it with sanitizers", log=complaint)
        done = _run(["./program"], request["limits"]["run_seconds"])
        if done.returncode:
            raise _finding(done.returncode, done.stderr, name, request["size"])
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "layers": held})

    return single(context, body, request["limits"]["total_seconds"], "under sanitizers")


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unsupported(
            "slow", f"it takes longer than {seconds:g} s under {Path(command[0]).name}"
        ) from None


_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (\S+)")
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+)", re.M)
_RUNTIME = re.compile(r"^(\S+?):(\d+)(?::\d+)?: runtime error: (.*)$", re.M)


def _finding(status: int, report: str, name: str, size: str) -> KernelFault:
    """A sanitizer's report as a fault: what, where in the kernel's source, and the report itself."""
    runtime, address = _RUNTIME.search(report), _ADDRESS.search(report)
    if runtime and (address is None or runtime.start() < address.start()):
        what, line = runtime[3].strip(), int(runtime[2])
        where = Path(runtime[1]).name
    elif address:
        access = _ACCESS.search(report)
        what = address[1] + (f", {access[1].lower()} of {access[2]} bytes" if access else "")
        frame = re.search(rf"{re.escape(name)}:(\d+)", report)
        where, line = name, int(frame[1]) if frame else 0
    else:
        how = f"signal {-status}" if status < 0 else f"exit {status}"
        return Unsupported("no_sanitizer", f"sanitizers do not run here ({how})", log=report[:_KEPT])
    place = f"{where}:{line}: " if line else f"{where}: "
    return KernelFault("sanitizer", f"{place}{what} (size {size})", log=report[:_KEPT], line=line)


def count_c(request: dict[str, Any], context: Context) -> Result:
    """Count the instructions of one call under callgrind, built for x86-64-v3."""
    c_build.compiler()

    def body(channel: Channel) -> None:
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            raise Unsupported("no_valgrind", "valgrind is not installed: apt install valgrind")
        problem = problem_of(request)
        held = _confine(request)
        name = _prepare(request, problem)
        complaint = _compile(c_build.compiler()[0], request["kernel"], name, COUNTED)
        if complaint:
            raise Unsupported("no_counters", "the compiler cannot build it for x86-64-v3", log=complaint)
        entry = request["kernel"]["entry"]
        command = [valgrind, "--tool=callgrind", f"--toggle-collect={entry}", "--callgrind-out-file=counted"]
        done = _run([*command, "./program"], request["limits"]["run_seconds"])
        counted = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or counted is None or int(counted[1]) == 0:
            raise Unsupported("no_counters", "callgrind could not run it", log=done.stderr[:_KEPT])
        channel.send(
            result={
                "verdict": "pass", "reason": "ok", "summary": "", "layers": held,
                "counts": {"instructions": int(counted[1])},
            }
        )  # fmt: skip

    return single(context, body, request["limits"]["total_seconds"], "under callgrind")
