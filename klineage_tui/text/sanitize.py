"""The border between foreign text and the terminal.

Kernels, model answers, compiler logs, commit messages and file names are written by others. Every
character that a terminal would obey, or that a reader would not see, is replaced by a visible mark:
``␛`` for ESC and the other C0 controls (Unicode control pictures), ``‹9b›`` (the code in
hexadecimal) for C1, bidirectional, zero-width, private and surrogate characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

TAB_SIZE = 4

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Default_Ignorable_Code_Point outside those categories: drawn as nothing, so they can hide text.
_IGNORABLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)


class Displayed(NamedTuple):
    """A line as it is drawn.

    ``starts[i]`` is the index in ``text`` of source character ``i``, with one more entry for the end;
    None when the two are the same.
    """

    text: str
    starts: Sequence[int] | None

    def column(self, index: int) -> int:
        """The index in ``text`` of source character ``index`` (beyond the end: the end)."""
        if self.starts is None:
            return min(index, len(self.text))
        return self.starts[min(index, len(self.starts) - 1)]


def _mark(code: int) -> str | None:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    hidden = (
        unicodedata.category(chr(code)) in _HIDDEN_CATEGORIES
        or any(low <= code <= high for low, high in _IGNORABLE)
        or code & 0xFFFE == 0xFFFE
    )
    return f"‹{code:02x}›" if hidden else None


class _Marks(dict[int, str]):
    """A translation table that is filled as characters are met."""

    def __missing__(self, code: int) -> str:
        value = _mark(code) or chr(code)
        self[code] = value
        return value


_MARKS = _Marks()


def sanitize(text: str) -> str:
    """``text`` as one safe line: controls made visible, tabs expanded to spaces.

    Line feeds become ``␊``: split into lines first. Sanitizing twice changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\t" not in text:
        return text.translate(_MARKS)
    drawn: list[str] = []
    pieces = text.split("\t")
    for piece in pieces[:-1]:
        shown = piece.translate(_MARKS)
        stop = TAB_SIZE - cell_len(shown) % TAB_SIZE
        drawn += (shown, " " * stop)
    return "".join(drawn) + pieces[-1].translate(_MARKS)


def display(text: str) -> Displayed:
    """``sanitize``, with the way from source characters to drawn ones (for highlights)."""
    drawn = sanitize(text)
    if drawn == text:
        return Displayed(text, None)
    starts = [0]
    length = piece_start = 0
    for number, piece in enumerate(text.split("\t")):
        if number:
            stop = TAB_SIZE - cell_len(drawn[piece_start:length]) % TAB_SIZE
            length += stop
            starts.append(length)
        piece_start = length
        for character in piece:
            length += len(_MARKS[ord(character)])
            starts.append(length)
    return Displayed(drawn, starts)


def sanitize_lines(text: str) -> list[str]:
    """A foreign text of several lines (a log, a message), each line safe. ``\\r\\n`` ends a line too."""
    return [sanitize(line.removesuffix("\r")) for line in text.split("\n")]
