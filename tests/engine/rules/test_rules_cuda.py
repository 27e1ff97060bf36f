"""The CUDA rules: on the shipped expert in every order, on honest kernels of others, and on small ones."""

from __future__ import annotations

import random
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from klineage.kernel import Kernel
from klineage.proposer.rules import RULES, NotApplicable, after, derive, features, propose, why_not
from klineage.surface.cuda_launch import declared
from klineage.surface.tree import parse

from . import cuda_on_cpu

TESTS = Path(__file__).parents[2]
OTHERS = sorted([*TESTS.glob("jury/honest/cuda/*.cu"), *TESTS.glob("engine/cuda/kernels/*.cu")])


def kernel(source: str | bytes) -> Kernel:
    text = source.encode() if isinstance(source, str) else source
    return Kernel("cuda", "kernel.cu", "+".join(declared(text).launched), text)


def offered(given: Kernel) -> set[str]:
    return {c.proposer.removeprefix("rules:") for c in propose(given)}


def reasons(given: Kernel) -> dict[str, str]:
    return {n.rule.name: n.reason for n in why_not(given)}


def step(given: Kernel, rule: str) -> Kernel:
    """What a rule makes of a kernel, after checking that its forward edit restores every byte."""
    candidate = next(c for c in propose(given) if c.proposer == f"rules:{rule}")
    simpler = after(given, candidate)
    assert derive(rule, simpler, candidate.locus, candidate.settings) == given.source
    assert parse("cuda", "kernel.cu", simpler.source).broken_lines() == ()
    return simpler


def test_the_first_proposals_lead_to_a_simplest_form(expert, first_walk) -> None:
    steps = first_walk(expert("add_rmsnorm", "cuda"))
    assert len(steps) >= 8
    assert features(after(*steps[-1])) == []


def test_dependents_go_before_their_prerequisites(expert, first_walk) -> None:
    actions = [c.action for _, c in first_walk(expert("add_rmsnorm", "cuda"))]
    for dependent, prerequisite in [
        ("unroll", "vectorize"),
        ("vectorize", "mask_specialize"),
        ("vectorize", "register_tiling"),
        ("unroll", "warp_exchange"),
    ]:
        assert actions.index(dependent) < actions.index(prerequisite)


def test_every_reachable_step_is_exact_and_reversible(expert, reachable, check_step) -> None:
    states = set()
    steps = reachable(expert("add_rmsnorm", "cuda"))
    for state, candidate, simpler in islice(steps, 60):  # of some hundred
        assert check_step(state, candidate, simpler), f"{candidate.proposer} was not restored to the byte"
        states.add(simpler.hash)
    assert len(states) > 20


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_kernels_of_others_are_taken_apart_exactly(path, first_walk, check_step) -> None:
    for state, candidate in first_walk(kernel(path.read_bytes())):
        simpler = after(state, candidate)
        assert check_step(state, candidate, simpler), candidate.proposer
        assert parse("cuda", "kernel.cu", simpler.source).broken_lines() == ()


def test_comments_at_the_ends_of_lines_stay(expert, first_walk, check_comments) -> None:
    for seed, (state, _) in enumerate(first_walk(expert("add_rmsnorm", "cuda"))):
        print("seed", seed)
        check_comments(state, random.Random(seed))


def test_line_endings_outside_the_edit_stay(expert, first_walk, check_line_endings) -> None:
    for seed, (state, _) in enumerate(first_walk(expert("add_rmsnorm", "cuda"))):
        print("seed", seed)
        check_line_endings(state, random.Random(seed), (b"\n", b"\r\n"))


def test_damaged_files_are_proposed_only_what_is_sound(expert, damaged, check_step) -> None:
    for seed in range(8):
        print("seed", seed)
        broken = damaged(expert("add_rmsnorm", "cuda"), random.Random(seed))
        for candidate in propose(broken):
            try:
                check_step(broken, candidate, after(broken, candidate))
            except NotApplicable as reason:
                assert reason.reason


def test_broken_and_empty_files_are_proposed_nothing() -> None:
    for text in ("", "__global__ void f(", "\x00\x01", "#define A", "#if 1\n"):
        assert propose(kernel(text)) == []


