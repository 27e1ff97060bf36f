"""Whether a step removes exactly what it claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klineage.kernel import Feature
from klineage.proposer.features.finding import Finding
from klineage.surface.tree import function_locus

#: How the sentences of ``claim_problem`` begin.
_OF_CLAIMS = (
    "the step brings in ", "the step also removes ", "the step may also remove ", "the step does not remove ",
    "the step claims to remove ",
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """What differs between two kernels as the detectors see them.

    gone, come: mechanisms that are present in only one of them; one that only moved to another place is in neither.
    doubted:    unknown in the first, with a cue that the second no longer has.
    """

    gone: tuple[Feature, ...]
    come: tuple[Feature, ...]
    doubted: tuple[Finding, ...]


def difference(before: Sequence[Finding], after: Sequence[Finding]) -> Difference:
    """What a step from one kernel to the other took out and brought in."""
    had = list(dict.fromkeys(f.feature for f in before if f.state == "present"))
    has = list(dict.fromkeys(f.feature for f in after if f.state == "present"))
    gone = [feature for feature in had if feature not in has]
    come = [feature for feature in has if feature not in had]
    for feature in list(gone):
        twin = _moved_to(feature, come)
        if twin is not None:
            gone.remove(feature)
            come.remove(twin)
    left = {(f.name, f.cue) for f in after if f.state == "unknown"} | {
        (f.name, "") for f in after if f.state == "present"
    }
    doubted = [
        f for f in before
        if f.state == "unknown" and f.lines and (f.name, f.cue) not in left and (f.name, "") not in left
    ]  # fmt: skip
    return Difference(tuple(gone), tuple(come), tuple(doubted))


def _moved_to(feature: Feature, come: Sequence[Feature]) -> Feature | None:
    """The same mechanism at another place: in the same function, else anywhere."""
    same = [f for f in come if f.name == feature.name]
    near = [f for f in same if function_locus(f.locus) == function_locus(feature.locus)]
    return next(iter(near or same), None)


@dataclass(frozen=True)
class Claim:
    """What a step says that it removes. ``word``: whether a person says so, who may speak of what no detector knows.
    ``known_edit``: whether the edit is a rule's, which takes out nothing but its mechanism. ``along``: doubts that go
    with a claimed mechanism when a rule takes it out, so that they are its own, whoever takes it out."""

    removes: tuple[Feature, ...]
    word: bool = False
    known_edit: bool = False
    along: tuple[Finding, ...] = ()


def reconciled(
    claim: Sequence[Feature], before: Sequence[Finding], gone: Sequence[Feature]
) -> tuple[Feature, ...]:
    """The claim with the detectors' words for its places: a name in the right function means what is gone there."""
    result = []
    for feature in claim:
        near = [f for f in gone if f.name == feature.name]
        exact = [f for f in near if f == feature]
        same = [f for f in near if function_locus(f.locus) == function_locus(feature.locus)]
        known = [f.feature for f in before if f.feature == feature]
        chosen = exact or (known if known else same) or (near if len(near) == 1 else [])
        result += chosen or [feature]
    return tuple(dict.fromkeys(result))


def claim_problem(claim: Claim, before: Sequence[Finding], after: Sequence[Finding]) -> str:
    """Why a step may not be taken, in one sentence that names the difference; empty when it removes what it claims."""
    found = difference(before, after)
    removes = reconciled(claim.removes, before, found.gone)
    if found.come:
        return f"the step brings in {_placed(found.come[0], after)}, and a simplification adds nothing; take that out"
    more = [f for f in found.gone if f not in removes]
    if more:
        return f"the step also removes {_placed(more[0], before)}, which it does not claim; claim it too, or keep it in the kernel"
    for feature in removes:
        if feature not in found.gone:
            problem = _unseen(feature, claim, before, after)
            if problem:
                return problem
    named = {feature.name for feature in removes}
    doubted = [f for f in found.doubted if f.name not in named and f not in claim.along]
    if doubted and not claim.known_edit:
        return (
            f"the step may also remove {_placed(doubted[0].feature, before)}, which is unknown ({doubted[0].why}); "
            f"{_settle(doubted[0].feature)}"
        )
    return ""


def is_claim_problem(text: str) -> bool:
    """Whether a sentence is one of ``claim_problem``: it speaks of an edit and its claim, and not of the mechanism."""
    return text.startswith(_OF_CLAIMS) or (text.startswith("whether ") and "is gone is unknown" in text)


def _unseen(feature: Feature, claim: Claim, before: Sequence[Finding], after: Sequence[Finding]) -> str:
    """What is wrong with the claim of a feature that the detectors do not see gone."""
    now = _state(feature, after)
    if now is not None and now.state == "present" and not (now.settled and not now.lines):
        return f"the step does not remove {_placed(feature, after)}: it is still there; edit further, or do not claim it"
    then = _state(feature, before)
    if then is None:  # a word of its own, which no detector looks for
        return "" if claim.word else _ask(feature)
    if then.state == "absent":
        return f"the step claims to remove {feature}, and that is not in the kernel ({then.why}); do not claim it"
    if then.state == "unknown" and not claim.word:
        return _ask(feature)
    if now is not None and now.state == "unknown" and now.lines and not claim.word:
        return f"whether {_placed(feature, after)} is gone is unknown ({now.why}); {_settle(feature)}"
    return ""


def _ask(feature: Feature) -> str:
    return (
        f"the step claims to remove {feature}, and no detector can tell whether that is in the kernel; "
        f"{_settle(feature)}"
    )


def _settle(feature: Feature) -> str:
    return f"a person settles it first: features in Induce, or klineage features ID --settle {feature.name}=present --why ..."


def _state(feature: Feature, findings: Sequence[Finding]) -> Finding | None:
    """What is known of a feature: at its place, else of its name in its function, else of its name anywhere."""
    same = [f for f in findings if f.name == feature.name]
    exact = [f for f in same if f.feature == feature]
    near = [f for f in same if function_locus(f.locus) == function_locus(feature.locus)]
    return next(iter(exact or near or same), None)


def _placed(feature: Feature, findings: Sequence[Finding]) -> str:
    """A feature for a sentence, with its first line."""
    lines = next((f.lines for f in findings if f.feature == feature and f.lines), ())
    return f"{feature} (line {lines[0]})" if lines else str(feature)
