"""What each optimization of a lineage is worth first, in order and last."""

from klineage.skill.ablation.keeping import Kept, keep, kept
from klineage.skill.ablation.measuring import (
    Ablation,
    Offer,
    Row,
    Worth,
    ablate,
    matrix,
    offers,
    told,
    trusts,
)

__all__ = [
    "Ablation",
    "Kept",
    "Offer",
    "Row",
    "Worth",
    "ablate",
    "keep",
    "kept",
    "matrix",
    "offers",
    "told",
    "trusts",
]
