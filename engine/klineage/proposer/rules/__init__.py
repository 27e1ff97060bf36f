"""Rules: structural rewrites that need no model. Each sees one mechanism, takes it out, and can put it
back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from klineage.kernel import Feature, Kernel, Surface
from klineage.proposer.candidate import Candidate
from klineage.proposer.rules.c import C_RULES
from klineage.proposer.rules.comments import lost_comments, restore_comments, without_comments
from klineage.proposer.rules.cuda import CUDA_RULES
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton import TRITON_RULES
from klineage.surface.tree import apply_edits, function_locus, parse, parse_kernel

__all__ = [
    "RULES",
    "NotApplicable",
    "NotOffered",
    "Rule",
    "derive",
    "features",
    "forward_title",
    "proposals",
    "propose",
    "taken_out",
    "why_not",
]

RULES: dict[Surface, tuple[Rule, ...]] = {"triton": TRITON_RULES, "c": C_RULES, "cuda": CUDA_RULES}


def features(kernel: Kernel) -> list[Feature]:
    """Every mechanism that is seen in the kernel, by a rule or in its text (see ``klineage.proposer.features``)."""
    from klineage.proposer.features import features as seen  # they look through the rules, so they come later

    return seen(kernel)


@dataclass(frozen=True)
class NotOffered:
    """A mechanism that a rule sees at a site and does not offer to take out, and why not."""

    rule: Rule
    site: Site
    reason: str


def propose(kernel: Kernel) -> list[Candidate]:
    """The simplifications that the rules offer, dependents before their prerequisites.

    Each removes exactly the features that it names and adds none, and can be put back by the same rule;
    what would do otherwise, or would leave a file that no longer parses, is not offered.
    """
    return list(proposals(kernel))


def proposals(kernel: Kernel, removing: Collection[str] | None = None) -> Iterator[Candidate]:
    """The same one after the other, each examined when it is asked for. removing: only those of features with these names."""
    return (found for found in _examined(kernel, removing) if isinstance(found, Candidate))


def why_not(kernel: Kernel) -> list[NotOffered]:
    """Every site that some rule sees and ``propose`` does not offer, with the reason in one sentence."""
    return [found for found in _examined(kernel) if isinstance(found, NotOffered)]


def _examined(kernel: Kernel, removing: Collection[str] | None = None) -> Iterator[Candidate | NotOffered]:
    """What becomes of every site that a rule sees, in the order of the rules."""
    present = features(kernel)
    for rule in RULES[kernel.surface]:
        for site in rule.detect(kernel):
            if removing is not None and not {feature.name for feature in site.removes} & set(removing):
                continue
            blocking = _blocking(rule, site, present)
            if blocking:
                yield NotOffered(rule, site, _after(blocking))
                continue
            try:
                rewrite = rule.remove(kernel, site)
            except NotApplicable as error:
                yield NotOffered(rule, site, error.reason)
                continue
            candidate = _candidate(kernel, rule, site, rewrite)
            fault = _fault(kernel, candidate, present)
            yield NotOffered(rule, site, fault) if fault else candidate


def derive(action: str, simpler: Kernel, locus: str, settings: dict[str, str]) -> bytes:
    """The forward edit: ``simpler`` with a mechanism added, from its place and its numbers alone.

    ``action`` is a rule's name, or a word of the vocabulary (then the first rule of that action that
    applies is taken). Raises NotApplicable with the reason.
    """
    rules = [r for r in RULES[simpler.surface] if action in (r.name, f"rules:{r.name}")]
    rules = rules or [r for r in RULES[simpler.surface] if r.action == action]
    reasons: dict[str, str] = {}
    for rule in rules:
        try:
            source = apply_edits(simpler.source, rule.apply(simpler, locus, without_comments(settings)))
        except NotApplicable as error:
            reasons[rule.name] = error.reason
            continue
        return restore_comments(parse(simpler.surface, simpler.filename, source), settings)
    if len(reasons) > 1:
        raise NotApplicable("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    raise NotApplicable(
        next(iter(reasons.values()), f"no rule adds {action!r} to a {simpler.surface} kernel")
    )


def taken_out(name: str, kernel: Kernel, removes: Sequence[Feature]) -> Kernel:
    """The kernel without the features ``removes``, by the rule of that name, whatever stands on them.

    Raises NotApplicable, with the reason, where the rule cannot, or would take or bring anything else.
    """
    rule = next((r for r in RULES[kernel.surface] if name in (r.name, f"rules:{r.name}")), None)
    if rule is None:
        raise NotApplicable(f"no rule {name!r} takes anything out of a {kernel.surface} kernel")
    sites = [s for s in rule.detect(kernel) if set(s.removes) & set(removes)]
    if len(sites) != 1:
        raise NotApplicable("it is not there any more" if not sites else "it is there in several places")
    candidate = _candidate(kernel, rule, sites[0], rule.remove(kernel, sites[0]))
    result, present = after(kernel, candidate), set(features(kernel))
    broken = parse(result.surface, result.filename, result.source).broken_lines()
    if len(broken) > len(parse_kernel(kernel).broken_lines()):
        raise NotApplicable(f"the edit would leave line {broken[-1]} unreadable")
    changed = present ^ set(features(result))
    if changed != set(sites[0].removes):
        others = changed - set(sites[0].removes) or set(sites[0].removes) - changed
        raise NotApplicable(f"the edit would not leave {_listed(others)} as it is")
    return result


def forward_title(proposer: str) -> str | None:
    """How the forward step of a rule is called (``rules:unroll`` or ``unroll``); None for any other proposer."""
    name = proposer.removeprefix("rules:")
    found = (rule.adds for rules in RULES.values() for rule in rules if rule.name == name)
    return next(found, None)


def after(kernel: Kernel, candidate: Candidate) -> Kernel:
    """The kernel that a candidate proposes."""
    return candidate.kernel(kernel)


def _blocking(rule: Rule, site: Site, present: list[Feature]) -> list[str]:
    """The names of the mechanisms that stand on this one and are still there, in the same function."""
    place = function_locus(site.locus)
    return list(
        dict.fromkeys(f.name for f in present if f.name in rule.after and function_locus(f.locus) == place)
    )


def _after(blocking: list[str]) -> str:
    *most, last = blocking
    named = f"{', '.join(most)} and {last}" if most else last
    return f"after {named}, which {'stands' if len(blocking) == 1 else 'stand'} on it"


def _candidate(kernel: Kernel, rule: Rule, site: Site, rewrite: Rewrite) -> Candidate:
    candidate = Candidate(
        action=rule.action,
        locus=site.locus,
        title=rule.title,
        rationale=rule.rationale,
        source=apply_edits(kernel.source, rewrite.edits),
        removes=site.removes,
        settings={name: _one_line(value) for name, value in site.settings.items()},
        preconditions=rule.preconditions,
        config=rewrite.config,
        proposer=f"rules:{rule.name}",
    )
    lost = lost_comments(parse_kernel(kernel), rewrite.edits)
    return _with_comments(kernel, candidate, lost) if lost else candidate


def _one_line(value: str) -> str:
    """A setting as it is recorded: on one line."""
    return " ".join(value.split()) if "\n" in value or "\r" in value else value


def _with_comments(kernel: Kernel, candidate: Candidate, lost: dict[str, str]) -> Candidate:
    """The candidate with the lost comments among its settings, if they let the forward edit restore
    every byte."""
    settings = candidate.settings | lost
    try:
        derived = derive(candidate.proposer, after(kernel, candidate), candidate.locus, settings)
    except NotApplicable:
        return candidate  # the forward edit fails with or without them, and says so when it is asked for
    return replace(candidate, settings=settings) if derived == kernel.source else candidate


def _fault(kernel: Kernel, candidate: Candidate, present: list[Feature]) -> str:
    """What is wrong with an edit, in one sentence; empty when it removes what it names and nothing else."""
    result = after(kernel, candidate)
    if result.source == kernel.source and result.config == kernel.config:
        return "taking it out would change nothing"
    before, now = (parse(k.surface, k.filename, k.source).broken_lines() for k in (kernel, result))
    if len(now) > len(before):
        return f"the edit would leave line {now[-1]} unreadable"
    remaining = set(features(result))
    more = set(present) - remaining - set(candidate.removes)
    if more:
        return f"the edit would take {_listed(more)} out too"
    if remaining & set(candidate.removes):
        return f"{_listed(remaining & set(candidate.removes))} would still be there after the edit"
    if remaining - set(present):
        return f"the edit would bring {_listed(remaining - set(present))} in"
    try:
        derive(candidate.proposer, result, candidate.locus, candidate.settings)
    except NotApplicable as error:
        return f"it could not be put back: {error.reason}"
    return ""


def _listed(found: set[Feature]) -> str:
    return " and ".join(sorted({feature.name for feature in found}))
