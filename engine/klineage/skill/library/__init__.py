"""A library of cards: where it is kept, how it is read, written, merged and pulled."""

from klineage.skill.library.library import (
    Entry,
    Library,
    report_name,
)

__all__ = [
    "Entry",
    "Library",
    "report_name",
]
