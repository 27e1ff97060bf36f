"""The shipped experts: their workloads say what they should, and their C kernels compute it."""

from __future__ import annotations

import ctypes
import inspect
import math
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from klineage.platform import detect, satisfies
from klineage.surface.c_static import declared_flags

EXPERTS = Path(__file__).parents[2] / "experts"
WORKLOADS = sorted(path.parent.name for path in EXPERTS.glob("*/workload.py"))
C_KERNELS = sorted(path.parts[-3] for path in EXPERTS.glob("*/c/kernel.c"))
C_FORMS = sorted((p.parts[-3], p.stem) for p in EXPERTS.glob("*/c/*.c") if p.stem != "kernel")
NUMPY = {
    "fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "int64": np.int64, "int32": np.int32,
}  # fmt: skip
FLAGS = ["-O3", "-std=gnu11", "-fno-math-errno", "-Wall", "-Wextra", "-Werror"]


class NumpyRng:
    """What `inputs` is promised, from one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def normal(self, *shape: int) -> Any:
        return self.generator.standard_normal(shape)

    def uniform(self, *shape: int) -> Any:
        return self.generator.random(shape)

    def integers(self, low: int, high: int, *shape: int) -> Any:
        return self.generator.integers(low, high, shape)

    def array(self, values: list[Any]) -> Any:
        return np.asarray(values)


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXPERTS / name / "workload.py"))


def checked_sizes(workload: dict[str, Any]) -> dict[str, dict[str, int]]:
    sizes = {name: dims for name, dims in workload["SIZES"].items() if name != "paper"}
    return {**sizes, "hidden": workload["HIDDEN"]}


CASES = [(name, size) for name in WORKLOADS for size in checked_sizes(load(name))]


def case(
    workload: dict[str, Any], dims: dict[str, int], element: str = "fp32", seed: int = 0
) -> dict[str, Any]:
    """Every input in its declared type; floating ones hold values that the type can hold."""
    declared = workload["tensors"](element, **dims)
    library = {"xp": np} if "xp" in inspect.signature(workload["inputs"]).parameters else {}
    drawn = workload["inputs"](NumpyRng(seed), **library, **dims)
    return {name: np.asarray(value).astype(NUMPY[declared[name][0]]) for name, value in drawn.items()}


def evaluate(
    workload: dict[str, Any], xp: Any, values: dict[str, Any], dims: dict[str, int]
) -> dict[str, Any]:
    offered = {"xp": xp, **dims, **workload.get("SCALARS", {}), **values}
    wanted = inspect.signature(workload["reference"]).parameters
    outputs: dict[str, Any] = workload["reference"](**{name: offered[name] for name in wanted})
    return outputs


def double(values: dict[str, Any]) -> dict[str, Any]:
    return {name: v.astype(np.float64) if v.dtype.kind == "f" else v for name, v in values.items()}


def assert_equal(
    workload: dict[str, Any],
    got: dict[str, Any],
    expected: dict[str, Any],
    values: dict[str, Any],
    dims: dict[str, int],
    atol: float,
) -> None:
    """Two computations of the reference agree: by the workload's own comparison where it has one."""
    if "compare" in workload:
        offered = {
            "xp": np,
            "got": got,
            "expected": expected,
            "element": "fp64",  # the values are
            **dims,
            **values,
            **workload.get("SCALARS", {}),
        }
        wanted = inspect.signature(workload["compare"]).parameters
        assert workload["compare"](**{name: offered[name] for name in wanted}) is None
        return
    for output in workload["OUTPUTS"]:
        np.testing.assert_allclose(got[output], expected[output], rtol=1e-9, atol=atol)


def plain_gemm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    return {"y": np.einsum("mk,nk->mn", v["x"], v["weight"])}


