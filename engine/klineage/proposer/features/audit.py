"""Every mechanism of a kernel: present, absent or unknown, with the lines that show it and who says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from klineage.gate import Report
from klineage.kernel import Feature, Kernel
from klineage.lineage import Settlement
from klineage.proposer.features import c, cuda, triton
from klineage.proposer.features.artefacts import seen_in_code
from klineage.proposer.features.finding import Finding, State, from_cues, settled_by
from klineage.proposer.features.mechanisms import meant, seen
from klineage.proposer.rules import RULES
from klineage.proposer.rules.rule import NotApplicable, Rule, Site
from klineage.surface.tree import function_locus, parse_kernel

_CUES = {"triton": triton.cues, "cuda": cuda.cues, "c": c.cues}
_SHOWN_SETTINGS = 3
_SHOWN_CELLS = 60


def features(
    kernel: Kernel, settled: Sequence[Settlement] = (), report: Report | None = None
) -> list[Feature]:
    """The mechanisms that are present, in the order of the rules, then of the text.

    settled: what persons said of the unknown ones. report: of a gate of this kernel, whose compiled code may decide others.
    """
    return list(dict.fromkeys(f.feature for f in _decided(kernel, settled, report) if f.state == "present"))


def audit(
    kernel: Kernel, settled: Sequence[Settlement] = (), report: Report | None = None
) -> tuple[Finding, ...]:
    """Every mechanism of the vocabulary: present ones first, then unknown ones (those with a cue first), then absent ones."""
    found = [_with_lines(kernel, finding) for finding in _decided(kernel, settled, report)]
    named = {finding.name for finding in found}
    home = _home(kernel)
    for name, what in seen(kernel.surface).items():
        if name not in named:
            found.append(
                Finding(
                    Feature(home, name), "absent", (), f"nothing in the text speaks of it ({what})", "text"
                )
            )
    order = {"present": 0, "unknown": 1, "absent": 3}
    return tuple(sorted(found, key=lambda f: order[f.state] + (f.state == "unknown" and not f.lines)))


def lines_of(kernel: Kernel, feature: Feature) -> tuple[int, ...]:
    """The lines that show a mechanism, from 1; empty for one that is not seen."""
    found = (f for f in _found(kernel) if f.feature == feature)
    return next((_with_lines(kernel, f).lines for f in found), ())


def _decided(kernel: Kernel, settled: Sequence[Settlement], report: Report | None) -> list[Finding]:
    """What is found, with the compiled code and then a person's word in place of what was unknown."""
    found = list(_found(kernel))
    if report is not None and report.kernel == kernel.hash:
        found = [seen_in_code(finding, report) for finding in found]
    word = {(s.feature, s.cue): s for s in settled}
    result = []
    for finding in found:
        said = word.get((finding.feature, finding.cue)) if finding.state == "unknown" else None
        state = said.state if said is not None else finding.state
        if said is not None and state in ("present", "absent"):
            finding = settled_by(finding, "present" if state == "present" else "absent", said.who, said.why)
        result.append(finding)
    known = {finding.feature for finding in result}
    return result + [_by_person(s) for s in settled if not s.cue and s.feature not in known]


def _by_person(said: Settlement) -> Finding:
    """A mechanism that no detector looks for, on a person's word alone."""
    state: State = "present" if said.state == "present" else "absent"
    return Finding(said.feature, state, (), said.why, "person", who=said.who)


@lru_cache(maxsize=512)
def _found(kernel: Kernel) -> tuple[Finding, ...]:
    """What rules and detectors see, and what nobody can see in a text.

    Where a rule sees a mechanism, its word for the place stands, and the text only adds the lines: two truths about
    one place would make every removal look like half of one.
    """
    ruled = [_by_rule(rule, site, feature) for rule, site, feature in _sites(kernel)]
    spoken = from_cues(_CUES[kernel.surface](kernel))
    known = {(f.name, _scope(kernel, f.locus)) for f in ruled}
    found = [_joined(kernel, finding, spoken) for finding in ruled]
    found += [f for f in spoken if (f.name, _scope(kernel, f.locus)) not in known]
    named = {finding.name for finding in found}
    home = _home(kernel)
    for name in meant(kernel.surface):
        if name not in named:
            text = "no text shows it for certain: only a reader can tell"
            found.append(Finding(Feature(home, name), "unknown", (), text, "text"))
    return tuple(found)


def _sites(kernel: Kernel) -> list[tuple[Rule, Site, Feature]]:
    return [(r, s, f) for r in RULES[kernel.surface] for s in r.detect(kernel) for f in s.removes]


def _scope(kernel: Kernel, locus: str) -> str:
    """How far a place reaches when a rule and the text speak of one mechanism: a Triton kernel, or a whole file of C."""
    return function_locus(locus) if kernel.surface == "triton" else ""


def _home(kernel: Kernel) -> str:
    return f"{kernel.filename}::{kernel.entry.split('+')[0]}"


def _by_rule(rule: Rule, site: Site, feature: Feature) -> Finding:
    shown = [f"{name}={value}" for name, value in site.settings.items()][:_SHOWN_SETTINGS]
    text = " ".join(" ".join(shown).split())
    text = text if len(text) <= _SHOWN_CELLS else text[: _SHOWN_CELLS - 1] + "…"
    return Finding(
        feature,
        "present",
        (),
        f"the rule {rule.name} sees it{': ' if text else ''}{text}",
        f"rules:{rule.name}",
    )


def _joined(kernel: Kernel, finding: Finding, spoken: Iterable[Finding]) -> Finding:
    """A rule's finding with the lines of the text that speak of the same mechanism in the same place."""
    scope = _scope(kernel, finding.locus)
    same = [f for f in spoken if f.name == finding.name and _scope(kernel, f.locus) == scope]
    lines = sorted({line for f in same if f.state == "present" for line in f.lines})
    return replace(finding, lines=tuple(lines))


def _with_lines(kernel: Kernel, finding: Finding) -> Finding:
    """Where the text gave no lines to what a rule sees: those that the rule would change."""
    if finding.lines or not finding.by.startswith("rules:"):
        return finding
    name = finding.by.removeprefix("rules:")
    for rule, site, feature in _sites(kernel):
        if rule.name == name and feature == finding.feature:
            return replace(finding, lines=_touched(kernel, rule, site))
    return finding


def _touched(kernel: Kernel, rule: Rule, site: Site) -> tuple[int, ...]:
    unit = parse_kernel(kernel)
    try:
        edits = rule.remove(kernel, site).edits
    except NotApplicable:
        node = unit.loci.get(site.locus)
        whole = (
            "/" not in site.locus
        )  # a function's first line shows nothing of a mechanism somewhere in the file
        return (unit.line(node.start_byte),) if node is not None and not whole else ()
    lines: set[int] = set()
    for edit in edits:
        last = max(edit.start, edit.end - 1)
        lines |= set(range(unit.line(edit.start), unit.line(last) + 1))
    text = kernel.text.splitlines()
    remark = "#" if kernel.surface == "triton" else "//"
    code = {n for n in lines if n <= len(text) and (t := text[n - 1].strip()) and not t.startswith(remark)}
    return tuple(
        sorted(code or lines)
    )  # what goes with a mechanism is also remarks on it, which show nothing
