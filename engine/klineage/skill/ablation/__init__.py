"""What each optimization of a lineage is worth first, in order and last."""

from klineage.skill.ablation.measuring import (
    Ablation,
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
    "Row",
    "Worth",
    "ablate",
    "matrix",
    "offers",
    "told",
    "trusts",
]
