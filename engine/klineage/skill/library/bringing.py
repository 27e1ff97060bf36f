"""Bringing the lineages that pulled cards cite, so that their evidence leads somewhere here, too."""

from __future__ import annotations

import tempfile
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import Workspace, bundle_create, bundle_open, refs, store
from klineage.lineage.model import check_id
from klineage.skill.file import parse
from klineage.skill.library.git import GitShelf
from klineage.skill.library.source import Source


def bring_lineages(shelf: GitShelf, source: Source) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(lineages that came, what could not come): those that the source's cards cite and that are not here."""
    brought, missing = [], []
    for lineage_id, commits in _cited(source).items():
        if all(shelf.git.object(commit) for commit in commits if commit):
            continue
        try:
            if _bring(shelf.workspace, source, lineage_id):
                brought.append(lineage_id)
        except KlineageError as error:
            missing.append(
                f"the lineage {lineage_id}, which cards of {source.name} cite, did not come: {error}"
            )
    return tuple(brought), tuple(missing)


def _cited(source: Source) -> dict[str, set[str]]:
    """Lineage id to the commits of it that the source's cards cite; broken cards are named elsewhere."""
    cited: dict[str, set[str]] = {}
    for path, data in source.files.items():
        if not path.startswith("cards/"):
            continue
        try:
            card = parse(data, path)
        except KlineageError:
            continue
        for entry in card.evidence:
            if entry.lineage:
                cited.setdefault(entry.lineage, set()).add(entry.commit)
    return cited


def _bring(workspace: Workspace, source: Source, lineage_id: str) -> bool:
    """Whether the lineage has come that was not here before."""
    new = not store.head(workspace.git, refs.walk(check_id(lineage_id)))
    if lineage_id in source.bundles:
        bundle_open(source.bundles[lineage_id], workspace)
        return new
    if source.workspace is None:
        return False
    with tempfile.TemporaryDirectory(prefix="klineage-") as folder:
        file = Path(folder) / "lineage.bundle"
        bundle_create(source.workspace, lineage_id, file)
        bundle_open(file, workspace)
    return new
