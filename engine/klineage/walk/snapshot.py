"""What the tree of a step holds, and how it becomes a kernel and a workload again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.lineage import META_FILE, Meta
from klineage.workload import WORKLOAD_FILE, Workload
from klineage.workload import parse as parse_workload


def kernel_from(files: dict[str, bytes], commit: str) -> Kernel:
    """The kernel in the tree of ``commit``, byte for byte."""
    meta = _meta_from(files, commit)
    if meta.filename not in files:
        raise KlineageError(f"commit {commit[:12]} has no {meta.filename}; the lineage is damaged, open a bundle of it")
    return Kernel(
        surface=meta.surface,
        filename=meta.filename,
        entry=meta.entry,
        source=files[meta.filename],
        config=meta.config,
        flags=meta.flags,
    )


def workload_from(files: dict[str, bytes], commit: str) -> Workload:
    """The workload in the tree of ``commit``."""
    meta = _meta_from(files, commit)
    if WORKLOAD_FILE not in files:
        raise KlineageError(f"commit {commit[:12]} has no {WORKLOAD_FILE}; the lineage is damaged, open a bundle of it")
    return parse_workload(files[WORKLOAD_FILE], name=meta.workload, path=Path(WORKLOAD_FILE))


def _meta_from(files: dict[str, bytes], commit: str) -> Meta:
    if META_FILE not in files:
        raise KlineageError(f"commit {commit[:12]} has no {META_FILE}; it is not a state of a lineage")
    return Meta.from_json(files[META_FILE], where=commit[:12])


def files_with(files: dict[str, bytes], kernel: Kernel) -> dict[str, bytes]:
    """The tree of a step that differs from ``files`` in the kernel (and its pinned configuration) only."""
    meta = Meta.from_json(files[META_FILE], where="the current step")
    return {
        **files,
        kernel.filename: kernel.source,
        META_FILE: replace(meta, config=kernel.config, flags=kernel.flags).to_json(),
    }
