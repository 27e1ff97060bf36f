"""Probes: violate one precondition of a card, run the gate on the card's own states, and say whether it mattered."""

from __future__ import annotations

from klineage.skill.probe.choosing import CHANGES, Violation, violation
from klineage.skill.probe.judging import Judge
from klineage.skill.probe.renumbering import Untestable
from klineage.skill.probe.run import Probed, probe, probe_card, shown, written
from klineage.skill.probe.search import Boundary
from klineage.skill.probe.state import State, state_of, states_of
from klineage.skill.probe.violations import SETTINGS, spoken, violated
from klineage.skill.probe.weighing import Finding

__all__ = [
    "CHANGES",
    "SETTINGS",
    "Boundary",
    "Finding",
    "Judge",
    "Probed",
    "State",
    "Untestable",
    "Violation",
    "probe",
    "probe_card",
    "shown",
    "spoken",
    "state_of",
    "states_of",
    "violated",
    "violation",
    "written",
]
