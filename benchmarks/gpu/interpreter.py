"""The interpreter against a real GPU: the same kernels, inputs and seeds, bit by bit, every difference explained.

    PYTHONPATH=engine python benchmarks/gpu/interpreter.py --out DIR

Carry: benchmarks/gpu/interpreter.py and interpreter_kernels.py beside it, and engine/klineage. Needed there: Python 3.10
or newer, numpy, torch and triton 3.6 or newer. Takes under a minute; each half runs in a process of its own, because
interpreter and compiler cannot share one. Where the interpreter does not work (triton 3.6 beside numpy 2.4 or newer),
run its half elsewhere with ``--half interpreter FILE`` and give that FILE with ``--interpreted``: inputs come from
seeds and are compared too. ``--emulate`` takes exact results, rounded once, for those of a GPU: a test of this program.

A difference has a class when every differing element obeys the class's rule, which is about the exact result in 64
bits; both sides must obey it, so that neither may be wrong. Elements are equal when their bits are, or both are NaN.
Prints a table last, and writes it with every count to DIR. Exit 1 when a difference has no class, or a row no answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
N, ROWS, COLUMNS, SIDE = 4096, 16, 256, 64
SECONDS, LAST = 52.0, 42.0  # of one half; no further row begins after the second

Array = np.ndarray[Any, Any]

FUSED = "fused multiply-add"
TF32 = "tf32 truncation"
ORDER = "order of accumulation"
APPROXIMATE = "approximate function"
SUBNORMAL = "subnormals flushed to zero"
RANGE = "out of the type's range"


@dataclass(frozen=True)
class Row:
    """One kernel on one kind of values.

    inputs: (recipe, type) each. exact: the result in 64 bits, from the inputs in 64 bits. rules: class to a
    function of (result, exact, inputs) that gives, for each element, whether the class explains it.
    """

    name: str
    kernel: str
    inputs: tuple[tuple[str, str], ...]
    out: tuple[str, tuple[int, ...]]
    exact: Callable[..., Array]
    rules: dict[str, Callable[[Array, Array, list[Array]], Array]] = field(default_factory=dict)
    fill: float = 0.0


# rules


def within(relative: float, absolute: float = 0.0, scale: Callable[..., Array] | None = None) -> Any:
    """No further from the exact result than so much of it, or of ``scale`` of the inputs."""

    def rule(result: Array, exact: Array, inputs: list[Array]) -> Array:
        size = np.abs(exact) if scale is None else scale(*inputs)
        return np.asarray(np.abs(result - exact) <= relative * size + absolute)

    return rule


def flushed(smallest: float = 2.0**-126) -> Any:
    """The exact result, or an operand, is smaller than any normal number, and so is this one."""

    def rule(result: Array, exact: Array, inputs: list[Array]) -> Array:
        tiny = np.abs(exact) < smallest
        return np.asarray(tiny & (np.abs(result) <= smallest))

    return rule


def beyond(largest: float) -> Any:
    """The exact result is larger than any number of the type (or none at all), and so is this one."""

    def rule(result: Array, exact: Array, inputs: list[Array]) -> Array:
        return np.asarray((~(np.abs(exact) <= largest)) & (~(np.abs(result) < largest)))

    return rule


def truncated(relative: float) -> Any:
    """As ``within``, for operands without their lower 13 bits: tensor cores that truncate as the interpreter does."""

    def rule(result: Array, exact: Array, inputs: list[Array]) -> Array:
        bits_ = [a.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000) for a in inputs]
        left, right = (b.view(np.float32).astype(np.float64) for b in bits_)
        return np.asarray(np.abs(result - left @ right) <= relative * size_of_dot(left, right))

    return rule


def anything_beyond(largest: float) -> Any:
    """Converting such a number to an integer has no defined result."""
    return lambda result, exact, inputs: ~(np.abs(exact) < largest)


# exact results


def dot(x: Array, y: Array) -> Array:
    return x @ y


def size_of_dot(x: Array, y: Array) -> Array:
    return np.abs(x) @ np.abs(y)


def _sums(x: Array) -> Array:
    return np.asarray(np.abs(x).sum(-1))


def _running(x: Array) -> Array:
    return np.cumsum(np.abs(x), -1)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def scattered(x: Array, where: Array, at: Any, start: float = 0.0) -> Array:
    out = np.full(64, start)
    at(out, where.astype(np.int64), x)
    return out


def whole(x: Array, y: Array) -> Array:
    """Integers as C computes them: division toward zero, 32 bits that wrap."""
    a, b = x.astype(np.int64), y.astype(np.int64)
    quotient = np.trunc(x / y).astype(np.int64)
    value = ((a * 31 + b).astype(np.int32).astype(np.int64) ^ (a >> 3)) + quotient * 7 + (a - quotient * b)
    return value.astype(np.int32).astype(np.float64)


def philox(seed: int, count: int) -> Array:
    """The first number of each of Philox 4x32-10's blocks 0 to ``count``, in [0, 1), as triton.language.rand has it."""
    c = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
    key, word = [np.uint64(seed), np.uint64(0)], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        low, high = [v & word for v in (a, b)], [v >> np.uint64(32) for v in (a, b)]
        c = [high[1] ^ c[1] ^ key[0], low[1], high[0] ^ c[3] ^ key[1], low[0]]
        key = [(k + np.uint64(w)) & word for k, w in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)]
    signed = c[0].astype(np.uint32).view(np.int32)
    positive = np.where(signed < 0, -signed - 1, signed).astype(np.float32)
    return (positive * np.float32(4.6566127342e-10)).astype(np.float64)


