"""A library as a folder of files: what is shipped, or what somebody keeps by hand. It is read, never written.

A folder with ``cards/`` is one library; a folder whose subfolders have ``cards/`` is all of them together.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from klineage.errors import KlineageError

_PLACE = re.compile(r"(?:[^/]+/)?(?P<kind>cards|reports|bundles)/(?P<name>.+)", re.DOTALL)
_SUFFIXES = {"cards": ".md", "reports": ".json", "bundles": ".bundle"}


def is_library(folder: Path) -> bool:
    """Whether a folder is a library, or several side by side."""
    return folder.is_dir() and any(True for _ in _parts(folder))


def _parts(folder: Path) -> Iterator[Path]:
    """The folders that hold ``cards/``: this one, else those in it."""
    if (folder / "cards").is_dir():
        yield folder
        return
    for child in sorted(folder.iterdir()):
        if (child / "cards").is_dir():
            yield child


def place_of(path: str) -> tuple[str, str]:
    """(``cards``, ``reports`` or ``bundles``, the file's name there) of a path in a library; ("", "") for any other."""
    match = _PLACE.fullmatch(path)
    return (match["kind"], match["name"]) if match else ("", "")


def blob_hash(data: bytes) -> str:
    """What git (with SHA-1) calls these bytes, so that revisions of folders and branches can be compared."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _stamp(entry: os.DirEntry[str]) -> str:
    if not entry.is_file(follow_symlinks=False):
        return ""
    state = entry.stat(follow_symlinks=False)
    return f"{state.st_size}-{state.st_mtime_ns}"


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A folder's handle: what is in it is found from there, without walking down to it for each file."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


class FolderShelf:
    """The files of a folder library, by paths relative to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[tuple[int, int], str]] = {}
        self._closed: dict[str, str] = {}  # path -> why it cannot be read

    @property
    def place(self) -> str:
        """What stands before a file's name in a sentence for people."""
        return f"{self.folder}{os.sep}"

    def listing(self) -> Mapping[str, str]:
        """Path to hash of every card, report and bundle; "" for what is no plain file, or cannot be read (``refusal``)."""
        return {path: self._hash(path) for part in _parts(self.folder) for path in self._files(part)}

    def _files(self, part: Path) -> Iterator[str]:
        for name, suffix in _SUFFIXES.items():
            if (part / name).is_dir():
                os.scandir(part / name).close()  # rglob passes over a folder that it may not open
            for file in sorted((part / name).rglob(f"*{suffix}")):
                yield str(file.relative_to(self.folder))

    def stamps(self) -> dict[str, str]:
        """Path to size and time of every card's file, without reading one; "" for what is no plain file."""
        found: dict[str, str] = {}
        for part in _parts(self.folder):
            folders = [part / "cards"]
            while folders:
                folder = folders.pop()
                inside = f"{folder.relative_to(self.folder)}/"
                with _opened(folder) as handle, os.scandir(handle) as entries:
                    for entry in entries:
                        name = entry.name
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(folder / name)
                        elif name.endswith(".md"):
                            found[inside + name] = _stamp(entry)
        return found

    def _hash(self, path: str) -> str:
        """Read again only where the file's time or size differs from what it was."""
        file = self.folder / path
        if file.is_symlink() or not file.is_file():
            return ""
        state = file.stat()
        stamp = (state.st_mtime_ns, state.st_size)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            try:
                known = (stamp, blob_hash(self._read(path)))
            except KlineageError as error:
                self._closed[path] = str(error)
                return ""
            self._closed.pop(path, None)
            self._known[path] = known
        return known[1]

    def refusal(self, path: str) -> str:
        """Why ``listing`` has no hash for a file, as a sentence."""
        return self._closed.get(path) or f"{self.place}{path} is a link or no file; a card is a plain file"

    def contents(self, files: Mapping[str, str]) -> dict[str, bytes]:
        """The bytes of files, path to hash as in ``listing``."""
        return {path: self._read(path) for path in files}

    def _read(self, path: str) -> bytes:
        try:
            return (self.folder / path).read_bytes()
        except OSError as error:
            raise KlineageError(f"cannot read {self.folder / path}: {error.strerror}") from error
