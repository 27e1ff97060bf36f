"""Writing a library as a folder that can be shipped: its cards, and the reports and lineages that they cite."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.lineage import Workspace, bundle_create
from klineage.skill.card import Card, Status
from klineage.skill.library.library import Library


@dataclass(frozen=True)
class Written:
    """What a folder holds now.

    removed: cards that were there from before and are no longer to be. problems: what could not be written along, or
    not removed, a sentence each.
    """

    cards: tuple[str, ...]
    reports: int
    lineages: tuple[str, ...]
    problems: tuple[str, ...]
    removed: tuple[str, ...] = ()


def write_folder(library: Library, folder: Path, statuses: Collection[Status]) -> Written:
    """Write the cards of these statuses to ``folder``, byte for byte, with what they cite.

    Files of the same names are replaced. A card of the library that is no longer of these statuses goes, if its file is
    a version of it; whatever else is there is left alone. Raises KlineageError where the folder cannot be written, or
    is full of something else.
    """
    others = [child for child in folder.iterdir() if child.name != "cards"] if folder.is_dir() else []
    if others and not (folder / "cards").is_dir():
        raise KlineageError(f"{folder} is not empty and has no cards; give a new folder, or one of cards")
    entries = library.cards()
    cards = [entry.card for entry in entries if entry.card is not None and entry.card.status in statuses]
    problems = [entry.problem for entry in entries if entry.problem]
    for card in cards:
        _replace(folder / "cards" / f"{card.id}.md", library.source(card.id))
    reports = _reports(library, folder, cards, problems)
    lineages = _lineages(library, folder, cards, problems)
    written = tuple(card.id for card in cards)
    left = [entry.id for entry in entries if entry.card is not None and entry.id not in written]
    removed = _removed(library, folder, left, problems)
    return Written(written, reports, lineages, tuple(problems), removed)


def _removed(library: Library, folder: Path, card_ids: Iterable[str], problems: list[str]) -> tuple[str, ...]:
    """Take out the files of cards that earlier writes put there."""
    removed = []
    for card_id in card_ids:
        file = folder / "cards" / f"{card_id}.md"
        if file.is_symlink() or not file.is_file():
            continue
        if _bytes(file) not in _versions(library, card_id):
            problems.append(f"{file} is there and no version of {card_id} of this library; it was left")
            continue
        try:
            file.unlink()
        except OSError as error:
            raise KlineageError(f"cannot remove {file}: {error.strerror}") from error
        removed.append(card_id)
    return tuple(removed)


def _versions(library: Library, card_id: str) -> Iterator[bytes]:
    """What the file of a card has been, the newest first; of a folder's card, what it is."""
    yield library.source(card_id)
    for entry in library.history(card_id) if library.writable else ():
        if entry.revision:
            yield library.at(card_id, entry.commit)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise KlineageError(f"cannot read {file}: {error.strerror}") from error


def _reports(library: Library, folder: Path, cards: Iterable[Card], problems: list[str]) -> int:
    cited = {entry.report: card.id for card in cards for entry in card.evidence if entry.report}
    for name, card_id in sorted(cited.items()):
        try:
            data = library.report(name)
        except KlineageError as error:
            problems.append(f"{card_id}: {error}")
        else:
            _replace(folder / "reports" / Path(name).name, data)
    return len(cited)


def _lineages(library: Library, folder: Path, cards: Iterable[Card], problems: list[str]) -> tuple[str, ...]:
    cited = {entry.lineage: card.id for card in cards for entry in card.evidence if entry.lineage}
    written = []
    for lineage_id, card_id in sorted(cited.items()):
        try:
            with library.lineage(lineage_id) as workspace:
                _bundle(workspace, lineage_id, folder / "bundles" / f"{lineage_id}.bundle")
        except KlineageError as error:
            problems.append(f"{card_id}: {error}")
        else:
            written.append(lineage_id)
    return tuple(written)


def _bundle(workspace: Workspace, lineage_id: str, file: Path) -> None:
    """The lineage's bundle; an old one of the same refs stays as it is, since git packs each a little differently."""
    with tempfile.TemporaryDirectory(prefix="klineage-") as scratch:
        new = Path(scratch) / file.name
        bundle_create(workspace, lineage_id, new)
        if file.is_file() and _heads(workspace, file) == _heads(workspace, new):
            return
        _replace(file, new.read_bytes())


def _heads(workspace: Workspace, file: Path) -> bytes:
    return workspace.git.run("bundle", "list-heads", str(file), allow=(0, 1, 128))


def _replace(file: Path, data: bytes) -> None:
    """Write a file, unless it says the same already."""
    try:
        if file.is_file() and file.read_bytes() == data:
            return
        write_whole(file, data, 0o644)
    except OSError as error:
        raise KlineageError(f"cannot write {file}: {error.strerror}") from error
