"""Clip, pad and align by terminal cells: wide characters take two, combining marks none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len, set_cell_size

Align = Literal["left", "right", "center"]


def width(text: str) -> int:
    """The number of terminal cells of a sanitized text."""
    return len(text) if text.isascii() else cell_len(text)


def clip(text: str, cells: int, ellipsis: str = "…") -> str:
    """``text`` in at most ``cells`` cells; what is cut off is shown by the ellipsis."""
    if cells <= 0:
        return ""
    if width(text) <= cells:
        return text
    keep = cells - width(ellipsis)
    if keep < 0:
        return set_cell_size(text, cells).rstrip()
    # set_cell_size pads with a space where it would cut a wide character in half.
    return set_cell_size(text, keep) + ellipsis


def pad(text: str, cells: int, align: Align = "left") -> str:
    """``text`` with spaces up to ``cells`` cells; a longer one is returned as it is."""
    missing = cells - width(text)
    if missing <= 0:
        return text
    if align == "right":
        return " " * missing + text
    if align == "center":
        return " " * (missing // 2) + text + " " * (missing - missing // 2)
    return text + " " * missing


def fit(text: str, cells: int, align: Align = "left") -> str:
    """``text`` in exactly ``cells`` cells: clipped when longer, padded when shorter."""
    return pad(clip(text, cells), cells, align)


def widest(texts: Sequence[str]) -> int:
    """The cells of the widest text; 0 for none."""
    return max((width(text) for text in texts), default=0)


def spread(left: str, right: str, cells: int) -> str:
    """``left`` and ``right`` at the two ends of ``cells`` cells; the left one is clipped first."""
    room = cells - width(right) - (1 if right else 0)
    if room <= 0:
        return clip(right, cells)
    return fit(left, room) + (" " + right if right else "")
