"""Is a workload's comparison worth anything? Wrong outputs, made from the right ones, must not pass it.

Also found here: which distributions of inputs suit the workload, because the outputs of some problems
swing more from rounding alone than the tolerance allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from klineage.worker import buffers
from klineage.worker.examine import Case, values_of
from klineage.worker.jobs import Context, Result, loud_workload, single, verdict
from klineage.worker.problem import Problem
from klineage.worker.process import Channel

_SEED = 20
_NOISE = 2.0**-6  # relative; far above rounding, so that what is rare at large sizes shows at a small one
_AMPLIFIES = 16.0  # times more than normal inputs do
_MANTISSA = {"fp64": 24, "fp32": 8, "fp16": 4, "bf16": 4}  # significant bits of the next lower type

Arrays = dict[str, np.ndarray[Any, Any]]


def self_test(request: dict[str, Any], context: Context) -> Result:
    """Result: ``reasons`` (why the oracle is weak; none when it is strong), ``recipes``, ``dropped``."""

    def body(channel: Channel) -> None:
        from klineage.worker import limits
        from klineage.worker.check import confinement, prepare_torch
        from klineage.worker.runners import problem_of

        prepare_torch(context.kind)
        problem = problem_of(request)
        limits.apply(confinement(request, context.kind))
        recipes, dropped = suitable(problem, request["dims"])
        reasons = weaknesses(problem, request["dims"])
        channel.send(result=verdict("pass", "ok", "", reasons=reasons, recipes=recipes, dropped=dropped))

    answer = single(context, body, request["limits"]["workload_seconds"], "to test the workload's comparison")
    if answer["reason"] == "output_flood":  # no kernel ran
        return loud_workload(request, str(answer["log"]))
    return answer


def weaknesses(problem: Problem, dims: dict[str, int]) -> list[str]:
    """One sentence for each wrong output that passes, and for each input that does not matter."""
    case = _case(problem, dims, "normal")
    right = {name: buffers.encode(case.expected[name], case.slot(name).type) for name in problem.outputs}
    if refused(case, right):
        return ["the reference's own outputs, rounded to their types, do not pass"]
    found = [
        f"{name} {kind} passes"
        for name in problem.outputs
        for kind, wrong in mutants(right[name], case.slot(name).type, _bits(problem, case.slot(name).type))
        if not refused(case, {**right, name: wrong})
    ]
    return found + _unheard(case, right)


def refused(case: Case, outputs: Arrays) -> bool:
    return "failure" in values_of(case, outputs)


def _bits(problem: Problem, type_: str) -> int:
    """Significant bits of half the precision that an output is held to.

    That of its type; a workload with a tolerance of its own holds all outputs to that of the element type.
    """
    coarse = problem.element if "tolerance" in problem.namespace else type_
    return min(_MANTISSA.get(type_, 0), _MANTISSA.get(coarse, 24))


def mutants(right: np.ndarray[Any, Any], type_: str, bits: int) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Wrong versions of one output that differ from it, each with a name such as "of zeros".

    bits: significant bits of the version in half the precision.
    """
    numbers = buffers.decode(right, type_)
    middle = np.full_like(numbers, numbers.reshape(-1).mean())
    tile = numbers.copy().reshape(-1)
    tile[-max(1, tile.size // 8) :] = 0
    wrong = {
        "of zeros": np.zeros_like(numbers),
        "of one constant": middle,
        "without its last tile": tile.reshape(numbers.shape),
        "transposed": numbers.T.reshape(numbers.shape) if numbers.ndim > 1 else np.flip(numbers),
        "shifted by one": np.roll(numbers, 1, axis=-1) if numbers.ndim else numbers + 1,
    }
    if type_ in buffers.FLOATS:
        wrong["in half the precision"] = rounded(numbers, bits)
    for name, values in wrong.items():
        stored = buffers.encode(values, type_)
        if stored.tobytes() != right.tobytes():
            yield name, stored


def rounded(numbers: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Numbers with so many significant bits."""
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**bits) / 2.0**bits, exponent))


def _unheard(case: Case, right: Arrays) -> list[str]:
    """Inputs that can be replaced without any output failing its comparison."""
    found = []
    other = case.problem.inputs(_SEED + len(buffers.RECIPES), case.told["dims"])
    for name, original in case.inputs.items():
        if name in case.problem.as_drawn or case.slot(name).type not in buffers.FLOATS:
            continue
        if other[name].tobytes() == original.tobytes():
            continue
        changed = case.problem.reference({**case.inputs, name: other[name]}, case.told["dims"])
        if not refused(_with(case, changed), right):
            found.append(f"no output depends on {name} beyond its tolerance")
    return found


def suitable(problem: Problem, dims: dict[str, int]) -> tuple[list[str], dict[str, str]]:
    """The recipes for which the problem is as well conditioned as for normal inputs; why not the others."""
    kept, dropped = [], {}
    usual = _movement(_case(problem, dims, "normal"))
    for recipe in problem.recipes:
        case = _case(problem, dims, recipe)
        if not all(np.isfinite(wanted).all() for wanted in case.expected.values()):
            dropped[recipe] = "the reference is not finite"
            continue
        amplified = _movement(case) / usual if usual else 1.0
        if amplified > _AMPLIFIES:
            dropped[recipe] = f"rounding moves the outputs {amplified:.2g} times more than for normal inputs"
        else:
            kept.append(recipe)
    return kept or ["normal"], dropped


def _movement(case: Case) -> float:
    """How far the worst output element moves, scaled as in a comparison, when inputs change by the noise."""
    noise = np.random.Generator(np.random.PCG64(_SEED))
    moved = {}
    for name, original in case.inputs.items():
        type_, moved[name] = case.slot(name).type, original
        if type_ in buffers.FLOATS:
            numbers = buffers.decode(original, type_)
            moved[name] = numbers * (1 + _NOISE * noise.uniform(-1, 1, numbers.shape))
    answer = case.problem.reference(moved, case.told["dims"], decoded=True)
    worst = 0.0
    for name, wanted in case.expected.items():
        if case.slot(name).type in buffers.FLOATS:
            scale = np.abs(wanted) + np.sqrt(np.mean(np.square(wanted)))
            with np.errstate(invalid="ignore", divide="ignore"):
                worst = max(worst, float(np.nan_to_num(np.abs(answer[name] - wanted) / scale).max()))
    return worst


def _case(problem: Problem, dims: dict[str, int], recipe: str) -> Case:
    inputs = problem.inputs(_SEED, dims, recipe)
    expected = problem.reference(inputs, dims)
    told = {"size": "small", "dims": dims, "seed": _SEED, "recipe": recipe, "variant": ""}
    return Case(problem, told, inputs, expected, problem.layout(dims)[0])


def _with(case: Case, expected: dict[str, Any]) -> Case:
    return Case(case.problem, case.told, case.inputs, expected, case.slots)
