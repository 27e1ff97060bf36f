"""A SkillCard as plain frozen data: one optimization, when it holds, what it gains, and what shows that.

Every claim names its evidence by key (``Evidence.key``), so that a reader can go from a sentence to the commit
behind it. What was tested carries the fingerprint of what it rested on: a later edit makes it stale by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from klineage.errors import KlineageError
from klineage.kernel import Surface

SCHEMA = 1

Status = Literal["hypothesis", "admitted", "retired"]
Kind = Literal["data-types", "layout", "storage", "pipeline", "hardware"]
Origin = Literal["rule", "features", "compile", "gate", "probe", "model", "person", "import"]
Outcome = Literal["untested", "confirmed", "refuted"]
Change = Literal["size", "stride", "misalign", "dtype", "feature", "platform", "setting"]
Place = Literal["anchor", "function", "kernel", "hardware"]

STATUSES: tuple[Status, ...] = get_args(Status)
KINDS: tuple[Kind, ...] = get_args(Kind)
CHANGES: tuple[Change, ...] = get_args(Change)

_ID = re.compile(r"(triton|cuda|c)\.[a-z0-9]+(-[a-z0-9]+)*")


def check_id(card_id: str) -> str:
    """The id itself. Raises KlineageError for what could not be a file's name or an Agent Skill's everywhere."""
    if len(card_id) > 64 or not _ID.fullmatch(card_id):
        raise KlineageError(
            f"{card_id!r} cannot name a card; write it as c.some-words: a language, a dot, then a-z, 0-9 and single hyphens"
        )
    return card_id


@dataclass(frozen=True)
class Evidence:
    """Where a claim can be looked up.

    key:     what claims name it by, unique in the card: ``e1``.
    kind:    ``transition`` (a sealed step), ``rejected`` (an attempt that failed), ``probe``, ``ablation`` or ``trial``
             (a gate of this card: its report is the JSON of ``report``), ``import``.
    lineage: the lineage that ``commit`` belongs to; both empty where the evidence is a report alone.
    report:  name of the report's file in the library's ``reports`` folder, or empty.
    note:    one sentence.
    """

    key: str
    kind: Literal["transition", "rejected", "probe", "ablation", "trial", "import"]
    lineage: str = ""
    commit: str = ""
    report: str = ""
    note: str = ""


@dataclass(frozen=True, order=True)
class ContractFeature:
    """A mechanism and where it must be, seen from the card's anchor: so it can be asked of any kernel.

    where: ``anchor`` (at the very place), ``function`` (in the anchor's function), ``kernel`` (anywhere in the
    kernel), ``hardware`` (a capability of the platform).
    """

    name: str
    where: Place = "anchor"


@dataclass(frozen=True)
class Contract:
    """What must be there, what comes, and what may not be there.

    For every transition that the card cites: ``provides`` is exactly what it added, ``requires`` was there
    before it, and nothing of ``conflicts`` was.
    """

    requires: tuple[ContractFeature, ...] = ()
    provides: tuple[ContractFeature, ...] = ()
    conflicts: tuple[ContractFeature, ...] = ()


@dataclass(frozen=True)
class Scope:
    """Where the author believes the card to hold; ``*`` means anywhere. What was verified is computed, not declared."""

    workloads: tuple[str, ...] = ("*",)
    surfaces: tuple[str, ...] = ("*",)
    platforms: tuple[str, ...] = ("*",)
    prior_actions: tuple[str, ...] = ("*",)


@dataclass(frozen=True)
class Probe:
    """A way to violate exactly one precondition, and what came of it.

    change:   what is broken: ``size``, ``stride``, ``misalign``, ``dtype``, ``feature``, ``platform``, ``setting``.
    settings: its parameters, e.g. ``{"dim": "K", "value": "33"}``.
    outcome:  ``confirmed``: it fails, or loses its effect; ``refuted``: nothing breaks.
    found:    the sentence with the failing case, or the number that shows that nothing broke.
    of:       fingerprint of the precondition and the change when it ran; another one now means stale.
    """

    change: Change
    settings: Mapping[str, str] = field(default_factory=dict)
    outcome: Outcome = "untested"
    found: str = ""
    trust: str = ""
    platform: str = ""
    when: str = ""  # UTC, ISO 8601
    evidence: tuple[str, ...] = ()
    of: str = ""


@dataclass(frozen=True)
class Precondition:
    """One thing that must hold *before*. It names the operation or rule of the hardware that breaks without it.

    key:   unique in the card: ``p1``; kept when the sentence is edited.
    text:  the sentence.
    check: an expression over the facts of a target (see ``klineage.skill.checks``); empty for prose alone.
    doubt: why the evidence does not show what the sentence claims; empty where it does or nobody looked.
    """

    key: str
    kind: Kind
    text: str
    check: str = ""
    probe: Probe | None = None
    origin: Origin = "person"
    evidence: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True)
class Effect:
    """What it gains: ``gain`` is the quantity without it over the quantity with it, above 1 is better.

    quantity: ``time``, or an exact count such as ``bytes_loaded`` or ``instructions``, which says nothing of time.
    low/high: 99 % interval of a time; equal to ``gain`` for exact counts.
    position: ``in-order`` (as the step of its lineage), ``first`` (alone, on the naive form), ``last`` (alone, out of
              the expert).
    """

    quantity: str
    gain: float
    low: float
    high: float
    trust: str
    platform: str
    workload: str
    size: str = ""
    timer: str = ""
    position: Literal["in-order", "first", "last"] = "in-order"
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Risk:
    """What can go wrong. ``none-found``: a search was made and nothing broke; the sentence says what was tried."""

    text: str
    kind: Literal["observed", "expected", "none-found"] = "expected"
    origin: Origin = "person"
    evidence: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True)
class Verification:
    """One trial of the card alone on a kernel, success or failure; entries are added and never overwritten.

    key:          unique in the card: ``v1``.
    target:       the lineage or folder, with the state, that it was tried on.
    held_out:     in what the target differs from every source state (``workload``, ``surface``, ``platform``,
                  ``prior_actions``, ``capabilities``); empty means that it is no held-out trial.
    materializer: who made the edit: ``rules:<name>``, ``patch``, ``model:<id>``, ``command:<preset>``, ``person``.
    accepted:     every gate passed and at least half of the declared effect was shown beyond noise.
    rested_on:    field -> fingerprint of the card when it was tried (see ``klineage.skill.staleness``).
    """

    key: str
    target: str
    workload: str
    surface: Surface
    platform: str
    prior_actions: tuple[str, ...]
    materializer: str
    accepted: bool
    why: str
    held_out: tuple[str, ...] = ()
    attempts: int = 1
    quantity: str = ""
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    trust: str = ""
    when: str = ""
    evidence: tuple[str, ...] = ()
    rested_on: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Anchor:
    """Where it acts: in words, and as a tree-sitter query of the card's surface, re-found on other code.

    query: empty where there is none; its capture ``@anchor`` is the place.
    """

    text: str = ""
    query: str = ""


@dataclass(frozen=True)
class Carrier:
    """The change as code of one instance, and that instance's own numbers, which are never preconditions."""

    before: str = ""
    after: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """One SkillCard; its revisions are commits of its file.

    id:      what it is called for good, whatever is edited: ``c.prefetch``.
    intent:  one sentence: what is done, and to what end.
    action:  a word of the action vocabulary.
    rule:    the rule that can put it on, ``c.prefetch``, or empty.
    locus:   the kind of place it acts at: ``function``, ``for``, ``kernel``, ``launch`` ...
    retired: why, where the status is retired; also the id that it was merged into.
    """

    id: str
    intent: str
    action: str
    surface: Surface
    status: Status = "hypothesis"
    locus: str = "function"
    rule: str = ""
    scope: Scope = field(default_factory=Scope)
    contract: Contract = field(default_factory=Contract)
    preconditions: tuple[Precondition, ...] = ()
    effects: tuple[Effect, ...] = ()
    risks: tuple[Risk, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    verification: tuple[Verification, ...] = ()
    anchor: Anchor = field(default_factory=Anchor)
    carrier: Carrier = field(default_factory=Carrier)
    notes: str = ""
    retired: str = ""


def takes_its_place(earlier: Status, later: Status) -> bool:
    """Whether a card counts before one of the same id in an earlier library: an admitted one before a hypothesis.

    Whoever lifts an optimization that is shipped would else hide, by what nobody has shown, what was shown.
    """
    return (earlier, later) == ("hypothesis", "admitted")
