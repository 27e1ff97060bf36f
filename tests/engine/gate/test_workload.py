"""Reading workload files: what is in them, and one clear sentence for each that is not in the format."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.workload import Workload, load, parse


def read(source: str) -> Workload:
    return parse(source.encode(), name="mine", path=Path("mine/workload.py"))


def test_everything_that_a_file_declares(rows: Workload) -> None:
    assert rows.name == "gate"  # the folder's name
    assert rows.title == "Scaled rows: y[rows, columns] = alpha * x + bias"
    assert rows.element == {"c": "fp32", "triton": "fp32"}
    assert rows.sizes["ragged"] == {"rows": 5, "columns": 13}
    assert rows.hidden == {"rows": 3, "columns": 37}
    assert rows.outputs == ("y",)
    assert rows.mutates == ()
    assert rows.scalars == {"alpha": 1.5}
    assert rows.dims == ("rows", "columns")
    assert len(rows.hash) == 64


@pytest.mark.parametrize("name", ["gemm", "fmha", "add_rmsnorm"])
def test_shipped_workloads_are_found_by_name(name: str) -> None:
    workload = load(name)
    assert workload.name == name
    assert workload.hash == load(workload.path).hash == load(workload.path.parent).hash


def test_reading_executes_nothing(rows: Workload, tmp_path: Path) -> None:
    read(rows.source.decode() + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n")
    assert not (tmp_path / "ran").exists()


BROKEN = {
    "syntax": ("OUTPUTS", "OUT PUTS", "workload.py:10: not valid Python"),
    "no docstring": ('"""Scaled rows: y[rows, columns] = alpha * x + bias"""', "", "no docstring"),
    "no reference": ("def reference", "def referenz", "has no function reference()"),
    "no sizes": ("SIZES", "SIZE", "has no SIZES"),
    "no small": ('"small"', '"tiny"', "no 'small'"),
    "other dims": ('"ragged": {"rows": 5, "columns": 13}', '"ragged": {"rows": 5}', "other dimensions"),
    "a float": ('"columns": 64', '"columns": 6.4', "positive integer"),
    "zero": ('"columns": 64', '"columns": 0', "positive integer"),
    "computed": ('"rows": 8', '"rows": 2 ** 3', "written out as constants"),
    "hidden": ('HIDDEN = {"rows": 3, "columns": 37}', 'HIDDEN = {"n": 3}', "HIDDEN has other dimensions"),
    "no outputs": ('OUTPUTS = ("y",)', "OUTPUTS = ()", "OUTPUTS must be"),
    "outputs text": ('OUTPUTS = ("y",)', 'OUTPUTS = "y"', "OUTPUTS must be"),
    "element": ('"c": "fp32"', '"c": "fp33"', "unknown type 'fp33'"),
    "scalars": ("1.5", '"1.5"', "SCALARS must map"),
    "distributions": (
        "SCALARS", 'DISTRIBUTIONS = ("uniform",)\nSCALARS', "DISTRIBUTIONS names uniform; there are normal"),
    "as drawn": ("SCALARS", 'AS_DRAWN = "x"\nSCALARS', "AS_DRAWN must be a tuple"),
    "atomics": ("SCALARS", "ATOMICS = 1\nSCALARS", "ATOMICS must be True"),
    "over-read": ("SCALARS", "OOB_READ = -4\nSCALARS", "OOB_READ must be a number of bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_with_its_fault(name: str, rows: Workload) -> None:
    old, new, said = BROKEN[name]
    source = rows.source.decode()
    assert old in source
    with pytest.raises(KlineageError) as raised:
        read(source.replace(old, new))
    message = str(raised.value)
    assert "mine/workload.py" in message
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize("source", [b"\x00\x01", b"\xff\xfe\x00", b"", b"(" * 5000])
def test_what_is_no_python_file_is_refused(source: bytes) -> None:
    with pytest.raises(KlineageError, match=r"mine/workload\.py"):
        parse(source, name="mine", path=Path("mine/workload.py"))


def test_a_missing_workload_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match="gemm"):
        load("nothing")
    with pytest.raises(KlineageError, match=r"has no workload\.py"):
        load(tmp_path)
