"""Naming a step that a person made: the action, and the features that it removes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.lineage import Settlement
from klineage.proposer import vocabulary
from klineage.proposer.candidate import Candidate

_PART = "Part of: "
UNNAMED = "edit"  # the action of a step in which no detector sees anything gone


@dataclass(frozen=True)
class Naming:
    """What a step is called.

    action:  a word of the vocabulary or one's own; ``a+b`` for two.
    title:   what the step does, in the imperative.
    removes: the features that it claims to remove.
    """

    action: str
    title: str
    removes: tuple[Feature, ...] = ()


def gone(head: Kernel, edited: Kernel, words: Sequence[Settlement] = ()) -> tuple[Feature, ...]:
    """What the detectors see in ``head`` and no longer in ``edited``; what only moved is not gone.

    ``words`` are persons' on what the detectors cannot tell.
    """
    from klineage.proposer.features import audit, difference

    return difference(audit(head, words), audit(edited, words)).gone


def come(head: Kernel, edited: Kernel, words: Sequence[Settlement] = ()) -> tuple[Feature, ...]:
    """What the detectors see in ``edited`` and not in ``head``."""
    return gone(edited, head, words)


def suggestion(
    head: Kernel, edited: Kernel, base: Candidate | None = None, words: Sequence[Settlement] = ()
) -> Naming:
    """The name that fits what the detectors see gone, and the proposal that was edited, if there was one."""
    removes = gone(head, edited, words)
    names = sorted({feature.name for feature in removes})
    if base is not None and set(removes) == set(base.removes):
        return Naming(base.action, base.title, removes)
    if names:
        return Naming("+".join(names), f"Remove {', '.join(names)}", removes)
    if base is not None:
        return Naming(base.action, f"{_PART}{base.title.removeprefix(_PART)}")
    return Naming(UNNAMED, "Edit by hand")


def configuration(head: Kernel, source: bytes) -> tuple[tuple[str, int], ...] | None:
    """The configuration that edited bytes are pinned to: None where the head's stays, else the first on offer."""
    from klineage.surface.dispatch import autotune_configs

    offered, before = autotune_configs(replace(head, source=source)), autotune_configs(head)
    if head.config in offered or offered == before:
        return None
    return offered[0] if offered else ()


def settings_of(head: Kernel, removes: Sequence[Feature]) -> dict[str, str]:
    """The numbers that features of the head are configured with, where a rule knows them: a rule may then add them again."""
    from klineage.proposer.rules import RULES

    found: dict[str, str] = {}
    for rule in RULES[head.surface]:
        for site in rule.detect(head):
            if set(site.removes) <= set(removes):
                found = {name: " ".join(value.split()) for name, value in site.settings.items()} | found
    return found


def place_of(head: Kernel, edited: Kernel) -> str:
    """The locus of an edit: the one function that it changes, else the function that is entered."""
    from klineage.surface.tree import parse_kernel

    entry = f"{head.filename}::{head.entry.split('+')[0]}"
    before = {f.locus: parse_kernel(head).text(f.node) for f in parse_kernel(head).functions}
    after = {f.locus: parse_kernel(edited).text(f.node) for f in parse_kernel(edited).functions}
    changed = [locus for locus, text in before.items() if after.get(locus) != text]
    return changed[0] if len(changed) == 1 else entry


def features_named(
    texts: Sequence[str], head: Kernel, edited: Kernel, words: Sequence[Settlement] = ()
) -> tuple[Feature, ...]:
    """Features as a person writes them: ``locus / name``, or a name alone, whose place is looked for.

    A name alone stands for what of that name the detectors see gone, else see in the head, else for one at the
    place of the edit. Raises KlineageError for a word that is probably a slip, or for a place that is not in the kernel.
    """
    found: list[Feature] = []
    missing, present = gone(head, edited, words), _features(head, words)
    known = {feature.name for feature in (*present, *_features(edited, words))}
    for text in texts:
        locus, separator, word = text.rpartition(" / ")
        name = vocabulary.checked(word, known)
        if "+" in name:
            raise KlineageError(f"{name!r} is two features; name them one by one")
        if separator:
            found.append(Feature(_known_place(locus.strip(), head), name))
            continue
        same = [feature for feature in missing if feature.name == name]
        same = same or [feature for feature in present if feature.name == name]
        found += same or [Feature(place_of(head, edited), name)]
    return tuple(dict.fromkeys(found))


def _known_place(locus: str, head: Kernel) -> str:
    from klineage.surface.tree import parse_kernel

    places = parse_kernel(head).loci
    if locus not in places:
        some = ", ".join(list(places)[:4]) or "none that the parser sees"
        raise KlineageError(f"the kernel has no place {locus!r}; it has {some}")
    return locus


def refuse_false_claims(
    head: Kernel, edited: Kernel, removes: Sequence[Feature], words: Sequence[Settlement] = ()
) -> None:
    """What is claimed must be gone, and what is gone be claimed: raises KlineageError where the detectors see otherwise.

    Features that no detector knows are the person's word.
    """
    shown = [word for word in words if word.cue]  # what no text shows goes when a person says that it does
    still = [feature for feature in removes if feature in set(_features(edited, shown))]
    if still:
        raise KlineageError(
            f"the edit does not remove {still[0]}: it is still there; edit further, or do not name it"
        )
    also = [feature for feature in gone(head, edited, words) if feature not in removes]
    if also:
        raise KlineageError(f"the edit also removes {also[0]}; name it too, or leave it in the kernel")


def by_person(
    head: Kernel,
    source: bytes,
    base: Candidate | None = None,
    *,
    title: str = "",
    action: str = "",
    removes: Sequence[str] | None = None,
    new_word: bool = False,
    words: Sequence[Settlement] = (),
) -> Candidate:
    """A person's bytes as a step of theirs; ``base`` is the proposal that they went over, if there was one.

    What is not said is suggested. ``removes`` are features as in ``features_named``; ``new_word`` takes an
    action that looks like a slip. Raises KlineageError for the head's own bytes, a false claim, or a slip.
    """
    if source == head.source:
        raise KlineageError("the edited kernel is the same as the current one; change something first")
    edited = replace(head, source=source)
    guess = suggestion(head, edited, base, words)
    claimed = guess.removes
    if removes is not None:
        claimed = features_named(removes, head, edited, words)
        refuse_false_claims(head, edited, claimed, words)
        action = action or "+".join(sorted({feature.name for feature in claimed}))
    known = [feature.name for feature in claimed] + guess.action.split("+")
    action = action or guess.action
    place = claimed[0].locus if claimed else place_of(head, edited)
    if base is None:
        base = Candidate(guess.action, place, guess.title, "Edited by hand.", source, proposer="person")
    return replace(
        base,
        action=vocabulary.normal(action) if new_word else vocabulary.checked(action, known),
        locus=place,
        title=" ".join((title or guess.title).split()),
        removes=claimed,
        source=source,
        settings=base.settings if set(claimed) == set(base.removes) else settings_of(head, claimed),
        config=configuration(head, source),
        proposer=base.proposer if base.by_hand else f"person, from {base.proposer}",
    )


def _features(kernel: Kernel, words: Sequence[Settlement] = ()) -> Sequence[Feature]:
    from klineage.proposer.features import features

    return features(kernel, words)
