"""Evaluating a card's preconditions on a kernel that a person chooses: holds, fails or unknown, each with why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from klineage_tui.presentation.card_words import answer_words

if TYPE_CHECKING:
    from pathlib import Path

    from klineage.lineage import Workspace
    from klineage.skill.admission.target import Target
    from klineage.skill.card import Card

    from klineage_tui.presentation.card_form import Parts


@dataclass(frozen=True)
class Choice:
    """A kernel that can be asked: how it is called, what it is, and how it is read (in a thread; may raise KlineageError)."""

    name: str
    about: str
    read: Callable[[], Target]


@dataclass(frozen=True)
class Checked:
    """What a kernel answers. answers: precondition key -> styled words. places: how often the anchor is found, in words."""

    target: str
    answers: Mapping[str, Parts] = field(default_factory=dict)
    places: str = ""


def choices(workspace: Workspace, card: Card, open_lineage: str = "") -> tuple[Choice, ...]:
    """The kernels of the card's language; see ``choices_of``."""
    return choices_of(workspace, card.surface, open_lineage)


def choices_of(workspace: Workspace, surface: str, open_lineage: str = "") -> tuple[Choice, ...]:
    """The kernels of a language: the states that the walks of this workspace are at, the open one first, then the
    shipped experts."""
    from klineage.resources import shipped
    from klineage.skill.admission.target import of_file

    found = []
    for summary in sorted(workspace.lineages(), key=lambda s: s.id != open_lineage):
        if summary.meta is None or summary.meta.surface != surface:
            continue
        head = workspace.head(summary.id)
        where = (
            f"{summary.title}, step {head.number} of its walk"
            if head.number
            else f"{summary.title}, the expert"
        )
        found.append(
            Choice(summary.id, where, partial(_state, workspace, summary.id, head.commit, summary.id))
        )
        if summary.sealed:
            name, naive = f"{summary.id}:K0", workspace.lineage(summary.id)[0].commit
            about = f"{summary.title}, the naive form"
            found.append(Choice(name, about, partial(_state, workspace, summary.id, naive, name)))
    for file in sorted(shipped("experts").glob(f"*/{surface}/*.*")):
        if file.suffix in (".c", ".py", ".cu"):
            found.append(Choice(_told(file), "shipped with klineage", partial(of_file, file)))
    return tuple(found)


def _state(workspace: Workspace, lineage: str, commit: str, name: str) -> Target:
    """A state of a lineage, to be read and not to be run: nobody needs to trust it for that."""
    from klineage.skill.admission.target import Target
    from klineage.walk import Walk

    walk = Walk(workspace, lineage)
    meta = workspace.meta(commit)
    return Target(name, walk.kernel_at(commit), walk.workload, meta.platform, lineage, commit)


def _told(file: Path) -> str:
    return "/".join(("experts", *file.parts[-3:]))


def checked(card: Card, choice: Choice) -> Checked:
    """The answers of a kernel. Raises KlineageError when it cannot be read. Nothing of it is run."""
    from klineage.skill.anchors import find_anchor
    from klineage.skill.checks import check
    from klineage.skill.checks.facts import facts

    target = choice.read()
    known = facts(target.kernel, target.workload, target.platform, settings=card.carrier.settings)
    answers = {p.key: answer_words(check(p.check, known)) for p in card.preconditions if p.check}
    places = ""
    if card.anchor.query and target.kernel.surface == card.surface:
        number = len(find_anchor(card.anchor.query, target.kernel))
        places = "found nowhere there" if not number else f"found {number} time{'s' * (number > 1)} there"
    return Checked(choice.name, answers, places)
