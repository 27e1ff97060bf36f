"""Lineages and kernels to other machines and back, as batch files (see klineage.gate.batch)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from klineage.errors import KlineageError
from klineage.gate import GateRequest, Report
from klineage.gate.batch import Item, Result, export, read_results, user_key
from klineage.kernel import Kernel
from klineage.lineage import Step, Workspace
from klineage.walk.session import Walk
from klineage.workload import Workload


@dataclass(frozen=True)
class Imported:
    """What became of a file of results. ``noted``: the steps that a report was stored on, with their reports."""

    noted: tuple[tuple[Step, Report], ...]
    known: tuple[Report, ...]  # stored before
    homeless: tuple[tuple[str, Report], ...]  # label and report of kernels that no lineage here has
    refused: tuple[str, ...]  # a sentence each


def export_lineage(walk: Walk, file: Path, platform: str | None = None) -> int:
    """Write a batch that gates every state of a walk against the one before it. Returns how many."""
    state = walk.state()
    items: list[Item] = []
    before: Kernel | None = None
    for step in state.steps:
        kernel = walk.kernel_at(step.commit)
        request = GateRequest(kernel, walk.workload, platform or state.meta.platform, before)
        items.append(Item(f"{walk.id} step {step.number}: {step.subject}", request, step.commit))
        before = kernel
    return _write(items, file)


def export_kernel(kernel: Kernel, workload: Workload, platform: str, file: Path) -> int:
    """Write a batch that gates one kernel alone."""
    return _write(
        [Item(f"{kernel.filename} for {workload.name}", GateRequest(kernel, workload, platform))], file
    )


def _write(items: list[Item], file: Path) -> int:
    from klineage.platform import parse

    for item in items:
        parse(item.request.platform)
    text = export(items, user_key())
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise KlineageError(f"cannot write {file}: {error.strerror}") from error
    return len(items)


def import_results(workspace: Workspace | None, file: Path) -> Imported:
    """Read results back and note each on every step that has its kernel. What cannot be believed is refused.

    Raises KlineageError when the file cannot be read or holds no results at all.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise KlineageError(f"cannot read {file}: {error.strerror}") from error
    results, refused = read_results(data, str(file), user_key())
    found = Imported((), (), (), tuple(refused))
    steps = _steps(workspace) if workspace is not None else {}
    for result in results:
        homes = steps.get(result.report.kernel, ())
        if workspace is None or not homes:
            found = replace(found, homeless=(*found.homeless, (result.label, result.report)))
            continue
        new = [step for step in homes if _note(workspace, step, result)]
        found = replace(found, noted=(*found.noted, *((step, result.report) for step in new)))
        if not new:
            found = replace(found, known=(*found.known, result.report))
    return found


def _steps(workspace: Workspace) -> dict[str, list[Step]]:
    """Every step of the workspace by its kernel: walks, sealed lineages, rejected attempts."""
    steps: dict[str, list[Step]] = {}
    for summary in workspace.lineages():
        listed = (
            *workspace.history(summary.id),
            *workspace.lineage(summary.id),
            *workspace.rejected(summary.id),
        )
        for step in listed:
            if step.kernel:
                steps.setdefault(step.kernel, []).append(replace(step, id=summary.id))
    return steps


def _note(workspace: Workspace, step: Step, result: Result) -> bool:
    """Store the report on the step, unless it is there."""
    if result.json in workspace.reports(step.commit):
        return False
    workspace.add_report(step.commit, result.json, step.id)
    return True
