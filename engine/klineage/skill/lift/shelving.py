"""Lifting into a library: new cards are put there, and cards of the same optimizations learn what is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.skill.card import Card
from klineage.skill.library.git import GitShelf
from klineage.skill.library.history import undone
from klineage.skill.library.library import Library
from klineage.skill.lift.citing import keys_of, transition_note
from klineage.skill.lift.groups import Group, groups_of, named
from klineage.skill.lift.source import Source
from klineage.skill.lift.structural import lifted
from klineage.skill.lift.update import Update, updated

#: Says more of a card than its structure does, such as a model; gives the card back with what it says.
Improve = Callable[[Card, Group], Card]
State = Literal["new", "updated", "unchanged", "retired", "broken"]


@dataclass(frozen=True)
class Lift:
    """What became of one optimization.

    card:  as it is, or would be, in the library; None where its file is broken.
    added, kept, faults: as in ``Update``. problem: why nothing was done, in one sentence.
    revision: of the card's file that it was made from; empty where there was none.
    """

    id: str
    state: State
    card: Card | None
    group: Group
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    problem: str = ""
    revision: str = ""


def lift(
    source: Source, library: Library | None = None, improve: Improve | None = None, only: Sequence[str] = ()
) -> tuple[Lift, ...]:
    """What lifting comes to, one entry for each optimization; nothing is written (see ``put``).

    library: whose cards give theirs ids, and keep what persons wrote in them; None lifts everything anew.
    only:    improve these cards alone, for each may cost a call; the others are lifted by structure.
    """
    entries = library.cards() if library is not None else ()
    cards = {entry.id: entry.card for entry in entries if entry.card is not None}
    broken = {entry.id: entry.problem for entry in entries if entry.card is None}
    source = _with_cited(source, library, cards)
    found: dict[str, Lift] = {}
    for card_id, group in named(groups_of(source), cards.values()):
        if card_id in broken:
            found[card_id] = Lift(card_id, "broken", None, group, problem=broken[card_id])
            continue
        earlier = found.get(card_id)
        current = earlier.card if earlier is not None else cards.get(card_id)
        more = improve if not only or card_id in only else None
        found[card_id] = _joined(earlier, _one(card_id, current, group, source, library, more))
    revisions = {entry.id: entry.revision for entry in entries}
    return tuple(replace(one, revision=revisions.get(one.id, "")) for one in found.values())


def sealed_again(card: Card, group: Group, library: Library | None) -> Card:
    """The card with its evidence at the present commits of lineages that were sealed again since: of the same kernels
    before and after it is the same transition, and keeps its key."""
    if library is None or not isinstance(library.shelf, GitShelf):
        return card
    workspace = library.shelf.workspace
    now = {(t.lineage, t.before.hash, t.after.hash): t for t in group.transitions}
    cites = keys_of(card.evidence)
    items = []
    for item in card.evidence:
        if item.kind == "transition" and any(item.lineage == lineage for lineage, _, _ in now):
            transition = now.get((item.lineage, *_kernels(workspace, item.commit)))
            if transition is not None and transition.commit not in cites:
                item = replace(item, commit=transition.commit, note=transition_note(transition))
        items.append(item)
    return replace(card, evidence=tuple(items))


def _kernels(workspace: Workspace, commit: str) -> tuple[str, str]:
    """The hashes of the kernels before and after a sealed step; empty where the commit is gone."""
    try:
        step = workspace.step(commit)
        return workspace.step(step.parent).kernel, step.kernel
    except KlineageError:
        return "", ""


def _with_cited(source: Source, library: Library | None, cards: Mapping[str, Card]) -> Source:
    """The source with what the cards that will learn from it cite of other lineages, as far as these are here: what is
    said of all has to hold for those too."""
    if library is None or not isinstance(library.shelf, GitShelf):
        return source
    touched = {card_id for card_id, _ in named(groups_of(source), cards.values())} & cards.keys()
    items = [item for name in sorted(touched) for item in cards[name].evidence]
    commits = {item.commit: item.lineage for item in items if item.kind in ("transition", "rejected")}
    return source.with_commits(library.shelf.workspace, commits)


def _one(
    card_id: str, current: Card | None, group: Group, source: Source, library: Library | None, improve: Improve | None
) -> Lift:  # fmt: skip
    if current is None:
        card = lifted(group, source, card_id)
        return Lift(card_id, "new", improve(card, group) if improve is not None else card, group)
    if current.status == "retired":
        why = f"it is retired ({current.retired or 'no reason is given'}); it was left alone"
        return Lift(card_id, "retired", current, group, problem=why)
    now = sealed_again(current, group, library)
    update = updated(now, group, source, _once_cited(library, now, group))
    if now != current:
        update = replace(update, added=("the commits of a lineage that was sealed again", *update.added))
    if improve is not None:
        update = replace(update, card=improve(update.card, group))
    return _changed(card_id, current, update, group)


def _changed(card_id: str, current: Card, update: Update, group: Group) -> Lift:
    state: State = "unchanged" if update.card == current else "updated"
    return Lift(card_id, state, update.card, group, update.added, update.kept, update.faults)


def _joined(earlier: Lift | None, later: Lift) -> Lift:
    """What two groups of one card came to."""
    if earlier is None:
        return later
    state: State = earlier.state if later.state == "unchanged" else later.state
    return replace(
        later,
        state="new" if earlier.state == "new" else state,
        added=(*earlier.added, *later.added),
        kept=tuple(dict.fromkeys((*earlier.kept, *later.kept))),
        faults=(*earlier.faults, *later.faults),
    )


def _once_cited(library: Library | None, card: Card, group: Group) -> frozenset[str]:
    """The commits of a group that the card has cited in some revision, and no longer does: a person has taken them out."""
    missing = {t.commit for t in group.transitions} | {r.commit for r in group.rejected}
    missing -= keys_of(card.evidence).keys()
    if library is None or not missing or not library.writable:
        return frozenset()
    back = {revision.commit for revision in undone(reversed(library.history()))}
    texts = [
        library.at(card.id, revision.commit)
        for revision in library.history(card.id)
        if revision.revision and revision.commit not in back
    ]
    return frozenset(commit for commit in missing if any(commit.encode() in text for text in texts))


def put(library: Library, lifts: Sequence[Lift], who: str = "", reason: str = "") -> str:
    """Write what is new or updated, as one decision that can be undone; returns the commit, "" where nothing was.

    Raises Moved when somebody has edited one of the cards since ``lift`` read it.
    """
    written = [one for one in lifts if one.state in ("new", "updated") and one.card is not None]
    if not written:
        return ""
    expected = {one.id: one.revision for one in written}
    lineages = sorted({t.lineage for one in written for t in one.group.transitions})
    title = f"Lift {len(written)} card{'s' if len(written) > 1 else ''} from {', '.join(lineages)}"
    cards = [one.card for one in written if one.card is not None]
    return library.save_all(
        cards, who, reason or "lifted from sealed lineages", title=title, expected=expected
    )
