"""What an input offers to complete: words that are known, and the files and folders of this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import islice

from textual.suggester import Suggester

from klineage_tui.text.sanitize import sanitize

_MOST = 5_000  # names of a folder that are looked at


class Completer(Suggester):
    """Suggests the first of ``words``, else the first path, that begins with what is typed.

    suffixes: of the files that are offered, e.g. (".c", ".py"); folders always are. None: no paths.
    """

    def __init__(self, words: Sequence[str] = (), suffixes: Sequence[str] | None = None) -> None:
        super().__init__(use_cache=False, case_sensitive=True)  # files come and go
        self._words, self._suffixes = tuple(words), suffixes

    async def get_suggestion(self, value: str) -> str | None:
        """A folder may lie on a slow disk, so it is read in a thread."""
        word = next((word for word in self._words if word.startswith(value)), None)
        if word is not None or self._suffixes is None:
            return word
        return await asyncio.to_thread(completed_path, value, self._suffixes)


def completed_path(value: str, suffixes: Sequence[str] = ()) -> str | None:
    """``value`` completed to a folder (with its slash) or to a file with one of these suffixes; None where nothing fits.

    ``~`` stays as it is typed. Hidden names are offered once their dot is typed, unprintable ones never.
    """
    folder, prefix = os.path.split(value)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as found:  # noqa: PTH111
            entries = [entry for entry in islice(found, _MOST) if _fits(entry.name, prefix)]
            names = [f"{e.name}/" if e.is_dir() else e.name for e in entries]
    except (OSError, ValueError):  # no such folder, not ours to read, or no name that a folder can have
        return None
    wanted = [name for name in names if name.endswith(("/", *suffixes)) and name != prefix]
    return value + min(wanted)[len(prefix) :] if wanted else None


def _fits(name: str, prefix: str) -> bool:
    hidden = name.startswith(".") and not prefix.startswith(".")
    return name.startswith(prefix) and not hidden and sanitize(name) == name
