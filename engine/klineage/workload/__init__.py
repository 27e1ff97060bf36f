"""Workloads: what must be computed. Read here without being run; only workers execute them."""

from __future__ import annotations

from klineage.workload.reader import DISTRIBUTIONS, WORKLOAD_FILE, Workload, load, parse

__all__ = ["DISTRIBUTIONS", "WORKLOAD_FILE", "Workload", "load", "parse"]
