"""What the judge makes of a region, case by case; and that the GPU's version of it says the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.worker import buffers
from klineage.worker.compare import compare
from klineage.worker.examine import Case, examine
from klineage.worker.oracle import weaknesses
from klineage.worker.problem import load
from klineage.workload import DISTRIBUTIONS

SOURCE = b"""
OUTPUTS = ("y",)

def tensors(element, n):
    return {"x": (element, (n,)), "gate": (element, (n,)), "y": (element, (n,))}

def inputs(rng, n):
    return {"x": rng.normal(n), "gate": rng.normal(n)}

def reference(xp, x, gate):
    return {"y": x * gate}

def cost(itemsize, n):
    return {"bytes": 1, "operations": 1}
"""
DIMS = {"n": 40}


def problem(more: str = "", element: str = "fp32") -> Any:
    return load(SOURCE + more.encode(), "mine/workload.py", element)


def case(variant: str = "", recipe: str = "normal", what: Any = None, **more: Any) -> Case:
    known = what or problem()
    inputs = known.inputs(7, DIMS, recipe)
    told = {"size": "small", "dims": DIMS, "seed": 7, "recipe": recipe, "variant": variant, "keep": True}
    slots = buffers.layout(known.tensors(DIMS), variant == "again")[0]
    return Case(known, told, inputs, known.reference(inputs, DIMS), slots, **more)


def region_of(case: Case) -> np.ndarray[Any, Any]:
    total = buffers.layout(case.problem.tensors(DIMS), case.second)[1]
    region = np.zeros(total, np.uint8)
    buffers.fill(region, case.slots, case.inputs, case.second)
    return region


def run(case: Case, region: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A good kernel; returns the view of its output."""
    y = buffers.stored(region, case.slot("y"))
    y[:] = buffers.encode(case.expected["y"], case.slot("y").type)
    return y


def reason(answer: dict[str, Any]) -> str:
    return answer["failure"]["reason"] if "failure" in answer else ""


def test_the_two_lists_of_distributions_agree() -> None:
    assert DISTRIBUTIONS == buffers.RECIPES


