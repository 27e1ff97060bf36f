"""FlashInfer-Trace definitions with their workloads: what is read, and every field that can be wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.errors import KlineageError
from klineage.workload import load
from klineage.workload.safetensors import read_values

Change = Callable[[dict[str, Any], list[dict[str, Any]]], None]
Trace = Callable[..., Path]


def test_names_sizes_and_types(trace: Trace) -> None:
    found = load(trace())
    assert found.name == "scaled_add_n96"
    assert found.title == "scaled_add_n96, a FlashInfer-Trace definition"
    assert found.outputs == ("C",)
    assert found.scalars == {"residual": 0.5}
    assert found.element == {"triton": "fp16", "c": "fp32", "cuda": "fp16"}
    # the largest workload is the paper's; the variable axis is halved for the others, constant ones stay
    assert found.sizes["paper"] == {"M": 3000, "N": 96, "ONE": 1}
    assert found.sizes["small"] == {"M": 93, "N": 96, "ONE": 1}
    assert found.sizes["ragged"] == {"M": 97, "N": 96, "ONE": 1}
    assert found.hidden == {"M": 101, "N": 96, "ONE": 1}
    text = found.source.decode()
    assert '"A": (element, (M, N))' in text
    assert '"weight": ("fp32", (N,))' in text
    assert '"keep": ("uint8", (M,))' in text
    assert "run(A, weight, keep.bool(), residual)" in text


def test_either_file_names_the_problem(trace: Trace) -> None:
    definition = trace()
    workloads = definition.parents[2] / "workloads" / "add" / "scaled_add_n96.jsonl"
    assert load(workloads).hash == load(definition).hash


def test_a_workload_beside_its_definition_is_found(trace: Trace, tmp_path: Path) -> None:
    definition = trace()
    beside = tmp_path / "mine" / definition.name
    beside.parent.mkdir()
    beside.write_bytes(definition.read_bytes())
    with pytest.raises(KlineageError, match="variable axes have no values; looked for"):
        load(beside)
    lines = (definition.parents[2] / "workloads" / "add" / "scaled_add_n96.jsonl").read_bytes()
    beside.with_suffix(".jsonl").write_bytes(lines)
    assert load(beside).hash == load(definition).hash


def test_a_constraint_keeps_sizes_from_being_derived(trace: Trace) -> None:
    def change(definition: dict[str, Any], records: list[dict[str, Any]]) -> None:
        definition["constraints"] = ["M % 1000 == 0", "A.sum() > 0"]
        del records[0]

    found = load(trace(change))
    assert found.sizes["small"] == found.sizes["paper"]
    text = found.source.decode()
    assert 'return "M % 1000 == 0 does not hold"' in text
    assert "# 'A.sum() > 0' is about values" in text


def set_(path: str, value: Any) -> Change:
    """Set (or, with ``...``, remove) one field; ``0.`` in front means the first record."""

    def change(definition: dict[str, Any], records: list[dict[str, Any]]) -> None:
        *way, last = path.split(".")
        place: Any = definition
        if way and way[0] == "0":
            place, way = records[0], way[1:]
        for key in way:
            place = place[key]
        if value is ...:
            del place[last]
        else:
            place[last] = value

    return change


BROKEN = {
    "no name": (set_("name", ...), "scaled_add_n96.json: name is missing"),
    "name": (set_("name", 3), "name must be a text"),
    "a path": (set_("name", "../scaled_add_n96"), "has the name '../scaled_add_n96', which no file can have"),
    "no axes": (set_("axes", ...), "axes is missing"),
    "axes": (set_("axes", ["M"]), "axes must be an object"),
    "an axis": (set_("axes.M", "var"), "axes.M must be an object"),
    "axis type": (set_("axes.M.type", "dynamic"), "axes.M.type is 'dynamic', not const or var"),
    "axis value": (set_("axes.N.value", -1), "axes.N.value is -1, not a positive whole number"),
    "axis true": (set_("axes.N.value", True), "axes.N.value must be a positive whole number"),
    "axis name": (set_("axes.a-b", {"type": "var"}), "axes has 'a-b', which cannot be a kernel's parameter"),
    "input name": (set_("inputs.class", {"shape": [], "dtype": "int32"}), "inputs has 'class', which cannot be a kernel's parameter"),
    "one name twice": (set_("inputs.M", {"shape": [], "dtype": "int32"}), "M names two things"),
    "no dtype": (set_("inputs.A.dtype", ...), "inputs.A.dtype is missing"),
    "fp8": (set_("inputs.A.dtype", "float8_e4m3fn"), "inputs.A.dtype is 'float8_e4m3fn'; a buffer can be float32"),
    "no shape": (set_("outputs.C.shape", ...), "outputs.C.shape is missing"),
    "shape": (set_("outputs.C.shape", ["M", "K"]), "outputs.C.shape names 'K', which is no axis"),
    "no outputs": (set_("outputs", {}), "outputs names no tensor"),
    "no reference": (set_("reference", ...), "reference is missing"),
    "reference": (set_("reference", "def run(:"), "reference:1: not valid Python"),
    "no run": (set_("reference", "x = 1"), "reference has no function run()"),
    "run": (set_("reference", "def run(a):\n    pass"), "run() takes a; inputs are A, weight, keep, residual"),
    "constraint": (set_("constraints", ["M ="]), "constraints[0] is not a Python expression"),
    "constraints": (set_("constraints", "M > 0"), "constraints must be a list"),
    "broken constraint": (set_("constraints", ["M > 100"]), "break the definition's constraints[0]: M > 100"),
    "another definition": (set_("0.definition", "other"), "jsonl:1: definition is 'other', not 'scaled_add_n96'"),
    "no value": (set_("0.workload.axes.M", ...), "jsonl:1: workload.axes.M is missing"),
    "value": (set_("0.workload.axes.M", 0), "jsonl:1: workload.axes.M is 0, not a positive whole number"),
    "no input": (set_("0.workload.inputs.A", ...), "jsonl:1: workload.inputs.A is missing"),
    "input type": (set_("0.workload.inputs.A.type", "zeros"), "workload.inputs.A.type is 'zeros'"),
    "random number": (set_("0.workload.inputs.residual", {"type": "random"}), "cannot give residual its value"),
    "scalar": (set_("0.workload.inputs.residual.value", "x"), "workload.inputs.residual.value must be a number"),
    "no file": (
        set_("0.workload.inputs.keep", {"type": "safetensors", "path": "gone", "tensor_key": "k"}),
        "gone cannot be read: No such file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_named(trace: Trace, name: str) -> None:
    change, said = BROKEN[name]
    with pytest.raises(KlineageError) as raised:
        load(trace(change))
    assert said in str(raised.value)
    assert "scaled_add_n96" in str(raised.value)
    assert "\n" not in str(raised.value)


NO_DEFINITION = {
    "empty": "", "open": "{", "a list": "[]", "a text": '"x"', "deep": "[" * 100_000, "a word": "nul", "a mark": "\ufeff{}",
}  # fmt: skip


@pytest.mark.parametrize("text", NO_DEFINITION.values(), ids=NO_DEFINITION.keys())
def test_what_is_no_definition_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KlineageError, match=r"x\.json"):
        load(path)


def safetensors(path: Path, key: str, shape: list[int], values: bytes, dtype: str = "U8") -> None:
    entry = {key: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(values)]}}
    header = json.dumps(entry).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + values)


def test_few_values_come_into_the_workload_and_fix_its_sizes(trace: Trace) -> None:
    def change(definition: dict[str, Any], records: list[dict[str, Any]]) -> None:
        for line in records:
            line["workload"]["inputs"]["keep"] = {
                "type": "safetensors",
                "path": "keep.st",
                "tensor_key": "keep",
            }
        records[1]["workload"]["axes"]["M"] = 7

    path = trace(change)
    safetensors(path.parents[2] / "keep.st", "keep", [7], bytes([1, 0, 1, 1, 0, 0, 1]))
    found = load(path)
    assert (
        found.sizes["small"] == found.sizes["ragged"] == found.sizes["paper"] == {"M": 7, "N": 96, "ONE": 1}
    )
    text = found.source.decode()
    assert '(7, 96, 1): {"keep": [1, 0, 1, 1, 0, 0, 1]},' in text
    assert 'rng.array(data["keep"])' in text


def test_values_keep_their_shape_and_type(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors(path, "k", [2, 3], struct.pack("<6i", *range(-1, 5)), "I32")
    assert read_values(path, "k", [2, 3]) == [[-1, 0, 1], [2, 3, 4]]
    safetensors(path, "k", [], struct.pack("<d", 0.5), "F64")
    assert read_values(path, "k", []) == 0.5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (struct.pack("<Q", 4) + b"nope", "damaged"),
        (struct.pack("<Q", 2) + b"[]", "its header is no object"),
        (struct.pack("<Q", 2) + b"{}", "has no tensor 'k'"),
    ],
)
def test_a_damaged_file_of_values_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(KlineageError, match=said):
        read_values(path, "k", [2])


def test_too_many_values_are_refused_before_the_file_is_opened(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match=r"8,192 values lie in .*gone, and a workload is one short file"):
        read_values(tmp_path / "gone", "k", [2, 4096])


def test_a_cut_file_and_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors(path, "k", [3], b"\1\2")
    with pytest.raises(KlineageError, match="damaged"):
        read_values(path, "k", [3])
    with pytest.raises(KlineageError, match=r"in the shape \[3\], not \[4\]"):
        read_values(path, "k", [4])
