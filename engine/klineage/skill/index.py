"""What retrieval knows of the cards of a library: a row for each to show, and columns to score all of them at once.

It is made from the cards' files and holds nothing of its own: it may be deleted at any time (see ``index_file``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from klineage.kernel import Surface
from klineage.skill.card import Card, ContractFeature, Effect, Outcome, Scope, Status
from klineage.skill.index_lists import Lists, joined, lists_of, taken

if TYPE_CHECKING:
    from klineage.skill.index_lists import Floats, Ints

#: The columns: name -> the words of a row.
COLUMNS = (
    "status", "surface", "action", "workloads", "surfaces", "platforms", "priors", "requires", "provides", "conflicts", "lineages",
)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A precondition as retrieval shows and evaluates it."""

    key: str
    text: str
    check: str = ""
    outcome: Outcome = "untested"


@dataclass(frozen=True)
class Row:
    """One card, as far as retrieval shows it.

    verified: where held-out trials that still count accepted it; all empty where none did.
    lifted:   (workload, platform) of the states that its effects were shown on, where it comes from.
    steps:    (lineage, commit) of the transitions that it cites.
    settings: the numbers of the card's instance, which its checks may name.
    trials:   how many held-out trials stand behind ``verified``.
    stale:    whether a trial no longer counts, because what it rested on was edited since.
    """

    id: str
    intent: str
    action: str
    surface: Surface
    status: Status
    declared: Scope
    verified: Scope
    lifted: tuple[tuple[str, str], ...] = ()
    requires: tuple[ContractFeature, ...] = ()
    provides: tuple[ContractFeature, ...] = ()
    conflicts: tuple[ContractFeature, ...] = ()
    anchor: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    effects: tuple[Effect, ...] = ()
    risks: tuple[str, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()
    trials: int = 0
    stale: bool = False

    @property
    def workloads(self) -> tuple[str, ...]:
        """Those that it was shown on: verified or lifted from; for a card of neither, those that it declares."""
        return self._shown(self.verified.workloads, tuple(w for w, _ in self.lifted), self.declared.workloads)

    @property
    def platforms(self) -> tuple[str, ...]:
        return self._shown(self.verified.platforms, tuple(p for _, p in self.lifted), self.declared.platforms)

    @property
    def surfaces(self) -> tuple[str, ...]:
        """The languages that its change was put into; its own counts as one, because its carrier is code."""
        return tuple(dict.fromkeys((self.surface, *self.verified.surfaces)))

    @property
    def priors(self) -> tuple[str, ...]:
        """What its targets had already when it was put on."""
        return self._shown(self.verified.prior_actions, (), self.declared.prior_actions)

    def _shown(
        self, verified: tuple[str, ...], lifted: tuple[str, ...], declared: tuple[str, ...]
    ) -> tuple[str, ...]:
        if self.trials or self.status == "admitted":
            return tuple(dict.fromkeys((*verified, *lifted)))
        return tuple(dict.fromkeys((*lifted, *declared)))


def row_of(card: Card) -> Row:
    """What retrieval keeps of a card."""
    from klineage.skill.staleness import stale, verified_by, verified_scope

    old = stale(card)
    accepted = [v for v in card.verification if v.accepted and v.held_out]
    lifted = [(e.workload, e.platform) for e in card.effects]
    conditions = [
        Condition(p.key, p.text, p.check, p.probe.outcome if p.probe else "untested")
        for p in card.preconditions
    ]
    return Row(
        id=card.id,
        intent=card.intent,
        action=card.action,
        surface=card.surface,
        status=card.status,
        declared=card.scope,
        verified=verified_scope(card),
        lifted=tuple(dict.fromkeys(lifted)),
        requires=card.contract.requires,
        provides=card.contract.provides,
        conflicts=card.contract.conflicts,
        anchor=card.anchor.query,
        settings=dict(card.carrier.settings),
        conditions=tuple(conditions),
        effects=card.effects,
        risks=tuple(risk.text for risk in card.risks if risk.kind != "none-found"),
        steps=tuple((e.lineage, e.commit) for e in card.evidence if e.kind == "transition"),
        trials=len(verified_by(card)),
        stale=any(v.key in old for v in accepted),
    )


def words_of(row: Row, column: str) -> Iterable[str]:
    """The words of a row in one column. A feature of a contract reads ``name@where``."""
    if column in ("status", "surface"):
        return (getattr(row, column),)
    if column == "action":
        return row.action.split("+")
    if column == "lineages":
        return (lineage for lineage, _ in row.steps)
    if column in ("requires", "provides", "conflicts"):
        return (f"{feature.name}@{feature.where}" for feature in getattr(row, column))
    found: tuple[str, ...] = getattr(row, column)
    return found


@dataclass(frozen=True)
class Index:
    """Many cards. ``ids`` are theirs; ``column`` has one ``Lists`` for each of ``COLUMNS``; ``trials`` is that of each row.

    order: a number below 1e-3, larger for an earlier id, which makes every ranking complete.
    rows: the rows themselves, packed; ``row`` unpacks one. starts: where each begins in them, and where the last ends.
    """

    ids: tuple[str, ...]
    columns: tuple[Lists, ...]
    trials: Ints
    order: Floats
    rows: bytes
    starts: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Lists:
        return self.columns[COLUMNS.index(name)]

    def row(self, number: int) -> Row:
        """The row of the card with this number, from 0."""
        import msgspec

        data = self.rows[self.starts[number] : self.starts[number + 1]]
        return msgspec.msgpack.decode(data, type=Row)

    def number(self, card_id: str) -> int | None:
        """The number of a card, None for one that is not here."""
        return self._numbers.get(card_id)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {card_id: number for number, card_id in enumerate(self.ids)}


def _order(ids: Sequence[str]) -> Floats:
    """A number below 1e-3 for each card, larger for an earlier id: it makes every ranking complete."""
    import numpy as np

    place = np.empty(len(ids), np.float64)
    place[np.asarray(sorted(range(len(ids)), key=ids.__getitem__), np.int64)] = np.arange(len(ids))
    ordered: Floats = (1 - place / max(len(ids), 1)) * 1e-3
    return ordered


def index_of(rows: Sequence[Row]) -> Index:
    """An index of these rows."""
    import msgspec
    import numpy as np

    packed = [msgspec.msgpack.encode(row) for row in rows]
    starts = np.concatenate(
        (np.zeros(1, np.int64), np.cumsum([len(data) for data in packed], dtype=np.int64))
    )
    ids = tuple(row.id for row in rows)
    return Index(
        ids=ids,
        columns=tuple(lists_of([words_of(row, name) for row in rows]) for name in COLUMNS),
        trials=np.asarray([row.trials for row in rows], np.int64),
        order=_order(ids),
        rows=b"".join(packed),
        starts=starts,
    )


def without(index: Index, gone: Iterable[str]) -> Index:
    """The index without the cards of these ids."""
    import numpy as np

    dropped = set(gone)
    kept = [number for number, card_id in enumerate(index.ids) if card_id not in dropped]
    if len(kept) == len(index):
        return index
    numbers = np.asarray(kept, np.int64)
    pieces = [index.rows[index.starts[n] : index.starts[n + 1]] for n in kept]
    sizes = (index.starts[1:] - index.starts[:-1])[numbers]
    ids = tuple(index.ids[number] for number in kept)
    return Index(
        ids=ids,
        columns=tuple(taken(column, numbers) for column in index.columns),
        trials=index.trials[numbers],
        order=_order(ids),
        rows=b"".join(pieces),
        starts=np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64))),
    )


def together(first: Index, second: Index) -> Index:
    """Both; where a card is in both, that of the first counts."""
    import numpy as np

    added = without(second, first.ids)
    ids = first.ids + added.ids
    return Index(
        ids=ids,
        columns=tuple(joined(one, two) for one, two in zip(first.columns, added.columns, strict=True)),
        trials=np.concatenate((first.trials, added.trials)),
        order=_order(ids),
        rows=first.rows + added.rows,
        starts=np.concatenate((first.starts, added.starts[1:] + first.starts[-1])),
    )