def erf(x: Array) -> Array:
    import math

    return np.array([math.erf(v) for v in x.ravel()]).reshape(x.shape)


def picked(x: Array, y: Array) -> Array:
    a = np.where(np.arange(N) % 3 != 0, x, -2.0)
    return np.where((a < y) | (y != y), -a, np.abs(y))


def _rounding(type_: str) -> float:
    return {"fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}[type_]


def _elementwise(type_: str) -> list[Row]:
    # rounded twice or once: the product's rounding is left after the sum has cancelled
    smallest = {"fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}[type_]
    once = {FUSED: within(_rounding(type_) / 2, smallest, lambda x, y, z: np.abs(x * y) + np.abs(x * y + z))}
    three = (("normal", type_),) * 3
    return [
        Row(f"x + y, {type_}", "add", three[:2], (type_, (N,)), lambda x, y: x + y),
        Row(f"x * y + z, {type_}", "multiply_add", three, (type_, (N,)), lambda x, y, z: x * y + z, once),
        Row(f"where, masks, {type_}", "chosen", (("special", type_),) * 2, (type_, (N,)), picked),
    ]


def _function(
    name: str, recipe: str, exact: Callable[..., Array], relative: float, absolute: float = 0.0, **more: Any
) -> Row:
    rules = {APPROXIMATE: within(relative, absolute, more.get("scale")), **more.get("rules", {})}
    return Row(f"{name}, fp32", f"function:{name}", ((recipe, "fp32"),), ("fp32", (N,)), exact, rules)


def _dot(type_: str, precision: str, out: str = "fp32") -> Row:
    terms = SIDE * 2.0**-23
    rules: dict[str, Any] = {ORDER: within(terms, scale=size_of_dot)}
    if precision == "tf32":
        rules = {ORDER: truncated(terms), TF32: within(2.0**-9 + terms, scale=size_of_dot)}
    elif type_.startswith("e"):  # products of eight bits are summed in registers of about 14
        rules = {ORDER: within(2.0**-12, scale=size_of_dot)}
    elif precision == "tf32x3":
        rules[TF32] = within(2.0**-18 + terms, scale=size_of_dot)
    name = f"dot, {type_}" if type_ != "fp32" else f"dot, fp32 {precision}"
    return Row(name, f"product:{precision}", (("matrix", type_),) * 2, (out, (SIDE, SIDE)), dot, rules)


def _cast(source: str, target: str, recipe: str = "wide", kernel: str = "cast", **rules: Any) -> Row:
    how = " toward zero" if kernel != "cast" else ""
    return Row(
        f"{source} to {target}{how}, {recipe}",
        kernel,
        ((recipe, source),),
        (target, (N,)),
        lambda x: x,
        rules,
    )


def rows() -> list[Row]:
    """The table. A row without rules must agree in every bit."""
    grid, lines = (ROWS,), (ROWS, COLUMNS)
    many = COLUMNS * 2.0**-23
    return [
        *_elementwise("fp32"), *_elementwise("fp16"), *_elementwise("bf16"),
        Row("fma(x, y, z), fp32", "fused", (("normal", "fp32"),) * 3, ("fp32", (N,)), lambda x, y, z: x * y + z),
        Row("x / y, fp32", "divide", (("normal", "fp32"), ("positive", "fp32")), ("fp32", (N,)),
            lambda x, y: x / y, {APPROXIMATE: within(2.0**-22), SUBNORMAL: flushed()}),
        Row("int32 arithmetic", "integers", (("integers", "int32"), ("divisors", "int32")), ("int32", (N,)), whole),
        Row("max and min, fp32", "extremes", (("normal", "fp32"),) * 2, ("fp32", (N,)),
            lambda x, y: np.maximum(x, y) - np.minimum(x, 0.25)),
        Row("philox", "random", (("zeros", "fp32"),), ("fp32", (N,)), lambda x: x + philox(1234, N)),
        _function("exp", "moderate", np.exp, 2.0**-21, scale=lambda x: np.exp(x) * (1 + np.abs(x))),
        _function("exp2", "moderate", np.exp2, 2.0**-21),
        _function("exp", "wide", np.exp, 2.0**-21, scale=lambda x: np.where(x < 88, np.exp(x) * (1 + np.abs(x)), 0.0),
                  rules={SUBNORMAL: flushed(), RANGE: beyond(3.4e38)}),
        _function("log", "positive", np.log, 2.0**-21, 2.0**-21),
        _function("log2", "positive", np.log2, 2.0**-21, 2.0**-21),
        _function("sqrt", "positive", np.sqrt, 2.0**-22, rules={SUBNORMAL: flushed(2.0**-60)}),
        _function("rsqrt", "positive", lambda x: 1 / np.sqrt(x), 2.0**-21),
        _function("sin", "moderate", np.sin, 2.0**-21, 2.0**-21),
        _function("cos", "moderate", np.cos, 2.0**-21, 2.0**-21),
        _function("erf", "normal", erf, 2.0**-21, 2.0**-24),
        _function("sigmoid", "moderate", lambda x: 1 / (1 + np.exp(-x)), 2.0**-20,
                  scale=lambda x: (1 + np.abs(x)) / (1 + np.exp(-x))),
        _function("floor", "normal", np.floor, 0.0),
        Row("sum, fp32", "reduce:sum", (("lines", "fp32"),), ("fp32", grid), lambda x: x.sum(-1),
            {ORDER: within(many, scale=_sums)}),
        Row("sum, bf16", "reduce:sum", (("lines", "bf16"),), ("fp32", grid), lambda x: x.sum(-1),
            {ORDER: within(16 * 2.0**-9, scale=_sums)}),  # a tree of sums that are bf16 each
        Row("max, fp16", "reduce:max", (("lines", "fp16"),), ("fp16", grid), lambda x: x.max(-1)),
        Row("argmax, fp32 with ties", "reduce:argmax", (("ties", "fp32"),), ("int32", grid), lambda x: x.argmax(-1)),
        Row("cumsum, fp32", "reduce:cumsum", (("lines", "fp32"),), ("fp32", lines), lambda x: np.cumsum(x, -1),
            {ORDER: within(many, scale=_running)}),
        Row("softmax, fp32", "reduce:softmax", (("lines", "fp32"),), ("fp32", lines), softmax,
            {APPROXIMATE: within(2.0**-17 + many)}),
        _dot("bf16", "ieee"), _dot("fp16", "ieee"), _dot("fp32", "ieee"), _dot("fp32", "tf32"), _dot("fp32", "tf32x3"),
        _dot("e4m3", "ieee"), _dot("e5m2", "ieee"),
        _cast("fp32", "bf16"), _cast("fp32", "fp16", **{RANGE: beyond(65504)}), _cast("fp32", "bf16", kernel="cast_toward_zero"),
        _cast("fp32", "fp16", "normal", "cast_toward_zero"),
        _cast("fp32", "e4m3", "normal"), _cast("fp32", "e5m2", "normal"),
        _cast("fp32", "e4m3", **{RANGE: beyond(448)}), _cast("fp32", "e5m2", **{RANGE: beyond(57344)}),
        _cast("e4m3", "fp32", "normal"), _cast("e5m2", "fp16", "normal"), _cast("bf16", "fp32"),
        _cast("int32", "fp32", "integers"), _cast("fp32", "int32", "moderate"),
        _cast("fp32", "int32", **{RANGE: anything_beyond(2.0**31)}),
        Row("atomic add, fp32", "scatter:add", (("normal", "fp32"), ("places", "int32")), ("fp32", (64,)),
            lambda x, p: scattered(x, p, np.add.at),
            {ORDER: within(2.0**-15, scale=lambda x, p: scattered(np.abs(x), p, np.add.at))}),
        Row("atomic add, int32", "scatter:add", (("integers", "int32"), ("places", "int32")), ("int32", (64,)),
            lambda x, p: scattered(x, p, np.add.at).astype(np.int64).astype(np.int32).astype(np.float64)),
        Row("atomic max, int32", "scatter:max", (("integers", "int32"), ("places", "int32")), ("int32", (64,)),
            lambda x, p: scattered(x, p, np.maximum.at, -(2.0**30)), fill=-(2.0**30)),
    ]  # fmt: skip


# values


def drawn(recipe: str, seed: int) -> Array:
    """Values of one recipe, equal for equal seeds on every machine."""
    rng = np.random.Generator(np.random.PCG64(seed))
    normal = rng.standard_normal(N, dtype=np.float32)
    match recipe:
        case "moderate":
            return (rng.random(N, dtype=np.float32) - np.float32(0.5)) * np.float32(40)
        case "positive":
            return np.exp2((rng.random(N, dtype=np.float32) - np.float32(0.5)) * np.float32(60)).astype(
                np.float32
            )
        case "wide":
            exponents = rng.integers(-148, 127, N).astype(np.float64)
            return np.concatenate([normal[:-8] * np.exp2(exponents[:-8]), _SPECIAL]).astype(np.float32)
        case "special":
            normal[rng.integers(0, N, 64)] = np.resize(_SPECIAL, 64)
            return normal
        case "integers":
            return rng.integers(-(2**20), 2**20, N).astype(np.int32)
        case "divisors":
            return (rng.integers(1, 1000, N) * np.where(normal < 0, -1, 1)).astype(np.int32)
        case "places":
            return rng.integers(0, 64, N).astype(np.int32)
        case "lines":
            return normal.reshape(ROWS, COLUMNS)
        case "ties":
            return np.rint(normal).reshape(ROWS, COLUMNS)
        case "matrix":
            return normal.reshape(SIDE, SIDE)
        case "zeros":
            return np.zeros(N, np.float32)
    return normal


_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 65520.0, 464.0])


