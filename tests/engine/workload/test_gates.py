"""Kernels judged against problems in each foreign format, as `klineage gate` and `klineage new` do it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Policy, Report, Verdict, gate
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.walk import new_lineage
from klineage.walk.reading import read_kernel
from klineage.walk.snapshot import workload_from
from klineage.workload import Workload, load

from klineage_tui.cli import main

HERE = Path(__file__).parent
KERNELBENCH = HERE / "problems" / "12_Scaled_Rows.py"
TRACE = HERE / "problems" / "set" / "definitions" / "add" / "scaled_add_n96.json"
PROBLEM_FILE = HERE / "problems" / "row_sums" / "reference.py"

# One seed, and no time for more than a look at the clock: what is tested here is the problem's side.
QUICK = Policy(seeds=(1, 1, 1), rounds=2, profile_seconds=0.01, most_profile_seconds=0.1)


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        workers = LocalExecutor()
        yield workers
        workers.close()


def judged(kernel: Kernel, workload: Workload, executor: LocalExecutor) -> Report:
    platform = "cpu-native" if kernel.surface == "c" else "nvidia-sm90"
    request = GateRequest(kernel, workload, platform, phase="screening")
    return gate(request, fresh=True, policy=QUICK, executor=executor)


def stage(report: Report, name: str) -> tuple[str, str]:
    found = next(s for s in report.stages if s.stage == name)
    return str(found.verdict), found.summary


CASES = [
    pytest.param("scaled_rows.c", KERNELBENCH, id="kernelbench"),
    pytest.param("scaled_add.py", TRACE, id="trace", marks=pytest.mark.triton),
    pytest.param("row_sums.c", PROBLEM_FILE, id="problem-file"),
]


@pytest.mark.parametrize(("name", "problem"), CASES)
def test_an_honest_kernel_passes(name: str, problem: Path, executor: LocalExecutor) -> None:
    workload = load(problem)
    report = judged(read_kernel(HERE / "kernels" / name, workload), workload, executor)
    assert stage(report, "correctness")[0] == "pass", report.why
    assert report.verdict in (Verdict.PASS, Verdict.NOISY)
    assert report.oracle == "strong", report.oracle_reasons


WRONG = [
    pytest.param("scaled_rows.c", KERNELBENCH, "+ 0.5f", "+ 0.499f", "y", id="kernelbench"),
    pytest.param("row_sums.c", PROBLEM_FILE, "offsets[i] *", "0 *", "output_0", id="problem-file"),
]


@pytest.mark.parametrize(("name", "problem", "old", "new", "output"), WRONG)
def test_a_wrong_kernel_fails(
    name: str, problem: Path, old: str, new: str, output: str, executor: LocalExecutor
) -> None:
    workload = load(problem)
    kernel = read_kernel(HERE / "kernels" / name, workload)
    source = kernel.source.decode()
    assert old in source
    wrong = Kernel("c", kernel.filename, kernel.entry, source.replace(old, new).encode())
    report = judged(wrong, workload, executor)
    decided = next(s for s in report.stages if s.verdict is not Verdict.PASS)
    assert (decided.stage, decided.reason) == ("correctness", "mismatch")
    assert decided.case is not None and decided.case.output == output


def test_a_lineage_carries_the_problem_as_a_workload_of_its_own(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "space")
    name = new_lineage(workspace, HERE / "kernels" / "scaled_rows.c", KERNELBENCH, platform="cpu-x86-64-v3")
    head = workspace.head(name).commit
    meta = workspace.meta(head)
    carried = workload_from(meta, workspace.read(head), head)
    workspace.close()
    assert name == meta.workload + "-c" == "scaled_rows-c"
    assert carried.hash == load(KERNELBENCH).hash
    assert KERNELBENCH.read_text() in carried.source.decode()


def test_the_verb_shows_and_writes_a_workload(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine" / "workload.py"
    file.parent.mkdir()
    assert main(["workload", str(TRACE), "--out", str(file)]) == 0
    assert "scaled_add_n96: written to" in capfd.readouterr().out
    assert load(file).hash == load(TRACE).hash
    assert main(["workload", str(TRACE)]) == 0
    assert capfd.readouterr().out == file.read_text()
    assert main(["workload", str(file), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["name"] == "mine"
    assert told["sizes"]["paper"] == {"M": 3000, "N": 96, "ONE": 1}
    assert told["hash"] == load(file).hash
    assert main(["workload", str(TRACE), "--out", str(file)]) == 1
    assert "is there already" in capfd.readouterr().err
