"""One workspace of sealed lineages for all tests of cards that only read it; a copy for those that write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from klineage.gate import Verdict
from klineage.lineage import Workspace
from klineage.skill.transitions import Transition, transitions

from .lineages import Lineage, Showed, failed, made

_COUNTS = {"bytes_loaded": 96, "bytes_stored": 32, "operations": 64, "instructions": 700, "programs": 1}
_LIGHT = {**_COUNTS, "registers": 100, "shared_bytes": 8192, "spill_bytes": 0}
_HEAVY = {**_COUNTS, "instructions": 800, "registers": 100, "shared_bytes": 65536, "spill_bytes": 0}


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """softmax-c, layernorm-c, gemm-c and gemm-triton, sealed; what their gates showed is chosen here. conv2d-c is not."""
    folder = tmp_path_factory.mktemp("sealed") / "workspace"
    with made(folder) as workspace:
        softmax = Lineage.open(workspace, "softmax")
        wrong = failed(softmax.expert, softmax.workload, softmax.platform, "12 of 4096 elements differ")
        softmax.reject(softmax.expert.source + b"\n// 1\n", "simd", "Use four lanes", gated=wrong)
        lost = failed(softmax.expert, softmax.workload, softmax.platform, "no compiler", Verdict.ERROR)
        softmax.reject(softmax.expert.source + b"\n// 2\n", "simd", "Use two lanes", gated=lost)
        claimed = "the step does not remove kernel.c::softmax / simd (line 9): it is still there; edit further, or do not claim it"
        softmax.reject(softmax.expert.source + b"\n// 4\n", "simd", "Compute one lane", why=claimed)
        softmax.reject(
            softmax.expert.source + b"\n// 3\n", "unroll", "Unroll by 8", why="the tail reads too far"
        )
        softmax.seal(
            {"vector-types": Showed(0.25), "register-tile": Showed(0.5), "alignment-hints": Showed(None)}
        )
        Lineage.open(workspace, "layernorm").seal({
            "vector-types": Showed(0.5, rms=(0.01, 0.2)), "prefetch": Showed(1.25), "restrict": Showed(0.97, half=0.05),
        })  # fmt: skip
        Lineage.open(workspace, "gemm").seal()
        Lineage.open(workspace, "gemm", "triton").seal({
            "pipelining": Showed(counts=(_LIGHT, _HEAVY)), "tile-size": Showed(counts=(_HEAVY, _LIGHT)),
        })  # fmt: skip
        Lineage.open(workspace, "conv2d")
    return folder


@pytest.fixture(scope="session")
def lineages(sealed: Path) -> Iterator[Workspace]:
    """The workspace, to be read."""
    workspace = Workspace.open(sealed)
    yield workspace
    workspace.close()


@pytest.fixture(scope="session")
def known(lineages: Workspace) -> tuple[Transition, ...]:
    """Every transition in it."""
    names = ("softmax-c", "layernorm-c", "gemm-c", "gemm-triton")
    return tuple(t for name in names for t in transitions(lineages, name))


@pytest.fixture
def copied(sealed: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the workspace, to be written."""
    shutil.copytree(sealed, tmp_path / "workspace")
    workspace = Workspace.open(tmp_path / "workspace")
    yield workspace
    workspace.close()
