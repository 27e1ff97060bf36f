"""What holds for any problem: the sizes keep their promises, and what is written reads back as it was meant."""

from __future__ import annotations

import ast
import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.workload import load, parse
from klineage.workload.constants import Constants, Unknown, evaluate
from klineage.workload.foreign import converted
from klineage.workload.sizes import SMALL, Given, derived
from klineage.workload.writing import constant, problem

NAMES = ("batch", "rows", "columns", "depth")
EXTENTS = st.integers(1, 1 << 20)


@given(extents=st.lists(EXTENTS, min_size=2, max_size=4), tied=st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_derived_sizes(extents: list[int], tied: int) -> None:
    dims = dict(zip(NAMES, extents, strict=False))
    names = tuple(dims)
    free = names[: max(1, len(names) - tied)]
    found = derived(Given(dims, free, names[len(free) :], lambda d: math.prod(d.values())))
    assert found.named["paper"] == dims
    for name, size in found.named.items():
        assert tuple(size) == names
        assert all(extent >= 1 for extent in size.values())
        if name != "ragged":
            assert all(size[n] <= dims[n] for n in names)
    small, ragged = found.named["small"], found.named["ragged"]
    if not tied:
        assert math.prod(small.values()) <= max(SMALL, 16 ** len(free) * 2)
    for name in free:
        assert ragged[name] == small[name] or ragged[name] > small[name]
        if ragged[name] != small[name]:
            assert all(ragged[name] % d for d in range(2, math.isqrt(ragged[name]) + 1))
    changed = [ragged[n] for n in free if ragged[n] != small[n]]
    assert len(set(changed)) == len(changed)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=60)


@given(title=TEXTS, comment=TEXTS, rows=st.integers(1, 1 << 30), scale=st.floats(-1e9, 1e9))
@settings(max_examples=60, deadline=None)
def test_what_is_written_reads_back(title: str, comment: str, rows: int, scale: float) -> None:
    source = (
        f"class Model:\n    {title!r}\n    def forward(self, x, scale):\n        return x * scale\n\n"
        f"rows = {rows}\nnote = {comment!r}\n\ndef get_inputs():\n    return [torch.rand(rows, 3), {scale!r}]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    made = converted(source.encode(), Path("9_A problem.py"))
    assert made is not None
    found = parse(made.source, name=made.name, path=Path("workload.py"))
    assert found.name == "a_problem"
    assert found.sizes["paper"] == {"rows": rows}
    assert found.scalars == {"scale": scale}
    assert found.outputs == ("y",)
    assert f" ----\n{source}# ---- end of the problem ----\n" in made.source.decode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 1 << 40) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PLAIN = st.recursive(
    st.integers() | st.text(max_size=8),
    lambda i: st.lists(i, max_size=3) | st.lists(i, max_size=3).map(tuple),
)


@given(value=st.dictionaries(st.text(max_size=4), PLAIN, max_size=3))
def test_constants_read_back(value: dict[str, object]) -> None:
    module = ast.parse(constant("NAME", value))
    assert isinstance(module.body[0], ast.Assign)
    assert ast.literal_eval(module.body[0].value) == value


@given(key=st.sampled_from(["name", "axes", "inputs", "outputs", "reference", "constraints"]), value=JSON)
@settings(max_examples=80, deadline=None)
def test_a_definition_with_any_field_changed_is_read_or_refused_in_a_sentence(
    key: str, value: object
) -> None:
    path = Path(__file__).parent / "problems/set/definitions/add/scaled_add_n96.json"
    definition = {**json.loads(path.read_text()), key: value}
    try:
        assert converted(json.dumps(definition).encode(), path) is not None
    except KlineageError as error:
        assert str(path.name).split(".")[0] in str(error)
        assert "\n" not in str(error)


CODE = st.text("abxyz0123456789 ()[]{},.:=+-*/%<>'\"\\\n\t@#", max_size=80)


@given(code=CODE)
@settings(max_examples=80, deadline=None)
def test_any_text_in_a_problem_is_read_or_refused_in_a_sentence(code: str) -> None:
    source = f"def make_inputs(n: int = 4):\n    return {{}}\n{code}\ndef torch_ref(x) -> 'torch.Tensor':\n    return x\n"
    try:
        made = converted(source.encode(), Path("p.py"))
    except KlineageError as error:
        assert "p.py" in str(error)
        return
    if made is not None:
        parse(made.source, name=made.name, path=Path("p.py"))


@given(code=CODE)
@settings(max_examples=80, deadline=None)
def test_an_expression_is_known_or_unknown_and_never_runs_away(code: str) -> None:
    try:
        node = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError):
        return
    with contextlib.suppress(Unknown):
        evaluate(node, {"a": 3, "b": (4, 5), "x": 2.5})


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9",
        "(1,) * 10**9",
        "'x' * 10**9",
        "1 << 400",
        "__import__('os')",
        "a.b",
        "[n for n in b]",
        "1 / 0",
    ],
)
def test_what_could_run_away_is_unknown(text: str) -> None:
    with pytest.raises(Unknown):
        evaluate(ast.parse(text, mode="eval").body, {"b": (1, 2)})


def test_constants_that_come_from_others_follow_them() -> None:
    body = ast.parse(
        "import torch\nn = m = 2 * 8\nk: int = 3\nshape = (n, k)\ntotal = max(shape) * m\na, b = 1, n\n"
        "lost = f()\nagain = lost + 1\nhalf = n // 2 if n > 1 else 1\n"
    ).body
    constants = Constants(body)
    assert constants.values == {
        "n": 16, "m": 16, "k": 3, "shape": (16, 3), "total": 256, "a": 1, "b": 16, "half": 8,
    }  # fmt: skip
    assert constants.plain(["total"]) == ["n", "m", "k"]
    assert constants.at({"n": 4})["shape"] == (4, 3)
    assert constants.at({"n": 4})["total"] == 64
    assert [c.name for c in constants.derived({"k"})] == ["shape", "total"]


def test_our_own_workloads_are_never_taken_for_foreign_ones() -> None:
    source = b'"""Mine"""\nclass Model:\n    pass\ndef tensors(): ...\ndef reference(): ...\n'
    assert converted(source, Path("mine.py")) is None
    assert problem(source, Path("mine.py")).function("tensors") is not None
    assert load("gemm").name == "gemm"
