"""What the Cards place reads, a function a job: the library with what is stale in it, evidence, revisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

from klineage_tui.card_queue import CardQueue, Item, Marks, item_of, queue_of

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.kernel import Kernel
    from klineage.lineage import Op, Step, Workspace
    from klineage.skill.anchors import Place
    from klineage.skill.card import Card, Evidence
    from klineage.skill.library import Entry, Library
    from klineage.skill.library.history import Revision


@dataclass(frozen=True)
class Loaded:
    """A library as read in one job. undo, redo: what would be taken back or again; "" for nothing."""

    queue: CardQueue = field(default_factory=CardQueue)
    undo: str = ""
    redo: str = ""
    sealed: tuple[str, ...] = ()


def load(library: Library, workspace: Workspace, skipped: frozenset[str], here: str) -> Loaded:
    """Every card in order of need, at the card ``here``. skipped: ids that are left for later."""
    items = [item_from(entry, entry.id in skipped) for entry in library.cards()]
    sealed = tuple(summary.id for summary in workspace.lineages() if summary.sealed)
    return Loaded(queue_of(items, here), library.undoable(), library.redoable(), sealed)


def item_from(entry: Entry, skipped: bool = False) -> Item:
    """The row of one file of a library."""
    if entry.card is None:
        return Item(entry.id, None, "broken", entry.problem, revision=entry.revision, skipped=skipped)
    return item_of(entry.card, marks_of(entry.card), entry.revision, skipped=skipped)


def marks_of(card: Card) -> Marks:
    """What is stale in a card."""
    from klineage.skill.staleness import probe_is_stale, stale

    unprobed = (p.key for p in card.preconditions if p.probe is not None and probe_is_stale(p))
    return Marks({key: tuple(fields) for key, fields in stale(card).items()}, frozenset(unprobed))


def problems_of(card: Card, others: Sequence[Card]) -> dict[str, tuple[str, ...]]:
    """What lint says of a card: the field as lint names it (``preconditions.p1.text``) to its sentences."""
    from klineage.skill.lint import lint

    found: dict[str, tuple[str, ...]] = {}
    for problem in lint(card, others):
        found[problem.field] = (*found.get(problem.field, ()), problem.text)
    return found


def about(problems: Mapping[str, Sequence[str]], kind: str, key: str) -> tuple[str, ...]:
    """The problems of one field of the form: ``precondition p1`` is ``preconditions.p1`` and what is in it."""
    name = {"precondition": "preconditions", "effect": "effects", "risk": "risks"}.get(kind, kind)
    name = f"contract.{kind}" if kind in ("requires", "provides", "conflicts") else name
    wanted = f"{name}.{key}" if key else name
    return tuple(
        text
        for field_name, texts in problems.items()
        if field_name == wanted or field_name.startswith(f"{wanted}.")
        for text in texts
    )


def troubled(problems: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The fields that have problems, as a person sees them: ``preconditions.p1.text`` is p1."""
    return tuple(dict.fromkeys(map(_seen, problems)))


def _seen(field_name: str) -> str:
    head, _, rest = field_name.partition(".")
    inner = rest.partition(".")[0] if head in ("preconditions", "contract", "verification") else ""
    return inner or head


@dataclass(frozen=True)
class Shown:
    """A piece of evidence: two kernels and what git says of their lines, or a gate report, or both.

    step: of a commit; None for a report alone. places: where the card's anchor is in the kernel before.
    """

    evidence: Evidence
    step: Step | None = None
    before: Kernel | None = None
    after: Kernel | None = None
    ops: Sequence[Op] = ()
    report: Report | None = None
    places: tuple[Place, ...] = ()
    here: bool = False  # the workspace itself has the lineage, so that History can show it


def evidence_of(library: Library, workspace: Workspace, card: Card, evidence: Evidence) -> Shown:
    """Read what a piece of evidence names. Raises KlineageError when it is not where the card says."""
    from klineage.gate import report_from_json

    report = (
        report_from_json(library.report(evidence.report).decode("utf-8", "replace"))
        if evidence.report
        else None
    )
    if not evidence.commit:
        if report is None:
            raise KlineageError(
                f"{evidence.key} names neither a commit nor a report; there is nothing to show"
            )
        return Shown(evidence, report=report)
    from klineage.lineage import line_ops
    from klineage.walk import Walk

    with library.lineage(evidence.lineage) as source:
        step = source.step(evidence.commit)
        walk = Walk(source, evidence.lineage)
        after = walk.kernel_at(step.commit)
        before = walk.kernel_at(step.parent) if step.parent else None
        report = report or walk.report_of(step.commit)
    ops = line_ops(before.source, after.source) if before is not None else ()
    here = evidence.lineage in {summary.id for summary in workspace.lineages()}
    return Shown(evidence, step, before, after, ops, report, _places(card, before or after), here)


def _places(card: Card, kernel: Kernel) -> tuple[Place, ...]:
    """Where the anchor is found in a kernel of the card's language."""
    from klineage.skill.anchors import find_anchor

    if not card.anchor.query or kernel.surface != card.surface:
        return ()
    return find_anchor(card.anchor.query, kernel)


def revision_texts(
    library: Library, card_id: str, revisions: Sequence[Revision], row: int
) -> tuple[str, str, Sequence[Op]]:
    """The file of a card before and after a revision, and the operations between their lines."""
    from klineage.lineage import line_ops

    after = _file_at(library, card_id, revisions[row])
    before = library.before(card_id, revisions[row])
    return before.decode("utf-8", "replace"), after.decode("utf-8", "replace"), line_ops(before, after)


def _file_at(library: Library, card_id: str, revision: Revision) -> bytes:
    return library.at(card_id, revision.commit) if revision.revision else b""
