"""What a workload says is right: its reference on stored inputs, and its own comparison, if it has one."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from klineage.worker import on_device
from klineage.worker.buffers import FLOATS, decode
from klineage.worker.faults import WorkerError

if TYPE_CHECKING:
    from klineage.worker.problem import Problem

Tensors = dict[str, "tuple[str, tuple[int, ...]]"]


def reference(
    problem: Problem, stored: dict[str, Any], dims: dict[str, int], device: str | None, decoded: bool
) -> dict[str, Any]:
    """As ``Problem.reference``."""
    tensors = problem.tensors(dims)
    values, library = _numbers(problem, "reference", stored, {} if decoded else tensors, device)
    answer = problem.call("reference", **_given(problem, "reference", {**values, **dims, "xp": library}))
    if not isinstance(answer, dict):
        raise problem.error("reference()", f"returned {type(answer).__name__}, not {{output: array}}")
    return {name: _expected(problem, name, answer, tensors, device) for name in problem.outputs}


def complaint(
    problem: Problem,
    got: dict[str, Any],
    expected: dict[str, Any],
    stored: dict[str, Any],
    dims: dict[str, int],
    device: str | None,
) -> str | None:
    """As ``Problem.complaint``."""
    tensors = problem.tensors(dims)
    values, library = _numbers(problem, "compare", stored, tensors, device)
    outputs, _ = _numbers(problem, "compare", got, tensors, device)
    wanted = expected
    if library is not np and device is None:
        wanted = {n: library.from_numpy(np.array(a)) for n, a in expected.items()}
    offered = {
        **values, **dims, "xp": library, "got": outputs, "expected": wanted, "element": problem.element,
    }  # fmt: skip
    answer = problem.call("compare", **_given(problem, "compare", offered))
    if answer is not None and not isinstance(answer, str):
        raise problem.error("compare()", f"returned {type(answer).__name__}, not None or a sentence")
    return answer


def _numbers(
    problem: Problem, function: str, stored: dict[str, Any], tensors: Tensors, device: str | None
) -> tuple[dict[str, Any], Any]:
    """Stored buffers as numbers in the library that the function works with, and that library."""
    if device is not None:
        torch = _torch()
        return {n: on_device.decode(a, tensors[n][0]) for n, a in stored.items()}, torch
    values: dict[str, Any] = {n: decode(a, tensors[n][0]) if n in tensors else a for n, a in stored.items()}
    if "xp" in inspect.signature(problem.function(function)).parameters:
        return values, np
    torch = _torch()
    return {n: torch.from_numpy(np.array(a)) for n, a in values.items()}, torch


def _given(problem: Problem, name: str, offered: dict[str, Any]) -> dict[str, Any]:
    """What a function of the workload takes of all that there is, by name."""
    parameters = inspect.signature(problem.function(name)).parameters
    values = {**problem.scalars, **offered}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return values
    unknown = [p for p in parameters if p not in values and parameters[p].default is inspect.Parameter.empty]
    if unknown:
        raise problem.error(
            f"{name}()", f"takes {', '.join(unknown)}, which is no input, dimension or scalar"
        )
    return {name: values[name] for name in parameters if name in values}


def _expected(
    problem: Problem, name: str, answer: dict[str, Any], tensors: Tensors, device: str | None
) -> Any:
    if name not in answer:
        raise problem.error("reference()", f"returned no {name}, which OUTPUTS names")
    value, (type_, shape) = answer[name], tensors[name]
    if device is not None:
        array = on_device.wide(value, type_, device)
    else:
        array = np.asarray(value.cpu().numpy() if hasattr(value, "cpu") else value)
    if tuple(array.shape) != shape:
        raise problem.error(
            "reference()", f"gives {name} the shape {tuple(array.shape)}; tensors() says {shape}"
        )
    if device is not None:
        return array
    if type_ in FLOATS:
        return array.astype(np.float64, copy=False)
    if not np.issubdtype(array.dtype, np.integer) and not np.array_equal(array, np.trunc(array)):
        raise problem.error("reference()", f"gives fractions for {name}, whose type is {type_}")
    return array.astype(np.int64, copy=False)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise WorkerError(
            "no_torch",
            "this workload's reference takes no xp, so it needs torch: pip install 'klineage-tui[triton]'",
        ) from None
    torch.set_num_threads(1)
    return torch
