"""The card and the messages in docs/cards.md are what the code reads, writes and says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.skill.file import parse, render
from klineage.skill.lint import lint
from klineage.skill.linting import evidence, likeness, wording

DOCS = (Path(__file__).parents[3] / "docs" / "cards.md").read_text(encoding="utf-8")
CARD = DOCS.split("````markdown\n")[1].split("\n````\n")[0] + "\n"
NAME = "cards/c.prefetch-panel.md"


def test_the_card_in_the_docs_is_written_as_klineage_writes_it() -> None:
    card = parse(CARD.encode(), NAME)
    assert render(card).decode() == CARD
    assert lint(card) == ()


def test_the_messages_in_the_docs_are_those_that_are_shown() -> None:
    broken = (
        CARD.replace("    kind: layout", "    kinds: layout", 1),
        CARD.replace("{dim: k, value: 33}", "[k, 33]", 1),
        CARD.replace("surface: c", "action: simd\nsurface: c", 1),
        CARD.replace("```yaml", "````yaml", 1),
    )
    shown = re.findall(rf"^{re.escape(NAME)}:\d+: .*$", DOCS, re.MULTILINE)
    assert len(shown) == len(broken)
    for text, message in zip(broken, shown, strict=True):
        with pytest.raises(KlineageError) as caught:
            parse(text.encode(), NAME)
        assert str(caught.value) == message


def test_the_docs_name_every_kind_of_problem() -> None:
    code = "".join(
        Path(part.__file__ or "").read_text(encoding="utf-8") for part in (evidence, likeness, wording)
    )
    kinds = set(re.findall(r'"(?:error|warning)", [^\n]*?"([a-z-]+)"\)', code))
    table = DOCS.split("## What lint says")[1].split("\n## ")[0]
    assert len(kinds) > 15
    assert [kind for kind in sorted(kinds) if kind not in table] == []
