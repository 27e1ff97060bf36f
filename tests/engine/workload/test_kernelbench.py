"""KernelBench problems: what is read from them, and one clear sentence for each that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.workload import Workload, load, parse

HERE = Path(__file__).parent / "problems"
KERNELBENCH = (HERE / "12_Scaled_Rows.py").read_text()

Read = Callable[[str], Workload]


@pytest.fixture
def scaled(read: Read) -> Workload:
    return read(KERNELBENCH)


def test_names_sizes_and_numbers(scaled: Workload) -> None:
    assert scaled.name == "scaled_rows"
    assert scaled.title == "Scales every feature of a row, adds a bias and an offset."
    assert scaled.outputs == ("y",)
    assert scaled.scalars == {"factor": 3}
    assert scaled.element == {"triton": "fp32", "c": "fp32", "cuda": "fp32"}
    assert scaled.sizes["paper"] == {"rows": 4096, "features": 512}


def test_small_sizes_are_derived_and_ragged_ones_are_primes(scaled: Workload) -> None:
    # features shapes the weights: divided by a power of two, and never ragged
    assert scaled.sizes["small"] == {"rows": 64, "features": 256}
    assert scaled.sizes["ragged"] == {"rows": 67, "features": 256}
    assert scaled.sizes["bench"] == {"rows": 2048, "features": 512}
    assert scaled.hidden == {"rows": 71, "features": 256}


def test_the_result_is_an_ordinary_workload_with_the_problem_inside(scaled: Workload) -> None:
    again = parse(scaled.source, name="moved", path=Path("workload.py"))
    assert (again.sizes, again.outputs, again.hash) == (scaled.sizes, scaled.outputs, scaled.hash)
    assert f" ----\n{KERNELBENCH}# ---- end of the problem ----\n" in scaled.source.decode()


def test_equal_files_give_equal_workloads(read: Read, scaled: Workload) -> None:
    assert read(KERNELBENCH).hash == scaled.hash


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_do_not_matter(tmp_path: Path, scaled: Workload, ends: str) -> None:
    path = tmp_path / "12_Scaled_Rows.py"
    path.write_bytes(b"\xef\xbb\xbf" + KERNELBENCH.replace("\n", ends).encode())
    assert load(path).hash == scaled.hash


def test_reading_runs_nothing(read: Read, tmp_path: Path) -> None:
    read(KERNELBENCH + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n")
    assert not (tmp_path / "ran").exists()


def test_a_problem_without_constants_has_the_one_size_that_it_gives(read: Read) -> None:
    source = KERNELBENCH.replace("64 * 64", "4096.0").replace("rows,", "int(rows),").replace("512", "str(9)")
    found = read(source)
    assert found.sizes["small"] == found.sizes["paper"] == {"given": 1}
    assert "Every size is the problem's own" in found.source.decode()


def test_a_constant_that_names_a_weight_is_no_dimension(read: Read) -> None:
    source = KERNELBENCH.replace("[features, 0.5]", "[features, bias]").replace(
        "rows = ", "bias = 2\nrows = "
    )
    assert read(source).sizes["paper"] == {"rows": 4096, "features": 512}


def test_tuples_give_dimensions_too(read: Read) -> None:
    found = read(KERNELBENCH.replace("(features,)", "(8192, 2)").replace("features = 512", "features = 2"))
    assert found.sizes["paper"] == {"rows": 4096, "bias_shape_0": 8192, "bias_shape_1": 2, "features": 2}
    assert "bias_shape=(bias_shape_0, bias_shape_1,)" in found.source.decode()


BROKEN = {
    "no get_inputs": ("def get_inputs", "def inputs_of", "has no function get_inputs()"),
    "no get_init_inputs": ("def get_init_inputs", "def init_inputs", "has no function get_init_inputs()"),
    "no model": ("class Model", "class Modell", "has no class Model"),
    "no forward": ("def forward", "def backward", "Model has no method forward()"),
    "a star": ("self, x, mask, factor", "self, *given", "name them one by one"),
    "too few": ("return [x, mask, factor]", "return [x, mask]", "forward() takes x, mask, factor"),
    "no list": ("return [x, mask, factor]", "return make(x)", "must end with return [...]"),
    "a text": ("factor = 3", 'factor = "three"', "which is no tensor and no number"),
    "random": ("return torch.where(", "return torch.rand_like(x) + torch.where(", "draws at random (torch.rand_like)"),
    "dropout": ("self.shift = shift", "self.drop = nn.Dropout(shift)", "nn.Dropout(shift) drops values at random"),
    "one name twice": ("rows = 64", "rows = mask = 64", "mask is both an input and a size"),
    "our name": ("bias_shape = ", "OUTPUTS = 1\nbias_shape = ", "defines OUTPUTS, which a workload.py needs"),
    "syntax": ("import torch\n", "import torch torch\n", "not valid Python"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_named(read: Read, name: str) -> None:
    old, new, said = BROKEN[name]
    assert old in KERNELBENCH
    source = KERNELBENCH.replace(old, new)
    if name == "one name twice":
        source = source.replace("torch.rand(rows", "torch.rand(mask")
    with pytest.raises(KlineageError) as raised:
        read(source)
    assert said in str(raised.value)
    assert "12_Scaled_Rows.py" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_dropout_of_nothing_is_no_dropout(read: Read) -> None:
    assert read(KERNELBENCH.replace("self.shift = shift", "self.drop = nn.Dropout(0 * shift)")).outputs == (
        "y",
    )


def test_a_huge_file_is_refused_before_it_is_parsed(read: Read) -> None:
    with pytest.raises(KlineageError, match="1,048,576 bytes"):
        read(KERNELBENCH + "#" * (1 << 20))