def plain_fmha(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    o = np.empty_like(v["q"])
    for begin, end in zip(v["offsets"], v["offsets"][1:], strict=False):
        for row in range(begin, end):
            for head in range(dims["heads"]):
                weights = np.exp(v["k"][begin:end, head] @ v["q"][row, head] / math.sqrt(dims["dim"]))
                o[row, head] = weights @ v["v"][begin:end, head] / weights.sum()
    return {"o": o}


def plain_add_rmsnorm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    total = v["x"] + v["residual"]
    rms = np.sqrt(np.linalg.norm(total, axis=1) ** 2 / dims["hidden"] + 1e-6)
    return {"y": total / rms[:, None] * v["weight"], "residual_out": total}


def plain_softmax(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    rows = [np.exp(row) / math.fsum(np.exp(row)) for row in v["x"]]
    return {"y": np.stack(rows)}


def plain_layernorm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    spread = np.sqrt(v["x"].var(axis=1) + 1e-5)
    return {"y": (v["x"] - v["x"].mean(axis=1)[:, None]) / spread[:, None] * v["weight"] + v["bias"]}


def plain_conv2d(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    kernel, pad = dims["kernel"], dims["kernel"] // 2
    taps = v["weight"].reshape(kernel, kernel, dims["channels"], dims["filters"])
    padded = np.pad(v["x"], ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))
    return {"y": np.tensordot(windows, taps, axes=((4, 5, 3), (0, 1, 2)))}


def plain_gdn(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    """Token by token for each head, with outer products written out as such."""
    o, final = np.empty_like(v["v"]), v["initial_state"].copy()
    for b, h in np.ndindex(dims["batch"], dims["value_heads"]):
        state, of = final[b, h], h // (dims["value_heads"] // dims["key_heads"])
        for t in range(dims["tokens"]):
            key, query = v["k"][b, t, of], v["q"][b, t, of] / math.sqrt(dims["dim"])
            state *= math.exp(v["gates"][b, t, h])
            state += np.outer(key, v["beta"][b, t, h] * (v["v"][b, t, h] - state.T @ key))
            o[b, t, h] = state.T @ query
    return {"o": o, "final_state": final}


def plain_gdn_cumsum(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    sums = np.zeros_like(v["gates"])
    for t in range(dims["tokens"]):
        before = sums[:, t - 1] if t % dims["chunk"] else 0
        sums[:, t] = before + v["gates"][:, t]
    return {"cumulative": sums}


def plain_gdn_kkt(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    """Row by row by forward substitution."""
    chunk, shape = dims["chunk"], (dims["batch"], dims["tokens"], dims["value_heads"], dims["chunk"])
    inverse, scores = np.zeros(shape), np.zeros(shape)
    for b, t, h in np.ndindex(shape[:3]):
        first, of = t // chunk * chunk, h // (dims["value_heads"] // dims["key_heads"])
        inverse[b, t, h, t - first] = v["beta"][b, t, h]
        for s in range(first, t + 1):
            decay = math.exp(v["cumulative"][b, t, h] - v["cumulative"][b, s, h])
            scores[b, t, h, s - first] = decay * v["q"][b, t, of] @ v["k"][b, s, of] / math.sqrt(dims["dim"])
            if s < t:
                factor = v["beta"][b, t, h] * decay * v["k"][b, t, of] @ v["k"][b, s, of]
                inverse[b, t, h] -= factor * inverse[b, s, h]
    return {"inverse": inverse, "scores": scores}


def plain_gdn_forward(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    """Head by head and row by row, with what each key held before its chunk."""
    chunk, o, final = dims["chunk"], np.empty_like(v["v"]), v["initial_state"].copy()
    for b, h, first in np.ndindex(dims["batch"], dims["value_heads"], -(-dims["tokens"] // chunk)):
        of, rows = (
            h // (dims["value_heads"] // dims["key_heads"]),
            range(first * chunk, dims["tokens"])[:chunk],
        )
        state, decay = final[b, h].copy(), np.exp(v["cumulative"][b, :, h])
        errors = [v["v"][b, t, h] - decay[t] * state.T @ v["k"][b, t, of] for t in rows]
        changes = []
        for t in rows:
            changes.append(sum(w * e for w, e in zip(v["inverse"][b, t, h], errors, strict=False)))
            seen = sum(w * c for w, c in zip(v["scores"][b, t, h], changes, strict=False))
            o[b, t, h] = decay[t] * state.T @ v["q"][b, t, of] / math.sqrt(dims["dim"]) + seen
        final[b, h] = decay[rows[-1]] * state
        for t, change in zip(rows, changes, strict=True):
            final[b, h] += decay[rows[-1]] / decay[t] * np.outer(v["k"][b, t, of], change)
    return {"o": o, "final_state": final}


def plain_topk(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    ranked = [sorted(range(dims["columns"]), key=row.__getitem__)[-dims["k"] :] for row in v["x"].tolist()]
    return {"values": np.take_along_axis(v["x"], np.array(ranked), 1), "indices": np.array(ranked)}


def plain_kda(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    """Token by token for each head, with outer products written out as such."""
    o, final = np.empty_like(v["v"]), v["initial_state"].copy()
    for b, h in np.ndindex(dims["batch"], dims["heads"]):
        state = final[b, h]
        for t in range(dims["tokens"]):
            key, query = v["k"][b, t, h], v["q"][b, t, h]
            state *= np.exp(v["gates"][b, t, h])[:, None]
            state += np.outer(key, v["beta"][b, t, h] * (v["v"][b, t, h] - key @ state))
            o[b, t, h] = query @ state / math.sqrt(dims["dim"])
    return {"o": o, "final_state": final}


def plain_gqa(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    o, group = np.empty_like(v["q"]), dims["heads"] // dims["kv_heads"]
    for b, t, h in np.ndindex(dims["batch"], dims["tokens"], dims["heads"]):
        keys, values = (v[name][b, : t + 1, h // group] for name in ("k", "v"))
        weights = np.exp(keys @ v["q"][b, t, h] / math.sqrt(dims["dim"]))
        o[b, t, h] = weights @ values / weights.sum()
    return {"o": o}


def plain_top_p(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    y = np.zeros_like(v["probabilities"])
    for row, out in zip(v["probabilities"].tolist(), y, strict=True):
        falling = sorted(range(len(row)), key=row.__getitem__, reverse=True)
        total, kept = 0.0, []
        for place in falling:
            if total >= 0.9 and row[place] != row[kept[-1]]:
                break
            total += row[place]
            kept.append(place)
        out[kept] = np.array(row)[kept] / total
    return {"y": y}


def plain_sparse_attention(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    shape = (dims["queries"], dims["heads"])
    o, most, lse = np.empty((*shape, dims["value_width"])), np.empty(shape), np.empty(shape)
    for query, head in np.ndindex(shape):
        seen = v["kv"][[i for i in v["indices"][query] if i >= 0]]
        scores = seen @ v["q"][query, head] / math.sqrt(dims["width"])
        most[query, head], lse[query, head] = scores.max(), math.log(np.exp(scores).sum())
        o[query, head] = np.exp(scores - lse[query, head]) @ seen[:, : dims["value_width"]]
    return {"o": o, "max_logits": most, "lse": lse}


def plain_rmsnorm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    rms = np.sqrt(np.linalg.norm(v["x"], axis=1) ** 2 / dims["hidden"] + 1e-6)
    return {"y": v["x"] / rms[:, None] * v["weight"]}


def plain_addmm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    return {"y": np.einsum("mk,kn->mn", v["a"], v["b"]) + np.tile(v["bias"], (dims["m"], 1))}


def plain_bmm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    return {"y": np.einsum("bmk,bkn->bmn", v["a"], v["b"])}


def plain_grouped_gemm(v: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    """Row by row, with the matrix of the last group that begins at or before the row."""
    groups = np.searchsorted(v["offsets"], np.arange(dims["rows"]), side="right") - 1
    return {"y": np.stack([row @ v["weight"][g] for row, g in zip(v["x"], groups, strict=True)])}


PLAIN = {
    "rmsnorm": plain_rmsnorm,
    "addmm": plain_addmm,
    "bmm": plain_bmm,
    "grouped_gemm": plain_grouped_gemm,
    "kda": plain_kda,
    "gqa": plain_gqa,
    "top_p": plain_top_p,
    "sparse_attention": plain_sparse_attention,
    "gemm": plain_gemm,
    "conv2d": plain_conv2d,
    "fmha": plain_fmha,
    "gdn": plain_gdn,
    "gdn_cumsum": plain_gdn_cumsum,
    "gdn_kkt": plain_gdn_kkt,
    "gdn_forward": plain_gdn_forward,
    "topk": plain_topk,
    "add_rmsnorm": plain_add_rmsnorm,
    "softmax": plain_softmax,
    "layernorm": plain_layernorm,
}


@pytest.mark.parametrize(("name", "size"), CASES)
def test_reference_agrees_with_a_plain_computation(name: str, size: str) -> None:
    workload = load(name)
    dims = checked_sizes(workload)[size]
    values = double(case(workload, dims))
    expected = PLAIN[name](values, dims)
    got = evaluate(workload, np, values, dims)
    declared = workload["tensors"]("fp32", **dims)
    assert set(got) == set(workload["OUTPUTS"]) == set(expected)
    for output, value in got.items():
        assert value.shape == declared[output][1]
    assert_equal(workload, got, expected, values, dims, atol=1e-9)


@pytest.mark.triton
@pytest.mark.parametrize("name", WORKLOADS)
def test_reference_is_the_same_in_numpy_and_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    workload = load(name)
    dims = workload["SIZES"]["ragged"]
    values = double(case(workload, dims))
    in_numpy = evaluate(workload, np, values, dims)
    in_torch = evaluate(workload, torch, {k: torch.from_numpy(v) for k, v in values.items()}, dims)
    in_torch = {name: value.numpy() for name, value in in_torch.items()}
    assert_equal(workload, in_torch, in_numpy, values, dims, atol=1e-12)


@pytest.mark.parametrize("size", ["small", "ragged"])
def test_gated_delta_rule_is_its_three_parts(size: str) -> None:
    workload = load("gdn")
    dims = workload["SIZES"][size]
    values = double(case(workload, dims))
    whole = evaluate(workload, np, values, dims)
    dims = {**dims, "heads": dims["value_heads"], "chunk": 64}
    for part in ("gdn_cumsum", "gdn_kkt", "gdn_forward"):
        values |= evaluate(load(part), np, values, dims)
    for output in workload["OUTPUTS"]:
        np.testing.assert_allclose(values[output], whole[output], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WORKLOADS)
def test_declarations(name: str) -> None:
    workload = load(name)
    assert workload["__doc__"].strip()
    assert {"small", "ragged", "paper"} <= set(workload["SIZES"])
    for dims in [*workload["SIZES"].values(), workload["HIDDEN"]]:
        assert workload["unsupported"](**dims) is None
        tensors = workload["tensors"]("fp16", **dims)
        assert list(tensors)[-len(workload["OUTPUTS"]) :] == list(workload["OUTPUTS"])
        cost = workload["cost"](2, **dims)
        assert cost["bytes"] >= 2 * sum(
            math.prod(shape) for kind, shape in tensors.values() if kind == "fp16"
        )
        assert cost["operations"] > 0
    small = case(workload, workload["SIZES"]["small"])
    declared = workload["tensors"]("fp32", **workload["SIZES"]["small"])
    assert set(small) == set(declared) - set(workload["OUTPUTS"])
    assert all(value.shape == declared[key][1] for key, value in small.items())


@pytest.mark.parametrize("seed", range(20))
def test_fmha_offsets_split_the_tokens(seed: int) -> None:
    workload = load("fmha")
    for dims in workload["SIZES"].values():
        if dims["tokens"] > 1024:
            continue
        lengths = np.diff(case(workload, dims, seed=seed)["offsets"])
        assert lengths.sum() == dims["tokens"]
        assert lengths.min() >= 1
        assert lengths.max() <= dims["length"]


def test_flaggems_instances_fit_their_workloads() -> None:
    suite = tomllib.loads((EXPERTS / "suites" / "flaggems.toml").read_text())
    instances = suite["instance"]
    assert len(instances) == len({i["name"] for i in instances}) == 22
    for instance in instances:
        workload = load(instance["workload"])
        assert workload["unsupported"](**instance["sizes"]) is None
        assert workload["tensors"](instance["dtype"], **instance["sizes"])
        cost = workload["cost"](2, **instance["sizes"])
        # What the card can do at most: 1.8 TB/s, and 500 TFLOP/s of dense bf16 products.
        floor_ms = 1e3 * max(cost["bytes"] / 1.8e12, cost["operations"] / 500e12)
        assert instance["published_ms"] > floor_ms, instance["name"]


def test_unsupported_names_the_constraint() -> None:
    assert "power of two" in load("fmha")["unsupported"](sequences=1, length=8, tokens=8, heads=1, dim=48)
    assert "9 tokens" in load("fmha")["unsupported"](sequences=1, length=8, tokens=9, heads=1, dim=64)
    assert "2**31" in load("gemm")["unsupported"](m=2**20, n=1, k=2**12)
    conv2d = dict.fromkeys(("batch", "height", "width", "channels", "filters"), 1)
    assert "1, 3, 5 or 7" in load("conv2d")["unsupported"](**conv2d, kernel=2)
    assert "2**31" in load("conv2d")["unsupported"](**{**conv2d, "batch": 2**31}, kernel=1)
    heads = {"batch": 1, "tokens": 8, "key_heads": 2, "value_heads": 4, "dim": 64}
    for name, dims in {
        "gdn": heads,
        "gdn_kkt": {**heads, "chunk": 64},
        "gdn_forward": {**heads, "chunk": 64},
    }.items():
        refused = load(name)["unsupported"]
        assert "dim must be" in refused(**{**dims, "dim": 96})
        assert "multiple of key_heads" in refused(**{**dims, "value_heads": 3})
        assert "2**31" in refused(**{**dims, "tokens": 2**24})
    assert "chunk must be 64, not 32" in load("gdn_kkt")["unsupported"](**heads, chunk=32)
    assert "chunk must be" in load("gdn_forward")["unsupported"](**heads, chunk=48)
    assert "chunk must be" in load("gdn_cumsum")["unsupported"](batch=1, tokens=8, heads=1, chunk=48)
    assert "2**31" in load("gdn_cumsum")["unsupported"](batch=1, tokens=2**30, heads=2, chunk=64)
    assert "9 is more than 8" in load("topk")["unsupported"](rows=1, columns=8, k=9)
    assert "32768" in load("topk")["unsupported"](rows=1, columns=32769, k=1)
    assert "65536" in load("add_rmsnorm")["unsupported"](rows=1, hidden=65537)


def built(name: str, folder: Path, march: str, form: str = "kernel", optimized: str = "-O3") -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    library = folder / f"{name}-{form}-{march}.so"
    source = EXPERTS / name / "c" / f"{form}.c"
    own = declared_flags(source.read_bytes())
    flags = [*FLAGS, optimized, *own, f"-march={march}", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, source, "-o", library, "-lm"], check=True, timeout=60)
    return library


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("experts")
    return {name: built(name, folder, "native") for name in C_KERNELS}


def page_aligned(kind: str, shape: tuple[int, ...]) -> Any:
    """An array of NaN (or of -1) that starts on a page, as the gate hands them out."""
    type_ = np.dtype(NUMPY[kind])
    raw = np.full(math.prod(shape) + 4096, np.nan if type_.kind == "f" else -1, dtype=type_)
    skip = (-raw.ctypes.data % 4096) // type_.itemsize
    return raw[skip : skip + math.prod(shape)].reshape(shape)


def call(library: Path, name: str, values: dict[str, Any]) -> None:
    """Calls the exported function with its parameters matched by name."""
    source = next((EXPERTS / name / "c").glob("*.c")).read_text()
    signature = re.search(rf"^void {name}\((.*?)\)", source, re.DOTALL | re.MULTILINE)
    assert signature is not None
    arguments: list[Any] = []
    for parameter in signature.group(1).split(","):
        kind, value = parameter.strip(), values[re.split(r"[\s*]+", parameter.strip())[-1]]
        if "*" in kind:
            arguments.append(ctypes.c_void_p(value.ctypes.data))
        else:
            arguments.append(ctypes.c_int64(value) if "int64_t" in kind else ctypes.c_float(value))
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function(*arguments)


@pytest.mark.parametrize(("name", "size"), [c for c in CASES if c[0] in C_KERNELS])
def test_c_kernel_matches_the_reference(libraries: dict[str, Path], name: str, size: str) -> None:
    assert_computes(libraries[name], name, size)


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("name", C_KERNELS)
def test_c_kernel_is_right_with_narrower_vectors(name: str, march: str, tmp_path: Path) -> None:
    here = detect().cpu_platform
    if not satisfies(here, f"cpu-{march}"):
        pytest.skip(f"this machine is {here}")
    assert_computes(built(name, tmp_path, march), name, "ragged")


@pytest.mark.parametrize(("name", "form"), C_FORMS)
def test_every_form_in_c_computes_what_its_workload_says(name: str, form: str, tmp_path: Path) -> None:
    library = built(name, tmp_path, "native", form, "-O1")
    for size in ("ragged", "hidden"):
        assert_computes(library, name, size)
    if "VECTOR_BYTES" in (EXPERTS / name / "c" / f"{form}.c").read_text():
        assert_computes(built(name, tmp_path, "x86-64", form, "-O1"), name, "ragged")


def assert_computes(library: Path, name: str, size: str) -> None:
    workload = load(name)
    dims = checked_sizes(workload)[size]
    values = case(workload, dims)
    buffers: dict[str, Any] = {}
    for key, (kind, shape) in workload["tensors"]("fp32", **dims).items():
        buffers[key] = page_aligned(kind, shape)
        if key in values:
            buffers[key][...] = values[key]
    call(library, name, {**buffers, **dims, **workload.get("SCALARS", {})})
    tolerance = workload["tolerance"]("fp32", **dims) if "tolerance" in workload else 1e-5
    reference = evaluate(workload, np, double(values), dims)
    if "compare" in workload:
        assert_equal(workload, buffers, reference, double(values), dims, atol=0.0)
        reference = {}
    for output, expected in reference.items():
        scale = np.sqrt(np.mean(expected**2)) + np.abs(expected)
        assert np.max(np.abs(buffers[output] - expected) / scale) <= tolerance
    for key, value in values.items():
        assert np.array_equal(buffers[key], value), f"{key} was changed"


@pytest.mark.parametrize("path", sorted(EXPERTS.rglob("*.*")), ids=lambda p: str(p.relative_to(EXPERTS)))
def test_files_are_plain_text(path: Path) -> None:
    if "__pycache__" in path.parts:
        return
    data = path.read_bytes()
    assert data.isascii()
    assert b"\r" not in data
    assert b"\t" not in data
    assert data.endswith(b"\n")
    assert all(line == line.rstrip() for line in data.decode().split("\n"))


def test_topk_accepts_any_order_and_says_what_is_wrong() -> None:
    workload = load("topk")
    dims = workload["SIZES"]["small"]
    values = double(case(workload, dims))
    right = evaluate(workload, np, values, dims)

    def said(**changed: Any) -> str | None:
        got = {**right, **changed}
        answer: str | None = workload["compare"](np, got, right, values["x"], **dims)
        return answer

    order = np.random.default_rng(0).permutation(dims["k"])
    assert said(values=right["values"][:, order], indices=right["indices"][:, order]) is None
    for column in (-1, dims["columns"]):
        indices = right["indices"].copy()
        indices[2, 5] = column
        assert f"indices[2, 5] is {column}" in str(said(indices=indices))
    indices, picked = right["indices"].copy(), right["values"].copy()
    indices[1, 0], picked[1, 0] = indices[1, 9], picked[1, 9]
    assert "row 1" in str(said(indices=indices, values=picked))
    assert "more than once" in str(said(indices=indices, values=picked))
    picked = right["values"].copy()
    picked[3, 4] += 1
    assert "values[3, 4]" in str(said(values=picked))
    smallest = values["x"].argsort(-1)[:, : dims["k"]]
    picked = np.take_along_axis(values["x"], smallest, 1)
    assert "not the 32 largest" in str(said(values=picked, indices=smallest))


def test_pages_quote_what_was_measured() -> None:
    root = EXPERTS.parent
    page = (root / "docs" / "experts.md").read_text()
    gate = (root / "docs" / "gate.md").read_text()
    for name, text in (("experts-cpu", page), ("experts-h200", page), ("kernelbench", gate)):
        quoted = re.search(rf"<!-- {name}: begin, from (\S+) -->\n```\n(.*?)```\n", text, re.DOTALL)
        assert quoted is not None, name
        assert quoted[2] == (root / quoted[1]).read_text(), name
    missing = [name for name in C_KERNELS if f"| `{name}` | C |" not in page]
    assert not missing


def test_topk_in_c_takes_every_number(libraries: dict[str, Path]) -> None:
    """Zeros of both signs, subnormal numbers, infinities, all equal; and a NaN leads nowhere outside the buffers."""
    generator = np.random.default_rng(3)
    drawn = generator.standard_normal((8, 509)).astype(np.float32)
    where = generator.random((8, 509))
    drawn[0] = -0.0
    drawn[1] = np.where(where[1] < 0.5, np.float32(-0.0), np.float32(0.0))
    drawn[2] = np.where(where[2] < 0.4, np.float32(-0.0), np.sign(drawn[2]))
    drawn[3] *= np.float32(1e-40)
    drawn[4] = np.where(where[4] < 0.3, np.float32(np.inf), drawn[4])
    drawn[5] = np.where(where[5] < 0.95, np.float32(-np.inf), drawn[5])
    drawn[6] = 1.5
    drawn[7, 100] = np.nan
    dims = {"rows": 8, "columns": 509, "k": 67}
    buffers = {"x": page_aligned("fp32", (8, 509))}
    buffers["x"][...] = drawn
    buffers |= {"values": page_aligned("fp32", (8, 67)), "indices": page_aligned("int64", (8, 67))}
    call(libraries["topk"], "topk", {**buffers, **dims})
    for row in range(7):
        chosen = buffers["indices"][row]
        assert len(set(chosen.tolist())) == 67
        assert np.array_equal(drawn[row, chosen], buffers["values"][row])
        assert np.array_equal(np.sort(buffers["values"][row]), np.sort(drawn[row])[-67:])
