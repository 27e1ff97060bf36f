"""Opening workspaces, starting lineages, and the demonstration workspace."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from klineage.errors import KlineageError
from klineage.executor import Died, current
from klineage.kernel import Kernel, Surface
from klineage.lineage import Meta, StepRecord, Workspace
from klineage.resources import shipped
from klineage.walk import trust
from klineage.walk.reading import read_kernel
from klineage.workload import WORKLOAD_FILE, Workload
from klineage.workload import load as load_workload

FALLBACK_GPU = "nvidia-sm90"


def default_platform(surface: Surface) -> str:
    """What a kernel is for when nobody says: the CPU of the machine that gates (C) or GPU (Triton; else ``nvidia-sm90``)."""
    try:
        machine = current().machine()
    except Died as died:
        raise KlineageError(str(died)) from died
    if surface == "c":
        return machine.cpu_platform
    return machine.gpu.platform if machine.gpu else FALLBACK_GPU


@dataclass(frozen=True)
class Expert:
    """One shipped expert kernel."""

    workload: str
    surface: Surface
    path: Path

    @property
    def id(self) -> str:
        return f"{self.workload}-{self.surface}"


def experts() -> tuple[Expert, ...]:
    """Every shipped expert kernel, in the order of workload and surface."""
    root = shipped("experts")
    files: dict[Surface, str] = {"triton": "kernel.py", "c": "kernel.c", "cuda": "kernel.cu"}
    found = (
        Expert(path.parent.parent.name, surface, path)
        for surface, file in files.items()
        for path in root.glob(f"*/{surface}/{file}")
    )
    return tuple(sorted(found, key=lambda expert: expert.id))


def open_workspace(path: Path, *, create: bool = False) -> Workspace:
    """The workspace at ``path``: any git repository. With ``create``, one is made where there is none."""
    return Workspace.create(path) if create else Workspace.open(path)


def new_lineage(
    workspace: Workspace,
    kernel_path: Path,
    workload: str | Path,
    *,
    surface: str | None = None,
    platform: str | None = None,
    entry: str | None = None,
    lineage_id: str | None = None,
) -> str:
    """Start a lineage from an expert kernel; returns its id.

    The kernel is read, never run. Raises KlineageError for an unreadable kernel, an unknown
    workload, an unknown platform, or a kernel whose shape the static checks refuse.
    """
    spec = load_workload(workload)
    kernel = read_kernel(kernel_path, spec, surface=surface, entry=entry)
    kernel, target = prepared(kernel, spec, platform, str(kernel_path))
    return start(workspace, kernel, spec, target, lineage_id)


def prepared(kernel: Kernel, spec: Workload, platform: str | None, where: str) -> tuple[Kernel, str]:
    """An expert kernel with its configuration pinned, and the platform it is for; ``where`` names it to a person.

    Raises KlineageError for an unknown platform, or a kernel whose shape the static checks refuse.
    """
    from klineage.platform import parse as parse_platform

    target = platform or default_platform(kernel.surface)
    parse_platform(target)
    _refuse_broken(kernel, spec, where)
    return _pinned(kernel), target


def start(
    workspace: Workspace,
    kernel: Kernel,
    spec: Workload,
    platform: str,
    lineage_id: str | None = None,
    report_json: str | None = None,
) -> str:
    """Open a lineage at a prepared kernel, with the report of its gate if it was gated; returns its id."""
    taken = {summary.id for summary in workspace.lineages()}
    name = free_id(lineage_id or f"{spec.name}-{kernel.surface}", taken)
    meta = Meta(
        id=name,
        title=f"{spec.name} - {kernel.surface} - {platform}",
        surface=kernel.surface,
        platform=platform,
        workload=spec.name,
        filename=kernel.filename,
        entry=kernel.entry,
        config=kernel.config,
        flags=kernel.flags,
    )
    record = StepRecord(subject=f"Open {meta.title}", body=spec.title, platform=platform, kernel=kernel.hash)
    files = {kernel.filename: kernel.source, WORKLOAD_FILE: spec.source}
    workspace.new(meta, files, report_json=report_json, record=record)
    trust.trust(workspace, name)
    return name


def tested_oracle(workload: str | Path, surface: Surface) -> str:
    """Whether a workload's comparison refuses wrong outputs, in one sentence; the test runs in a worker."""
    from klineage.gate.oracle import WorkloadFault, self_test

    try:
        return self_test(load_workload(workload), surface).sentence
    except WorkloadFault as fault:
        return f"its comparison could not be tested: {fault}"


def demo(path: Path) -> tuple[str, ...]:
    """A workspace at ``path`` with a lineage for every shipped expert that rules can walk.

    Lineages that are there already stay as they are. Returns the ids of all.
    """
    from klineage.proposer.rules import RULES

    walkable = [expert for expert in experts() if RULES[expert.surface]]
    workspace = Workspace.create(path)
    try:
        present = {summary.id for summary in workspace.lineages()}
        for expert in reversed(walkable):  # lists begin with the latest, so they read from a to z
            if expert.id not in present:
                new_lineage(workspace, expert.path, expert.workload)
        return tuple(expert.id for expert in walkable)
    finally:
        workspace.close()


#: Reasons that lie in what else a file does, and not in its kernel.
_OF_THE_FILE = ("import", "include", "exports", "host_compute", "host_code")


def _refuse_broken(kernel: Kernel, workload: Workload, path: str) -> None:
    from klineage.surface.dispatch import check

    problems = check(kernel, workload)
    if problems:
        first = problems[0]
        where = f"{path}:{first.line}" if first.line else path
        more = f" (klineage gate lists {len(problems) - 1} more)" if len(problems) > 1 else ""
        whole = "kernel and its host function into a file of their own"
        copied = f"copy the {whole if kernel.surface == 'triton' else 'kernel into a file of its own'}"
        way_out = f"; {copied}" if first.reason in _OF_THE_FILE else ""
        raise KlineageError(f"{where}: {first.message}{more}{way_out}")


def _pinned(kernel: Kernel) -> Kernel:
    """Pin the first autotune configuration, where there is one, so that every gate runs the same code."""
    from klineage.surface.dispatch import autotune_configs

    configs = autotune_configs(kernel)
    return replace(kernel, config=configs[0]) if configs else kernel


def free_id(wanted: str, taken: set[str]) -> str:
    """The id ``wanted``, in letters that an id may have, with a number behind it where it is taken."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", wanted.lower()).strip("-")
    if not slug:
        raise KlineageError(f"{wanted!r} cannot be a lineage's id; use letters, digits, - and _")
    if slug not in taken:
        return slug
    number = 2
    while f"{slug}-{number}" in taken:
        number += 1
    return f"{slug}-{number}"
