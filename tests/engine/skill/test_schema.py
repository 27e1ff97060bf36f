"""The published schema is the one that cards are read by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from klineage.errors import KlineageError
from klineage.skill.card import Card
from klineage.skill.file import parse, render
from klineage.skill.format import writing
from klineage.skill.schema import schema, text
from ruamel.yaml import YAML

from .strategies import cards, tries
from .test_lint import GOOD

PUBLISHED = Path(__file__).parents[3] / "docs" / "card.schema.json"
VALIDATOR = Draft202012Validator(json.loads(PUBLISHED.read_text(encoding="utf-8")))


def front(data: bytes) -> Any:
    return YAML(typ="safe", pure=True).load(data.decode().split("\n---\n")[0].removeprefix("---\n"))


def test_the_published_schema_is_that_of_the_code() -> None:
    Draft202012Validator.check_schema(schema())
    assert PUBLISHED.read_text(encoding="utf-8") == text(), (
        "python -m klineage.skill.schema > docs/card.schema.json"
    )


@tries(25)
@given(cards)
def test_every_card_is_valid_to_any_reader_of_yaml(card: Card) -> None:
    assert list(VALIDATOR.iter_errors(front(render(card)))) == []


@tries(60)
@given(st.text("0123456789abcdefx_.:+-", min_size=1, max_size=8))
def test_a_commit_is_a_text_to_any_reader_of_yaml(name: str) -> None:
    """Bare where it cannot be taken for a number or a time: ``12e4567`` is a number, and ``0b11`` and ``0x1f``."""
    assert YAML(typ="safe", pure=True).load(f"commit: {writing.text(name)}") == {"commit": name}
    old = YAML(typ="safe", pure=True)
    old.version = (1, 1)
    assert old.load(f"commit: {writing.text(name)}") == {"commit": name}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("status: hypothesis", "status: admited"),
        ("intent:", "intention:"),
        ("key: p1", "key: p 1"),
        ("gain: 1.4", "gain: fast"),
        ("requires: []", "requires: none"),
        ("id: c.prefetch", "id: C.Prefetch"),
        ("schema: 1", "schema: 2"),
        ("quantity: time", "quantity: [time]"),
    ],
)
def test_what_klineage_refuses_the_schema_refuses(old: str, new: str) -> None:
    data = render(GOOD)
    assert old.encode() in data
    broken = data.replace(old.encode(), new.encode(), 1)
    assert not VALIDATOR.is_valid(front(broken))
    with pytest.raises(KlineageError, match=r"^a\.md:\d+: "):
        parse(broken.replace(b"\n", b"\r\n"), "a.md")
