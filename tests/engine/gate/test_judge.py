"""What a gate demands beyond one right answer: phases, distributions, second runs, a comparison that is tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Policy, Report, StageResult, Verdict, gate
from klineage.gate.correctness import _uncompiled, other_code
from klineage.gate.oracle import WorkloadFault, self_test
from klineage.kernel import Kernel
from klineage.worker.faults import KernelFault
from klineage.worker.launches import refuse_foreign
from klineage.worker.runners import _artifact
from klineage.workload import DISTRIBUTIONS, Workload, load, parse

Gate = Callable[..., Report]
MakeC = Callable[..., Kernel]
Changed = Callable[[str, str], Workload]
PLATFORM = "cpu-native"
SUM = '    return {"y": alpha * x + bias}'


def correctness(report: Report) -> StageResult:
    found = report.stage("correctness")
    assert found is not None
    return found


@pytest.fixture
def ask(executor: LocalExecutor) -> Gate:
    policy = Policy(profile_seconds=0.02, most_profile_seconds=0.1)

    def run(kernel: Kernel, workload: Workload, **more: object) -> Report:
        request = GateRequest(kernel, workload, **{"platform": PLATFORM, **more})  # type: ignore[arg-type]
        return gate(request, fresh=True, policy=policy, executor=executor)

    return run


@pytest.mark.parametrize(("phase", "seeds"), [("screening", 3), ("acceptance", 5), ("admission", 10)])
def test_a_phase_has_its_seeds(phase: str, seeds: int, ask: Gate, rows: Workload, c: MakeC) -> None:
    report = ask(c(), rows, phase=phase)
    assert report.verdict is Verdict.PASS, report.why
    assert (report.phase, len(set(report.seeds)), report.fixed_seed) == (phase, seeds, False)
    assert [seed % 5 for seed in report.seeds] == [i % 5 for i in range(seeds)]
    assert report.oracle == "strong", report.oracle_reasons
    assert set(report.evidence) >= {"artifact", "second run", "ghost run", "inputs"}
    assert ("perturbed" in report.evidence["inputs"]) == (phase != "screening")


def test_given_seeds_are_marked(ask: Gate, rows: Workload, c: MakeC) -> None:
    assert ask(c(), rows, seeds=(5,)).fixed_seed


WRONG = {
    "offset": "alpha = x[0] > 1 && x[0] < 2 && x[1] > 1 && x[1] < 2 && x[2] > 1 && x[2] < 2 ? 1 : alpha;",
    "large": "alpha = x[0] * x[0] > 100 ? 1 : alpha;",
    "tiny": "alpha = x[0] * x[0] < 1e-4f && x[0] != 0 && x[1] * x[1] < 1e-4f ? 1 : alpha;",
    "ties": "alpha = x[0] * 2 == (int)(x[0] * 2) ? 1 : alpha;",
}


@pytest.mark.parametrize("recipe", WRONG)
def test_what_only_goes_wrong_on_other_inputs_is_found_and_replayed(
    recipe: str, ask: Gate, rows: Workload, c: MakeC
) -> None:
    kernel = c(WRONG[recipe])
    first = correctness(ask(kernel, rows))
    assert (first.verdict, first.reason) == (Verdict.FAIL, "mismatch"), first
    assert first.case is not None
    assert first.case.recipe == recipe
    assert f"{recipe} inputs" in first.summary
    again = correctness(ask(kernel, rows, seeds=(first.case.seed,)))
    assert again.case is not None
    assert (again.case.recipe, again.case.index, again.case.got) == (
        recipe, first.case.index, first.case.got,
    )  # fmt: skip


def test_a_workload_restricts_its_distributions(
    ask: Gate, rows: Workload, c: MakeC, changed: Changed
) -> None:
    calm = changed('OUTPUTS = ("y",)', 'OUTPUTS = ("y",)\nDISTRIBUTIONS = ("normal", "tiny")')
    assert calm.distributions == ("normal", "tiny")
    assert ask(c(WRONG["large"]), calm).verdict is Verdict.PASS
    assert ask(c(WRONG["tiny"]), calm).verdict is Verdict.FAIL


TWICE = {
    "skips what is no poison": ("if (y[0] == y[0]) return;", "unwritten"),
    "depends on addresses": ("alpha *= 1 + 4e-7f * ((uintptr_t)y >> 12 & 7);", "nondeterministic"),
    "depends on leftovers": (
        "static float kept; alpha *= 1 + kept; kept = 5e-7f;",
        "nondeterministic",
    ),
    "reads beyond its input": (
        "unsigned char past = ((const unsigned char *)(x + rows * columns))[0]; alpha *= 1 + 1e-8f * past;",
        "nondeterministic",
    ),
    "answers from memory": (
        "static float seen, kept[8 * 64]; if (rows == 8) {"
        " if (seen != 0 && seen == x[0]) { for (int i = 0; i < 512; i++) y[i] = kept[i]; return; }"
        " seen = x[0]; for (int i = 0; i < 512; i++) kept[i] = alpha * x[i] + bias[i % 64]; }",
        "insensitive",
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_second_run_shows_it(name: str, ask: Gate, rows: Workload, c: MakeC) -> None:
    body, reason = TWICE[name]
    # With this seed the first element is not in the block that is replaced.
    result = correctness(ask(c(body), rows, seeds=(5,)))
    assert (result.verdict, result.reason) == (Verdict.FAIL, reason), result


def test_declared_atomics_are_compared_by_tolerance(
    ask: Gate, rows: Workload, c: MakeC, changed: Changed
) -> None:
    body, _ = TWICE["depends on addresses"]
    loose = changed('OUTPUTS = ("y",)', 'OUTPUTS = ("y",)\nATOMICS = True')
    report = ask(c(body), loose)
    assert report.verdict is Verdict.PASS, report.why
    assert "but for rounding" in report.evidence["second run"]
    assert ask(c(body, before="// klineage: atomics"), rows).verdict is Verdict.PASS


def test_a_loss_of_precision_within_the_tolerance_is_found(ask: Gate, rows: Workload, c: MakeC) -> None:
    good, coarse = c(), c("alpha *= 1 + 6e-6f;")
    assert ask(coarse, rows).verdict is Verdict.PASS  # by itself it is within the tolerance
    report = ask(coarse, rows, baseline=good)
    result = correctness(report)
    assert (result.verdict, result.reason) == (Verdict.FAIL, "precision"), result
    assert result.numbers["rms"] > 4 * result.numbers["baseline_rms"]
    assert ask(coarse, rows, baseline=coarse).verdict is Verdict.PASS


def test_half_the_precision_fails(ask: Gate, rows: Workload, c: MakeC) -> None:
    cut = c(
        "for (int64_t i = 0; i < rows * columns; i++) {"
        " union { float f; uint32_t u; } a = {alpha * x[i] + bias[i % columns]}; a.u &= 0xffff0000; y[i] = a.f; }"
        " return;"
    )
    assert correctness(ask(cut, rows)).reason == "mismatch"


WEAK = {
    "loose": (
        SUM,
        SUM + "\n\n\ndef tolerance(element, rows, columns):\n    return 0.99",
        "y of zeros passes",
    ),
    "constant": (SUM, '    return {"y": 0 * x + 2.5}', "y shifted by one passes"),
    "deaf": (SUM, '    return {"y": alpha * x + 1e-9 * bias}', "no output depends on bias"),
    "blind": (SUM, SUM + "\n\n\ndef compare(got):\n    return None", "y of zeros passes"),
    "wrong": (SUM, SUM + '\n\n\ndef compare(got):\n    return "never right"', "do not pass"),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_weak_oracle_is_called_weak(
    name: str, ask: Gate, executor: LocalExecutor, changed: Changed, c: MakeC
) -> None:
    old, new, said = WEAK[name]
    workload = changed(old, new)
    found = self_test(workload, "c", executor=executor)
    if name == "constant":
        assert found.grade == "weak"  # a constant is its own shift
        assert any("no output depends on x" in reason for reason in found.reasons)
    else:
        assert any(said in reason for reason in found.reasons), found
    refused = correctness(ask(c(), workload, phase="admission"))
    assert (refused.verdict, refused.reason) == (Verdict.ERROR, "weak_oracle")


# A softmax of scores of a million is all or nothing, and rounding decides which;
# gates of thousands, rounded one by one, no longer decrease along a chunk.
NO_LARGE = ("fmha", "gdn_kkt", "gdn_forward")
SHIPPED = ("gemm", "conv2d", "add_rmsnorm", "topk", "gdn", "gdn_cumsum", *NO_LARGE)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_workloads_are_strong(name: str, executor: LocalExecutor) -> None:
    for surface in ("c", "triton"):
        found = self_test(load(name), surface, executor=executor)
        assert found.grade == "strong", found.reasons
        assert found.distributions == tuple(d for d in DISTRIBUTIONS if d not in found.dropped)
        assert set(found.dropped) == ({"large"} if name in NO_LARGE else set())


def test_a_self_test_is_remembered(executor: LocalExecutor, rows: Workload) -> None:
    class Nobody(LocalExecutor):
        def submit(self, *_: object, **__: object) -> dict[str, object]:
            raise AssertionError("it is known already")

    found = self_test(rows, "c", executor=executor)
    assert self_test(rows, "c", executor=Nobody()) == found


def test_a_workload_that_raises_cannot_be_tested(executor: LocalExecutor, changed: Changed) -> None:
    with pytest.raises(WorkloadFault, match=r"mine/workload\.py: reference\(\) raised"):
        self_test(changed(SUM, "    return {}[0]"), "c", executor=executor)


COPY = b'''"""y = x"""
ELEMENT = {"triton": "fp32"}
SIZES = {"small": {"n": 64}, "ragged": {"n": 61}}
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

DEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


def copy(x, n):
    out = torch.empty_like(x)
    copy_kernel[(1,)](x, out, n, BLOCK=64)
    return RESULT
"""


