"""The one place that says what mechanisms a kernel has: what rules see, what detectors see, what a person said."""

from __future__ import annotations

from klineage.proposer.features.artefacts import Code, code_of
from klineage.proposer.features.audit import audit, features, lines_of
from klineage.proposer.features.claims import Claim, Difference, claim_problem, difference
from klineage.proposer.features.finding import STATES, Finding, State
from klineage.proposer.features.mechanisms import described

__all__ = [
    "STATES",
    "Claim",
    "Code",
    "Difference",
    "Finding",
    "State",
    "audit",
    "claim_problem",
    "code_of",
    "described",
    "difference",
    "features",
    "lines_of",
]
