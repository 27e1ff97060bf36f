"""What the tree of a step holds, and how it becomes a kernel and a workload again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.lineage import Meta
from klineage.workload import WORKLOAD_FILE, Workload
from klineage.workload import parse as parse_workload


def kernel_from(meta: Meta, files: Mapping[str, bytes], commit: str) -> Kernel:
    """The kernel in the tree of ``commit``, byte for byte."""
    return meta.kernel(_file(files, meta.filename, commit))


def workload_from(meta: Meta, files: Mapping[str, bytes], commit: str) -> Workload:
    """The workload in the tree of ``commit``."""
    return parse_workload(_file(files, WORKLOAD_FILE, commit), name=meta.workload, path=Path(WORKLOAD_FILE))


def _file(files: Mapping[str, bytes], name: str, commit: str) -> bytes:
    if name not in files:
        raise KlineageError(
            f"commit {commit[:12]} has no {name}, so the lineage is damaged; open a bundle of it elsewhere"
        )
    return files[name]