@pytest.mark.triton
@pytest.mark.parametrize(("result", "reason"), [("out", "ok"), ("x", "host_output"), ("out.T", "ok")])
def test_a_kernel_for_show_is_found_by_its_ghost(result: str, reason: str, ask: Gate) -> None:
    pytest.importorskip("triton")
    workload = parse(COPY, name="copy", path=Path("copy/workload.py"))
    kernel = Kernel("triton", "kernel.py", "copy", DEAD.replace("RESULT", result).encode())
    found = correctness(ask(kernel, workload, platform="nvidia-sm90"))
    assert found.reason == reason, found


@pytest.mark.triton
def test_fresh_memory_holds_other_poison_the_second_time(ask: Gate) -> None:
    pytest.importorskip("triton")
    text = DEAD.replace("RESULT", "out").replace(
        "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)",
        "old = tl.load(out + at, mask=at < n)\n    new = tl.load(x + at, mask=at < n)\n"
        "    tl.store(out + at, tl.where(old == old, old, new), mask=at < n)",
    )
    workload = parse(COPY, name="copy", path=Path("copy/workload.py"))
    kernel = Kernel("triton", "kernel.py", "copy", text.encode())
    found = correctness(ask(kernel, workload, platform="nvidia-sm90"))
    assert (found.reason, found.verdict) == ("unwritten", Verdict.FAIL), found


