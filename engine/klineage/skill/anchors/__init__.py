"""Where a card acts: queries that are made from transitions and found again on other code."""

from klineage.skill.anchors.finding import (
    CAPTURE,
    Place,
    compiled_query,
    find_anchor,
    is_match,
    place_of,
)

__all__ = [
    "CAPTURE",
    "Place",
    "compiled_query",
    "find_anchor",
    "is_match",
    "place_of",
]
