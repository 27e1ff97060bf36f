"""Kernels that a card is tried on: a state of a lineage, or a kernel file beside its workload."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import SURFACES, Feature, Kernel
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.walk import Walk
from klineage.walk.opening import default_platform
from klineage.walk.reading import read_kernel
from klineage.workload import WORKLOAD_FILE, Workload
from klineage.workload import load as load_workload

KERNEL_FILES = ("kernel", "naive", "reference")
_SUFFIXES = {"c": ".c", "triton": ".py", "cuda": ".cu"}


@dataclass(frozen=True)
class Target:
    """A kernel to materialize a card on, with what it must compute and where it must run.

    name:    how it is told and typed again: ``gemm-c K2`` or the path of the kernel.
    lineage, commit: of a state of a lineage; empty for a file.
    """

    name: str
    kernel: Kernel = field(repr=False)
    workload: Workload = field(repr=False)
    platform: str
    lineage: str = ""
    commit: str = ""

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """What the detectors see in it."""
        from klineage.proposer.rules import features

        return tuple(features(self.kernel))

    @property
    def prior_actions(self) -> tuple[str, ...]:
        """The mechanisms that it has already, by name, sorted."""
        return tuple(sorted({feature.name for feature in self.features}))


def of_state(workspace: Workspace, lineage_id: str, state: str = "0", *, runs: bool = True) -> Target:
    """A state of a sealed lineage by its number (0 or ``K0`` is the naive form), or any state by its commit.

    runs: whether its code will be run; False for who only reads it. Raises KlineageError when there is no such lineage or
    state, and Untrusted when its code may not run here.
    """
    from klineage.walk import trust

    walk = Walk(workspace, lineage_id)
    steps = [*walk.forward(), *workspace.history(lineage_id)]
    number = state.removeprefix("K")
    found = next((s for s in walk.forward() if number.isdigit() and s.number == int(number)), None)
    found = found or next((s for s in steps if len(state) >= 4 and s.commit.startswith(state)), None)
    if found is None:
        known = f"K0 to K{len(walk.forward()) - 1}" if walk.forward() else "none, for it is not sealed"
        raise KlineageError(f"{lineage_id} has no state {state!r} (it has {known}); write {lineage_id}:K0")
    if runs:
        trust.require(workspace, lineage_id)
    label = f"K{found.number}" if found in walk.forward() else found.commit[:12]
    meta = workspace.meta(found.commit)
    return Target(
        f"{lineage_id}:{label}",
        walk.kernel_at(found.commit),
        walk.workload,
        meta.platform,
        lineage_id,
        found.commit,
    )


def of_file(path: Path, workload: str | Path | None = None, platform: str | None = None) -> Target:
    """A kernel file, or the kernel of a folder, with the workload in its folder or in the one above.

    The kernel is pinned to its first configuration, and is for ``platform`` or for what this machine stands for.
    Raises KlineageError, with what to say, where a folder has no kernel or several, or no workload is near.
    """
    file = _kernel_file(path)
    spec = load_workload(workload if workload is not None else _needed(file))
    kernel = pinned(read_kernel(file, spec))
    return Target(_told(file), kernel, spec, platform or default_platform(kernel.surface))


def less(target: Target, names: Iterable[str]) -> Target:
    """The target without mechanisms, and without as much of what stands on them as rules have to take out first.

    Nothing is gated here: a trial gates its target. Raises KlineageError when rules cannot take one of them out.
    """
    from klineage.proposer import rules

    wanted, kernel, gone = set(names), target.kernel, list[str]()
    while there := wanted & {feature.name for feature in rules.features(kernel)}:
        step = next(rules.proposals(kernel, there), None) or next(rules.proposals(kernel), None)
        if step is None:
            raise KlineageError(
                f"rules cannot take {' and '.join(sorted(there))} out of {target.name}; "
                "klineage propose says what is in the way"
            )
        kernel = step.kernel(kernel)
        gone += [feature.name for feature in step.removes if feature.name not in gone]
    if not gone:
        return target
    return replace(target, name=f"{target.name} less {', '.join(gone)}", kernel=kernel, lineage="", commit="")


def named(
    text: str,
    workspace: Workspace | None = None,
    *,
    workload: str | Path | None = None,
    platform: str | None = None,
    without: Iterable[str] = (),
    runs: bool = True,
) -> Target:
    """The target that a person or a verification log names.

    ``gemm-c`` or ``gemm-c:K2`` is a state of a lineage of the workspace (by default its naive form), anything else the
    path of a kernel or of its folder; ``experts/...`` is also found among what is shipped. `` less a, b`` behind it takes
    mechanisms out first, as ``without`` does. runs: as in ``of_state``. Raises KlineageError where there is neither.
    """
    place, _, gone = text.partition(" less ")
    found = _place(place.strip(), workspace, workload, platform, runs)
    wanted = [name.strip() for name in gone.split(",") if name.strip()] + list(without)
    return less(found, wanted) if wanted else found


def _place(
    text: str, workspace: Workspace | None, workload: str | Path | None, platform: str | None, runs: bool
) -> Target:
    lineage, _, state = text.partition(":")
    if workspace is not None and lineage in {summary.id for summary in workspace.lineages()}:
        return of_state(workspace, lineage, state or "0", runs=runs)
    path = Path(text)
    if not path.exists() and text.startswith("experts/"):
        path = shipped("experts") / text.removeprefix("experts/")
    if not path.exists():
        where = f"a lineage of {workspace.path}" if workspace is not None else "a lineage"
        raise KlineageError(
            f"{text} is neither {where} nor a file or folder; name a kernel, its folder, or LINEAGE:K0"
        )
    return of_file(path, workload, platform)


def pinned(kernel: Kernel) -> Kernel:
    """The kernel with its first autotune configuration, where it has some and is pinned to none."""
    from klineage.surface.dispatch import autotune_configs

    configs = () if kernel.config else autotune_configs(kernel)
    return replace(kernel, config=configs[0]) if configs else kernel


def _kernel_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = [
        file
        for stem in KERNEL_FILES
        for surface in SURFACES
        if (file := path / f"{stem}{_SUFFIXES[surface]}").is_file()
    ]
    if not found:
        raise KlineageError(f"there is no kernel in {path}; name its file, such as {path / 'kernel.c'}")
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise KlineageError(f"{path} has several kernels ({names}); name the file of one")
    return found[0]


def workload_near(file: Path) -> Path | None:
    """The workload beside a kernel's file, or one folder up; None where there is none."""
    places = (folder / WORKLOAD_FILE for folder in (file.parent, file.parent.parent))
    return next((place for place in places if place.is_file()), None)


def _needed(file: Path) -> Path:
    if (found := workload_near(file)) is None:
        raise KlineageError(f"there is no {WORKLOAD_FILE} beside {file} or one folder up; say --workload")
    return found


def _told(file: Path) -> str:
    """``experts/bmm/c/naive.c`` for what is shipped, so that it says the same everywhere; else the path."""
    try:
        return str(Path("experts") / file.resolve().relative_to(shipped("experts").resolve()))
    except (ValueError, KlineageError):
        return str(file)
