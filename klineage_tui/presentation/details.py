"""Why a state is as it is: action, place, proposer, decision, reason, and what the gate said."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from klineage_tui.presentation.gate import verdict_role
from klineage_tui.presentation.walk import step_name
from klineage_tui.text.columns import pad
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import ratio
from klineage_tui.text.sanitize import sanitize, sanitize_lines

if TYPE_CHECKING:
    from klineage.lineage import Step

_LABEL = 12
_COUNTS = "counts, not time"
_TIMES = re.compile(r"(\S+) ms of (\S+) ms")  # as a step records them: its own, then that of the state before
_COUNTED = ("more-work", "same-work", "less-work", "mixed-work")


def step_details(step: Step, cells: int = 100) -> list[str]:
    """``step_lines`` as plain text, for the command line."""
    return [line.text for line in step_lines(step, cells)]


def step_lines(step: Step, cells: int) -> list[Line]:
    """The heading of a step, then ``reason_lines``."""
    heading = compose((f"{step_name(step)}  ", "muted"), (sanitize(step.subject), "strong"))
    return [heading, *reason_lines(step, cells)]


def reason_lines(step: Step, cells: int) -> list[Line]:
    """Everything that a step's commit records below its subject, at most ``cells`` cells wide, sanitized.

    The decision and what the gate said come first, since they are what people look for.
    """
    lines = [*_field("decision", _decision(step), cells), *_field("why", step.why, cells)]
    lines += _gate(step, cells)
    facts = _field("action", step.action, cells) + _field("locus", step.locus, cells)
    for label, features in (("removes", step.removes), ("adds", step.adds)):
        for feature in features:
            if (feature.locus, feature.name) != (step.locus, step.action):
                facts += _field(label, str(feature), cells)
    facts += _field("settings", ", ".join(f"{name}={value}" for name, value in step.settings.items()), cells)
    facts += _field("proposer", step.proposer, cells)
    how = _FORWARD.get(step.forward, step.forward)
    facts += _field("forward", f"{how}. {step.found}" if step.found else how, cells)
    for part in (facts, _body(step.body, cells)):
        lines += [Line(""), *part] if part else []
    return [*lines, Line(""), *_field("commit", step.commit, cells), *_field("kernel", step.kernel, cells)]


_FORWARD = {
    "derived": "derived: made from the simpler state without seeing the difference",
    "replayed": "replayed: the recorded change, put back",
}


def outcome(step: Step) -> str:
    """What a step did to the profile, in one line for lists: the word, then its numbers; or why it was rejected."""
    if not step.effect:
        return sanitize(step.why or step.profile)
    return next(_profile(step, 1000)).text[_LABEL:]


def _decision(step: Step) -> str:
    who = f" by {step.who}" if step.who else ""
    return f"{step.decision}{who}, {step.when:%Y-%m-%d %H:%M} UTC"


def _gate(step: Step, cells: int) -> Iterator[Line]:
    if not step.gate:
        return
    verdict, _, policy = step.gate.partition("; ")
    yield compose(
        (pad("gate", _LABEL), "muted"),
        (sanitize(verdict).upper(), verdict_role(verdict)),
        (f"  {sanitize(step.trust)}" if step.trust else "", "verdict-info"),
        (f"  {sanitize(step.platform)}" if step.platform else "", "muted"),
        (f"  {sanitize(policy)}" if policy else "", "muted"),
    )
    for name, text in (("compile", step.compile), ("correctness", step.correctness)):
        word, _, summary = text.partition(", ")
        yield from _verdict(name, word, summary, cells)
    yield from _profile(step, cells)


def _profile(step: Step, cells: int) -> Iterator[Line]:
    """Ratio before times, the trust tag beside the numbers, and counts called counts."""
    text = _TIMES.sub(r"\2 → \1 ms", step.profile)
    if not step.effect:  # too noisy, say: there is a sentence, but no effect
        yield from _field("profile", text, cells)
        return
    if step.effect in _COUNTED and not text.startswith(_COUNTS):
        text = f"{_COUNTS}: {text}"
    if step.ratio is not None:
        text = f"{ratio(step.ratio)} {text}"
    if step.trust and step.effect and step.effect not in _COUNTED:
        text += f"  {step.trust}"
    yield from _verdict("profile", step.effect, text, cells)


def _verdict(label: str, word: str, summary: str, cells: int) -> Iterator[Line]:
    if not word:
        return
    shown = sanitize(word).replace("-", " ").upper()
    indent = _LABEL + len(shown) + 2
    pieces = _wrap(summary, cells - indent)
    yield compose(
        (pad(label, _LABEL), "muted"), (shown, verdict_role(word)), f"  {pieces[0]}" if pieces[0] else ""
    )
    yield from (Line(" " * indent + piece) for piece in pieces[1:])


def _field(label: str, value: str, cells: int) -> list[Line]:
    if not value:
        return []
    first, *rest = _wrap(value, cells - _LABEL)
    return [
        compose((pad(label, _LABEL), "muted"), first),
        *(Line(" " * _LABEL + piece) for piece in rest),
    ]


def _body(body: str, cells: int) -> list[Line]:
    if not body.strip():
        return []
    lines: list[Line] = []
    for paragraph in sanitize_lines(body):
        lines += [Line(piece) for piece in _wrap(paragraph, cells)]
    return lines


def _wrap(text: str, cells: int) -> Sequence[str]:
    return textwrap.wrap(sanitize(text), max(16, cells), break_on_hyphens=False) or [""]