@pytest.mark.parametrize(
    ("ran", "own", "refused"),
    [
        (["gemm_kernel"], {"gemm_kernel"}, ""),
        (["gemm_kernel", "Memset (Device)"], {"gemm_kernel"}, ""),
        (["void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, x>"], set(), ""),
        (
            ["gemm_kernel", "void cutlass::Kernel2<cutlass_80_tensorop>"],
            {"gemm_kernel"},
            "cutlass::Kernel2, which is",
        ),
        (["Memcpy DtoD (Device -> Device)", "ampere_sgemm"], {"gemm_kernel"}, "ampere_sgemm, which are"),
    ],
)
def test_foreign_kernels_are_named(ran: list[str], own: set[str], refused: str) -> None:
    if not refused:
        refuse_foreign(ran, own)
        return
    with pytest.raises(KernelFault, match=refused) as raised:
        refuse_foreign(ran, own)
    assert raised.value.reason == "foreign_kernels"


def test_other_code_than_was_compiled_is_an_error(rows: Workload, c: MakeC) -> None:
    def told(compiled: str, gpu: str = "nvidia-sm90") -> tuple[StageResult | None, dict[str, str]]:
        session: Any = SimpleNamespace(
            request=GateRequest(c(), rows, "nvidia-sm90"),
            machine=SimpleNamespace(gpu=SimpleNamespace(platform=gpu)),
            compiled={"rows_kernel": compiled},
            evidence={"artifact rows_kernel at bench": "aa"},
        )
        found = _uncompiled(session, {"kernels": {"bench": {"launched": {"rows_kernel": "aa"}}}})
        assert other_code(session, "bench", {"rows_kernel": "aa"}) == ""
        assert other_code(session, "bench", {"rows_kernel": "bb"}) == "rows_kernel"
        return found, session.evidence

    result, evidence = told("aa")
    assert (result, evidence["artifact"]) == (None, "what ran is what was compiled")
    result, evidence = told("bb")
    assert result is not None
    assert (result.verdict, result.reason) == (Verdict.ERROR, "artifact")
    assert told("bb", gpu="nvidia-sm100")[0] is None  # compiled for another platform than it ran on


def test_a_library_that_is_not_what_was_compiled_is_not_run(tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    library.write_bytes(b"another one")
    with pytest.raises(KernelFault, match="is not what was compiled"):
        _artifact({"library": str(library), "sha256": "0" * 64})


@pytest.mark.triton
def test_reading_past_the_end_is_allowed_only_where_it_is_declared(ask: Gate) -> None:
    pytest.importorskip("triton")
    text = DEAD.replace("RESULT", "out").replace("tl.load(x + at, mask=at < n)", "tl.load(x + at)")
    kernel = Kernel("triton", "kernel.py", "copy", text.encode())
    workload = parse(COPY, name="copy", path=Path("copy/workload.py"))
    assert correctness(ask(kernel, workload, platform="nvidia-sm90")).reason == "out_of_bounds"
    allowed = COPY.replace(b"\n\n\ndef tensors", b"\nOOB_READ = 12\n\n\ndef tensors")
    workload = replace(parse(allowed, name="copy", path=Path("copy/workload.py")))
    report = ask(kernel, workload, platform="nvidia-sm90")
    assert correctness(report).reason == "ok", report.why
