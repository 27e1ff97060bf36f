"""Bringing the lineages that pulled cards cite, so that their evidence leads somewhere here, too.

Evidence names a commit, and what the lineage that has it is called where the card is. A lineage whose name is taken
here by another one comes under a further name, and the pulled cards say that one. An earlier version, on which nothing
was decided here and whose code nobody trusts yet, is brought up to date instead.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import Taken, Workspace, bundle_create, bundle_here, bundle_open, refs, store
from klineage.lineage.model import check_id
from klineage.skill.card import Evidence
from klineage.skill.file import edited, parse
from klineage.skill.library.git import GitShelf
from klineage.skill.library.source import Source
from klineage.walk import trust
from klineage.walk.opening import free_id

Names = Mapping[tuple[str, str], str]
"""(a lineage, one of its commits) as a card cites them -> what the lineage is called here, where that differs."""
Cited = Mapping[str, set[str]]
"""A lineage -> its commits that cards cite."""

_HASH = re.compile(rb"[0-9a-f]{40,64}")


def bring_lineages(
    shelf: GitShelf, source: Source, cited: Cited
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """(what the lineages that came are called here -> what the source calls them; what could not come).

    They are those that the source's cards cite and that are not here.
    """
    brought: dict[str, str] = {}
    missing = []
    names = names_here(shelf, cited)
    for lineage_id, commits in cited.items():
        homes = {names.get((lineage_id, commit), lineage_id) for commit in commits}
        try:
            check_id(lineage_id)
            if commits - {""} <= frozenset().union(*map(shelf.workspace.commits, homes)):
                continue
            if name := _bring(shelf.workspace, source, lineage_id):
                brought[name] = lineage_id
        except KlineageError as error:
            missing.append(
                f"the lineage {lineage_id}, which cards of {source.name} cite, did not come: {error}"
            )
    return brought, tuple(missing)


def names_here(shelf: GitShelf, cited: Cited) -> Names:
    """What cited lineages are called here, as far as they are here under another name."""
    names: dict[tuple[str, str], str] = {}
    for lineage_id, commits in cited.items():
        try:
            lost = commits - shelf.workspace.commits(lineage_id) - {""}
        except KlineageError:
            continue  # no lineage can be called so; what cites it is told where evidence is looked up
        for commit in sorted(lost):
            if home := _home(shelf, commit):
                names[lineage_id, commit] = home
    return names


def _home(shelf: GitShelf, commit: str) -> str:
    """The lineage here that has a commit; "" for none."""
    found = shelf.git.object(commit)
    if found is None or found[0] != commit or found[1] != "commit":
        return ""
    places = (refs.WALKS, refs.LINEAGES, refs.REJECTED)
    out = shelf.git.run("for-each-ref", f"--contains={commit}", "--format=%(refname)", *places).decode()
    for ref in out.splitlines():
        for place in places:
            if ref.startswith(place):
                return ref.removeprefix(place).partition("/")[0]
    return ""


def cited_by(source: Source) -> Cited:
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


def renamed(data: bytes, names: Names) -> bytes:
    """A card's file with its lineages called what they are called here; as it is where nothing differs, or it is broken."""
    if not names or {commit.encode() for _, commit in names}.isdisjoint(_HASH.findall(data)):
        return data
    try:
        card = parse(data, "the card")
    except KlineageError:
        return data  # it is named, by line, where it is read as a card
    evidence = tuple(_renamed(entry, names) for entry in card.evidence)
    return data if evidence == card.evidence else edited(data, replace(card, evidence=evidence))


def _renamed(entry: Evidence, names: Names) -> Evidence:
    return replace(entry, lineage=names.get((entry.lineage, entry.commit), entry.lineage))


def _bring(workspace: Workspace, source: Source, lineage_id: str) -> str:
    """What the lineage is called here, if it has come that was not here before; else ""."""
    with _bundle_of(source, lineage_id) as bundle:
        if bundle is None:
            raise KlineageError(f"{source.name} has no bundle of it")
        if bundle_here(bundle, workspace):
            return ""
        found = store.each(workspace.git, refs.WALKS, refs.OPERATIONS)
        taken = {ref.rpartition("/")[2] for ref in found}
        if lineage_id not in taken:
            return bundle_open(bundle, workspace, lineage_id)
        if not trust.is_trusted(workspace, lineage_id):  # else what is new would be trusted unseen
            with suppress(Taken):
                return bundle_open(bundle, workspace, lineage_id, forward=True)
        return bundle_open(bundle, workspace, free_id(lineage_id, taken))


@contextmanager
def _bundle_of(source: Source, lineage_id: str) -> Iterator[Path | None]:
    """The bundle of a lineage of the source, for a block; None where it has none."""
    if lineage_id in source.bundles or source.workspace is None:
        yield source.bundles.get(lineage_id)
        return
    with tempfile.TemporaryDirectory(prefix="klineage-") as folder:
        file = Path(folder) / "lineage.bundle"
        bundle_create(source.workspace, lineage_id, file)
        yield file
