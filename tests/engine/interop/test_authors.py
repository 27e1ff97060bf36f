"""Cards of the paper's authors come in as hypotheses with nothing added; a file of neither form is named with what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.interop.authors import Reading, read
from klineage.skill.card import Card, ContractFeature
from klineage.skill.file import parse, render

from klineage_tui.cli import main

SKILL = """---
skill_id: {name}
intent: Keep the row sums in registers.
preconditions:
- 'Data types: sums are held in fp32,
  because fp16 overflows.'
- 'Hardware: warp shuffles (SM70 or newer).'
- Nothing else writes the row.
scope:
  cases:
  - softmax
  languages:
  - {language}
  platforms:
  - nvidia-sm90a-cuda13
---

# Overview

Change `row_sum` only.

## Example configuration

Keep `ROWS=128`.

# Precondition

- Data types: sums are held in fp32.

# Scope

- Cases: softmax

# Code Change Snippet

Replace the loop.

## Before

```cuda
# define N 4
for (int i = 0; i < N; i++) s += x[i];
```

## After

```cuda
s = warp_sum(x);
```
"""
NINE: dict[str, Any] = {
    "skill_id": "fmha.row-sums", "intent": "Keep the row sums in registers.", "anchor": "the softmax loop",
    "carrier": "s = warp_sum(x);", "precondition": ["Layout: a row is in one warp."], "effect": ["1.3x faster"],
    "evidence": [{"action_category": "warp_exchange", "locus": "softmax.main", "before_fingerprint": "f00", "after_fingerprint": "ba4"}],
    "risk": ["It needs more registers."],
    "scope": {"cases": ["fmha"], "languages": ["cuda"], "platforms": ["nvidia-sm90"], "prior_actions": ["tiling"]},
    "verification_log": [{"target": {"case": "topk", "language": "cuda"}, "held_out": True, "expected_effect_observed": True}],
    "requires": [{"locus": "softmax.main", "name": "tiling"}, {"locus": "hardware", "name": "sm90"}],
    "provides": [{"locus": "softmax.main", "name": "Warp Exchange"}],
    "conflicts": [],
}  # fmt: skip


FRONT = {"skill_id": "a.b", "intent": "Do.", "preconditions": [], "scope": {}}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


def skill(
    folder: Path,
    name: str = "cuda.row-sums",
    language: str = "cuda",
    stamp: str = "3cbd99",
    text: str = SKILL,
) -> Path:
    place = folder / f"{name}-20260912T201910.092373Z-{stamp}"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(text.format(name=name, language=language))
    return place


def only(reading: Reading) -> Card:
    assert reading.problems == ()
    (one,) = reading.cards
    assert parse(render(one.card), f"{one.card.id}.md") == one.card
    return one.card


def test_a_skill_md(tmp_path: Path) -> None:
    skill(tmp_path)
    card = only(read([tmp_path]))
    assert (card.id, card.status, card.action, card.surface) == (
        "cuda.row-sums",
        "hypothesis",
        "row_sums",
        "cuda",
    )
    assert card.intent == "Keep the row sums in registers."
    assert [(p.kind, p.text, p.origin, bool(p.doubt)) for p in card.preconditions] == [
        ("data-types", "sums are held in fp32, because fp16 overflows.", "import", False),
        ("hardware", "warp shuffles (SM70 or newer).", "import", False),
        ("layout", "Nothing else writes the row.", "import", True),
    ]
    assert (card.scope.workloads, card.scope.platforms) == (("softmax",), ("nvidia-sm90a",))
    assert card.anchor.text == "Change `row_sum` only."
    assert card.carrier.before == "# define N 4\nfor (int i = 0; i < N; i++) s += x[i];\n"
    assert card.carrier.after == "s = warp_sum(x);\n"
    assert "Keep `ROWS=128`." in card.notes
    assert "Replace the loop." in card.notes


@pytest.mark.parametrize("form", ["SKILL.md", "JSON"])
def test_nothing_is_invented(tmp_path: Path, form: str) -> None:
    if form == "JSON":
        (tmp_path / "card.json").write_text(json.dumps(NINE))
    else:
        skill(tmp_path)
    card = only(read([tmp_path]))
    assert (card.effects, card.verification, card.rule, card.anchor.query) == ((), (), "", "")
    assert not any(p.check or p.probe for p in card.preconditions)
    assert [e.kind for e in card.evidence] == ["import"]


def test_json_of_the_nine_fields(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps(NINE))
    card = only(read([tmp_path]))
    assert (card.id, card.action) == ("cuda.fmha-row-sums", "warp_exchange")
    assert card.contract.requires == (
        ContractFeature("tiling", "kernel"),
        ContractFeature("sm90", "hardware"),
    )
    assert card.contract.provides == (ContractFeature("warp_exchange", "kernel"),)
    assert card.scope.prior_actions == ("tiling",)
    assert [(r.text, r.origin) for r in card.risks] == [("It needs more registers.", "import")]
    assert card.carrier.after == "s = warp_sum(x);"
    for claim in (
        "it was not measured here: 1.3x faster",
        "case topk, language cuda; held out; the effect was observed",
        "f00",
    ):
        assert claim in card.notes


def test_the_earliest_json_and_a_list_with_bodies(tmp_path: Path) -> None:
    early = {key: value for key, value in NINE.items() if key not in ("requires", "provides", "conflicts")}
    (tmp_path / "early.json").write_text(json.dumps(early))
    scope = {"cases": ["topk"], "languages": ["triton"], "platforms": ["*"]}
    front = {
        "skill_id": "topk.exit",
        "intent": "Stop early.",
        "preconditions": ["Pipeline: one pass."],
        "scope": scope,
    }
    (tmp_path / "memory.json").write_text(
        json.dumps([{**front, "body": "# Overview\n\nStop.\n\n## After\n\nbreak\n"}])
    )
    reading = read([tmp_path])
    assert reading.problems == ()
    assert [(one.card.id, one.generation) for one in reading.cards] == [
        ("cuda.fmha-row-sums", "JSON of the nine fields"),
        ("triton.topk-exit", "JSON with a body"),
    ]
    assert reading.cards[1].card.carrier.after == "break"


def test_two_cards_of_one_name_stay_two(tmp_path: Path) -> None:
    skill(tmp_path, stamp="072402")
    skill(tmp_path, stamp="c1e52a", text=SKILL.replace("row sums in", "row sums longer in"))
    reading = read([tmp_path])
    assert [one.card.id for one in reading.cards] == ["cuda.row-sums", "cuda.row-sums-c1e52a"]
    assert "another card has the name cuda.row-sums" in reading.cards[1].said[0] + reading.cards[1].said[-1]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("SKILL.md", "---\nname: x\ndescription: y\n---\n", "this is an Agent Skill"),
        ("SKILL.md", "no front matter", "SKILL.md:1: a SKILL.md begins with front matter"),
        ("SKILL.md", "---\nskill_id: [\n---\n", r"SKILL.md:\d: not valid YAML"),
        ("SKILL.md", "---\n" + json.dumps(NINE) + "\n---\n", "this is their JSON of the nine fields"),
        ("a.json", "[{", "a.json:1: not valid JSON"),
        ("a.json", "[" * 100_000, "a.json:1: not valid JSON"),
        ("a.json", "[3]", "a card is a JSON object"),
        ("a.json", json.dumps(FRONT), "front matter of their SKILL.md without the recipe"),
        ("a.json", json.dumps(NINE | {"price": 3}), "beside their JSON of the nine fields it has price"),
        ("a.json", json.dumps({k: v for k, v in NINE.items() if k != "risk"}), "it lacks risk"),
        ("a.json", json.dumps(NINE | {"precondition": "x", "scope": {"cases": 3}}), "scope.cases must be a list of texts"),
        ("a.json", json.dumps(NINE | {"intent": ""}), "intent must be a text"),
        ("a.json", json.dumps(NINE | {"provides": ["mma"]}), "provides must be a list of locus and name"),
    ],
)  # fmt: skip
def test_what_is_neither_form_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / name).write_text(text)
    good = skill(tmp_path)
    reading = read([tmp_path])
    assert [one.file for one in reading.cards] == [good / "SKILL.md"]
    (problem,) = reading.problems
    assert problem.startswith(str(tmp_path / "x" / name))
    assert re.search(said, problem)


def test_another_language_and_nothing_at_all(tmp_path: Path) -> None:
    skill(tmp_path, "ascendc.tile", "ascendc")
    reading = read([tmp_path])
    assert reading.cards == ()
    assert "its languages are ascendc; cards here are of triton, c, cuda" in reading.problems[0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(KlineageError, match="no JSON file in"):
        read([tmp_path / "empty"])
    with pytest.raises(KlineageError, match="there is no file or folder"):
        read([tmp_path / "missing"])


@settings(max_examples=100, deadline=None)
@given(ANYTHING, st.sampled_from(sorted(NINE)))
def test_a_field_of_any_shape_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, value: Any, key: str
) -> None:
    file = tmp_path_factory.mktemp("cards") / "card.json"
    file.write_text(json.dumps(NINE | {key: value}))
    reading = read([file])
    assert len(reading.cards) + len(reading.problems) == 1
    for one in reading.cards:
        assert parse(render(one.card), f"{one.card.id}.md") == one.card


def test_a_broken_card_of_a_list_hides_no_other(tmp_path: Path) -> None:
    half = {**NINE, "intent": "half \ud800"}
    other = {**NINE, "carrier": "another(x);"}
    (tmp_path / "cards.json").write_text(json.dumps([NINE, {**NINE, "skill_id": 5}, half, other, {"a": 1}]))
    reading = read([tmp_path])
    assert [one.card.carrier.after for one in reading.cards] == ["s = warp_sum(x);", "another(x);"]
    file = tmp_path / "cards.json"
    assert reading.problems[0] == f"{file}, card 2: skill_id must be a text"
    assert reading.problems[1].startswith(f"{file}, card 3: \\ud800 is half a character")
    assert reading.problems[2].startswith(f"{file}, card 5: this is none of the authors' forms")


def test_a_card_of_a_name_that_is_taken_comes_under_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is there already is known by what it said when it came, also after a person has edited it."""

    def taken_in(**said: Any) -> list[tuple[str, bool]]:
        file = tmp_path / "card.json"
        file.write_text(json.dumps({**NINE, **said}))
        assert main(["import-cards", str(file), "--json", "-w", str(tmp_path / "w")]) == 0
        return [(row["id"], row["new"]) for row in json.loads(capsys.readouterr().out)["cards"]]

    assert taken_in() == [("cuda.fmha-row-sums", True)]
    edit = [
        "card",
        "edit",
        "cuda.fmha-row-sums",
        "--set",
        "intent=Mine.",
        "--reason",
        "shorter",
        "--who",
        "Ann",
    ]
    assert main([*edit, "-w", str(tmp_path / "w")]) == 0
    capsys.readouterr()
    assert taken_in() == [("cuda.fmha-row-sums", False)]
    ((name, new),) = taken_in(intent="Quite another thing.")
    assert new and name.startswith("cuda.fmha-row-sums-")
    assert taken_in(intent="Quite another thing.") == [(name, False)]
