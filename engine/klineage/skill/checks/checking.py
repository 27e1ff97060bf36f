"""Ask a precondition's check of a target: holds, fails or unknown, and why in one sentence.

A check is one expression over facts: ``k % 16 == 0 and satisfies("nvidia-sm80")``. It is evaluated by simpleeval, of whose
language only this much is let through: numbers, texts, names of facts, arithmetic, comparisons, ``in (...)``,
``and``/``or``/``not``, ``a if c else b``, and calls of ``FUNCTIONS``. There are no loops, attributes,
subscripts, assignments or strings to build, every number stays below 2**256, and an expression has at most 500
characters, so a check ends at once whatever a stranger's card says.

Logic has three values, Kleene's: what is not known is unknown, ``unknown or True`` holds, ``unknown and False`` fails. A division by
zero is unknown too: the target gives the expression no value, which says nothing of whether the precondition holds.

Names: the dimensions of the workload at the size that a gate times (``every_size(...)`` asks for all sizes), and ``NAMES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from klineage.skill.checks.arithmetic import Doubt
from klineage.skill.checks.evaluation import Evaluator
from klineage.skill.checks.expressions import FUNCTIONS, NAMES, Refused, parsed, used_names
from klineage.skill.checks.facts import Facts

__all__ = ["FUNCTIONS", "NAMES", "Answer", "State", "check", "problem", "used_names"]

State = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class Answer:
    """What a check says of a target. ``why``: one sentence with the facts that decided, or what is not known."""

    state: State
    why: str


def problem(expression: str) -> str:
    """Why no target can ever answer the expression, in one sentence; empty for one that is well formed."""
    try:
        parsed(expression)
    except Refused as error:
        return str(error)
    if not used_names(expression):
        return "the check names no fact of a target, so it says the same of every kernel"
    return ""


def check(expression: str, facts: Facts) -> Answer:
    """The answer of one target. Never raises for what a card may hold: a malformed check is unknown, with the reason."""
    try:
        tree = parsed(expression)
    except Refused as error:
        return Answer("unknown", str(error))
    evaluator = Evaluator(facts, facts.main)
    try:
        value = evaluator.truth(tree)
    except Doubt as doubt:
        return Answer("unknown", str(doubt))
    return Answer("holds" if value else "fails", evaluator.told() or "it names no fact")