FORMS = Path(__file__).parent / "kernels" / "forms.cu"
needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def test_every_form_is_taken_out_and_put_back_exactly(first_walk, check_step) -> None:
    steps = first_walk(kernel(FORMS.read_bytes()))
    assert {c.proposer.removeprefix("rules:") for _, c in steps} == {
        rule.name for rule in RULES["cuda"] if rule.name != "specialization"
    }
    for state, candidate in steps:
        assert check_step(state, candidate, after(state, candidate)), candidate.proposer


def results_of_forms(given: Kernel, x: np.ndarray, folder: Path) -> dict[str, np.ndarray]:
    """What every kernel of ``forms.cu`` makes of a matrix of 40 x 128."""
    library = cuda_on_cpu.built(given, folder)
    wide = ("scaled", "transposed", "permuted", "staged")
    outputs = {name: np.full((40, 128), np.nan, np.float32) for name in wide}
    outputs |= {"summed": np.full(40, np.nan, np.float32), "tiled": np.full(5000, np.nan, np.float32)}
    dims = {"quads": 1280, "rows": 40, "columns": 128, "n": 5000}
    numbers = {
        "scaled": (1280, 0.5),
        "summed": (128,),
        "transposed": (40, 128),
        "permuted": (40, 128),
        "tiled": (5000,),
    }
    for name, output in outputs.items():
        cuda_on_cpu.run(library, given, name, dims, x, output, *numbers.get(name, ()))
    return outputs


@needs_cpp
def test_every_form_computes_the_same_when_it_is_simplified(first_walk, tmp_path) -> None:
    given = kernel(FORMS.read_bytes())
    simplest = after(*first_walk(given)[-1])
    x = np.random.default_rng(3).standard_normal((40, 128)).astype(np.float32)
    before = results_of_forms(given, x, tmp_path / "given")
    now = results_of_forms(simplest, x, tmp_path / "simplest")
    for name, value in before.items():
        np.testing.assert_array_equal(now[name], value, err_msg=name)
    np.testing.assert_array_equal(before["scaled"], x * np.float32(0.5))
    np.testing.assert_array_equal(before["transposed"].reshape(128, 40), x.T)
    np.testing.assert_array_equal(before["permuted"].reshape(128, 40), x.T)
    np.testing.assert_array_equal(before["staged"], x[:, ::-1])
    np.testing.assert_allclose(before["summed"], np.log(np.exp(x).sum(axis=1)), rtol=1e-5)
    flat = x.ravel()[:5000]
    np.testing.assert_allclose(before["tiled"], flat / np.sqrt(1 + flat * flat), rtol=1e-5)


@needs_cpp
def test_the_simplest_form_of_the_expert_computes_the_same(expert, first_walk, tmp_path) -> None:
    given = expert("add_rmsnorm", "cuda")
    simplest = after(*first_walk(given)[-1])
    libraries = [
        cuda_on_cpu.built(one, tmp_path / name) for name, one in (("given", given), ("simplest", simplest))
    ]
    for rows, hidden in ((3, 1536), (2, 1021)):
        rng = np.random.default_rng(hidden)
        x, residual, weight = (
            (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            for shape in ((rows, hidden), (rows, hidden), hidden)
        )
        outputs = []
        for one, library in zip((given, simplest), libraries, strict=True):
            y, total = np.zeros_like(x), np.zeros_like(x)
            dims = {"rows": rows, "hidden": hidden}
            cuda_on_cpu.run(
                library, one, "add_rmsnorm_kernel", dims, x, residual, weight, y, total, hidden, 1e-6
            )
            outputs.append((y, total))
        (y, total), (y_simple, total_simple) = outputs
        np.testing.assert_array_equal(total, total_simple)
        wide = [
            (v.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            for v in (x, residual, weight, y, y_simple)
        ]
        wanted = wide[0] + wide[1]
        wanted = wanted / np.sqrt((wanted**2).mean(axis=1, keepdims=True) + 1e-6) * wide[2]
        for result in wide[3:]:  # sums in another order: a rounding of bf16 more or less
            np.testing.assert_allclose(result, wanted, rtol=2**-7, atol=1e-6)


def test_the_simplest_forms_compile(expert, first_walk, tmp_path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    for given in (expert("add_rmsnorm", "cuda"), kernel(FORMS.read_bytes())):
        source = tmp_path / "kernel.cu"
        source.write_bytes(after(*first_walk(given)[-1]).source)
        command = [
            "nvcc",
            "-arch=sm_90",
            "-include",
            "cuda_pipeline_primitives.h",
            "-cubin",
            "-o",
            tmp_path / "k.cubin",
            source,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
