"""The experts in Triton that were written for a GPU: interpreted, they compute their workloads; compiled, nothing spills.

Functions without ``test_`` run in a child process; see ``triton_child.py``.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.triton

#: Bound to 168 registers, it spills a little, and three programs share a multiprocessor: 0.096 ms for 0.110 on an H200.
SPILLING = {"gdn_kkt_kernel"}
EXPERTS = Path(__file__).parents[2] / "experts"
Run = Callable[..., None]


def loaded(name: str, mode: str) -> tuple[Any, Any, dict[str, Any]]:
    """The entry of an expert, the problem of its workload, and what the workload's file defines."""
    from klineage.worker import problem, triton_load

    path = EXPERTS / name / "workload.py"
    space = runpy.run_path(str(path))
    entry = triton_load.load(str(EXPERTS / name / "triton" / "kernel.py"), name, None, mode=mode)
    return entry, problem.load(path.read_bytes(), str(path), space["ELEMENT"]["triton"]), space


def computes(name: str, recipe: str) -> None:
    import numpy as np
    import torch
    from klineage.worker import buffers, on_device
    from klineage.worker.examine import Case, values_of

    entry, problem, space = loaded(name, "interpret")
    for size, dims in {**space["SIZES"], "hidden": space["HIDDEN"]}.items():
        if size in ("bench", "paper"):
            continue
        inputs = problem.inputs(17, dims, recipe)
        slots, total = buffers.layout(problem.tensors(dims))
        region = np.empty(total, np.uint8)
        buffers.fill(region, slots, inputs)
        tensors = {slot.name: on_device.stored(torch.from_numpy(region), slot) for slot in slots}
        assert entry({**dims, **problem.scalars, **tensors}) is None
        told = {"size": size, "dims": dims, "seed": 17, "recipe": recipe, "variant": ""}
        case = Case(problem, told, inputs, problem.reference(inputs, dims), slots)
        found = values_of(case, {n: buffers.stored(region, case.slot(n)) for n in problem.outputs})
        assert "failure" not in found, found["failure"]["summary"]
        for slot in slots:
            if slot.name in inputs:
                assert buffers.stored(region, slot).tobytes() == inputs[slot.name].tobytes(), slot.name


def compiles(name: str, unit: str) -> None:
    import torch
    from klineage.worker.on_device import dtype
    from klineage.worker.triton_compile import compile_entry

    entry, problem, space = loaded(name, "compile")
    dims = space["SIZES"]["paper"]
    shapes = problem.tensors(dims)
    values = {n: torch.empty(shape, dtype=dtype(t), device="meta") for n, (t, shape) in shapes.items()}
    kernels = compile_entry(entry, {**values, **dims, **problem.scalars})
    assert {k["name"]: k["spill_bytes"] for k in kernels if k["spill_bytes"]}.keys() <= SPILLING
    assert all(k["shared_bytes"] <= 227 * 1024 and k["registers"] <= 255 for k in kernels)
    assert sum(k["instructions"].get(unit, 0) for k in kernels) > 0


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("conv2d", "normal"),
        ("topk", "normal"),
        ("topk", "ties"),
        ("gdn", "normal"),
        ("gdn", "offset"),  # keys that are nearly parallel: the system to be inverted is far from one
        ("gdn", "large"),  # gates of thousands: the state is forgotten at once, and nothing may overflow
        ("gdn_cumsum", "normal"),
        ("gdn_kkt", "normal"),
        ("gdn_forward", "normal"),
    ],
)
def test_an_expert_computes_its_workload(interpreted: Run, name: str, recipe: str) -> None:
    interpreted(computes, name, recipe)


@pytest.mark.parametrize(("name", "unit"), [("conv2d", "HGMMA"), ("gdn", "UTMALDG")])
def test_an_expert_compiles_for_the_paper_size_and_spills_only_by_choice(
    compiled: Run, name: str, unit: str
) -> None:
    compiled(compiles, name, unit)


def test_the_parts_of_the_gated_delta_rule_are_its_own_kernels() -> None:
    """The same text of every kernel, so that what a part teaches holds for the whole."""

    def kernels(name: str) -> dict[str, str]:
        tree = ast.parse((EXPERTS / name / "triton" / "kernel.py").read_text(encoding="utf-8"))
        functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.endswith("_kernel")]
        return {f.name: ast.unparse([f.args, *f.body]) for f in functions}  # type: ignore[arg-type]

    parts: dict[str, str] = {}
    for name in ("gdn_cumsum", "gdn_kkt", "gdn_forward"):
        parts |= kernels(name)
    assert len(parts) == 3
    assert parts == kernels("gdn")
