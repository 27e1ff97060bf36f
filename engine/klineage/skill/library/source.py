"""The other side of a pull: what it holds, and what both sides come from.

A workspace brings its history. A folder has none: each pull of it keeps what it held as a commit beside the branch,
and the next pull of the same folder begins there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.lineage.plumbing import Git, GitError
from klineage.resources import shipped
from klineage.skill.library.folder import FolderShelf, is_library, place_of
from klineage.skill.library.git import GitShelf, listing
from klineage.skill.library.history import Revision, undone

SHIPPED = "shipped"


@dataclass(frozen=True)
class Source:
    """What is pulled.

    name:    for people and for commits: ``shipped``, a folder's or a workspace's name, a git ref.
    mark:    tells one folder from another, and says nothing of where it is.
    files:   ``cards/<id>.md`` and ``reports/<name>`` to bytes.
    bundles: lineage id to its bundle.
    commit:  its tip, with its objects here; "" for a folder.
    base:    the commit that both sides come from; "" for none.
    odd:     what cannot be taken, a sentence each.
    """

    name: str
    mark: str
    files: Mapping[str, bytes]
    commit: str = ""
    base: str = ""
    workspace: Workspace | None = None
    bundles: Mapping[str, Path] = field(default_factory=dict)
    odd: tuple[str, ...] = ()


def source_at(shelf: GitShelf, where: str) -> Source:
    """The library that ``where`` names, as seen from ours: ``shipped``, a folder, a workspace, or a git ref of ours.

    Raises KlineageError where there is none.
    """
    if where == SHIPPED:
        return _of_folder(shelf, shipped("library"), SHIPPED, SHIPPED)
    path = Path(where).absolute()
    if where.strip() and path.exists():
        if is_library(path) and not (path / ".git").exists():
            mark = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:12]
            return _of_folder(shelf, path, path.name, mark)
        return _of_workspace(shelf, Workspace.open(path))
    found = shelf.git.object(f"refs/remotes/{where}") or shelf.git.object(f"refs/heads/{where}")
    if found is None or found[1] != "commit":
        raise KlineageError(
            f"{where!r} is no folder, no workspace and no branch of {shelf.workspace.path}; "
            "give a folder with cards/, a workspace, a branch such as origin/library, or: shipped"
        )
    return _of_commit(shelf, where, found[0])


def _of_folder(shelf: GitShelf, folder: Path, name: str, mark: str) -> Source:
    there = FolderShelf(folder)
    listed = there.listing()
    files: dict[str, bytes] = {}
    bundles: dict[str, Path] = {}
    odd: list[str] = []
    for path, revision in listed.items():
        kind, short = place_of(path)
        if not revision:
            odd.append(there.refusal(path))
        elif kind == "bundles":
            bundles[short.removesuffix(".bundle")] = folder / path
        elif f"{kind}/{short}" in files and kind == "cards":
            odd.append(f"{folder / path} has an id that another card of {folder} has; it was left out")
        else:
            files[f"{kind}/{short}"] = there.contents({path: revision})[path]
    return Source(name, mark, files, "", _last_pull(shelf, mark), None, bundles, tuple(odd))


def _last_pull(shelf: GitShelf, mark: str) -> str:
    """What the same folder held when it was last pulled, as the commit that keeps it; not of a pull that was undone."""
    back = {parent for pull in _undone_pulls(shelf) for parent in pull.parents[1:]}
    log = (entry for entry in shelf.log() if entry.kind == "snapshot" and entry.source == mark)
    return next((entry.commit for entry in log if entry.commit not in back), "")


def _undone_pulls(shelf: GitShelf) -> list[Revision]:
    return [entry for entry in undone(reversed(shelf.log(first_parent=True))) if entry.kind == "pull"]


def _of_workspace(shelf: GitShelf, other: Workspace) -> Source:
    theirs = GitShelf(other)
    tip = theirs.tip()
    if not tip:
        raise KlineageError(f"{other.path} has no library; klineage lift --into library begins one there")
    if _format(shelf.git) != _format(other.git):
        raise KlineageError(
            f"{other.path} names its objects in another way ({_format(other.git)}); klineage library write makes a folder "
            "of its cards, which can be pulled"
        )
    if shelf.git.object(tip) is None:
        pack = other.git.run("pack-objects", "--revs", "--stdout", "--quiet", data=f"{tip}\n".encode())
        try:
            shelf.git.run("index-pack", "--stdin", "--strict", data=pack)
        except GitError as error:
            raise KlineageError(
                f"the library of {other.path} is damaged ({error}); nothing was changed"
            ) from error
    name = other.path.name or str(other.path)
    found = _of_commit(shelf, name, tip)
    return Source(name, found.mark, found.files, tip, found.base, other, odd=found.odd)


def _format(git: Git) -> str:
    return git.run("rev-parse", "--show-object-format").decode().strip()


def _of_commit(shelf: GitShelf, name: str, commit: str) -> Source:
    listed = {
        path: revision
        for path, revision in listing(shelf.git, commit).items()
        if path.startswith(("cards/", "reports/"))
    }
    odd = tuple(
        f"{path} of {name} is a link or no file; it was left out" for path, at in listed.items() if not at
    )
    files = shelf.contents({path: revision for path, revision in listed.items() if revision})
    return Source(name, commit, files, commit, _merge_base(shelf, commit), odd=odd)


def _merge_base(shelf: GitShelf, commit: str) -> str:
    """The commit that both come from; where a pull of theirs stands undone, as if it had never been."""
    ours = shelf.tip()
    for pull in _undone_pulls(shelf):
        if any(_is_ancestor(shelf, parent, commit) for parent in pull.parents[1:]):
            ours = pull.parents[0]
            break
    if not ours:
        return ""
    return shelf.git.run("merge-base", ours, commit, allow=(0, 1)).decode().strip().partition("\n")[0]


def _is_ancestor(shelf: GitShelf, one: str, two: str) -> bool:
    return shelf.git.run("merge-base", one, two, allow=(0, 1)).decode().strip() == one
