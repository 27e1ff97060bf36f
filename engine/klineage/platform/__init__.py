"""Hardware: how platforms are named and ordered, what they allow, and what this machine is."""

from klineage.platform.detect import Gpu, Machine, Tool, detect, machine_from, this_machine
from klineage.platform.limits import Limits, exceeded, limits
from klineage.platform.order import CPU_LEVELS, Platform, parse, satisfies

__all__ = [
    "CPU_LEVELS",
    "Gpu",
    "Limits",
    "Machine",
    "Platform",
    "Tool",
    "detect",
    "exceeded",
    "limits",
    "machine_from",
    "parse",
    "satisfies",
    "this_machine",
]
