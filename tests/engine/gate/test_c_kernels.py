"""C kernels through the whole gate, with the real compiler: what passes, and how each wrong one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.gate import (
    Effect,
    GateEvent,
    Policy,
    Report,
    StageResult,
    Trust,
    Verdict,
    report_from_json,
    report_to_json,
)
from klineage.gate.native import lacking
from klineage.gate.policy import VERSION
from klineage.gate.run import prepare
from klineage.kernel import Kernel
from klineage.workload import Workload, parse

from .conftest import QUICK

Gate = Callable[..., Report]
MakeC = Callable[..., Kernel]
PATIENT = replace(QUICK, most_profile_seconds=60.0)  # until the effect stands, however busy the machine
IMPATIENT = replace(QUICK, run_seconds=2.0, workload_seconds=2.0)  # for what never ends


def stage(report: Report, name: str) -> StageResult:
    found = report.stage(name)
    assert found is not None
    return found


def test_a_good_kernel_passes_every_stage(judge: Gate, c: MakeC) -> None:
    events: list[GateEvent] = []
    report = judge(c(), events=events)
    assert report.verdict is Verdict.PASS
    assert [s.verdict for s in report.stages] == [Verdict.PASS] * 4
    assert report.trust is Trust.MEASURED_CPU
    assert len(set(report.seeds)) == 5
    assert "no_processes" in report.layers
    assert stage(report, "correctness").numbers["worst"] < 1e-5
    details = [e.detail for e in events if e.stage == "correctness" and e.state == "running"]
    assert "seed 2 of 5, ragged" in details
    assert [e.stage for e in events if e.state == "done"] == ["static", "compile", "correctness", "profile"]
    measured = stage(report, "profile").measurement
    assert measured is not None
    assert measured.candidate_ms > 0
    assert measured.ratio is None  # nothing to compare with
    assert report.effect is None


def test_a_report_survives_json(judge: Gate, c: MakeC) -> None:
    report = judge(c(), baseline=c("/* the same */"))
    assert report_from_json(report_to_json(report)) == report
    failed = judge(c("y[0] = 0; return;"))
    assert report_from_json(report_to_json(failed)) == failed


def test_more_work_is_slower_and_the_other_way_round_faster(judge: Gate, c: MakeC) -> None:
    again = c(
        "volatile float *p = y; for (int r = 0; r < 8; r++)"
        " for (int64_t j = 0; j < rows * columns; j++) p[j] = r;"
    )
    slower = stage(judge(again, baseline=c(), policy=PATIENT), "profile")
    assert slower.effect is Effect.SLOWER, slower
    assert slower.measurement is not None
    assert slower.measurement.ratio is not None
    assert slower.measurement.low is not None
    assert 1.5 < slower.measurement.low <= slower.measurement.ratio
    assert stage(judge(c(), baseline=again, policy=PATIENT), "profile").effect is Effect.FASTER


def test_a_kernel_is_not_faster_than_itself(judge: Gate, c: MakeC) -> None:
    result = stage(judge(c(), baseline=c("/* the same */")), "profile")
    assert result.effect is Effect.NEUTRAL or result.verdict is Verdict.NOISY, result


WRONG = {
    "mismatch": ("if (columns % 2) { bias = x; }", "mismatch", "ragged"),
    "unwritten tail": ("columns = columns / 4 * 4 == columns ? columns : 0;", "unwritten", "ragged"),
    "past the end": ("y[rows * columns + 3] = 1;", "out_of_bounds", "ragged"),
    "before the start": ("y[-2] = 1;", "out_of_bounds", "ragged"),
    "changed input": ("((float *)x)[7] = 0;", "input_changed", "ragged"),
    "not a number": ("if (rows > 6) { alpha = 0.0f / (rows - rows); }", "mismatch", "small"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_fail_with_the_smallest_case(name: str, judge: Gate, c: MakeC) -> None:
    body, reason, size = WRONG[name]
    report = judge(c(body))
    result = stage(report, "correctness")
    assert (result.verdict, result.reason) == (Verdict.FAIL, reason), result
    assert result.case is not None
    expected_size = {"ragged": ("ragged", "hidden")}.get(size, (size,))
    assert result.case.size in expected_size
    assert result.case.seed in report.seeds
    assert size in result.summary or "hidden" in result.summary
    assert stage(report, "profile").verdict is Verdict.SKIPPED
    assert report.why == result.summary


def test_a_failing_case_says_where_and_what(judge: Gate, c: MakeC) -> None:
    kernel = c("if (columns == 13) { alpha = 1.25f; }")
    case = stage(judge(kernel), "correctness").case
    assert case is not None
    assert (case.size, case.dims, case.output, case.index) == (
        "ragged",
        {"rows": 5, "columns": 13},
        "y",
        (0, 0),
    )
    assert isinstance(case.got, float)
    assert isinstance(case.expected, float)
    assert case.got != pytest.approx(case.expected, rel=1e-5)


def test_the_hidden_size_stays_hidden(judge: Gate, c: MakeC) -> None:
    report = judge(c("if (columns == 37) { alpha = 0; }"))
    case = stage(report, "correctness").case
    assert case is not None
    assert (case.size, case.dims) == ("hidden", {})
    assert "37" not in stage(report, "correctness").summary.split("(size")[1]


BAD = {
    "segfault": ("*(volatile int *)8 = 1;", Verdict.FAIL, "crashed", "SIGSEGV"),
    "abort": ("abort();", Verdict.FAIL, "crashed", "SIGABRT"),
    "spin": ("volatile int go = 1; while (go) { }", Verdict.TIMEOUT, "timeout", "longer than 2 s"),
    "gigabyte": (
        'for (long i = 0; i < 1L << 26; i++) puts("0123456789abcdef");',
        Verdict.FAIL,
        "output_flood",
        "1 MB",
    ),
    "allocation": ("volatile float *p = malloc(64L << 30); p[0] = 1;", Verdict.FAIL, "memory", "memory"),
    "early exit": ("exit(0);", Verdict.FAIL, "no_output", "exit 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_kernels_are_contained(name: str, judge: Gate, c: MakeC) -> None:
    body, verdict, reason, said = BAD[name]
    policy = IMPATIENT if verdict is Verdict.TIMEOUT else QUICK
    result = stage(judge(c(body), policy=policy), "correctness")
    assert (result.verdict, result.reason) == (verdict, reason), result
    assert said in result.summary
    assert "(" not in result.reason


def test_the_next_gate_is_none_the_wiser(judge: Gate, c: MakeC) -> None:
    judge(c("*(volatile int *)8 = 1;"))
    assert judge(c()).verdict is Verdict.PASS


GLUED = (
    '#define GLUE(a, b) __attribute__((a##b))\nGLUE(con, structor) static void early(void) { puts("now"); }'
)

COMPILE = {
    "error": (dict(body="int z = ;"), "compile", "expected expression"),
    "fork": (dict(body="fork();", before="int fork(void);"), "symbols", "fork()"),
    "system": (dict(body='system("true");'), "symbols", "system()"),
    "fast math": (dict(flags=("-ffast-math",)), "flags", "-ffast-math"),
    "odd flag": (dict(flags=("-include/etc/passwd",)), "flags", "-include/etc/passwd"),
    "hidden constructor": (
        dict(before=GLUED),
        "source",
        "constructor",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPILE)
def test_what_the_compile_stage_refuses(name: str, judge: Gate, c: MakeC) -> None:
    arguments, reason, said = COMPILE[name]
    report = judge(c(**arguments))
    result = stage(report, "compile")
    assert (result.verdict, result.reason) == (Verdict.FAIL, reason), result
    assert said in result.summary
    assert report.trust is Trust.STATIC


def test_a_compile_error_keeps_its_log(judge: Gate, c: MakeC) -> None:
    result = stage(judge(c("int z = ;")), "compile")
    assert "kernel.c:" in result.log


def test_openmp_runs_when_declared(judge: Gate, c: MakeC) -> None:
    kernel = c(
        "#pragma omp parallel for\n  for (int64_t i = 0; i < rows; i++) y[i] = 0;",
        before="// klineage: flags -fopenmp",
    )
    report = judge(kernel)
    assert report.verdict is Verdict.PASS, report.why
    measured = stage(report, "profile").measurement
    assert measured is not None
    assert measured.timer == "clock_monotonic"


def test_a_pragma_that_does_nothing_is_named(rows: Workload) -> None:
    """Without its flag the compiler passes over it in silence, and a walk would find threads that cost nothing."""
    text = b"void f(float *y)\n{\n#pragma omp parallel for\n    for (int i = 0; i < 4; ++i)\n        y[i] = 0;\n}\n"
    idle = Kernel("c", "kernel.c", "f", text)
    said = prepare(idle, rows).static.summary
    assert (
        said
        == "parses; the entry is f; line 3: #pragma omp does nothing, for no line says // klineage: flags -fopenmp"
    )
    for flag in (b"-fopenmp", b"-fopenmp-simd"):
        declared = Kernel("c", "kernel.c", "f", b"// klineage: flags " + flag + b"\n" + text)
        assert "does nothing" not in prepare(declared, rows).static.summary


def test_a_wrong_signature_names_the_parameter(judge: Gate, rows: Workload) -> None:
    source = b"#include <stdint.h>\nvoid f(const double *x, float *y, int64_t rows) { y[0] = x[0] * rows; }\n"
    result = stage(judge(Kernel("c", "kernel.c", "f", source)), "compile")
    assert (result.verdict, result.reason) == (Verdict.FAIL, "signature")
    assert "parameter x is double *" in result.summary
    assert "float *" in result.summary


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "empty"),
        (b"\x00\x01", "binary"),
        (b"void g(float *y) {}", "no_entry"),
        (b'#include "/etc/passwd"\nvoid f(float *y) {}', "include"),
        (b"#include <unistd.h>\nvoid f(float *y) {}", "include"),
        (b'void f(float *y) { asm("nop"); }', "inline_asm"),
        (b"void h(void) {}\nvoid f(float *y) {}", "exports"),
        (b"static void f(float *y) {}", "no_entry"),
        (b"int f(float *y) { return 0; }", "signature"),
        (b"void f(const float *y) {}", "signature"),
        (b"void f(float *x) {}", "signature"),
        (b"__attribute__((constructor)) static void g(void) {}\nvoid f(float *y) {}", "attribute"),
        (b'#pragma GCC optimize("fast-math")\nvoid f(float *y) {}', "pragma"),
    ],
)
def test_what_the_text_alone_gives_away(source: bytes, reason: str, judge: Gate) -> None:
    result = stage(judge(Kernel("c", "kernel.c", "f", source)), "static")
    assert (result.verdict, result.reason) == (Verdict.FAIL, reason), result
    assert result.summary.startswith("kernel.c:")


WORKLOADS = {
    "raises": ('return {"y": alpha * x + bias}', 'raise KeyError("gone")', "reference() raised KeyError"),
    "wrong shape": ('return {"y": alpha * x + bias}', 'return {"y": x[0]}', "reference() gives y the shape"),
    "no output": ('return {"y": alpha * x + bias}', 'return {"z": x}', "reference() returned no y"),
    "not a dict": ('return {"y": alpha * x + bias}', "return x", "reference() returned ndarray"),
    "inputs differ": (
        '"bias": rng.uniform(columns)',
        '"bias": rng.uniform(rows)',
        "inputs() gives bias the shape",
    ),
    "unknown type": (
        '"y": (element, (rows, columns))',
        '"y": ("fp3", (rows, columns))',
        "tensors() gives y the unknown type",
    ),
    "loops": ('return {"y": alpha * x + bias}', "while True: pass", "did not finish within 2 s"),
    "missing at run time": ("def cost(", "reference = None\n\n\ndef cost(", "reference() is missing"),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_broken_workload_is_no_fault_of_the_kernel(
    name: str, judge: Gate, c: MakeC, changed: Callable[[str, str], Workload]
) -> None:
    old, new, said = WORKLOADS[name]
    report = judge(c(), changed(old, new), policy=IMPATIENT if name == "loops" else QUICK)
    assert report.verdict is Verdict.ERROR, report
    assert "mine/workload.py" in report.why
    assert said in report.why


def test_a_policy_has_a_name_of_its_own() -> None:
    assert Policy().name == VERSION
    assert Policy(run_seconds=5).name.startswith(f"{VERSION}+")
    assert Policy(run_seconds=5).name != Policy(run_seconds=6).name


IN_PLACE_WORKLOAD = b'''"""total[n] += x"""
ELEMENT = {"c": "fp32"}
SIZES = {"small": {"n": 64}, "ragged": {"n": 13}}
OUTPUTS = ("total",)
MUTATES = ("total",)


def tensors(element, n):
    return {"x": (element, (n,)), "total": (element, (n,))}


def inputs(rng, n):
    return {"x": rng.normal(n), "total": rng.normal(n)}


def reference(x, total):
    return {"total": x + total}


def cost(itemsize, n):
    return {"bytes": 3 * itemsize * n, "operations": n}
'''


def add_in_place(body: str) -> Kernel:
    source = f"#include <stdint.h>\nvoid add(const float *x, float *total, int64_t n) {{ {body} }}\n"
    return Kernel("c", "kernel.c", "add", source.encode())


@pytest.mark.triton  # a reference without xp is computed with torch
def test_an_output_may_be_an_input_that_is_changed(judge: Gate) -> None:
    pytest.importorskip("torch")
    workload = parse(IN_PLACE_WORKLOAD, name="add", path=Path("add/workload.py"))
    good = add_in_place("for (int64_t i = 0; i < n; i++) total[i] += x[i];")
    report = judge(good, workload)
    assert report.verdict is Verdict.PASS, report.why
    lazy = judge(add_in_place("total[0] += x[0];"), workload)
    assert stage(lazy, "correctness").reason == "mismatch"


@pytest.mark.parametrize(
    ("flags", "here", "lacks"),
    [
        (("-O2", "-march=x86-64-v4"), "cpu-x86-64-v3", "-march=x86-64-v4"),
        (("-march=x86-64-v4",), "cpu-x86-64-v4", ""),
        (("-march=x86-64-v2",), "cpu-x86-64-v3", ""),
        (("-march=x86-64-v2",), "cpu-aarch64", "-march=x86-64-v2"),
        (("-march=native", "-mavx512f"), "cpu-x86-64-v3", ""),
    ],
)
def test_a_declared_level_is_refused_where_the_machine_lacks_it(
    flags: tuple[str, ...], here: str, lacks: str
) -> None:
    assert lacking(flags, here) == lacks
