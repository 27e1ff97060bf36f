"""The lineages that cards cite: those of the workspace itself, or the bundles of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from klineage.errors import KlineageError
from klineage.lineage import Workspace, bundle_open
from klineage.lineage.model import check_id
from klineage.lineage.scratch import scratch_repository
from klineage.skill.library_folder import FolderShelf
from klineage.skill.library_git import GitShelf


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
        bundle_open(shelf.folder / found[0], inside)
        yield inside
