"""Which cards hold for a kernel, and why: an index, ranking with reasons, ways on along lineages."""

from klineage.skill.retrieval.ranking import (
    Hit,
    Retrieved,
    alike,
    explain,
    hit_of,
    retrieve,
)

__all__ = [
    "Hit",
    "Retrieved",
    "alike",
    "explain",
    "hit_of",
    "retrieve",
]