def torch_type(name: str) -> Any:
    import torch

    return {
        "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "int32": torch.int32,
        "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
    }[name]  # fmt: skip


def tensors(row: Row, number: int) -> list[Any]:
    """The inputs of a row, in their types, on the CPU."""
    import torch

    made = [drawn(recipe, 1000 * number + i) for i, (recipe, _) in enumerate(row.inputs)]
    return [torch.from_numpy(a).to(torch_type(t)) for a, (_, t) in zip(made, row.inputs, strict=True)]


def bits(tensor: Any) -> Array:
    """A tensor's bits, as unsigned integers of its element size."""
    import torch

    signed = {1: torch.int8, 2: torch.int16, 4: torch.int32}[tensor.element_size()]
    array = tensor.contiguous().cpu().view(signed).numpy()
    return np.asarray(array.view(f"u{array.itemsize}"))


def numbers(tensor: Any) -> Array:
    return np.asarray(
        tensor.cpu().float().numpy() if tensor.is_floating_point() else tensor.cpu().numpy(), np.float64
    )


def from_bits(array: Array, type_: str) -> Array:
    """The numbers that bits stand for."""
    import torch

    return numbers(torch.from_numpy(array.view(f"i{array.itemsize}").copy()).view(torch_type(type_)))


# the two halves


