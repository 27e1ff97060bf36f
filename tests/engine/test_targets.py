"""The target workloads' kernels, naive and competent, in the interpreter against the references.

Functions without ``test_`` run in a child process; see ``triton_child.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.triton

TARGETS = ("addmm", "bmm", "gqa", "kda", "rmsnorm", "sparse_attention", "top_p")
TRITON_TARGETS = (*TARGETS, "layernorm", "softmax")  # of these two only the C kernels are experts
KINDS = ("naive", "reference")
FORMS = (
    "addmm/clamped add_rmsnorm/split bmm/clamped bmm/split_k gemm/split_k layernorm/looped layernorm/persistent "
    "rmsnorm/persistent rmsnorm/split"
)


def agrees(target: str, kind: str, size: str) -> None:
    """The kernel in fp32, so that what differs is the kernel and not the rounding of its inputs."""
    import importlib.util
    import inspect
    from pathlib import Path

    import numpy as np
    import torch
    from klineage.worker.compare import compare
    from klineage.worker.problem import load

    torch.set_num_threads(1)
    folder = Path(__file__).parents[2] / "experts" / target
    problem = load((folder / "workload.py").read_bytes(), "workload.py", "fp32")
    dims = problem.namespace["HIDDEN"] if size == "hidden" else problem.namespace["SIZES"][size]
    spec = importlib.util.spec_from_file_location(target, folder / "triton" / f"{kind}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    stored = problem.inputs(11, dims)
    values: dict[str, Any] = {n: torch.from_numpy(np.array(a)) for n, a in stored.items()}
    for name, (_, shape) in problem.tensors(dims).items():
        values.setdefault(name, torch.full(shape, float("nan")))
    offered = {**values, **dims, **problem.scalars}
    entry = getattr(module, target)
    entry(**{name: offered[name] for name in inspect.signature(entry).parameters})

    expected = problem.reference(stored, dims)
    if problem.compares:
        complaint = problem.complaint({n: values[n].numpy() for n in problem.outputs}, expected, stored, dims)
        assert complaint is None, complaint
        return
    for name in problem.outputs:
        found = compare(values[name].numpy(), expected[name], "fp32", 2e-5)
        assert found.ok, (name, found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TRITON_TARGETS)
def test_target_kernels_compute_what_their_workload_says(target: str, kind: str, interpreted: Any) -> None:
    interpreted(agrees, target, kind, "ragged")


def all_agree(forms: str, size: str) -> None:
    for target, _, form in (path.partition("/") for path in forms.split()):
        agrees(target, form, size)


def test_second_forms_compute_what_their_workload_says(interpreted: Any) -> None:
    interpreted(all_agree, FORMS, "ragged")


def test_no_target_is_offered_as_an_expert() -> None:
    from klineage.walk.opening import experts

    offered = {expert.workload for expert in experts()}
    assert "gemm" in offered
    assert offered.isdisjoint(TARGETS)
