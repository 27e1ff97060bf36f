"""Making one card of two that were begun apart: the same optimization, lifted in two workspaces, or two cards of one.

What was found adds up: evidence, trials, effects, risks, preconditions, probes that ran. Of what a card says once (its
words, anchor, carrier) both may be right, each for its own transitions: a person's words go before a lift's, then the
side that fresh trials bear, then ours. Only what two persons wrote, or what makes them two optimizations, is to be
decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from klineage.skill.card import Anchor, Card, Carrier, Contract, Effect, Precondition, Probe, Scope
from klineage.skill.library.fields import effect_name, parts, shown
from klineage.skill.library.merge import Conflict, Side, aligned, next_key
from klineage.skill.staleness import verified_by


@dataclass(frozen=True)
class Hands:
    """The fields that a person is known to have written, of either side: ``intent``, ``anchor``, ``carrier`` ..."""

    ours: frozenset[str] = frozenset()
    theirs: frozenset[str] = frozenset()


def join_cards(
    ours: Card,
    theirs: Card,
    hands: Hands | None = None,
    taken: Mapping[str, Side] | None = None,
    first: Side | None = None,
) -> tuple[Card, tuple[Conflict, ...]]:
    """(one card of both, what is left to decide), without a version that both come from. The id is ours.

    taken: field -> whose value a person took. Where nothing is taken of a conflict, the card holds our value. Two that
    act at different places, by different rules or to a different end are two optimizations: one of them is left whole.
    first: whose words go first where no person wrote them; None: those that fresh trials bear, else ours.
    """
    if apart := _apart(ours, theirs):
        said = taken or {}
        left = tuple(each for each in apart if each.field not in said)
        return (theirs if {said.get(each.field) for each in apart} == {"theirs"} else ours), left
    theirs = aligned(None, ours, theirs, same_claims(ours, theirs))
    borne = [name for name, card in (("ours", ours), ("theirs", theirs)) if verified_by(card)]
    side: Side = first or ("theirs" if borne == ["theirs"] else "ours")
    joining = _Joining(hands or Hands(), side, taken or {}, tried=side in borne)
    card = replace(
        ours,
        rule=ours.rule or theirs.rule,
        intent=joining.one("intent", ours.intent, theirs.intent),
        status=joining.status(ours, theirs),
        retired=joining.one("retired", ours.retired, theirs.retired),
        scope=wide(ours.scope, theirs.scope),
        contract=_contract(ours.contract, theirs.contract),
        preconditions=joining.preconditions(ours.preconditions, theirs.preconditions),
        effects=_effects(ours, theirs) if side == "ours" else _effects(theirs, ours),
        risks=by_text(ours.risks, theirs.risks),
        evidence=once(ours.evidence, theirs.evidence),
        verification=once(ours.verification, theirs.verification),
        anchor=joining.one("anchor", ours.anchor, theirs.anchor, Anchor()),
        carrier=joining.carrier(ours.carrier, theirs.carrier),
        notes=joining.one("notes", ours.notes, theirs.notes),
    )
    return card, tuple(joining.conflicts)


@dataclass
class _Joining:
    """Whose values go first, whether trials rest on these, and the conflicts found so far."""

    hands: Hands
    side: Side
    taken: Mapping[str, Side]
    tried: bool = False
    conflicts: list[Conflict] = field(default_factory=list)

    def decided(self, name: str, ours: Any, theirs: Any) -> Any:
        """What a person took of two values, ours and a conflict where nobody has decided."""
        side = self.taken.get(name)
        if side is None:
            self.conflicts.append(Conflict(name, "", shown(ours), shown(theirs)))
        return theirs if side == "theirs" else ours

    def one(self, name: str, ours: Any, theirs: Any, nothing: Any = "", hands: Hands | None = None) -> Any:
        """One of two values; what is empty says nothing."""
        if ours == theirs or theirs == nothing:
            return ours
        if ours == nothing:
            return theirs
        hands = hands or self.hands
        mine, other = name in hands.ours, name in hands.theirs
        if mine and other:
            return self.decided(name, ours, theirs)
        if name in self.taken:
            return theirs if self.taken[name] == "theirs" else ours
        side = ("ours" if mine else "theirs") if mine != other else self.side
        return theirs if side == "theirs" else ours

    def status(self, ours: Card, theirs: Card) -> Any:
        """To be out of use is a decision; to be admitted is what a trial of either has shown."""
        if ours.status == theirs.status:
            return ours.status
        if "retired" in (ours.status, theirs.status):
            return self.decided("status", ours.status, theirs.status)
        return "admitted"

    def carrier(self, ours: Carrier, theirs: Carrier) -> Carrier:
        """The code of one instance, with its own numbers and evidence: half of one with half of another is none."""
        if parts(replace(ours, evidence=())) == parts(replace(theirs, evidence=())):
            return replace(ours, evidence=_united(ours.evidence, theirs.evidence))
        found: Carrier = self.one("carrier", ours, theirs, Carrier())
        return found

    def preconditions(
        self, ours: tuple[Precondition, ...], theirs: tuple[Precondition, ...]
    ) -> tuple[Precondition, ...]:
        """Those of both, under our keys where both say the same (``aligned`` has seen to that)."""
        other = {item.key: item for item in theirs}
        mine = {item.key for item in ours}
        found = [self.precondition(item, other[item.key]) if item.key in other else item for item in ours]
        return (*found, *(item for item in theirs if item.key not in mine))

    def precondition(self, ours: Precondition, theirs: Precondition) -> Precondition:
        name = f"preconditions.{ours.key}."
        hands = Hands(
            *(frozenset(f"{name}{part}" for part in ("text", "check", "kind")) if item.origin == "person" else frozenset()
              for item in (ours, theirs))
        )  # fmt: skip
        text = self.one(f"{name}text", ours.text, theirs.text, hands=hands)
        return replace(
            ours,
            text=text,
            kind=self.one(f"{name}kind", ours.kind, theirs.kind, hands=hands),
            check=self.check(f"{name}check", ours, theirs, hands),
            probe=self.probe(f"{name}probe", ours.probe, theirs.probe),
            origin=ours.origin if text == ours.text else theirs.origin,
            evidence=_united(ours.evidence, theirs.evidence),
            doubt=self.one(f"{name}doubt", ours.doubt, theirs.doubt),
        )

    def check(self, name: str, ours: Precondition, theirs: Precondition, hands: Hands) -> str:
        """As any value; but that a kernel was tried without a check is more than nothing."""
        first = theirs if self.side == "theirs" else ours
        if self.tried and not hands.ours | hands.theirs and name not in self.taken:
            return first.check
        return str(self.one(name, ours.check, theirs.check, hands=hands))

    def probe(self, name: str, ours: Probe | None, theirs: Probe | None) -> Probe | None:
        """What ran goes before what did not; two that found the same are the later one; two that did not are a conflict."""
        if theirs is None or ours is None:
            return ours or theirs
        if ours == theirs or (ours.outcome == "untested") != (theirs.outcome == "untested"):
            return theirs if ours.outcome == "untested" else ours
        if ours.outcome != theirs.outcome:
            found: Probe = self.decided(name, ours, theirs)
            return found
        later = theirs if theirs.when > ours.when else ours
        alike = (ours.change, dict(ours.settings)) == (theirs.change, dict(theirs.settings))
        return replace(later, evidence=_united(ours.evidence, theirs.evidence)) if alike else later


def _apart(ours: Card, theirs: Card) -> tuple[Conflict, ...]:
    """Where two cards say that they are different optimizations."""
    names = ("action", "surface", "locus", "rule")
    sides = {name: (getattr(ours, name), getattr(theirs, name)) for name in names}
    found = [Conflict(name, "", *both) for name, both in sides.items() if all(both) and len(set(both)) == 2]
    one, two = ours.contract.provides, theirs.contract.provides
    if set(one) != set(two):
        found.append(Conflict("contract.provides", "", shown(one), shown(two)))
    return tuple(found)


def _effects(first: Card, other: Card) -> tuple[Effect, ...]:
    """One statement about each thing, that of ``first`` where both have one: its trials reproduced that."""
    known = {_claim(effect) for effect in first.effects}
    return (*first.effects, *(effect for effect in other.effects if _claim(effect) not in known))


def _claim(effect: Effect) -> tuple[str, str]:
    return effect_name(effect), effect.trust


def _contract(ours: Contract, theirs: Contract) -> Contract:
    """What goes on holding for every transition of both."""
    requires, conflicts = _both(ours.requires, theirs.requires), _both(ours.conflicts, theirs.conflicts)
    return replace(ours, requires=requires, conflicts=conflicts)


def same_claims(ours: Card, theirs: Card) -> dict[str, str]:
    """Key of a precondition of theirs -> the key that it gets: ours of the same sentence or check, else a free one."""
    texts = {plain(item.text): item.key for item in reversed(ours.preconditions)}
    checks = {item.check.strip(): item.key for item in reversed(ours.preconditions) if item.check.strip()}
    mine = {item.key for item in ours.preconditions}
    used = mine | {item.key for item in theirs.preconditions}
    renamed: dict[str, str] = {}
    met: set[str] = set()
    for known, of in ((texts, lambda item: plain(item.text)), (checks, lambda item: item.check.strip())):
        for item in theirs.preconditions:
            twin = known.get(of(item), "")
            if twin and twin not in met and item.key not in renamed:
                renamed[item.key] = twin
                met.add(twin)
    for item in theirs.preconditions:
        if item.key not in renamed and item.key in mine:
            renamed[item.key] = next_key("p", used)
            used.add(renamed[item.key])
    return renamed


def wide(one: Scope, two: Scope) -> Scope:
    """Where either holds."""
    found = {name: (*value, *getattr(two, name)) for name, value in parts(one).items()}
    return Scope(**{name: ("*",) if "*" in both else _united(both) for name, both in found.items()})


def once(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items of both, each once."""
    return (*one, *(item for item in two if item not in one))


def by_text(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sentences of both, one of each, with what shows it from both."""
    found = {plain(item.text): item for item in two}
    first = [
        replace(item, evidence=_united(item.evidence, found[plain(item.text)].evidence))
        if plain(item.text) in found
        else item
        for item in one
    ]
    said = {plain(item.text) for item in one}
    return (*first, *(item for item in two if plain(item.text) not in said))


def plain(text: str) -> str:
    """A sentence without what makes no difference to it."""
    return " ".join(text.split()).casefold().rstrip(".")


def _both(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(feature for feature in one if feature in two)


def _united(*lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for words in lists for word in words))
