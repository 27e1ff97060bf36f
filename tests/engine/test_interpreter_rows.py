"""benchmarks/gpu/interpreter.py without a GPU: every row is interpreted, and its rules tell a fault from a rounding.

Functions without ``test_`` run in a child process; see ``triton_child.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.triton

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"


def program() -> Any:
    sys.path.insert(0, str(GPU))
    import interpreter

    return interpreter


def numbers_of(rows: Any) -> dict[str, str]:
    return {row.name: str(number) for number, row in enumerate(rows)}


def every_row_is_interpreted(folder: str) -> None:
    """What is exact agrees in every bit with exact results rounded once; the others differ as their rules say."""
    this = program()
    file = Path(folder) / "interpreter.npz"
    this.half("cpu", file)
    found = {row.name: row for row in this.comparison(this.read(file), this.emulated())}
    assert len(found) == len({row.name for row in this.rows()}) > 50
    assert {row.verdict for row in found.values()} == {"equal", "explained"}, this.table(list(found.values()))
    for name, classes in {
        "x * y + z, bf16": (this.FUSED,),
        "dot, bf16": (this.ORDER,),
        "softmax, fp32": (this.APPROXIMATE,),
        "dot, fp32 tf32": (this.ORDER, this.TF32),
        "sum, bf16": (this.ORDER,),
    }.items():
        assert found[name].classes == classes
    for name in ("philox", "dot, e4m3", "fp32 to e4m3, normal", "e5m2 to fp16, normal", "int32 arithmetic"):
        assert found[name].verdict == "equal"


def a_planted_difference_is_found(folder: str) -> None:
    import numpy as np

    this = program()
    left, right = this.emulated(), this.emulated()
    number = numbers_of(this.rows())
    assert {row.verdict for row in this.comparison(left, right)} == {"equal"}

    right[number["x + y, fp32"]][7] ^= 1  # one bit, where nothing may differ
    fma = int(number["x * y + z, fp32"])
    x, y, z = (t.numpy() for t in this.tensors(this.rows()[fma], fma))
    right[str(fma)] = (x * y + z).view(np.uint32)  # rounded twice
    right[number["dot, fp16"]][3, 4] ^= 1 << 23  # a factor of two
    del right[number["philox"]]
    right[number["x / y, fp32"] + " in"][0] ^= 1
    found = {row.name: row for row in this.comparison(left, right)}
    assert found["x + y, fp32"].verdict == "UNEXPLAINED"
    assert (found["x + y, fp32"].differing, found["x + y, fp32"].ulps) == (1, 1)
    assert "1 left; at 7: interpreter" in found["x + y, fp32"].detail
    assert (found["x * y + z, fp32"].verdict, found["x * y + z, fp32"].classes) == (
        "explained",
        (this.FUSED,),
    )
    assert found["dot, fp16"].verdict == "UNEXPLAINED"
    assert (found["philox"].verdict, found["philox"].detail) == ("NOT RUN", "no answer")
    assert found["x / y, fp32"].detail == "the two halves had different inputs"
    assert "2 unexplained, 2 not run" in this.table(list(found.values())).splitlines()[-1]


def eight_bit_floats(folder: str) -> None:
    import numpy as np
    import torch
    from klineage.worker.triton_fp8 import FORMATS, decode, encode

    every = np.arange(256, dtype=np.uint8)
    for name, type_ in (("fp8e4nv", torch.float8_e4m3fn), ("fp8e5", torch.float8_e5m2)):
        format_ = FORMATS[name]
        told = decode(every, format_)
        assert np.array_equal(told, torch.from_numpy(every).view(type_).float().numpy(), equal_nan=True)
        finite = np.sort(told[np.isfinite(told)])
        halfway = (finite[1:] + finite[:-1]) / 2  # ties, and their neighbours on both sides
        values = np.concatenate([finite, halfway, np.nextafter(halfway, -1e9), np.nextafter(halfway, 1e9)])
        wanted = torch.from_numpy(values).to(type_).view(torch.uint8).numpy()
        assert np.array_equal(encode(values, format_), wanted)
        largest = format_.largest
        special = np.array([np.inf, -np.inf, 1e30, -1e30, largest * 1.01, np.nan, 1e-30, -1e-30])
        got = decode(encode(special, format_), format_)
        assert np.array_equal(got[:5], [largest, -largest, largest, -largest, largest])
        assert np.isnan(got[5]) and got[6] == 0 and np.signbit(got[7])
        toward_zero = decode(encode(halfway, format_, toward_zero=True), format_)
        assert np.array_equal(toward_zero, np.where(halfway < 0, finite[1:], finite[:-1]))


CASES = [every_row_is_interpreted, a_planted_difference_is_found, eight_bit_floats]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_rows(case: Any, interpreted: Any, tmp_path: Path) -> None:
    interpreted(case, tmp_path)