def half(device: str, file: Path) -> None:
    """Run every row on ``device`` and write the bits. Body of a process of its own."""
    import torch

    if device == "cpu":
        from klineage.worker import triton_interpreter

        triton_interpreter.install()
    import interpreter_kernels
    import triton

    begin = time.monotonic()
    answers: dict[str, Array] = {}
    errors: dict[str, str] = {}
    for number, row in enumerate(rows()):
        given = tensors(row, number)
        answers[f"{number} in"] = np.concatenate([bits(t).ravel().view(np.uint8) for t in given])
        out = torch.full(row.out[1], row.fill, dtype=torch.float32).to(torch_type(row.out[0])).to(device)
        if time.monotonic() - begin > LAST:
            errors[str(number)] = f"not begun within {LAST:g} s"
            continue
        try:
            interpreter_kernels.run(row.kernel, [t.to(device) for t in given], out)
            answers[f"{number}"] = bits(out)
        except Exception as error:
            errors[str(number)] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            traceback.print_exc()
    versions = {
        "python": sys.version.split()[0], "numpy": np.__version__, "torch": torch.__version__, "triton": triton.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "interpreter",
    }  # fmt: skip
    about = json.dumps({"errors": errors, "versions": versions, "names": [r.name for r in rows()]})
    np.savez(file, about=np.array(about), **answers)


