"""A real workspace with a lineage of four steps and two rejected attempts, made without any gate."""

from __future__ import annotations

from pathlib import Path

from klineage.gate import Report, StageResult, Trust, Verdict, report_to_json
from klineage.kernel import Feature
from klineage.lineage import ForwardRecord, Meta, StepRecord, Workspace

EXPERT = """\
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=8, num_stages=4)], key=["K"])
@triton.jit
def gemm_kernel(x_ptr, w_ptr, y_ptr, M, N, K, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    group = pid // (GROUP * tl.cdiv(N, BLOCK))
    pid_m = group * GROUP + pid % GROUP
    pid_n = (pid % (GROUP * tl.cdiv(N, BLOCK))) // GROUP
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK, num_stages=4):
        x = tl.load(x_ptr + k, eviction_policy="evict_last")
        w = tl.load(w_ptr + k)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + pid_m * N + pid_n, acc)  # é 你好 \x1b[31m


def gemm(x, w, y):
    gemm_kernel[(1024,)](x, w, y, *x.shape, w.shape[0], GROUP=8)
"""
_LOOP = "kernel.py::gemm_kernel/for[k]"
_BODY = "kernel.py::gemm_kernel"
_GROUP = "    group = pid // (GROUP * tl.cdiv(N, BLOCK))\n    pid_m = group * GROUP + pid % GROUP\n"
_GROUP_N = "    pid_n = (pid % (GROUP * tl.cdiv(N, BLOCK))) // GROUP\n"
_TUNED = '@triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=8, num_stages=1)], key=["K"])\n'
# action, locus, subject, replacements, latency after it in ms, ratio
_EDITS = (
    ("evict", _LOOP, "Remove cache hints", [(', eviction_policy="evict_last"', "")], "0.1931", 1.004),
    (
        "l2_raster",
        _BODY,
        "Remove grouped program order",
        [
            (_GROUP, "    pid_m = pid % tl.cdiv(M, BLOCK)\n"),
            (_GROUP_N, "    pid_n = pid // tl.cdiv(M, BLOCK)\n"),
        ],
        "0.2431",
        1.26,
    ),
    (
        "pipeline",
        _LOOP,
        "Remove software pipelining",
        [("tl.range(0, K, BLOCK, num_stages=4)", "range(0, K, BLOCK)"), ("num_stages=4", "num_stages=1")],
        "0.4312",
        1.77,
    ),
    ("autotune", _BODY, "Remove autotuning", [(_TUNED, "")], "18.43", 42.7),
)


def make(path: Path, *, sealed: bool = True, timed: bool = True) -> Workspace:
    """A workspace with the lineage ``gemm``."""
    workspace = Workspace.create(path)
    meta = Meta("gemm", "gemm triton nvidia-sm90", "triton", "nvidia-sm90", "gemm", "kernel.py", "gemm")
    files = {"kernel.py": EXPERT.encode(), "workload.py": b"SIZES = {}\n"}
    workspace.new(meta, files, who="A. Curator")
    sources, before, steps = [EXPERT], "0.1923", [workspace.history("gemm")[0]]
    for action, locus, subject, edits, after, ratio in _EDITS:
        source = sources[-1]
        for old, new in edits:
            assert old in source
            source = source.replace(old, new, 1)
        record = _record(action, locus, subject, before, after, ratio, timed=timed)
        step = workspace.accept("gemm", record, {"kernel.py": source.encode()}, _report())
        if action == "l2_raster":
            _reject(workspace, source)
        sources.append(source)
        steps.append(step)
        before = after
    if sealed:
        forward = []
        for number in range(len(_EDITS), 0, -1):
            action, locus, subject, _, after, ratio = _EDITS[number - 1]
            start = _EDITS[number - 2][4] if number > 1 else "0.1923"
            record = _record(
                action, locus, subject.replace("Remove", "Add"), after, start, 1 / ratio, timed=timed
            )
            files = {"kernel.py": sources[number - 1].encode()}
            forward.append(ForwardRecord(record, files, "derived", steps[number].commit, _report()))
        workspace.seal("gemm", forward, who="A. Curator")
    return workspace


def _report() -> str:
    """A note that a gate would have left."""
    stages = tuple(
        StageResult(name, Verdict.PASS, "ok", f"{name} is fine") for name in ("static", "correctness")
    )
    return report_to_json(Report("0" * 64, "1" * 64, "nvidia-sm90", "1", Trust.MEASURED_GPU, stages))


def _record(
    action: str, locus: str, subject: str, before: str, after: str, ratio: float, *, timed: bool
) -> StepRecord:
    effect = "slower" if ratio > 1.01 else "faster" if ratio < 0.99 else "neutral"
    interval = f"[{ratio * 0.99:.3g}, {ratio * 1.01:.3g}]"
    times = f"{interval} {after} ms of {before} ms (cuda-event, paper)"
    counts = "counts, not time: bytes 2.00x, operations 1.00x, registers 40 -> 53"
    return StepRecord(
        subject=subject,
        body="The loads of the next tile no longer overlap the dot.\n\nEvery iteration waits for memory.",
        action=action,
        locus=locus,
        removes=(Feature(locus, action),),
        settings={"num_stages": "4"} if action == "pipeline" else {},
        proposer=f"rules:{action}",
        who="A. Curator",
        why="one mechanism, and the gate agrees",
        gate="pass; policy 1",
        compile="pass, sm_90 122 registers, 96.0 KiB shared, 0 bytes spilled",
        correctness="pass, 3 seeds, worst error 2.1e-3 of 1.6e-2",
        profile=times if timed else counts,
        trust="measured-gpu" if timed else "interpreted",
        platform="nvidia-sm90",
        effect=effect if timed else "more-work",
        ratio=ratio if timed else None,
    )


def _reject(workspace: Workspace, source: str) -> None:
    for action, gate, why in (
        ("split_k", "fail", "wrong at K=32"),
        ("mma", "pass", "two mechanisms at once"),
    ):
        record = StepRecord(
            f"Remove {action}",
            action=action,
            locus="kernel.py::gemm_kernel",
            proposer="person",
            who="A. Curator",
            why=why,
            gate=f"{gate}; policy 1",
            correctness="fail, mismatch at y[3, 7]: nan instead of 0.25"
            if gate == "fail"
            else "pass, 3 seeds",
        )
        changed = source.replace("tl.dot(x, w, acc)", f"{action}(x, w, acc)").encode()
        workspace.reject("gemm", record, {"kernel.py": changed})
