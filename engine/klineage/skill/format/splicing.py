"""A text that was read with LF line ends, and the bytes it came from: pieces are replaced and every other byte stays."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from klineage.skill.format.nodes import Fault

_MARK = "\ufeff"


@dataclass(frozen=True, order=True)
class Splice:
    """``new`` in place of what stands from ``start`` to ``end``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Original:
    """A file's characters. Its line ends are what its first line ends with.

    raw: as decoded. text: what is read: without byte order mark, and LF for CRLF in a file that has CRLF.
    breaks: where in ``text`` a line ended with CRLF.
    """

    raw: str
    text: str
    breaks: tuple[int, ...]

    def spliced(self, splices: Iterable[Splice]) -> bytes:
        """The file's bytes with the splices made. Raises ValueError for two that overlap."""
        pieces: list[str] = []
        at = 0
        for splice in sorted(splices, key=lambda one: (one.start, one.end)):
            start, end = self._place(splice.start), self._place(splice.end)
            if start < at:
                raise ValueError(f"two edits overlap at character {start}")
            new = splice.new.replace("\n", "\r\n") if self.breaks else splice.new
            pieces += [self.raw[at:start], new]
            at = end
        return "".join([*pieces, self.raw[at:]]).encode()

    def _place(self, offset: int) -> int:
        return offset + bisect_left(self.breaks, offset) + (1 if self.raw.startswith(_MARK) else 0)


def original(data: bytes) -> Original:
    """The characters of a file. Raises Fault where it is not UTF-8."""
    try:
        raw = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Fault(line, "this is not UTF-8; save the file in that encoding") from error
    text = raw.removeprefix(_MARK)
    if not text.partition("\n")[0].endswith("\r"):
        return Original(raw, text, ())
    breaks = tuple(found.start() - number for number, found in enumerate(re.finditer("\r\n", text)))
    return Original(raw, text.replace("\r\n", "\n"), breaks)
