"""What retrieval keeps of one card, and how it is packed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from klineage.kernel import Surface
from klineage.skill.card import Card, ContractFeature, Effect, Outcome, Scope, Status


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
    from klineage.skill.staleness import scope_of, stale, verified_by

    old = stale(card)
    trials = verified_by(card, old)
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
        verified=scope_of(trials),
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
        trials=len(trials),
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


def packed(row: Row) -> bytes:
    """A row in some 400 bytes. Its words are mostly those of every other row, so they are compressed against a sample."""
    import msgspec

    press = zlib.compressobj(zdict=sample())
    return press.compress(msgspec.msgpack.encode(row)) + press.flush()


def unpacked(data: bytes | memoryview) -> Row:
    """The inverse of ``packed``."""
    import msgspec

    return msgspec.msgpack.decode(zlib.decompressobj(zdict=sample()).decompress(data), type=Row)


@lru_cache(maxsize=1)
def sample() -> bytes:
    """The bytes that rows are compressed against (RFC 1950, a preset dictionary): a row with the usual words in it."""
    import msgspec

    there, scope = (ContractFeature("simd", "kernel"),), Scope(("*",), ("c",), ("nvidia-sm90",), ("*",))
    effect = Effect(
        "time", 1.5, 1.25, 1.75, "measured-cpu", "cpu-x86-64-v3", "gemm", "bench", "thread_cpu_time", "in-order", ("e1",)
    )  # fmt: skip
    row = Row(
        "c.x", "", "simd", "c", "admitted", scope, scope, (("gemm", "cpu-x86-64-v4"),), there, there, there,
        "((for_statement) @anchor)", {}, (Condition("p1", "", "row_alignment() % 16 == 0"),), (effect,), ("",), (("gemm-c", ""),), 1,
    )  # fmt: skip
    return msgspec.msgpack.encode(row)
