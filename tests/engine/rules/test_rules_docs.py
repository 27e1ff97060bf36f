"""What is written of the rules is what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.proposer.rules import RULES, forward_title
from klineage.proposer.rules.__main__ import page
from klineage.proposer.vocabulary import ACTIONS

DOCS = Path(__file__).parents[3] / "docs"
EVERY = [(surface, rule) for surface, rules in RULES.items() for rule in rules]


def test_the_page_of_rules_is_current() -> None:
    now = (DOCS / "rules.md").read_text()
    assert now == page(), "run: python -m klineage.proposer.rules > docs/rules.md"


@pytest.mark.parametrize(("surface", "rule"), EVERY, ids=lambda value: getattr(value, "name", value))
def test_a_rule_speaks_the_words_of_the_vocabulary(surface, rule) -> None:
    assert rule.surface == surface
    assert rule.action in ACTIONS
    assert 0 < len(rule.title) <= 60
    assert forward_title(rule.name)
    assert rule.title != rule.adds
    assert set(rule.after) <= set(ACTIONS)
    kinds = ("Data types:", "Layout:", "Storage:", "Pipeline:", "Hardware:")
    assert all(p.startswith(kinds) and p.endswith(".") for p in rule.preconditions)


def test_names_and_titles_tell_rules_of_one_surface_apart() -> None:
    for rules in RULES.values():
        assert len({rule.name for rule in rules}) == len(rules)
        assert len({rule.title for rule in rules}) == len(rules)


def test_how_many_rules_there_are_is_told_truly() -> None:
    text = (DOCS / "proposers.md").read_text()
    for surface, name in (("triton", "Triton"), ("cuda", "CUDA"), ("c", "C")):
        assert f"{len(RULES[surface])} for {name}" in text
