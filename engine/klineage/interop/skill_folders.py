"""Agent Skills on disk: written whole or not at all, in place of the earlier export, with nobody else's file touched.

What klineage has written says so: ``SKILL.md`` in its metadata, and the other files because it lists them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from klineage.errors import KlineageError
from klineage.interop.agent_skills import ALONE, MARK, NAME, Skill

_DOCUMENT = "SKILL.md"
_LISTED = re.compile(r"^- \[([A-Za-z0-9._-]+)\]\((references/\1\.md)\)", re.MULTILINE)
_EXPORT = re.compile(r"\n  export: ([a-z0-9-]+)\n")


def write(skills: Iterable[Skill], folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write each skill to a folder of its name under ``folder``; returns those folders.

    Of a folder that was exported before, what was written is replaced; what somebody else has put there stays. Raises
    KlineageError, before anything is written, for one that klineage has not written, and for a file of somebody else
    where one is to be, unless ``force`` replaces files of these very names; and for a folder that cannot be written.
    """
    planned = [(skill, folder / skill.name) for skill in skills]
    for skill, place in planned:
        _finish(place)
        if not (place.is_symlink() or place.exists()) or force:
            continue
        if not _exported(place):
            raise KlineageError(
                f"{place} is there already and klineage has not written it; move it away, or say --force"
            )
        taken = {file.relative_to(place).as_posix() for file in _foreign(place)} & skill.files.keys()
        if taken:
            raise KlineageError(
                f"{place / min(taken)} is there already and klineage has not written it; move it away"
            )
    for skill, place in planned:
        try:
            _write(skill, place)
        except OSError as error:
            raise KlineageError(f"cannot write {place}: {error.strerror}") from error
    return tuple(place for _, place in planned)


def clear(skills: Iterable[Skill], folder: Path) -> tuple[Path, ...]:
    """Take away what earlier exports of the same name left under ``folder`` beside these skills, as of another layout.

    Returns the folders that this emptied or left to somebody else's files. Raises KlineageError where one cannot be
    removed.
    """
    kept = {skill.name for skill in skills}
    exports = {skill.export for skill in skills}
    gone = [
        place
        for place in sorted(folder.iterdir())
        if place.name not in kept and not place.name.startswith(".") and _exported(place) in exports
    ]
    for place in gone:
        try:
            _remove(place)
        except OSError as error:
            raise KlineageError(f"cannot remove {place}: {error.strerror}") from error
    return tuple(gone)


def _exported(place: Path) -> str:
    """The name of the export that a folder was written by; "" for somebody else's."""
    file = place / _DOCUMENT
    if place.is_symlink() or file.is_symlink() or not file.is_file():
        return ""
    text = file.read_text("utf-8", "replace")
    if f"\n  made-by: {MARK}" not in text:
        return ""
    found = _EXPORT.search(text)
    return found[1] if found else NAME


def _own(place: Path) -> list[Path]:
    """The files of a folder that an export wrote."""
    if not _exported(place):
        return []
    text = (place / _DOCUMENT).read_text("utf-8", "replace")
    listed = [path for _, path in _LISTED.findall(text)]
    if ALONE in text or (place / "references").is_symlink():
        listed = []
    return [place / _DOCUMENT, *(place / path for path in dict.fromkeys(listed) if (place / path).is_file())]


def _foreign(place: Path) -> Iterator[Path]:
    """Everything else in it but folders."""
    own = set(_own(place))
    return (file for file in place.rglob("*") if file not in own and (file.is_symlink() or not file.is_dir()))


def _write(skill: Skill, place: Path) -> None:
    """Beside the old folder first, so that nobody ever reads half a skill."""
    place.parent.mkdir(parents=True, exist_ok=True)
    new, old = _beside(place)
    try:
        _build(skill, place, new)
        if place.is_symlink() or place.exists():
            place.rename(old)
        new.rename(place)
    finally:
        _finish(place)


def _build(skill: Skill, place: Path, new: Path) -> None:
    """The files of the skill, and those of somebody else that are in the place of the old one."""
    for path, data in skill.files.items():
        file = new / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for theirs in list(_foreign(place)) if place.is_dir() and not place.is_symlink() else ():
        copy = new / theirs.relative_to(place)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(theirs, copy, follow_symlinks=False)


def _beside(place: Path) -> tuple[Path, Path]:
    new, old = (place.parent / f".{place.name}.klineage-{word}" for word in ("new", "old"))
    return new, old


def _finish(place: Path) -> None:
    """Clear away what a write, killed or not, left beside the folder; one that was killed between its two renames is
    taken back first."""
    new, old = _beside(place)
    if old.exists() and not place.exists():
        old.rename(place)
    if new.exists():
        shutil.rmtree(new)
    if old.is_symlink() or old.is_file():
        old.unlink()
    elif old.exists():
        shutil.rmtree(old)


def _remove(place: Path) -> None:
    own = _own(place)
    for file in reversed(own):  # SKILL.md last: it says what else is ours
        file.unlink()
    for folder in (place / "references", place):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
