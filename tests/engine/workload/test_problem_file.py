"""Problem files with make_inputs() and torch_ref(): what is read, and what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.workload import Workload, load

SOURCE = Path(__file__).parent / "problems" / "row_sums" / "reference.py"

Read = Callable[[str], Workload]


def test_names_sizes_and_types() -> None:
    found = load(SOURCE)
    assert found.name == "row_sums"
    assert found.title == "Row sums, and the rows divided by them."
    assert found.outputs == ("output_0", "output_1")
    assert found.element == {"triton": "fp16", "c": "fp32", "cuda": "fp16"}
    assert found.sizes["paper"] == {"rows": 2048, "columns": 1024, "power": 2}
    assert found.sizes["small"] == {"rows": 128, "columns": 128, "power": 2}
    assert found.source.decode().index("from __future__ import annotations") < 400


def test_a_condition_of_the_problem_holds_for_every_derived_size() -> None:
    found = load(SOURCE)
    # make_inputs() refuses two odd numbers: only the first is made a prime
    assert found.sizes["ragged"] == {"rows": 131, "columns": 128, "power": 2}
    assert found.hidden == {"rows": 137, "columns": 128, "power": 2}


def test_the_file_name_is_the_problem_s_name_where_it_says_more(read: Read) -> None:
    assert read(SOURCE.read_text()).name == "scaled_rows"


@pytest.mark.parametrize(
    ("annotation", "outputs"),
    [
        ("-> torch.Tensor:", ("output",)),
        ('-> "torch.Tensor":', ("output",)),
        ("-> torch.return_types.topk:", ("output_0", "output_1")),
        ("-> Tuple[Tensor, Tensor, Tensor]:", ("output_0", "output_1", "output_2")),
    ],
)
def test_the_annotation_says_how_many_outputs_there_are(
    read: Read, annotation: str, outputs: tuple[str, ...]
) -> None:
    source = SOURCE.read_text()
    assert "-> tuple[torch.Tensor, torch.Tensor]:" in source
    assert read(source.replace("-> tuple[torch.Tensor, torch.Tensor]:", annotation)).outputs == outputs


BROKEN = {
    "no make_inputs": ("def make_inputs", "def made", "has no function make_inputs()"),
    "no torch_ref": ("def torch_ref", "def reference_", "has no function torch_ref()"),
    "no default": ("columns: int = COLUMNS", "columns: int", "make_inputs() has no default for columns"),
    "no sizes": ("int = ", "float = 1.0 * ", "make_inputs() has no size"),
    "no annotation": (" -> tuple[torch.Tensor, torch.Tensor]", "", "annotate it with -> torch.Tensor"),
    "odd annotation": ("-> tuple[torch.Tensor, torch.Tensor]", "-> dict", "annotate it with -> torch.Tensor"),
    "fixed seed": ("    seed: int = 0,\n", "", "draws the same values every time"),
    "name of a size": ("offsets: torch.Tensor", "rows: torch.Tensor", "rows is both an input and a size"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_named(read: Read, name: str) -> None:
    old, new, said = BROKEN[name]
    source = SOURCE.read_text()
    assert old in source
    with pytest.raises(KlineageError) as raised:
        read(source.replace(old, new))
    assert said in str(raised.value)
    assert "12_Scaled_Rows.py" in str(raised.value)
    assert "\n" not in str(raised.value)
