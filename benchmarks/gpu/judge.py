"""The judge on a real GPU: how long a gate takes, what it refuses, and every expert at the strictest phase.

    PYTHONPATH=.:engine python benchmarks/gpu/judge.py --out DIR

Prints a table last, and writes it, the reports and a timeline of the first gate to DIR. One part that breaks
does not stop the others. Cold is a fresh process with empty caches; warm is the next gate in it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from klineage.executor import LocalExecutor
from klineage.gate import GateEvent, GateRequest, Report, gate, report_to_json
from klineage.kernel import Kernel
from klineage.platform import detect
from klineage.resources import shipped
from klineage.surface.dispatch import autotune_configs
from klineage.walk.reading import read_kernel
from klineage.workload import Workload, load, parse

SECONDS = 80.0  # no further part begins after this
PAUSE = 3.0
Row = tuple[str, str, str]  # what, how it went, detail

COPY = b'''"""y = x"""
ELEMENT = {"triton": "fp32"}
SIZES = {"small": {"n": 4096}, "ragged": {"n": 4001}}
OUTPUTS = ("y",)


def tensors(element, n):
    return {"x": (element, (n,)), "y": (element, (n,))}


def inputs(rng, n):
    return {"x": rng.normal(n)}


def reference(xp, x):
    return {"y": x + 0}


def cost(itemsize, n):
    return {"bytes": 2 * itemsize * n, "operations": n}
'''

COPY_KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    BODY


def copy(x, n):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)
    return RESULT
"""
GOOD = "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)"

#: name -> (body of the kernel, what the entry returns, reason of the correctness stage)
SMALL = {
    "a copy": (GOOD, "out", "ok"),
    "a kernel for show, the input returned": (GOOD, "x", "host_output"),
    "unwritten": (GOOD.replace("mask=at < n)", "mask=at < n - 1)", 2), "out", "unwritten"),
    "past the end": ("tl.store(x + n + at, 1.0, mask=at < 4); " + GOOD, "out", "out_of_bounds"),
    "another type": (GOOD, "out.to(torch.float16)", "*"),
    # Outputs are poisoned, not zero: what adds onto its output must clear it first, or the workload MUTATES it.
    "an atomic sum onto an output not cleared": (
        "tl.atomic_add(out + at, tl.load(x + at, mask=at < n), mask=at < n)", "out", "mismatch"),
    "wrong on large inputs": (
        "v = tl.load(x + at, mask=at < n, other=0.0); tl.store(out + at, tl.where(v > 100, 100, v), mask=at < n)",
        "out", "mismatch"),
    "remembers its last answer": (
        "v = tl.load(x + at, mask=at < n, other=0.0); old = tl.load(out + at, mask=at < n, other=0.0);"
        " tl.store(out + at, tl.where(old == old, old, v), mask=at < n)", "out", "*"),
}  # fmt: skip


def expert(path: Path, workload: Workload) -> Kernel:
    kernel = read_kernel(path, workload)
    configs = autotune_configs(kernel) if kernel.surface == "triton" else ()
    return replace(kernel, config=configs[0]) if configs else kernel


def gemm_request(platform: str) -> GateRequest:
    workload = load("gemm")
    return GateRequest(expert(shipped("experts") / "gemm/triton/kernel.py", workload), workload, platform)


def one(platform: str, started: float) -> None:
    """In a process of its own: the first gate, one after a pause as a person makes it, and two at once. Prints JSON."""
    request = gemm_request(platform)
    executor = LocalExecutor()
    answers: list[dict[str, object]] = []
    for number in range(4):
        if number == 1:
            time.sleep(PAUSE)
        lines: list[tuple[float, str, str]] = []
        begin = time.time() if answers else started

        def note(event: GateEvent, begin: float = begin, lines: list[tuple[float, str, str]] = lines) -> None:
            lines.append((round(time.time() - begin, 3), event.stage, event.detail or event.state))

        report = gate(request, note, fresh=True, executor=executor)
        answer = {"seconds": time.time() - begin, "why": report.why, "verdict": report.verdict.value}
        answer["stages"] = {s.stage: s.seconds for s in report.stages}
        answers.append({**answer, "timeline": lines, "evidence": report.evidence})
    executor.close()
    print(json.dumps(answers))


def clock(platform: str, out: Path) -> list[Row]:
    """Cold and warm seconds of gemm's gate. Goals: 5 and 2.

    What the first of all takes on a machine that has just started is its disk's time, and has no goal.
    """
    first = gates_of(platform)
    if isinstance(first, str):
        return [("gemm, cold and warm", "BROKEN", first)]
    answers = gates_of(platform)
    if isinstance(answers, str):
        return [("gemm, cold and warm", "BROKEN", answers)]
    (out / "judge-timeline.json").write_text(json.dumps([*first[:1], *answers], indent=1))
    for answer in answers[:2]:
        print("\n".join(f"{at:8.3f} {stage:<12} {what}" for at, stage, what in answer["timeline"]), "\n")
    named = zip(
        ("the first ever", "cold", "warm", "warm, at once", "warm, at once"),
        [*first[:1], *answers],
        (float("inf"), 5.0, 2.0, 2.0, 2.0),
        strict=True,
    )
    rows: list[Row] = []
    for name, answer, most in named:
        good = answer["verdict"] == "pass" and answer["seconds"] <= most
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in answer["stages"].items())
        text = f"{answer['seconds']:.2f} s of {most:g} s ({stages}); {answer['why'][:80]}"
        rows.append((f"gemm, {name}", "ok" if good else "MISSED", text))
    artifact = answers[0]["evidence"].get("artifact", "no artifact noted")
    return [*rows, ("gemm, artifact", "ok" if "is what was" in artifact else "DIFFERS", artifact)]


