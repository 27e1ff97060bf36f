"""The gate: static, compile, correctness, profile. Typed verdicts, each with the number that decided."""

from __future__ import annotations

from klineage.gate.capability import Capability, capabilities
from klineage.gate.policy import POLICY, Policy
from klineage.gate.record import report_from_json, report_to_json
from klineage.gate.request import GateEvent, GateRequest
from klineage.gate.run import gate
from klineage.gate.verdict import (
    STAGES,
    Counts,
    Effect,
    FailingCase,
    Measurement,
    Report,
    StageResult,
    Trust,
    Verdict,
)
from klineage.gate.warmth import expect, prepare

__all__ = [
    "POLICY",
    "STAGES",
    "Capability",
    "Counts",
    "Effect",
    "FailingCase",
    "GateEvent",
    "GateRequest",
    "Measurement",
    "Policy",
    "Report",
    "StageResult",
    "Trust",
    "Verdict",
    "capabilities",
    "expect",
    "gate",
    "prepare",
    "report_from_json",
    "report_to_json",
]
