"""Cards that are being edited: a file each in the repository's own folder, on disk before anything risky."""

from __future__ import annotations

from pathlib import Path

from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.skill.card import check_id


class CardDrafts:
    """The drafts of one repository. ``folder``: its git folder; nothing is written into the work tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "klineage" / "drafts"

    def save(self, card_id: str, data: bytes) -> None:
        """Keep what is being edited, in place of an earlier draft. Raises KlineageError when it cannot be written."""
        path = self._path(card_id)
        try:
            write_whole(path, data)
        except OSError as problem:
            raise KlineageError(f"{path}: the draft cannot be saved: {problem.strerror}") from problem

    def read(self, card_id: str) -> bytes | None:
        """The draft of a card, or None. Raises KlineageError when it is there and cannot be read."""
        path = self._path(card_id)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise KlineageError(f"{path}: the draft cannot be read: {problem.strerror}") from problem

    def clear(self, card_id: str) -> None:
        """Forget a draft, if there is one."""
        try:
            self._path(card_id).unlink(missing_ok=True)
        except OSError as problem:
            raise KlineageError(
                f"{self._path(card_id)}: the draft cannot be dropped: {problem.strerror}"
            ) from problem

    def _path(self, card_id: str) -> Path:
        return self._folder / f"{check_id(card_id)}.md"
