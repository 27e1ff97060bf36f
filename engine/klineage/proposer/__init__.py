"""Whoever proposes simplifications: all answer with ``klineage.proposer.candidate.Candidate``."""
