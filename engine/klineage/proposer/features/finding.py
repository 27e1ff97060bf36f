"""What is known of one mechanism at one place of a kernel, and what in the text shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from klineage.kernel import Feature

State = Literal["present", "absent", "unknown"]
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True)
class Cue:
    """A piece of the text that speaks of a mechanism.

    what:  the piece itself, for a sentence: ``cp.async``, ``#pragma unroll``.
    doubt: what else it may be; empty where it can be nothing but the mechanism.
    """

    name: str
    locus: str
    line: int
    what: str
    doubt: str = ""


@dataclass(frozen=True)
class Finding:
    """Whether a mechanism is in a kernel.

    lines: the lines, from 1, that show it; none for what is absent, or what no text can show.
    why:   one sentence.
    by:    who says so: ``rules:<name>``, ``text``, ``code`` (the compiled code), or ``person``.
    cue:   what an ``unknown`` rests on; a person's word on it holds while this stays the same.
    who:   the person who settled it, else empty.
    """

    feature: Feature
    state: State
    lines: tuple[int, ...]
    why: str
    by: str
    cue: str = ""
    who: str = ""

    @property
    def name(self) -> str:
        return self.feature.name

    @property
    def locus(self) -> str:
        return self.feature.locus

    @property
    def settled(self) -> bool:
        """Whether a person's word decided it."""
        return bool(self.who)


def from_cues(cues: Iterable[Cue]) -> list[Finding]:
    """One finding for each mechanism and place that the cues speak of: certain cues decide, others only raise the
    question."""
    groups: dict[Feature, list[Cue]] = {}
    for cue in cues:
        groups.setdefault(Feature(cue.locus, cue.name), []).append(cue)
    found = []
    for feature, group in groups.items():
        certain = [cue for cue in group if not cue.doubt]
        spoken = certain or group
        whats = ", ".join(dict.fromkeys(cue.what for cue in spoken))
        lines = tuple(sorted({cue.line for cue in spoken}))
        doubts = "; ".join(dict.fromkeys(cue.doubt for cue in group))
        why = f"{whats}" if certain else f"{whats}: {doubts}"
        found.append(
            Finding(
                feature, "present" if certain else "unknown", lines, why, "text", "" if certain else whats
            )
        )
    return found


def settled_by(finding: Finding, state: State, who: str, why: str) -> Finding:
    """The finding with a person's word in place of an ``unknown``."""
    return replace(finding, state=state, by="person", who=who, why=why)