def gates_of(platform: str) -> list[dict[str, Any]] | str:
    """What ``one`` finds in a fresh process with empty caches, or why it found nothing."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "XDG_CACHE_HOME": empty, "TRITON_CACHE_DIR": f"{empty}/triton"}
        Path(empty, "triton").mkdir()
        command = [sys.executable, __file__, "--one", platform, "--started", repr(time.time())]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    if done.returncode:
        return done.stderr[-400:]
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def correctness(report: Report) -> tuple[str, str]:
    for result in report.stages:
        if result.stage in ("static", "compile", "correctness") and result.reason != "ok":
            return result.reason, result.summary
    found = report.stage("correctness")
    return (found.reason, found.summary) if found else ("none", "")


def refusals(platform: str, out: Path, executor: LocalExecutor) -> list[Row]:
    """Small kernels, right and wrong."""
    workload = parse(COPY, name="copy", path=Path("copy/workload.py"))
    rows: list[Row] = []
    for name, (body, result, wanted) in SMALL.items():
        text = COPY_KERNEL.replace("BODY", body.replace("; ", "\n    ")).replace("RESULT", result)
        kernel = Kernel("triton", "kernel.py", "copy", text.encode())
        report = gate(GateRequest(kernel, workload, platform), fresh=True, executor=executor)
        (out / f"judge-{name.replace(' ', '-').replace(',', '')}.json").write_text(report_to_json(report))
        reason, summary = correctness(report)
        right = reason == wanted or (wanted == "*" and reason != "ok")
        rows.append((name, "ok" if right else "WRONG", f"{reason}: {summary[:110]}"))
    return rows


def foreign(out: Path) -> list[Row]:
    """The profiler, asked in this process: own kernels pass, a library's do not."""
    import torch
    import triton
    from klineage.worker import launches
    from klineage.worker.faults import KernelFault

    path = out / "copy_kernel.py"
    path.write_text(COPY_KERNEL.replace("BODY", GOOD).replace("RESULT", "out"))
    namespace: dict[str, object] = {}
    sys.path.insert(0, str(out))
    namespace["copy"] = __import__("copy_kernel").copy
    run: Callable[..., object] = namespace["copy"]  # type: ignore[assignment]
    x = torch.randn(4096, device="cuda")
    rows: list[Row] = []
    for name, library, wanted in (("own kernels", False, ""), ("a library's", True, "foreign_kernels")):
        seen, reason, text = launches.Seen(), "", ""
        begin = time.perf_counter()
        try:
            with launches.named(seen), launches.recorded(seen):
                out_ = run(x, 4096)
                out_.fill_(1.0) if not library else torch.mm(x.view(64, 64), x.view(64, 64))  # type: ignore[attr-defined]
        except KernelFault as fault:
            reason, text = fault.reason, str(fault)
        took = time.perf_counter() - begin
        right = reason == wanted and (library or "copy_kernel" in (seen.ran or []))
        detail = f"{reason or 'passes'} ({took:.2f} s, Triton {triton.__version__}); ran {seen.ran}; {text}"
        rows.append((f"profiler: {name}", "ok" if right else "WRONG", detail[:200]))
    return rows


def admitted(platform: str, out: Path, executor: LocalExecutor) -> list[Row]:
    """Every expert that runs on a GPU, with ten seeds."""
    rows: list[Row] = []
    paths = sorted(p for p in shipped("experts").glob("*/*/kernel.*") if p.suffix in (".py", ".cu"))
    for path in paths:
        workload = load(path.parent.parent)
        name = f"{workload.name}-{path.parent.name}"
        begin = time.monotonic()
        try:
            request = GateRequest(expert(path, workload), workload, platform, phase="admission")
            report = gate(request, fresh=True, executor=executor)
        except Exception as error:
            rows.append((f"admission: {name}", "BROKEN", f"{type(error).__name__}: {error}"))
            continue
        (out / f"judge-admission-{name}.json").write_text(report_to_json(report))
        good = report.verdict.value == "pass" and report.oracle == "strong"
        took = time.monotonic() - begin
        reason, summary = correctness(report)
        ran = report.evidence.get("device kernels", "")[:60]
        rows.append(
            (
                f"admission: {name}",
                "ok" if good else "FAILED",
                f"{took:.1f} s; {reason}: {summary[:90]}; ran {ran}",
            )
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.started)
        return 0
    machine, out = detect(), arguments.out
    if machine.gpu is None:
        print("no GPU here")
        return 1
    out.mkdir(parents=True, exist_ok=True)
    platform, begin = machine.gpu.platform, time.monotonic()
    executor = LocalExecutor()
    parts: list[tuple[str, Callable[[], list[Row]]]] = [
        ("clock", lambda: clock(platform, out)),
        ("profiler", lambda: foreign(out)),
        ("refusals", lambda: refusals(platform, out, executor)),
        ("admission", lambda: admitted(platform, out, executor)),
    ]
    rows: list[Row] = []
    for name, part in parts:
        if time.monotonic() - begin > SECONDS:
            rows.append((name, "SKIPPED", "out of time"))
            continue
        try:
            rows += part()
        except Exception:
            rows.append((name, "BROKEN", traceback.format_exc()[-300:].replace("\n", " ")))
    executor.close()
    head = f"{machine.gpu.name}, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {time.monotonic() - begin:.0f} s"
    table = "\n".join([head, *(f"{state:<8} {what:<40} {detail}" for what, state, detail in rows)])
    (out / "judge.txt").write_text(table + "\n")
    print(table)
    return 0 if all(state == "ok" for _, state, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
