"""The registry of actions: one meaning a key, and everything else derived from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.errors import KlineageError
from textual.app import App
from textual.keys import _character_to_key

from klineage_tui import actions, cli
from klineage_tui.actions import ACTIONS, BY_ID, bindings_for, key_sheet, keymap
from klineage_tui.keys import normal_keys, shown_keys
from klineage_tui.widgets.action_bar import footer_actions, layout

DOCS = Path(__file__).parents[2] / "docs" / "keys.md"


def test_ids_are_unique_and_places_exist() -> None:
    assert len(BY_ID) == len(ACTIONS)
    assert {place for action in ACTIONS for place in action.places} <= set(actions.PLACES)


@pytest.mark.parametrize("preset", actions.PRESETS)
def test_presets_have_no_conflict(preset: actions.Preset) -> None:
    assert set(keymap(preset)) == set(BY_ID)


def test_design_keys() -> None:
    keys = keymap()
    wanted = {"accept": "a", "reject": "x", "edit": "e", "editor": "E", "gate": "g", "skip": "s", "undo": "u"}
    wanted |= {"redo": "ctrl+r,U", "next-pending": "n", "help": "question_mark", "seal": "S", "quit": "q"}
    assert {id: keys[id] for id in wanted} == wanted


def test_every_verb_is_a_command_line_verb() -> None:
    assert {action.verb for action in ACTIONS if action.verb} <= set(cli.VERBS)


def test_key_sheet_is_current() -> None:
    assert DOCS.read_text(encoding="utf-8") == key_sheet(), (
        "run: python -m klineage_tui.actions > docs/keys.md"
    )


def test_override_moves_a_key() -> None:
    assert keymap("default", {"accept": "y", "reject": "a"})["accept"] == "y"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"accept": "x"}, ("'x'", "'accept'", "'reject'", "Induce")),
        ({"accept": "?"}, ("'?'", "'help'", "'accept'")),
        ({"line-down": "g"}, ("'g'", "'gate'", "'line-down'")),
        ({"evidence-leave": "j"}, ("'j'", "'line-down'", "'evidence-leave'")),
        ({"dialog-cancel": "k"}, ("'k'", "'line-up'", "'dialog-cancel'")),
        ({"fly": "f"}, ("'fly'", "docs/keys.md")),
        ({"accept": " "}, ("'accept'", "at least one key")),
    ],
)
def test_bad_overrides_are_refused(overrides: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(KlineageError) as problem:
        keymap("default", overrides)
    for word in words:
        assert word in str(problem.value)


@pytest.mark.parametrize("key", [*"?[]{}:/\\.;<>=+-!@#$%&*()_'\"|~`^aZ0"])
def test_key_names_are_those_of_textual(key: str) -> None:
    assert normal_keys(key) == _character_to_key(key)
    assert shown_keys(normal_keys(key)) == key


async def test_keymap_reaches_textual() -> None:
    """Presets and overrides act through Textual's own keymap, on several keys of one action too."""

    class Probe(App[None]):
        BINDINGS = [*bindings_for("induce")]
        done: list[str] = []

        def action_verb(self, action: str) -> None:
            self.done.append(action)

    app = Probe()
    app.set_keymap(keymap("vim", {"accept": "y", "redo": "f5"}))
    async with app.run_test() as pilot:
        await pilot.press("y", "a", "f5", "ctrl+r", "U", "x")
    assert app.done == ["accept", "redo", "reject"]


def test_footer_fits_and_keeps_help() -> None:
    wanted = footer_actions("induce")
    for width in (40, 60, 80, 160):
        items = layout(wanted, keymap(), {"accept"}, {"cancel"}, width)
        assert items[-1].action == "help"
        assert items[-1].end <= width
    names = [item.action for item in layout(wanted, keymap(), {"accept"}, {"cancel"}, 160)]
    assert names[:5] == ["accept", "reject", "edit", "gate", "editor"]
    assert not layout(wanted, keymap(), {"accept"}, {"cancel"}, 160)[0].enabled


def test_where_the_footer_is_narrow_what_is_closed_makes_room() -> None:
    closed = {"accept", "reject", "skip", "gate", "changes", "next-pending"}
    shown = [item.action for item in layout(footer_actions("induce"), keymap(), closed, {"cancel"}, 55)]
    assert "seal" in shown  # what is left to do when every proposal is decided
    assert not closed & set(shown)
    ungated = layout(footer_actions("induce"), keymap(), {"accept"}, {"cancel"}, 55)
    assert [item.action for item in ungated][:3] == ["accept", "reject", "edit"], "keys keep their places"
