"""The contest of experts and vendors without a GPU: what is compared, how it is told, and what is not run twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXPERTS = ROOT / "experts"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), str(ROOT / "benchmarks" / "gpu"), *sys.path])


@pytest.mark.triton
@pytest.mark.parametrize(
    ("workload", "name"),
    [
        ("gemm", "torch.mm (cuBLAS)"),
        ("conv2d", "conv2d (cuDNN, benchmark)"),
        ("fmha", "SDPA flash"),
        ("gdn_cumsum", "torch.cumsum"),
        ("topk", "torch.topk"),
        ("add_rmsnorm", "torch eager"),
        ("softmax", "torch.softmax"),
        ("layernorm", "torch layer_norm"),
        ("rmsnorm", "torch rms_norm"),
        ("addmm", "torch.addmm (cuBLAS)"),
        ("bmm", "torch.bmm (cuBLAS)"),
        ("gqa", "SDPA flash"),
        ("top_p", "torch sort, cumsum"),
    ],
)
def test_a_reference_computes_the_workload(workload: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    from benchmarks import contest, references

    size = "bench" if workload == "fmha" else "small"  # sequences of equal length
    where = contest.arena(EXPERTS / workload, "triton", size, "cpu")
    given = references.Problem(where.inputs, where.dims, where.problem.scalars)
    reference = next(r for r in references.REFERENCES[workload] if r.name == name)
    call, read = reference.make(given)
    assert read is not None
    outputs = read(call())
    assert set(outputs) == set(where.problem.outputs)
    assert where.complaint(outputs) == ""
    first = where.problem.outputs[0]
    assert where.complaint({**outputs, first: torch.roll(outputs[first], 1, -1)}) != ""


def test_every_expert_for_a_gpu_has_its_references_and_settings() -> None:
    import tune

    from benchmarks.references import REFERENCES

    gpu = {
        p.parents[1].name for p in (*EXPERTS.glob("*/triton/kernel.py"), *EXPERTS.glob("*/cuda/kernel.cu"))
    }
    targets = {p.parents[1].name for p in EXPERTS.glob("*/triton/reference.py")}
    assert gpu | targets <= set(REFERENCES)
    assert {p.parents[1].name for p in EXPERTS.glob("*/triton/kernel.py")} <= set(tune.TABLE)


@pytest.mark.parametrize("workload", sorted(p.parents[1].name for p in EXPERTS.glob("*/triton/kernel.py")))
def test_every_setting_can_be_written_into_its_kernel(workload: str) -> None:
    import tune

    from benchmarks.contest import configured, with_constants

    found = list(tune.candidates(workload, []))
    assert len({c.key for c in found}) == len(found)
    assert found[0].settings == ()
    for candidate in found:
        source = candidate.path.read_text(encoding="utf-8")
        if candidate.path.suffix == ".cu":
            text = with_constants(source, dict(candidate.settings))
            assert all(f"constexpr int {name} = {value};" in text for name, value in candidate.settings)
            continue
        text = configured(source, dict(candidate.settings))
        compile(text, candidate.path.name, "exec")
        if candidate.settings and "triton.autotune" not in source:
            assert all(f"{name.split('.')[-1]}={value}" in text for name, value in candidate.settings)


def test_a_setting_goes_to_one_launch_of_several() -> None:
    from benchmarks.contest import configured

    source = "a[grid](x, num_warps=2)\nb[grid](x, num_warps=4)\n"
    assert configured(source, {"b.num_warps": 8}) == "a[grid](x, num_warps=2)\nb[grid](x, num_warps=8)\n"
    assert configured(source, {"num_warps": 1}) == "a[grid](x, num_warps=1)\nb[grid](x, num_warps=1)\n"
    for unknown in ({"c.num_warps": 8}, {"BLOCK": 8}):
        with pytest.raises(ValueError, match="no launch says"):
            configured(source, unknown)


def test_a_constant_that_a_cuda_kernel_has_not_is_refused() -> None:
    from benchmarks.contest import with_constants

    source = "constexpr int STAGES = 2;  // buffers\nconstexpr int BLOCK = STAGES * 2;\n"
    assert with_constants(source, {"STAGES": 3}) == source.replace("= 2;", "= 3;")
    for unknown in ("BLOCK", "STAGE"):
        with pytest.raises(ValueError, match=f"constexpr int {unknown} = NUMBER"):
            with_constants(source, {unknown: 1})


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    import tune

    kernel = tmp_path / "other.py"
    kernel.write_text(
        "# tune: BLOCK=64 num_warps=8\n# tune: BLOCK=128\nk[grid](x, BLOCK=32)\n", encoding="utf-8"
    )
    own = [c for c in tune.candidates("topk", [kernel]) if c.path == kernel]
    assert [dict(c.settings) for c in own] == [{"BLOCK": 64, "num_warps": 8}, {"BLOCK": 128}]
    log = tmp_path / "log.jsonl"
    rows = [
        {"key": c.key, "name": "n", "problem": "", "ms": [1.0]} for c in tune.candidates("topk", [kernel])
    ]
    log.write_text("".join(json.dumps(r) + "\n" for r in rows) + '{"key": "cut o', encoding="utf-8")
    found, left = tune.run("topk", [kernel], log, seconds=0.0, rounds=1)
    assert (found, left) == (rows, 0)
    kernel.write_text("# tune: BLOCK=64\nk[grid](x, BLOCK=16)\n", encoding="utf-8")
    assert [c.key in tune.done(log) for c in tune.candidates("topk", [kernel])][-1] is False


def test_candidates_are_told_by_their_ratio_within_one_contest() -> None:
    import tune

    row: dict[str, Any] = {"problem": "", "vendor": "cuBLAS"}
    slow = row | {"name": "slow", "ms": [2.0, 4.0], "expert_ms": [1.0, 2.0], "vendor_ms": [1.0, 2.0]}
    fast = row | {"name": "fast", "ms": [3.0, 6.0], "expert_ms": [6.0, 12.0], "vendor_ms": [4.5, 9.0]}
    wrong = row | {"name": "wrong", "ms": [], "problem": "y is wrong"}
    lines = tune.table([wrong, slow, fast]).splitlines()
    assert "vendor: cuBLAS" in lines[0]
    assert lines[1].split() == ["4.5000", "2.000x", "1.500x", "fast"]
    assert lines[2].split() == ["3.0000", "0.500x", "0.500x", "slow"]
    assert lines[3].endswith("wrong: y is wrong")


def test_the_table_names_the_fastest_reference_and_what_did_not_run() -> None:
    from benchmarks import experts

    row: dict[str, Any] = {"workload": "topk", "floor_ms": 0.5, "problem": "", "note": "", "checked": True}
    rows = [
        row | {"contender": "expert in Triton", "ms": [1.0, 1.0]},
        row | {"contender": "A", "ms": [4.0, 4.0]},
        row | {"contender": "B", "ms": [2.0, 3.0], "note": "in place"},
        row | {"contender": "C", "ms": [], "problem": "ImportError: no C", "checked": False},
        {**row, "workload": "gemm", "contender": "expert in Triton", "ms": [1.0]},
        {**row, "workload": "gemm", "contender": "D", "ms": [0.4]},
    ]
    text = experts.table(rows)
    assert "ImportError: no C" in text
    assert "in place" in text
    assert "topk         2.500x  (B)" in text
    assert "gemm         0.400x  (D)" in text
    assert "geometric mean of 2: 1.000x" in text


def test_a_round_is_there_and_back() -> None:
    from benchmarks.contest import rounds_of

    times = [1.0, 20.0, 10.0, 2.0, 3.0, 4.0, 40.0, 30.0]  # a b b a, twice
    assert rounds_of(times, 2) == [[1.0, 3.0], [10.0, 4.0]]


def test_the_floor_is_the_larger_of_bytes_and_operations() -> None:
    from benchmarks.contest import floor_ms

    limits = {"bytes_per_second": 1e9, "operations_per_second": 1e12}
    assert floor_ms({"bytes": 2e6, "operations": 1e9}, limits) == pytest.approx(2.0)
    assert floor_ms({"bytes": 2e6, "operations": 4e9}, limits) == pytest.approx(4.0)
