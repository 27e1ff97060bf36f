"""Rules for C kernels."""

from __future__ import annotations

from klineage.proposer.rules.rule import Rule

C_RULES: tuple[Rule, ...] = ()