@pytest.mark.parametrize("recipe", [*DISTRIBUTIONS, "perturbed"])
def test_a_recipe_has_its_character_and_is_repeatable(recipe: str) -> None:
    first, again = (buffers.Rng(3, recipe).normal(64, 64) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.dtype == np.float32
    middle, spread = float(np.mean(first)), float(np.std(first))
    wanted = {
        "normal": (0, 1), "ties": (0, 0.69), "large": (0, 1e3), "offset": (1.5, 0.29), "tiny": (0, 1e-3),
        "perturbed": (0, 1.1),
    }[recipe]  # fmt: skip
    assert abs(middle - wanted[0]) < 0.2 * wanted[1] + 0.05 * wanted[0]
    assert 0.8 < spread / wanted[1] < 1.25
    if recipe == "ties":
        assert set(np.unique(first)) == {-1, -0.5, 0, 0.5, 1}
        assert np.count_nonzero(first == 0) > first.size // 8


def test_what_is_perturbed_is_one_block() -> None:
    plain, changed = (buffers.Rng(3, recipe).normal(800) for recipe in ("normal", "perturbed"))
    different = np.flatnonzero(plain != changed)
    assert different.size == 100 == different[-1] - different[0] + 1


def test_a_workload_keeps_inputs_as_drawn() -> None:
    plain = problem().inputs(7, DIMS)
    kept = problem('\nAS_DRAWN = ("gate",)\n').inputs(7, DIMS, "large")
    assert np.array_equal(kept["gate"], plain["gate"])
    assert np.array_equal(kept["x"], plain["x"] * np.float32(1e3))


def test_inputs_may_compute_with_the_library_of_what_is_drawn() -> None:
    known = load(
        SOURCE.replace(b"inputs(rng, n)", b"inputs(rng, xp, n)").replace(b'x": rng.', b'x": xp.exp(rng.')
        .replace(b'(n), "gate"', b'(n)), "gate"'),
        "mine/workload.py", "fp32",
    )  # fmt: skip
    host = known.inputs(7, DIMS)
    assert np.allclose(host["x"], np.exp(problem().inputs(7, DIMS)["x"]))
    torch = pytest.importorskip("torch")
    device = known.inputs(7, DIMS, device="cpu")
    assert isinstance(device["x"], torch.Tensor)
    assert torch.equal(device["x"], torch.exp(problem().inputs(7, DIMS, device="cpu")["x"]))


def test_half_the_precision_is_that_of_the_tolerance() -> None:
    loose = "\ndef tolerance(element, n):\n    return 1.6e-2\n"
    mixed = SOURCE.replace(b'"y": (element,', b'"y": ("fp32",')
    assert not weaknesses(load(mixed, "mine/workload.py", "bf16"), DIMS)
    assert not weaknesses(load(mixed + loose.encode(), "mine/workload.py", "bf16"), DIMS)
    assert "y in half the precision passes" in weaknesses(problem(loose), DIMS)
    looser = loose.replace("1.6e-2", "0.1").encode()
    assert "y in half the precision passes" in weaknesses(
        load(mixed + looser, "mine/workload.py", "bf16"), DIMS
    )


def test_the_second_run_lies_elsewhere_with_other_poison() -> None:
    first, second = case(), case("again")
    places = [{slot.name: slot.offset for slot in c.slots} for c in (first, second)]
    assert all(places[0][name] != places[1][name] for name in places[0])
    y = buffers.stored(region_of(second), second.slot("y"))
    assert np.isfinite(y).all()  # code that ignores NaN does not ignore this
    assert buffers.is_poison(y, "fp32", True).all()


def test_a_good_kernel_passes_every_variant() -> None:
    base = case()
    region = region_of(base)
    run(base, region)
    found = examine(base, region, None)
    assert not reason(found)
    assert 0 < found["rms"] < 0.05  # of the tolerance: rounding to fp32
    for variant, recipe in (("again", "normal"), ("perturbed", "perturbed")):
        other = case(variant, recipe)
        region = region_of(other)
        run(other, region)
        assert not reason(examine(other, region, base)), variant
    ghost = case("ghost")
    assert not reason(examine(ghost, region_of(ghost), base))


def kept_base() -> Case:
    base = case()
    region = region_of(base)
    run(base, region)
    examine(base, region, None)
    return base


def test_another_result_the_second_time_is_found() -> None:
    base, other = kept_base(), case("again")
    region = region_of(other)
    y = run(other, region)
    y[5] = np.nextafter(y[5], np.float32(9))
    found = examine(other, region, base)
    assert reason(found) == "nondeterministic"
    assert found["failure"]["index"] == [5]
    other.atomics = True
    assert not reason(examine(other, region, base))
    y[5] *= 2
    assert reason(examine(other, region, base)) == "mismatch"


def test_what_is_only_written_once_is_found() -> None:
    base, other = kept_base(), case("again")
    region = region_of(other)
    run(other, region)[9:] = buffers.stored(region_of(other), other.slot("y"))[9:]
    found = examine(other, region, base)
    assert (reason(found), found["failure"]["index"]) == ("unwritten", [9])


def test_output_without_a_kernel_is_found() -> None:
    ghost = case("ghost")
    region = region_of(ghost)
    buffers.stored(region, ghost.slot("y"))[3] = 0.25
    found = examine(ghost, region, kept_base())
    assert reason(found) == "host_output"
    assert "y[3] is 0.25" in found["failure"]["summary"]


def test_an_output_that_does_not_follow_its_inputs_is_found() -> None:
    base, other = kept_base(), case("perturbed", "perturbed")
    region = region_of(other)
    run(other, region)[:] = base.outputs["y"]
    assert reason(examine(other, region, base)) == "insensitive"
    assert reason(examine(other, region, None)) == "mismatch"


def test_beyond_the_range_of_the_type_nothing_is_compared() -> None:
    half = problem(element="fp16")
    beyond = case("", "large", half)
    assert float(np.abs(beyond.expected["y"]).max()) > buffers.LARGEST["fp16"] / 2
    assert examine(beyond, region_of(beyond), None)["skipped"]


TOP = """
def compare(xp, got, expected, x):
    if float(xp.amax(abs(xp.sort(got["y"]) - xp.sort(expected["y"])))) > 1e-5:
        return "y has other values"
    return None
"""


def test_a_workload_may_compare_for_itself() -> None:
    sorting = case(what=problem(TOP))
    region = region_of(sorting)
    y = run(sorting, region)
    y[:] = y[::-1].copy()
    assert not reason(examine(sorting, region, None))
    y[0] += 1
    found = examine(sorting, region, None)
    assert (reason(found), found["failure"]["summary"]) == ("mismatch", "y has other values (size small)")
    y[:] = buffers.stored(region_of(sorting), sorting.slot("y"))
    assert reason(examine(sorting, region, None)) == "unwritten"


@pytest.mark.triton
@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(tuple(buffers.FLOATS)),
    st.sampled_from(("right", "noise", "nan", "poison", "inf")),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_device_says_what_the_host_says(type_: str, what: str, second: bool, seed: int) -> None:
    torch = pytest.importorskip("torch")
    from klineage.worker import on_device

    expected = np.random.default_rng(seed).standard_normal((6, 7)) * 10.0 ** (seed % 9 - 4)
    stored = buffers.encode(expected, type_).copy()
    rtol = buffers.RELATIVE_TOLERANCE[type_]
    at = seed % 6, seed % 7
    if what == "noise":
        scale = abs(expected[at]) + np.sqrt(np.mean(expected**2))
        stored[at] = buffers.encode(expected[at] + 2 * rtol * scale, type_)
    elif what in ("nan", "inf"):
        stored[at] = buffers.encode(np.array(float(what)), type_)
    elif what == "poison":
        stored[at] = np.frombuffer(buffers.poison(type_, second), buffers.STORAGE[type_])[0]
    host = compare(stored, expected, type_, rtol, second)
    tensor = torch.from_numpy(stored.view(np.uint8)).view(on_device.dtype(type_)).view(stored.shape)
    right, worst, rms = on_device.errors(tensor, torch.from_numpy(expected), type_, rtol, second)
    assert right == host.ok == (what == "right")
    if right:
        assert worst == pytest.approx(host.worst, rel=1e-6, abs=1e-15)
        assert rms == pytest.approx(host.rms, rel=1e-6, abs=1e-15)


@pytest.mark.triton
@pytest.mark.parametrize("second", [False, True])
def test_a_case_on_a_device_is_judged_alike(second: bool) -> None:
    torch = pytest.importorskip("torch")
    from klineage.worker import on_device

    known = problem(element="bf16")
    inputs = known.inputs(11, DIMS, "normal", "cpu")
    expected = known.reference(inputs, DIMS, "cpu")
    told = {"size": "small", "dims": DIMS, "seed": 11, "recipe": "normal", "variant": "", "keep": True}
    slots, total = buffers.layout(known.tensors(DIMS), second)
    memory = torch.empty(total, dtype=torch.uint8)
    judged = Case(known, told, inputs, expected, slots, "cpu")
    if second:
        judged.told["variant"] = "again"

    def after(change: Any = None) -> str:
        on_device.fill(memory, slots, inputs, second)
        on_device.stored(memory, judged.slot("y")).copy_(expected["y"])
        if change:
            change()
        host = np.zeros(total, np.uint8)
        on_device.download(memory, host, slots, ("y",))
        return reason(examine(judged, host, None))

    assert after() == ""
    assert after(lambda: memory[judged.slot("y").end : judged.slot("y").end + 1].fill_(0)) == "out_of_bounds"
    assert after(lambda: on_device.stored(memory, judged.slot("x"))[3:4].add_(1)) == "input_changed"
    assert after(lambda: on_device.stored(memory, judged.slot("y"))[3:4].add_(1)) == "mismatch"


@pytest.mark.triton
@pytest.mark.parametrize("recipe", [*DISTRIBUTIONS, "perturbed"])
def test_a_device_draws_the_same_characters(recipe: str) -> None:
    pytest.importorskip("torch")
    from klineage.worker.on_device import DeviceRng

    host = buffers.Rng(5, recipe).normal(100, 100)
    device, again = (DeviceRng(5, recipe, "cpu").normal(100, 100) for _ in range(2))
    assert bool((device == again).all())
    assert float(device.std()) == pytest.approx(float(host.std()), rel=0.1)
    assert float(device.mean()) == pytest.approx(float(host.mean()), abs=0.1 * float(host.std()))
