"""What cards cite: the lineages of the workspace itself or the bundles of a folder, and gate reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.lineage import Workspace, bundle_open
from klineage.lineage.model import check_id
from klineage.lineage.scratch import scratch_repository
from klineage.skill.card import Card, Evidence
from klineage.skill.library.folder import FolderShelf, place_of
from klineage.skill.library.git import GitShelf


@contextmanager
def opened_lineage(shelf: GitShelf | FolderShelf, lineage_id: str) -> Iterator[Workspace]:
    """A workspace in which a lineage can be read, for a block.

    Raises KlineageError when a folder has no bundle of it, or the workspace no such lineage.
    """
    if isinstance(shelf, GitShelf):
        shelf.workspace.head(lineage_id)
        yield shelf.workspace
        return
    name = f"bundles/{check_id(lineage_id)}.bundle"
    found = [
        path for path, revision in shelf.listing().items() if revision and f"/{path}".endswith(f"/{name}")
    ]
    if not found:
        raise KlineageError(
            f"there is no {name} in {shelf.folder}; what cards cite of {lineage_id} cannot be shown"
        )
    with scratch_repository(40) as git:
        inside = Workspace(git.place, git)
        bundle_open(shelf.folder / found[0], inside, lineage_id)
        yield inside


@dataclass(frozen=True)
class Dangling:
    """A piece of evidence that leads nowhere. ``why``: one sentence."""

    card: str
    key: str
    why: str


def dangling(shelf: GitShelf | FolderShelf, cards: Iterable[Card]) -> tuple[Dangling, ...]:
    """The evidence of cards whose report, lineage or commit is not there; each lineage is opened once."""
    listed = [place_of(path) for path, revision in shelf.listing().items() if revision]
    reports = {name for kind, name in listed if kind == "reports"}
    cited = [(card.id, evidence) for card in cards for evidence in card.evidence]
    found = [
        Dangling(card_id, evidence.key, f"its report {evidence.report} is not in the library")
        for card_id, evidence in cited
        if evidence.report and evidence.report not in reports
    ]
    lineages: dict[str, list[tuple[str, Evidence]]] = {}
    for card_id, evidence in cited:
        if evidence.commit or evidence.lineage:
            lineages.setdefault(evidence.lineage, []).append((card_id, evidence))
    for lineage_id, entries in lineages.items():
        lost = _lost(shelf, lineage_id, {evidence.commit for _, evidence in entries})
        found += [Dangling(card_id, evidence.key, lost[evidence.commit]) for card_id, evidence in entries
                  if evidence.commit in lost]  # fmt: skip
    return tuple(sorted(found, key=lambda item: (item.card, item.key)))


def _lost(shelf: GitShelf | FolderShelf, lineage_id: str, commits: set[str]) -> Mapping[str, str]:
    """Which commits a lineage does not have, each with why."""
    try:
        with opened_lineage(shelf, lineage_id) as workspace:
            there = workspace.commits(lineage_id)
            return {
                commit: f"its lineage {lineage_id} has no commit {commit[:12]}"
                for commit in commits - there
                if commit
            }
    except KlineageError as error:
        return dict.fromkeys(commits, str(error))
