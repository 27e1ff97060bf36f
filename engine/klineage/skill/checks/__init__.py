"""Whether what a card asks for holds: facts of a target, and expressions over them."""

from klineage.skill.checks.checking import (
    FUNCTIONS,
    NAMES,
    Answer,
    State,
    check,
    problem,
    used_names,
)

__all__ = [
    "FUNCTIONS",
    "NAMES",
    "Answer",
    "State",
    "check",
    "problem",
    "used_names",
]
