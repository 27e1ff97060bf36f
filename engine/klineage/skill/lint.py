"""Lint: what a card claims and cannot show, what it says that belongs elsewhere, what nobody could check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from klineage.skill.card import Card
from klineage.skill.linting import evidence, wording
from klineage.skill.linting.likeness import claims_alike, others_alike
from klineage.skill.linting.problem import Look, Problem, Severity

__all__ = ["Problem", "Severity", "lint", "located"]

_LOOKS: tuple[Look, ...] = (
    evidence.missing,
    evidence.dangling,
    evidence.trials,
    evidence.effects,
    wording.programs_words,
    wording.tautologies,
    wording.checks,
    wording.instance_numbers,
    wording.names,
    claims_alike,
)


def lint(card: Card, others: Iterable[Card] = (), data: bytes | None = None) -> tuple[Problem, ...]:
    """Everything that a curator should look at, errors first, each once.

    others: further cards of the library, for duplicates. data: the card's file, so that each problem has its line;
    it must parse.
    """
    found = [problem for look in _LOOKS for problem in look(card)]
    found += others_alike(card, others)
    problems = sorted(dict.fromkeys(found), key=lambda problem: problem.severity != "error")
    return tuple(problems if data is None else located(problems, data, f"{card.id}.md"))


def located(problems: Iterable[Problem], data: bytes, name: str) -> tuple[Problem, ...]:
    """The problems with the lines of their fields, or of what those stand in."""
    from klineage.skill.file import lines

    at = lines(data, name)
    return tuple(replace(problem, line=_line(problem.field, at)) for problem in problems)


def _line(field: str, at: dict[str, int]) -> int:
    while field and field not in at:
        field = field.rpartition(".")[0]
    return at.get(field, 1)
