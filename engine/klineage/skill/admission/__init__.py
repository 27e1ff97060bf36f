"""Admission: a card alone, on a kernel that it has never seen, under the gate."""

from __future__ import annotations

from klineage.skill.admission.criterion import Declared, declared, reproduced
from klineage.skill.admission.held_out import Source, held_out, source_lineages, sources, why_held_out
from klineage.skill.admission.materializer import FORMS, Made, Materializer, materializer_named
from klineage.skill.admission.suggest import Suggestion, held_out_targets
from klineage.skill.admission.target import Target, less, named, of_file, of_state
from klineage.skill.admission.trying import ATTEMPTS, Attempted, Trial, admit, recorded

__all__ = [
    "ATTEMPTS",
    "FORMS",
    "Attempted",
    "Declared",
    "Made",
    "Materializer",
    "Source",
    "Suggestion",
    "Target",
    "Trial",
    "admit",
    "declared",
    "held_out",
    "held_out_targets",
    "less",
    "materializer_named",
    "named",
    "of_file",
    "of_state",
    "recorded",
    "reproduced",
    "source_lineages",
    "sources",
    "why_held_out",
]
