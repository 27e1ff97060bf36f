"""The problems as a GPU host works with them: torch draws, holds and computes. Any device will do for that.

Functions without ``test_`` run in a child process; see ``triton_child.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.triton

PROBLEMS = Path(__file__).parent / "problems"
FILES = (
    PROBLEMS / "12_Scaled_Rows.py",
    PROBLEMS / "set" / "definitions" / "add" / "scaled_add_n96.json",
    PROBLEMS / "row_sums" / "reference.py",
)


def inputs_and_reference(folder: str) -> None:
    import torch
    from klineage.worker.problem import load as execute
    from klineage.workload import load

    for file in FILES:
        workload = load(file)
        problem = execute(workload.source, str(file), workload.element["triton"])
        dims = workload.sizes["ragged"]
        first, again, other = (problem.inputs(seed, dims, "normal", "cpu") for seed in (3, 3, 4))
        tensors = problem.tensors(dims)
        assert set(first) == set(tensors) - set(workload.outputs)
        assert all(isinstance(value, torch.Tensor) for value in first.values())
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert not all(torch.equal(first[name], other[name]) for name in first)
        answers = problem.reference(first, dims, "cpu")
        assert set(answers) == set(workload.outputs)
        for name, value in answers.items():
            assert value.dtype == torch.float64
            assert tuple(value.shape) == tensors[name][1]
            assert bool(torch.isfinite(value).all())
        assert problem.cost(dims)["bytes"] > 0


def weights_are_those_of_the_evaluator_s_seed(folder: str) -> None:
    import torch
    from klineage.worker.problem import load as execute
    from klineage.workload import load

    workload = load(FILES[0])
    problem = execute(workload.source, str(FILES[0]), "fp32")
    names = dict(problem.tensors(workload.sizes["paper"]))
    assert list(names) == [
        "x",
        "mask",
        "bias",
        "scale_weight",
        "y",
    ]  # batch statistics are not read in training
    given = [problem.inputs(seed, workload.sizes["paper"]) for seed in (1, 2)]
    torch.manual_seed(42)
    linear, bias = torch.nn.Linear(1, 512, bias=False), torch.randn(512)
    for drawn in given:
        assert torch.equal(torch.from_numpy(drawn["scale_weight"]), linear.weight.detach())
        assert torch.equal(torch.from_numpy(drawn["bias"]), bias)


CASES = [inputs_and_reference, weights_are_those_of_the_evaluator_s_seed]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_on_a_device(case: Any, interpreted: Any, tmp_path: Path) -> None:
    interpreted(case, tmp_path)
