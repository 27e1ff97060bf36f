"""A card as an agent reads it: Markdown of a bounded length, every number with its trust beside it.

Cards are written by others: sentences stand on one line, characters that control a terminal or that nobody would see
are made visible, and code stands in a fence that nothing inside it can close.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from klineage.lineage.message import one_line, paragraphs
from klineage.numbers import gained, three
from klineage.skill.card import Card, ContractFeature, Effect, Precondition, Risk, Verification
from klineage.skill.staleness import probe_is_stale, stale

#: Characters of a card as told, about 2,000 tokens.
LONGEST = 7000

_SENTENCE = 400  # characters of one sentence
_ROW = 1500  # characters of one row of a list
_PLACES = {
    "anchor": "at its place",
    "function": "in its function",
    "kernel": "in the kernel",
    "hardware": "in hardware",
}
#: Drawn as nothing, or turning the order of what follows: an agent would read what no person does.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
#: What an effect was measured against, where it was not as the step of its lineage.
_POSITIONS = {
    "in-order": "",
    "first": ", added alone to the naive form",
    "last": ", taken alone out of the expert",
}
_LEAST_CODE = 600  # characters that each side of a change keeps, however long the rest is
_LANGUAGES = {"c": "c", "cuda": "cuda", "triton": "python"}


def told(card: Card) -> str:
    """The card in at most about ``LONGEST`` characters; what was left out is said where it is missing.

    Lists are kept before code: an agent that wants all of a change reads the card itself.
    """
    head = [f"# {card.id}", "", sentence(card.intent), "", _standing(card), *_why(card)]
    first = [
        *_section("Holds when", [*_contract(card), *(condition(p) for p in card.preconditions)]),
        *_section("Gains", [effect(e) for e in card.effects]),
        *_section("Risks", [_risk(risk) for risk in card.risks]),
    ]
    last = [
        *_section("Verified", _verified(card)),
        *_section("Evidence", [_evidence(card)] if card.evidence else []),
    ]
    used = sum(len(line) + 1 for line in (*head, *first, *last))
    return "\n".join([*head, *first, *_change(card, max(LONGEST - used, 0)), *last]).rstrip() + "\n"


def _why(card: Card) -> Iterator[str]:
    """The first paragraph of the notes where it says more than how the card was made: why the change pays.

    Not of imported cards, whose notes keep what others claim and nobody has shown.
    """
    first = card.notes.strip().partition("\n\n")[0]
    imported = any(item.kind == "import" for item in card.evidence)
    if first and not imported and not first.startswith("Lifted by "):
        yield from ("", sentence(first))


def sentence(text: str, longest: int = _SENTENCE) -> str:
    """A sentence of a card on one line of bounded length."""
    line = _seen(one_line(text))
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def _seen(text: str) -> str:
    return _HIDDEN.sub(lambda found: f"‹{ord(found[0]):x}›", text)


def effect(one: Effect) -> str:
    """``1.31x [1.29, 1.33] time, measured-cpu, on cpu-x86-64-v4 for gemm``."""
    interval = "" if one.low == one.high else f" [{three(one.low)}, {three(one.high)}]"
    size = f" {one.size}" if one.size else ""
    where = f"on {one.platform} for {one.workload}{size}{_POSITIONS[one.position]}"
    says = " (an exact count, which says nothing of time)" if not one.trust.startswith("measured") else ""
    return sentence(
        f"{gained(one.gain, one.low, one.high)}x{interval} {one.quantity}, {one.trust}, {where}{says}"
    )


def best_effect(effects: Sequence[Effect]) -> Effect:
    """The one to speak of where there is room for one: a time before a count, the largest gain first."""
    return max(effects, key=lambda e: (e.quantity == "time", e.gain))


def fenced(code: str, language: str, longest: int) -> list[str]:
    """Code between fences, cut at a whole line."""
    text = _seen(paragraphs(code))
    lines = text.split("\n")
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > longest and kept:
            break
        kept.append(line[: max(longest, 80)])
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    left = len(lines) - len(kept)
    rest = [f"({left} more line{'s' * (left > 1)}; the card has them)"] if left else []
    return [f"{fence}{language}", *kept, fence, *rest]


def _standing(card: Card) -> str:
    status = {
        "hypothesis": "A hypothesis: no held-out trial has admitted it.",
        "admitted": "Admitted on kernels that it was not made from.",
        "retired": f"Retired: {sentence(card.retired) or 'do not use it'}.",
    }[card.status]
    return f"{card.surface}, {sentence(card.action, 80)}, acts at a {sentence(card.locus, 80)}. {status}"


def _section(title: str, rows: Iterable[str]) -> Iterator[str]:
    lines = [f"- {sentence(row, _ROW)}" for row in rows]
    if lines:
        yield from ("", f"## {title}", "", *lines)


def _contract(card: Card) -> Iterator[str]:
    for word, features in (("requires", card.contract.requires), ("conflicts with", card.contract.conflicts)):
        for feature in features:
            yield f"{word} {_feature(feature)}"


def _feature(feature: ContractFeature) -> str:
    return f"{sentence(feature.name, 80)} {_PLACES.get(feature.where, '')}".rstrip()


def condition(one: Precondition) -> str:
    """A precondition with its check and what came of breaking it."""
    parts = [f"{one.key} ({one.kind}): {sentence(one.text)}"]
    if one.check:
        parts.append(f"Check: `{one_line(one.check).replace('`', '')}`.")
    if one.probe is not None and one.probe.outcome != "untested":
        old = " before it was edited" if probe_is_stale(one) else ""
        trust = f", {one.probe.trust}" if one.probe.trust else ""
        meaning = {"confirmed": "it matters", "refuted": "breaking it broke nothing"}[one.probe.outcome]
        parts.append(
            f"Probe{old}: {one.probe.outcome}, {meaning}{trust}. {sentence(one.probe.found)}".rstrip()
        )
    if one.doubt:
        parts.append(f"In doubt: {sentence(one.doubt)}")
    return " ".join(parts)


def _risk(risk: Risk) -> str:
    mark = {"observed": "observed: ", "expected": "", "none-found": "none found: "}[risk.kind]
    doubt = f" In doubt: {sentence(risk.doubt)}" if risk.doubt else ""
    return f"{mark}{sentence(risk.text)}{doubt}"


def _verified(card: Card) -> Iterator[str]:
    old = stale(card)
    for trial in card.verification:
        yield verification(trial, stale=trial.key in old)


def verification(trial: Verification, *, stale: bool = False) -> str:
    """One trial in a line, success or failure."""
    gain = (
        f"{gained(trial.gain, trial.low, trial.high)}x {trial.quantity}, {trial.trust}"
        if trial.gain is not None
        else "no gain shown"
    )
    word = "accepted" if trial.accepted else "FAILED"
    held_out = f"held out in {', '.join(trial.held_out)}" if trial.held_out else "not held out"
    note = "; STALE: the card was edited since" if stale else ""
    return (
        f"{trial.key} {word} on {sentence(trial.target, 80)} ({trial.workload}, {trial.surface}, {trial.platform}; {held_out}) "
        f"by {sentence(trial.materializer, 80)}: {gain}. {sentence(trial.why)}{note}"
    )


def _evidence(card: Card) -> str:
    """Keys and where each is looked up; the sentences are in the card."""
    shown = (
        f"{e.key} {e.kind} {sentence(e.lineage, 80)} {e.commit[:10]}".rstrip() if e.lineage else f"{e.key} {e.kind} {e.report}".rstrip()
        for e in card.evidence
    )  # fmt: skip
    return sentence("; ".join(shown), 600)


def _change(card: Card, room: int) -> Iterator[str]:
    language = _LANGUAGES[card.surface]
    if card.anchor.text or card.anchor.query:
        yield from ("", "## Where", "")
        if card.anchor.text:
            yield _seen(paragraphs(card.anchor.text))[:1200]
        if card.anchor.query:
            yield from fenced(card.anchor.query, "query", 600)
    each = max((room - len(card.anchor.text) - len(card.anchor.query)) // 2, _LEAST_CODE)
    for title, code in (("Before", card.carrier.before), ("After", card.carrier.after)):
        if code:
            yield from ("", f"## {title}", "", *fenced(code, language, each))
    if card.carrier.settings:
        numbers = ", ".join(f"{name}={value}" for name, value in card.carrier.settings.items())
        yield from ("", f"Numbers of this instance, which are no conditions: {sentence(numbers)}")
