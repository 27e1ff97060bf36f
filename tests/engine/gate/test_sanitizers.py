"""What only sanitizers see in a C kernel, and what they leave alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Report, StageResult, Verdict, evidence, gate
from klineage.gate.policy import POLICY
from klineage.gate.request import kernel_job
from klineage.kernel import Kernel
from klineage.worker import buffers
from klineage.worker.c_harness import program
from klineage.workload import Workload, load

MakeC = Callable[..., Kernel]
Sanitize = Callable[..., dict[str, object]]


@pytest.fixture(scope="module")
def sanitize(executor: LocalExecutor, rows: Workload) -> Sanitize:
    def run(kernel: Kernel, workload: Workload = rows, size: str = "ragged") -> dict[str, object]:
        job = evidence._job("sanitize_c", kernel_job(kernel), workload, size, POLICY)
        answer: dict[str, object] = executor.submit("native", job)
        if answer["reason"] == "no_sanitizer":
            pytest.skip(str(answer["summary"]))
        return answer

    return run


def test_a_read_beyond_an_input_is_found_with_its_line(sanitize: Sanitize, c: MakeC) -> None:
    answer = sanitize(c("volatile float past = x[rows * columns];\n  (void)past;"))
    assert (answer["verdict"], answer["reason"]) == ("fail", "sanitizer")
    assert re.match(
        r"kernel\.c:7: heap-buffer-overflow, read of 4 bytes \(size ragged\)", str(answer["summary"])
    )
    assert "AddressSanitizer" in str(answer["log"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("volatile int32_t big = 0x7fffffff; big = big + (int32_t)columns;", "signed integer overflow"),
        ("volatile int by = 40; volatile int32_t one = 1; one = one << by;", "shift exponent 40"),
        (
            "float local[4]; volatile int64_t i = 4; ((volatile float *)local)[i] = 0;",
            "insufficient space for an object",
        ),
        ("float *p = malloc(16); free(p); volatile float v = p[0]; (void)v;", "heap-use-after-free"),
    ],
)
def test_undefined_behaviour_is_named(sanitize: Sanitize, c: MakeC, body: str, words: str) -> None:
    answer = sanitize(c(body))
    assert answer["reason"] == "sanitizer", answer
    assert words in str(answer["summary"])
    assert str(answer["summary"]).startswith("kernel.c:")


@pytest.mark.parametrize("expert", ["gemm", "add_rmsnorm"])
def test_the_experts_are_clean(sanitize: Sanitize, expert: str) -> None:
    workload = load(expert)
    folder = Path(str(workload.path)).parent / "c"
    source = (folder / "kernel.c").read_bytes()
    kernel = Kernel("c", "kernel.c", expert, source)
    for size in ("small", "ragged"):
        assert sanitize(kernel, workload, size)["verdict"] == "pass"


def test_a_gate_fails_on_what_sanitizers_find(executor: LocalExecutor, rows: Workload, c: MakeC) -> None:
    """Within the guard zone, so that only a sanitizer can see it."""
    reading = c("volatile float past = bias[columns];\n  (void)past;")
    report: Report = gate(GateRequest(reading, rows, "cpu-native"), fresh=True, executor=executor)
    stage = report.stage("correctness")
    assert isinstance(stage, StageResult)
    if "not sanitized" in stage.summary:
        pytest.skip(stage.summary)
    assert (stage.verdict, stage.reason) == (Verdict.FAIL, "sanitizer")
    assert stage.summary.startswith("kernel.c:7: ")


def test_the_program_calls_the_entry_with_every_argument() -> None:
    slots, _ = buffers.layout({"x": ("fp32", (3,)), "y": ("fp32", (3,))})
    parameters = [
        ["y", "float *", False],
        ["n", "int64_t", False],
        ["alpha", "float", False],
        ["x", "float *", True],
    ]
    text = program(parameters, "f", slots, {"n": 3, "alpha": 0.1}, beyond=64)
    assert "void f(void *, int64_t, float, void *);" in text
    assert "f(b1, 3LL, 0x1.999999999999ap-4, b0);" in text
    assert "take(file, 12, 64, 0)" in text


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_callgrind_counts_the_entry_alone_and_exactly(
    executor: LocalExecutor, rows: Workload, c: MakeC
) -> None:
    def counted(body: str) -> int:
        answer = executor.submit("native", evidence.count_job(kernel_job(c(body)), rows, "small", POLICY))
        assert answer["verdict"] == "pass", answer
        return int(answer["counts"]["instructions"])

    plain = counted("")
    assert counted("/* the same */") == plain
    more = counted("for (volatile int i = 0; i < 1000; i++);")
    assert 2000 < more - plain < 20_000
