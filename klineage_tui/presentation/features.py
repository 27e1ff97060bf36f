"""The mechanisms of a kernel as rows: the state in a word first, then what it is, where, and which lines show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from klineage_tui.text.columns import pad
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.kernel import Feature
    from klineage.proposer.features import Finding
    from klineage.proposer.features.opinions import Opinion

_ROLES = {"present": "verdict-pass", "unknown": "verdict-warn", "absent": "muted"}
_WORDLESS = {"unknown": "shows in no text"}
_SHOWN = 3  # line numbers in a row


def feature_lines(findings: Sequence[Finding], opinions: Mapping[Feature, Opinion]) -> list[Line]:
    """One row a finding, in the order given, with what a model says of it."""
    return [_row(finding, opinions.get(finding.feature)) for finding in findings]


def _row(finding: Finding, opinion: Opinion | None) -> Line:
    dim = "muted" if finding.state == "absent" or not (finding.lines or finding.settled) else ""
    place = finding.locus.partition("::")[2]
    who = f"  settled by {finding.who}" if finding.settled else ""
    if opinion is not None and not finding.settled:
        who = f"  {'a model says' if opinion.supported else 'UNSUPPORTED:'} {opinion.state}"
    return compose(
        (pad(finding.state.upper(), 9), _ROLES[finding.state]),
        (pad(sanitize(finding.name), 22), dim or "strong"),
        (pad(lines_text(finding) or _WORDLESS.get(finding.state, ""), 22), "muted"),
        (sanitize(place), dim),
        (sanitize(who), "accent"),
    )


def lines_text(finding: Finding) -> str:
    """``line 7``, ``lines 7, 9, ...``, or nothing."""
    if not finding.lines:
        return ""
    some = ", ".join(str(line) for line in finding.lines[:_SHOWN])
    return f"line{'s' if len(finding.lines) > 1 else ''} {some}{', …' if len(finding.lines) > _SHOWN else ''}"


def feature_why(finding: Finding, what: str) -> str:
    """What the mechanism is, and the sentence that says why it is taken to be there or not."""
    reason = sanitize(" ".join(finding.why.split()))
    if finding.state == "absent" and not finding.settled:
        return reason
    return f"{sanitize(what)}. {reason}" if what else reason


def opinion_text(opinion: Opinion) -> str:
    """Who says what, why, and whether the lines that are cited say so."""
    cited = ", ".join(str(citation.line) for citation in opinion.citations[:_SHOWN])
    lines = f" (cites {'line' if len(opinion.citations) == 1 else 'lines'} {cited})" if cited else ""
    faults = f" UNSUPPORTED: {'; '.join(opinion.faults)}." if opinion.faults else ""
    return sanitize(f"{opinion.by} says {opinion.state}{lines}:{faults} {' '.join(opinion.why.split())}")


def feature_counts(findings: Sequence[Finding]) -> str:
    """``5 present, 2 unknown, 7 show in no text``; the last are counted by themselves."""
    present = sum(f.state == "present" for f in findings)
    unknown = sum(f.state == "unknown" and bool(f.lines) for f in findings)
    wordless = sum(f.state == "unknown" and not f.lines for f in findings)
    more = f", {wordless} show in no text" if wordless else ""
    return f"{present} present, {unknown} unknown{more}"
