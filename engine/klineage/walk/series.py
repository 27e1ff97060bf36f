"""A series of hand-written versions as a walk: each step gated, named, and accepted or kept as evidence."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from klineage.errors import KlineageError
from klineage.gate import GateEvent, GateRequest, Report, Verdict, gate, report_to_json
from klineage.kernel import Kernel
from klineage.lineage import Step, Workspace
from klineage.proposer.candidate import Candidate
from klineage.proposer.vocabulary import ACTIONS
from klineage.walk import naming, opening
from klineage.walk.reading import kernel_of, surface_of
from klineage.walk.session import Walk
from klineage.walk.settling import FalseClaim
from klineage.walk.state import WalkState
from klineage.walk.versions import Version
from klineage.workload import Workload

_FILES = {"triton": "kernel.py", "c": "kernel.c", "cuda": "kernel.cu"}
_TITLE = 60


@dataclass(frozen=True)
class Placed:
    """What became of one version.

    how:  "opened" (the expert), "accepted", "rejected", "same" (bytes that are there already) or "known"
          (taken by an import before, which was interrupted).
    step: the commit that it is kept in; None for "same" and "known".
    why:  the reason of a rejection.
    """

    version: Version
    how: Literal["opened", "accepted", "rejected", "same", "known"]
    step: Step | None = None
    why: str = ""


@dataclass(frozen=True)
class Series:
    """A lineage made from a series, and what became of each version, the expert first."""

    id: str
    placed: tuple[Placed, ...]

    def count(self, how: str) -> int:
        return sum(placed.how == how for placed in self.placed)


OnPlaced = Callable[[Placed], None]
OnGate = Callable[[Version, GateEvent], None]


@dataclass(frozen=True)
class _Import:
    """One import under way. ``versions``: the expert first. ``naive_first``: how they were given."""

    versions: Sequence[Version]
    naive_first: bool
    on_placed: OnPlaced | None
    on_gate: OnGate | None
    cancel: threading.Event | None

    def events(self, version: Version) -> Callable[[GateEvent], None] | None:
        on_gate = self.on_gate
        return None if on_gate is None else lambda event: on_gate(version, event)

    def stop_if_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise KlineageError("the import was cancelled; the same command goes on with it")

    def tell(self, placed: Placed) -> Placed:
        if self.on_placed is not None:
            self.on_placed(placed)
        return placed


def import_series(
    workspace: Workspace,
    versions: Sequence[Version],
    workload: Workload,
    *,
    naive_first: bool = False,
    surface: str | None = None,
    platform: str | None = None,
    entry: str | None = None,
    lineage_id: str | None = None,
    on_placed: OnPlaced | None = None,
    on_gate: OnGate | None = None,
    cancel: threading.Event | None = None,
) -> Series:
    """Make a lineage of versions: the expert is its root, each simpler one a step on the last that was accepted.

    A version that fails its gate, or that does not take out what it claims, is kept as a rejected attempt and
    passed over. No version runs outside a gate. Every step is on the disk before the next gate begins: an import
    that was interrupted goes on when it is called again.

    Raises KlineageError when the expert does not pass its own gate, when a gate cannot judge at all, or on cancel.
    """
    ordered = list(reversed(versions)) if naive_first else list(versions)
    work = _Import(ordered, naive_first, on_placed, on_gate, cancel)
    filename = _filename(ordered, surface)
    expert = _expert(ordered[0], filename, workload, surface, entry)
    expert, target = opening.prepared(expert, workload, platform, ordered[0].name)
    wanted = opening.free_id(lineage_id or f"{workload.name}-{expert.surface}", set())
    begun = _begun(workspace, wanted, expert, ordered)
    if begun is None:
        walk = Walk(workspace, _opened(work, workspace, expert, workload, target, wanted))
        placed = [work.tell(Placed(ordered[0], "opened", walk.state().head))]
        last = 0
    else:
        walk = Walk(workspace, begun)
        _check_expert(work, walk)
        last = _last_taken(walk.state(), ordered)
        placed = [work.tell(Placed(version, "known")) for version in ordered[: last + 1]]
    for number in range(last + 1, len(ordered)):
        outcome = _place(work, walk, number, last)
        placed.append(work.tell(outcome))
        last = number if outcome.how == "accepted" else last
    return Series(walk.id, tuple(placed))


def _expert(
    version: Version, filename: str, workload: Workload, surface: str | None, entry: str | None
) -> Kernel:
    try:
        return kernel_of(filename, version.source, workload, surface=surface, entry=entry)
    except KlineageError as error:
        if version.name == filename:
            raise
        raise KlineageError(f"{version.name}, which is {filename} in the lineage: {error}") from error


def _filename(versions: Sequence[Version], surface: str | None) -> str:
    """What the kernel is called in the lineage: as in every version, else as experts are."""
    names = {version.filename for version in versions}
    first = versions[0].filename
    return first if len(names) == 1 else _FILES[surface_of(first, surface)]


def _opened(
    work: _Import, workspace: Workspace, expert: Kernel, workload: Workload, target: str, wanted: str
) -> str:
    """Gate the expert, then open a lineage at it; returns its id."""
    version = work.versions[0]
    report = gate(GateRequest(expert, workload, target), work.events(version), work.cancel)
    work.stop_if_cancelled()
    _refuse_expert(work, report)
    return opening.start(workspace, expert, workload, target, wanted, report_to_json(report))


def _check_expert(work: _Import, walk: Walk) -> None:
    """A lineage that was there may have been opened without a gate."""
    root = walk.state().steps[0]
    if not any(report.verdict is Verdict.PASS for report in walk.reports(root.commit)):
        report = walk.gate_commit(root.commit, work.events(work.versions[0]), work.cancel)
        work.stop_if_cancelled()
        _refuse_expert(work, report)


def _refuse_expert(work: _Import, report: Report) -> None:
    version = work.versions[0]
    _stop_if_nothing_was_judged(report, version)
    order = "last" if work.naive_first else "first"
    if report.verdict is Verdict.UNSUPPORTED:
        raise KlineageError(
            f"{version.name}, the {order} version, is the expert, and no gate here can judge it: {report.why}"
        )
    if report.verdict is not Verdict.PASS:
        raise KlineageError(
            f"{version.name}, the {order} version, is the expert and does not pass its own gate: {report.why}; "
            f"{'leave out' if work.naive_first else 'give'} --naive-first if the order is the other way round"
        )


def _begun(workspace: Workspace, wanted: str, expert: Kernel, versions: Sequence[Version]) -> str | None:
    """The lineage that an interrupted import of just these versions left, if there is one."""
    sources = {version.source for version in versions}
    for summary in workspace.lineages():
        if summary.problem or not re.fullmatch(rf"{re.escape(wanted)}(-\d+)?", summary.id):
            continue
        walk = Walk(workspace, summary.id)
        kernels = [walk.kernel_at(step.commit) for step in walk.state().steps]
        if kernels[0] == expert and all(kernel.source in sources for kernel in kernels):
            return summary.id
    return None


def _last_taken(state: WalkState, versions: Sequence[Version]) -> int:
    """The number of the version that the walk has reached."""
    return max(i for i, version in enumerate(versions) if version.source == state.kernel.source)


def _place(work: _Import, walk: Walk, number: int, last: int) -> Placed:
    """Gate one version on the last that was accepted, and record what comes of it."""
    version, state = work.versions[number], walk.state()
    if version.source == state.kernel.source:
        return Placed(version, "same")
    candidate = _candidate(work, state.kernel, number, last)
    report = walk.gate(candidate, work.events(version), work.cancel)
    work.stop_if_cancelled()
    _stop_if_nothing_was_judged(report, version)
    why = "" if report.verdict is Verdict.PASS else report.why
    if not why:
        try:
            return Placed(version, "accepted", walk.accept(candidate, report))
        except FalseClaim as problem:
            why = str(problem)
    known = state.rejection_of(candidate)
    step = known if known is not None else walk.reject(candidate, report, why=why)
    return Placed(version, "rejected", step, why)


def _stop_if_nothing_was_judged(report: Report, version: Version) -> None:
    if report.verdict is Verdict.ERROR:
        raise KlineageError(
            f"the gate could not judge {version.name}: {report.why}; mend that, then give the same command again"
        )


def _candidate(work: _Import, head: Kernel, number: int, last: int) -> Candidate:
    """The step to one version from the last that was accepted, named by what is seen gone, else by its author."""
    version = work.versions[number]
    between = work.versions[last:number] if work.naive_first else work.versions[last + 1 : number + 1]
    said = [v.subject or _spoken(v.name) for v in between if v.subject or _spoken(v.name)]
    step = naming.by_person(head, version.source)
    action = step.action
    if action == naming.UNNAMED:
        action = next((word for text in said for word in _words(text)), naming.UNNAMED)
    subjects = [v.subject for v in between if v.subject]
    title = _title(subjects, undo=work.naive_first) or (
        step.title if step.removes else f"Simplify to {version.name}"
    )
    count = len(work.versions)
    which = f"commit {version.name}" if version.subject else version.name
    body = f"Version {count - number if work.naive_first else number + 1} of {count} of a series: {which}."
    if new := naming.come(head, replace(head, source=version.source)):
        body += f" It also has {', '.join(map(str, new))}, which the version before does not have."
    return replace(step, title=title, action=action, rationale=body)


def _title(subjects: Sequence[str], *, undo: bool) -> str:
    """What authors said of the changes between two versions, as one line; "Undo: ..." where the walk goes back."""
    if not subjects:
        return ""
    first = subjects[0] if undo else subjects[-1]
    more = f" (and {len(subjects) - 1} more)" if len(subjects) > 1 else ""
    line = f"Undo: {first}" if undo else first
    room = _TITLE - len(more)
    return (line if len(line) <= room else line[: room - 1] + "…") + more


def _spoken(name: str) -> str:
    """The words in a file's name: ``03_no_unroll.c`` says "no unroll"."""
    return re.sub(r"[\W\d]+", " ", re.sub(r"\.\w+$", "", name).replace("_", " ")).strip()


def _words(text: str) -> list[str]:
    """The words of the vocabulary in a text, two in a row included (``cache block``)."""
    parts = re.findall(r"[a-z0-9]+", text.lower())
    pairs = [f"{a}_{b}" for a, b in pairwise(parts)]
    return [word for word in (*pairs, *parts) if word in ACTIONS]
