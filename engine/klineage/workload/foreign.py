"""Problems in other projects' formats, turned into a workload.py. They are read, never run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError
from klineage.workload import kernelbench, problem_file, trace
from klineage.workload.writing import problem

SUFFIXES = (".json", ".jsonl")


@dataclass(frozen=True)
class Converted:
    """A workload.py made from a foreign problem. format: in words. name: what the problem is called."""

    name: str
    format: str
    source: bytes


def converted(source: bytes, path: Path) -> Converted | None:
    """The workload that a foreign file describes; None when the file is in no such format.

    A FlashInfer-Trace file brings its other half: the workloads of a definition, or the definition of workloads.
    Raises KlineageError naming the file and the field that cannot be read.
    """
    if path.suffix.lower() in SUFFIXES:
        name, text = trace.convert(source, path)
        return Converted(_slug(name), "FlashInfer-Trace definition", text.encode())
    try:
        given = problem(source, path)
    except KlineageError:
        return None  # the reader of workload files says what is wrong with it
    if kernelbench.is_kernelbench(given):
        return Converted(_slug(path.stem), "KernelBench problem", kernelbench.convert(given).encode())
    if problem_file.is_problem_file(given):
        own = path.stem in ("reference", "problem", "__init__")
        name = path.resolve().parent.name if own else path.stem
        return Converted(_slug(name), "problem file", problem_file.convert(given).encode())
    return None


def _slug(name: str) -> str:
    """``1_Square_matrix_multiplication_`` is square_matrix_multiplication."""
    found = re.sub(r"[^a-z0-9]+", "_", re.sub(r"^\d+_", "", name.lower())).strip("_")
    return found or "problem"
