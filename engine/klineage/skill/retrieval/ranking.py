"""Which cards hold here: the union of the best of each dimension, a reason for every hit, and what the others lack.

The four dimensions are the paper's (workload, language, platform, prior optimizations): a card's *verified* scope is compared
with the target in each by itself, and the k most alike of each are united, so that a card for the same hardware is found
beside one for the same workload. Within a dimension, likeness in the others and then the number of trials decide.

A card whose contract or checks do not hold for the target is no hit: it is listed apart, with what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from klineage.skill.retrieval import likeness
from klineage.skill.retrieval.index import Index, Row
from klineage.skill.retrieval.reasons import Checked, Judge, Match, Need, matches
from klineage.skill.retrieval.target import Target

if TYPE_CHECKING:
    from klineage.skill.retrieval.index_lists import Flags, Floats, Ints

Dimension = Literal["workload", "surface", "platform", "prior"]
#: How many cards are judged in one dimension at most, or 16 for each that is wanted: an answer takes bounded time.
_LOOKED_AT = 64
_WIDE = ("anchor", "function", "kernel")


@dataclass(frozen=True)
class Hit:
    """One card beside the target.

    matches: the dimensions in which it is alike, with the reason. needs: what is missing or in the way; empty for a hit.
    checked: the answer of each precondition's check, where there were facts to ask.
    caveats: what a reader should know though nothing fails: nobody admitted it, a trial is stale, a check is unknown.
    """

    row: Row
    matches: tuple[Match, ...]
    needs: tuple[Need, ...] = ()
    checked: tuple[Checked, ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retrieved:
    """What holds, best first; what does not yet, nearest first; and how many cards there were to choose from.

    considered: cards that were looked at. hidden: hypotheses that were not, because nobody has admitted them.
    """

    target: Target
    hits: tuple[Hit, ...]
    near: tuple[Hit, ...]
    considered: int
    hidden: int


def retrieve(
    index: Index, target: Target, *, k: int = 5, near: int = 5, hypotheses: bool = False
) -> Retrieved:
    """The cards for a target. k: how many each dimension gives. near: how many near misses are told.

    hypotheses: also cards that no held-out trial has admitted, each with that caveat. Retired cards are never given.
    Where a kernel is given, the cards that are most alike are judged at it one by one, a bounded number in each dimension.
    """
    import numpy as np

    admitted, doubtful = (index.column("status").having((status,)) for status in ("admitted", "hypothesis"))
    if target.action:
        wanted = index.column("action").having(target.action.split("+"))
        admitted, doubtful = admitted & wanted, doubtful & wanted
    asked = admitted | doubtful if hypotheses else admitted
    hidden = 0 if hypotheses else int(doubtful.sum())
    likenesses = alike(index, target)
    total = sum(likenesses.values(), np.zeros(len(index)))
    lacking = lacks(index, target, likenesses)
    judge = Judge(target)
    found: dict[int, Hit] = {}
    missed: dict[int, Hit] = {}
    for alikes in likenesses.values() or (np.ones(len(index)),):
        ranked = _ranked(index, alikes, total, asked & (lacking == 0))
        _take(
            k,
            islice(ranked, max(_LOOKED_AT, 16 * k)),
            lambda n: _hit(index.row(n), target, judge),
            found,
            missed,
        )
    for number in _nearest(index, total, lacking, asked & (lacking > 0), near):
        missed[number] = _hit(index.row(number), target, judge)
    hits = sorted(found, key=lambda n: (*_standing(found[n]), -_rank(index, total, n)))
    misses = sorted(missed, key=lambda n: (*_distance(missed[n]), -_rank(index, total, n)))
    return Retrieved(
        target,
        tuple(found[n] for n in hits),
        tuple(missed[n] for n in misses[:near]),
        int(asked.sum()),
        hidden,
    )


def _take(
    k: int, ranked: Iterable[int], judged: Callable[[int], Hit], found: dict[int, Hit], missed: dict[int, Hit]
) -> None:
    """The first k that hold; what is met on the way and does not is a miss. No card is judged twice."""
    taken = 0
    for number in ranked:
        hit = found.get(number) or missed.get(number) or judged(number)
        (missed if hit.needs else found)[number] = hit
        taken += not hit.needs
        if taken == k:
            return


def _standing(hit: Hit) -> tuple[bool, int]:
    """What nobody admitted comes last; what is alike in more dimensions comes first."""
    return hit.row.status != "admitted", -len(hit.matches)


def _distance(hit: Hit) -> tuple[int, int]:
    """What the kernel has already, or has something against, is further off than what something must come before."""
    return sum(need.kind == "conflict" for need in hit.needs), len(hit.needs)


def explain(index: Index, target: Target, card_id: str) -> Hit | None:
    """Why one card is a hit for a target, or what it needs; None for a card that is not in the index."""
    number = index.number(card_id)
    return None if number is None else hit_of(index.row(number), target)


def hit_of(row: Row, target: Target) -> Hit:
    """One card beside a target, whether or not it holds there."""
    return _hit(row, target, Judge(target))


def alike(index: Index, target: Target) -> dict[Dimension, Floats]:
    """The likeness of every card in each dimension that the target speaks of."""
    found: dict[Dimension, Floats] = {}
    if target.workload:
        lists = index.column("workloads")
        found["workload"] = lists.best([likeness.of_workload(target.workload, word) for word in lists.words])
    if target.surface:
        lists = index.column("surfaces")
        found["surface"] = lists.best([likeness.of_surface(target.surface, word) for word in lists.words])
    if target.platform:
        lists = index.column("platforms")
        found["platform"] = lists.best([likeness.of_platform(target.platform, word) for word in lists.words])
    if target.prior is not None:
        found["prior"] = _shared(index, target.prior)
    return found


def _shared(index: Index, prior: tuple[str, ...]) -> Floats:
    """Jaccard's index of what the target has and what the card's targets had; 1 where neither has anything."""
    import numpy as np

    lists = index.column("priors")
    both = lists.count(prior)
    either = lists.sizes() + len(set(prior)) - both
    shared: Floats = np.where(either == 0, 1.0, both / np.maximum(either, 1))
    if likeness.ANYWHERE not in lists.words:
        return shared
    return np.where(lists.having((likeness.ANYWHERE,)), np.maximum(shared, likeness.DECLARED), shared)


def lacks(index: Index, target: Target, likenesses: dict[Dimension, Floats]) -> Ints:
    """How much each card lacks for certain, as far as whole columns can tell; ``Judge`` looks closer at single cards."""
    import numpy as np

    lacking = np.zeros(len(index), np.int64)
    for dimension in ("surface", "platform"):
        if dimension in likenesses:
            lacking += likenesses[dimension] == 0
    if target.prior is not None:
        here = set(target.prior)
        required = index.column("requires")
        marked = [
            word
            for word in required.words
            if not word.endswith("@hardware") and word.rpartition("@")[0] not in here
        ]
        lacking += required.count(marked)
        # What a C kernel has it has in its whole file (see Judge).
        whole = target.kernel is not None and target.surface != "triton"
        refused = [f"{name}@{where}" for name in here for where in (_WIDE if whole else _WIDE[-1:])]
        lacking += index.column("conflicts").count(refused)
    return lacking


def _rank(index: Index, total: Floats, number: int) -> float:
    return float(total[number]) * 16 + min(int(index.trials[number]), 8) + float(index.order[number])


def _ranked(index: Index, alikes: Floats, total: Floats, asked: Flags) -> Iterator[int]:
    """The cards that are alike, most alike first, then by ``_rank``; only as many are sorted as are asked for."""
    import numpy as np

    cards = np.flatnonzero(asked & (alikes > 0))
    trials = np.minimum(index.trials.take(cards), 8)
    worth = alikes.take(cards) * 1024 + total.take(cards) * 16 + trials + index.order.take(cards)
    start, size = 0, 64
    while start < len(worth):
        many = min(start + size, len(worth))
        first = np.argpartition(-worth, many - 1)[:many]
        yield from cards[first[np.argsort(-worth[first])][start:]].tolist()
        start, size = many, size * 4


def _nearest(index: Index, total: Floats, lacking: Ints, asked: Flags, many: int) -> list[int]:
    """Of the cards that lack something, those that lack least and are most like the target."""
    import numpy as np

    cards = np.flatnonzero(asked & (total > 0))
    worth = total.take(cards) * 16 - lacking.take(cards) * 24 + index.order.take(cards)
    few = min(2 * many, len(worth))
    if not few:
        return []
    first = np.argpartition(-worth, few - 1)[:few]
    found: list[int] = cards[first[np.argsort(-worth[first])]].tolist()
    return found


def _hit(row: Row, target: Target, judge: Judge) -> Hit:
    needs, checked, unknown = judge.of(row)
    return Hit(row, matches(row, target), needs, checked, (*_caveats(row), *unknown))


def _caveats(row: Row) -> Iterator[str]:
    if row.status == "retired":
        yield "retired"
    elif row.status == "hypothesis":
        yield "a hypothesis: no held-out trial has admitted it"
    if row.stale:
        yield (
            "edited since a trial accepted it; admit it again"
            if not row.trials
            else "edited since some of its trials"
        )
