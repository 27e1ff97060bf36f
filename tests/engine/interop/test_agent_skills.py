"""Exported skills are what the format's own validator takes, whatever a card holds, and say what an agent must know."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from klineage.errors import KlineageError
from klineage.interop.agent_skills import LAYOUTS, Layout, skills
from klineage.interop.skill_folders import clear, write
from klineage.interop.told import LONGEST, fenced, told
from klineage.skill.card import Card, Carrier
from skills_ref.validator import validate

from ..skill.cards_for_tests import a_card, admitted
from ..skill.strategies import cards

LIBRARY = (
    admitted(a_card(check="row_alignment() % 64 == 0"), "gemm", "layernorm"),
    admitted(a_card("c.unroll", action="unroll", requires=("simd",)), "gemm"),
    replace(a_card("triton.pipeline", action="pipeline", lifted="fmha"), surface="triton"),
)


@settings(max_examples=25, deadline=None)
@given(cards)
def test_any_card_makes_a_valid_skill(tmp_path_factory: pytest.TempPathFactory, card: Card) -> None:
    folder = tmp_path_factory.mktemp("skills")
    for layout in LAYOUTS:
        for place in write(skills([card], layout), folder / layout):
            assert validate(place) == []
            body = (place / "SKILL.md").read_text()
            assert len(body.splitlines()) < 500
            assert "\x1b" not in body


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        ("one", ["kernel-optimization-cards"]),
        (
            "family",
            [f"kernel-optimization-cards-{family}" for family in ("fmha", "gemm", "layernorm", "softmax")],
        ),
        ("each", ["c-prefetch", "c-unroll", "triton-pipeline"]),
    ],
)
def test_layouts(tmp_path: Path, layout: Layout, names: list[str]) -> None:
    places = write(skills(LIBRARY, layout), tmp_path)
    assert [place.name for place in places] == names
    assert sorted(child.name for child in tmp_path.iterdir()) == names
    for place in places:
        assert validate(place) == []
        links = re.findall(r"\]\((references/[^)]+)\)", (place / "SKILL.md").read_text())
        assert sorted(links) == sorted(str(f.relative_to(place)) for f in place.glob("references/*"))
        assert bool(links) == (layout != "each")


def test_a_line_of_a_card_speaks_of_its_best_effect() -> None:
    card = LIBRARY[0]
    count = replace(card.effects[0], quantity="bytes", gain=9.0, low=9.0, high=9.0, trust="interpreted")
    less = replace(card.effects[0], gain=1.1, low=1.05, high=1.15)
    (skill,) = skills([replace(card, effects=(count, less, *card.effects))])
    assert "1.30x \\[1.20, 1.40] time" in skill.files["SKILL.md"].decode()


def test_what_an_agent_reads_of_a_card() -> None:
    text = told(LIBRARY[0])
    for wanted in (
        "Admitted on kernels that it was not made from",
        "Rows are contiguous. Check: `row_alignment() % 64 == 0`. Probe: confirmed, it matters, measured-cpu. it fails at rows=3",
        "1.30x [1.20, 1.40] time, measured-cpu, on cpu-x86-64-v3 for softmax bench",
        "observed: It slows small problems.",
        "```c\nbefore();\n```",
        "Numbers of this instance, which are no conditions: distance=8",
        "v2 accepted on layernorm-c K1 (layernorm, c, cpu-x86-64-v3; held out in workload) by rules:c.prefetch: 1.25x time, measured-cpu",
        "e1 transition softmax-c aaaaaaaaaa",
    ):
        assert wanted in text
    assert "A hypothesis: no held-out trial has admitted it." in told(LIBRARY[2])


def test_effects_of_one_kernel_say_what_they_were_measured_against() -> None:
    card = LIBRARY[0]
    both = [replace(card.effects[0], position=where) for where in ("in-order", "first", "last")]
    rows = [
        row
        for row in told(replace(card, effects=tuple(both))).splitlines()
        if "time, measured-cpu, on" in row
    ]
    assert len(set(rows)) == 3
    assert rows[1].endswith("added alone to the naive form") and rows[2].endswith(
        "taken alone out of the expert"
    )


def test_the_reasoning_of_a_card_is_told_and_how_it_was_made_is_not() -> None:
    made = "Lifted by structure, without a model, from softmax-c K1."
    assert "A line is asked for early." in told(
        replace(LIBRARY[0], notes=f"A line is asked for early.\n\n{made}")
    )
    assert "Lifted by" not in told(replace(LIBRARY[0], notes=made))


def test_a_stale_trial_and_a_count_are_called_so() -> None:
    card = replace(LIBRARY[0], intent="Edited.", anchor=replace(LIBRARY[0].anchor, text="elsewhere"))
    assert told(card).count("STALE: the card was edited since") == 2
    count = replace(card.effects[0], quantity="bytes_loaded", low=1.3, high=1.3, trust="interpreted")
    line = "1.30x bytes_loaded, interpreted, on cpu-x86-64-v3 for softmax bench (an exact count, which says nothing of time)"
    assert line in told(replace(card, effects=(count,)))


@settings(max_examples=12, deadline=None)
@given(cards)
def test_a_told_card_is_bounded_and_one_document(card: Card) -> None:
    big = replace(card, carrier=Carrier("x = 1;\n" * 20_000, "`````\n# Gains\n" * 10_000))
    text = told(big)
    assert len(text) < LONGEST + 25_000  # only what the other lists of the card hold can add to it
    assert not set(text) & {chr(code) for code in range(32) if code not in (9, 10)}
    assert re.search(r"\(\d+ more lines; the card has them\)", text)


def test_nothing_in_code_closes_its_fence() -> None:
    code = "a\n```\n````\nb"
    lines = fenced(code, "c", 1000)
    assert lines[0] == "`````c"
    assert lines[-1] == "`````"
    assert lines[1:-1] == code.split("\n")


def test_what_nobody_would_see_is_made_visible() -> None:
    hidden = "a\u202eb\u200bc\U000e0041"
    card = replace(LIBRARY[0], intent=hidden, carrier=Carrier("", f"// {hidden}\n"))
    text = told(card)
    assert text.count("a‹202e›b‹200b›c‹e0041›") == 2
    assert "\u202e" not in text


def test_what_is_not_ours_is_not_overwritten(tmp_path: Path) -> None:
    foreign = tmp_path / "c-unroll"
    foreign.mkdir()
    (foreign / "SKILL.md").write_text("---\nname: c-unroll\ndescription: Mine.\n---\n")
    with pytest.raises(KlineageError, match="klineage has not written it"):
        write(skills(LIBRARY, "each"), tmp_path)
    assert [child.name for child in tmp_path.iterdir()] == ["c-unroll"]
    write(skills(LIBRARY, "each"), tmp_path, force=True)
    assert "made-by: klineage" in (foreign / "SKILL.md").read_text()
    with pytest.raises(KlineageError, match=r"cannot write .*SKILL\.md/c-.*: "):
        write(skills(LIBRARY, "each"), foreign / "SKILL.md")


def test_exporting_again_replaces_the_whole_folder(tmp_path: Path) -> None:
    (place,) = write(skills(LIBRARY, "one"), tmp_path)
    write(skills(LIBRARY[:1], "one"), tmp_path)
    assert [file.name for file in (place / "references").iterdir()] == ["c.prefetch.md"]
    assert [child.name for child in tmp_path.iterdir()] == [place.name]


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir())


def test_an_export_takes_the_place_of_the_one_before_in_whatever_layout(tmp_path: Path) -> None:
    for name in ("mine", "kernel-optimization-cards"):
        write(skills(LIBRARY, "one", name=name), tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "SKILL.md").write_text("---\nname: other\ndescription: By hand.\n---\n")
    old = "kernel-optimization-cards"
    for layout in ("family", "each"):
        made = skills(LIBRARY, layout)
        places = {place.name for place in write(made, tmp_path)}
        assert tmp_path / old in clear(made, tmp_path)
        assert {child.name for child in tmp_path.iterdir()} == {*places, "mine", "other"}
        old = min(places)
    assert clear(made, tmp_path) == ()
    assert "By hand" in (tmp_path / "other" / "SKILL.md").read_text()


def test_a_file_of_somebody_else_outlives_every_export(tmp_path: Path) -> None:
    made = skills(LIBRARY, "one")
    (place,) = write(made, tmp_path)
    outside = tmp_path / "outside.md"
    outside.write_text("far away")
    (place / "notes").mkdir()
    (place / "notes" / "mine.md").write_text("mine")
    (place / "references" / "mine.md").write_text("mine, too")
    (place / "link.md").symlink_to(outside)
    theirs = ["link.md", "notes/mine.md", "references/mine.md"]
    write(made, tmp_path)
    assert files(place) == sorted(
        ["SKILL.md", *theirs, *(path for path in made[0].files if path != "SKILL.md")]
    )
    (place / "references" / "c.new.md").write_text("mine, under a name to come")
    new = skills([*LIBRARY, replace(LIBRARY[0], id="c.new")], "one")
    with pytest.raises(KlineageError, match=r"references/c\.new\.md is there already"):
        write(new, tmp_path)
    (place / "references" / "c.new.md").unlink()
    each = skills([replace(LIBRARY[0], notes="- [mine](references/mine.md)")], "each")
    (alone,) = write(each, tmp_path)
    assert clear(each, tmp_path) == (place,)
    assert files(place) == theirs
    (alone / "references").mkdir()
    (alone / "references" / "mine.md").write_text("not what the notes link to")
    assert outside.read_text() == "far away"
    write(made, tmp_path, force=True)
    assert clear(made, tmp_path) == (alone,)
    assert files(alone) == ["references/mine.md"]
    assert set(theirs) < set(files(place))


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_killed_export_loses_nobodys_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    made = skills(LIBRARY, "one")
    (place,) = write(made, tmp_path)
    (place / "mine.md").write_text("mine")
    left, original = renames, Path.rename

    def rename(self: Path, target: Path) -> Path:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return original(self, target)

    with monkeypatch.context() as killed:
        killed.setattr(Path, "rename", rename)
        killed.setattr("shutil.rmtree", lambda *_: rename(tmp_path / "none", tmp_path / "none"))
        with pytest.raises(KeyboardInterrupt):
            write(skills(LIBRARY[:1], "one"), tmp_path)
    write(made, tmp_path)
    assert files(place) == sorted(["mine.md", *made[0].files])
    assert [child.name for child in tmp_path.iterdir()] == [place.name]


@pytest.mark.parametrize("name", ["", "Upper", "a--b", "-a", "a b", "x" * 65])
def test_a_name_that_the_format_refuses(name: str) -> None:
    with pytest.raises(KlineageError, match="cannot name an Agent Skill"):
        skills(LIBRARY, "one", name=name)


def test_no_card_and_too_many() -> None:
    with pytest.raises(KlineageError, match="no card to export"):
        skills([], "one")
    many = [replace(LIBRARY[0], id=f"c.n{number}") for number in range(401)]
    with pytest.raises(KlineageError, match="--layout"):
        skills(many, "one")
    assert len(skills(many, "each")) == 401