def started(device: str, file: Path, log: Path) -> None:
    """Run one half in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'engine'}:{os.environ.get('PYTHONPATH', '')}"}
    environment.pop("TRITON_INTERPRET", None)
    if device == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    name = "interpreter" if device == "cpu" else "gpu"
    command = [sys.executable, __file__, "--half", name, str(file)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        said, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        said, code = f"{late.stdout or b''!r}\n{late.stderr or b''!r}\nended after {SECONDS:g} s\n", 124
    log.write_text(said, encoding="utf-8")
    if code:
        print(f"the {name} half ended with {code}:\n{said[-2000:]}", flush=True)


def emulated() -> dict[str, Array]:
    """What a GPU would give that computes exactly and rounds once."""
    import torch

    answers: dict[str, Array] = {}
    for number, row in enumerate(rows()):
        given = tensors(row, number)
        answers[f"{number} in"] = np.concatenate([bits(t).ravel().view(np.uint8) for t in given])
        with np.errstate(all="ignore"):
            exact = torch.from_numpy(
                np.array(row.exact(*map(numbers, given)), np.float64).reshape(row.out[1])
            )
        answer = bits(exact.to(torch_type(row.out[0])))
        if row.kernel == "cast_toward_zero":
            answer = answer - (np.abs(from_bits(answer, row.out[0])) > np.abs(exact.numpy())).astype(
                answer.dtype
            )
        answers[str(number)] = answer
    about = {"errors": {}, "versions": {"device": "emulated"}, "names": [row.name for row in rows()]}
    return {**answers, "about": np.array(json.dumps(about))}


# the comparison


@dataclass(frozen=True)
class Found:
    """How two results of one row compare. verdict: equal, explained, UNEXPLAINED or NOT RUN."""

    name: str
    verdict: str
    differing: int = 0
    elements: int = 0
    ulps: int = 0
    classes: tuple[str, ...] = ()
    detail: str = ""


def ordered(raw: Array, type_: str) -> Array:
    """Bits as integers in the order of the numbers that they stand for: neighbours differ by one."""
    signed = raw.astype(np.int64)
    if type_ == "int32":
        return np.where(signed >= 2**31, signed - 2**32, signed)
    half_ = 1 << (8 * raw.itemsize - 1)
    return np.where(signed >= half_, half_ - signed, signed)


def compared(row: Row, interpreted: Array, real: Array, inputs: list[Array]) -> Found:
    """Compare the bits of two results of a row."""
    type_ = row.out[0]
    left, right = from_bits(interpreted, type_), from_bits(real, type_)
    differ = (interpreted != real) & ~(np.isnan(left) & np.isnan(right))
    count = int(differ.sum())
    if not count:
        return Found(row.name, "equal", 0, differ.size)
    gaps = np.abs(ordered(interpreted, type_) - ordered(real, type_))
    finite = differ & np.isfinite(left) & np.isfinite(right)
    ulps = int(gaps[finite].max()) if finite.any() else 0
    with np.errstate(all="ignore"):
        exact = np.asarray(row.exact(*inputs), np.float64).reshape(differ.shape)
        open_, used = differ.copy(), []
        for name, rule in row.rules.items():
            explains = open_ & rule(left, exact, inputs) & rule(right, exact, inputs)
            if explains.any():
                used.append(name)
            open_ &= ~explains
    if not open_.any():
        return Found(row.name, "explained", count, differ.size, ulps, tuple(used))
    place = int(np.argmax(open_.ravel()))
    values = [f"{a.ravel()[place]:.9g}" for a in (left, right, exact)]
    detail = (
        f"{int(open_.sum())} left; at {place}: interpreter {values[0]}, GPU {values[1]}, exact {values[2]}"
    )
    return Found(row.name, "UNEXPLAINED", count, differ.size, ulps, tuple(used), detail)


def comparison(left: dict[str, Array], right: dict[str, Array]) -> list[Found]:
    """Every row of two halves, as ``half`` writes them."""
    about = [json.loads(str(side["about"])) for side in (left, right)]
    if about[0]["names"] != about[1]["names"] or len(about[0]["names"]) != len(rows()):
        raise SystemExit("the two halves come from different versions of this program; run both again")
    found = []
    for number, row in enumerate(rows()):
        key = str(number)
        complaints = [
            f"{who}: {told['errors'][key]}"
            for who, told in zip(("interpreter", "GPU"), about, strict=True)
            if key in told["errors"]
        ]
        if complaints or key not in left or key not in right:
            found.append(Found(row.name, "NOT RUN", detail="; ".join(complaints) or "no answer"))
        elif not np.array_equal(left[f"{key} in"], right[f"{key} in"]):
            found.append(Found(row.name, "NOT RUN", detail="the two halves had different inputs"))
        else:
            inputs = [numbers(t) for t in tensors(row, number)]
            found.append(compared(row, left[key], right[key], inputs))
    return found


def table(found: list[Found]) -> str:
    lines = [f"{'kernel':<30} {'differ':>13} {'max ulp':>8}  explanation"]
    for row in found:
        counts = f"{row.differing} of {row.elements}" if row.elements else "-"
        said = row.verdict if row.verdict != "explained" else ", ".join(row.classes)
        ulps = str(row.ulps) if row.differing else "-"
        lines.append(
            f"{row.name:<30} {counts:>13} {ulps:>8}  {said}{': ' + row.detail if row.detail else ''}"
        )
    verdicts = [row.verdict for row in found]
    lines.append(
        f"{verdicts.count('equal')} rows equal in every bit, {verdicts.count('explained')} explained, "
        f"{verdicts.count('UNEXPLAINED')} unexplained, {verdicts.count('NOT RUN')} not run"
    )
    return "\n".join(lines)


def read(file: Path) -> dict[str, Array]:
    if not file.exists():
        empty = {"errors": {}, "versions": {}, "names": [row.name for row in rows()]}
        return {"about": np.array(json.dumps(empty))}
    with np.load(file) as stored:
        return dict(stored)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument(
        "--interpreted", type=Path, metavar="FILE", help="the interpreter's half, from elsewhere"
    )
    parser.add_argument("--emulate", action="store_true", help="no GPU: exact results instead of its")
    parser.add_argument("--half", nargs=2, metavar=("interpreter|gpu", "FILE"), help="run one half only")
    arguments = parser.parse_args()
    if arguments.half:
        which, file = arguments.half
        if which == "interpreter":
            os.environ["TRITON_INTERPRET"] = "1"
        sys.path.insert(0, str(ROOT / "engine"))
        half("cpu" if which == "interpreter" else "cuda", Path(file))
        return 0
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"{name}.npz" for name in ("interpreter", "gpu")}
    for file in files.values():
        file.unlink(missing_ok=True)
    wanted = [] if arguments.interpreted else [("cpu", files["interpreter"], out / "interpreter.log")]
    wanted += [] if arguments.emulate else [("cuda", files["gpu"], out / "gpu.log")]
    with ThreadPoolExecutor() as pool:  # the halves are processes; both at once saves their imports' time
        list(pool.map(lambda half_: started(*half_), wanted))
    left = read(arguments.interpreted or files["interpreter"])
    right = emulated() if arguments.emulate else read(files["gpu"])
    found = comparison(left, right)
    versions = [json.loads(str(side["about"]))["versions"] for side in (left, right)]
    answers = {"interpreter": versions[0], "gpu": versions[1], "rows": [vars(row) for row in found]}
    (out / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    text = f"{table(found)}\ninterpreter: {versions[0]}\ngpu: {versions[1]}"
    (out / "table.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(any(row.verdict in ("UNEXPLAINED", "NOT RUN") for row in found))


if __name__ == "__main__":
    sys.exit(main())
