"""Bringing another library's cards in here: from where, and whose words to take where both have changed the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klineage.numbers import plural
from textual.app import ComposeResult
from textual.widgets import Input

from klineage_tui.completion import Completer
from klineage_tui.screens.card_lists import Choose
from klineage_tui.screens.dialog import Dialog
from klineage_tui.screens.place import Place
from klineage_tui.text.line import compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.library import Library
    from klineage.skill.library.merge import Side
    from klineage.skill.library.pull import CardConflict, Conflicts, Pulled


class PullDialog(Dialog[str]):
    """Dismissed with where to pull from, or None."""

    def __init__(self, keys: dict[str, str]) -> None:
        question = (
            "From where? “shipped” is what comes with klineage; else a folder with cards/, a workspace, or a branch "
            "such as origin/library. What only one side changed is taken; where both did, you are asked."
        )
        super().__init__("Pull cards", question, "pulls them", keys)

    def answer(self) -> ComposeResult:
        yield Input(
            value="shipped", suggester=Completer(["shipped", "origin/library"], ()), select_on_focus=True
        )

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self) -> None:
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        if where := self.query_one(Input).value.strip():
            self.dismiss(where)


def ask_pull(place: Place, library: Library) -> None:
    """Ask from where, then pull into ``library`` off the screen's thread; a conflict is asked about field by field."""

    def answered(where: str | None) -> None:
        if where:
            _pull(place, library, where, {})

    place.app.push_screen(PullDialog(dict(place.host.keys_in_force)), answered)


def _pull(place: Place, library: Library, where: str, taken: Mapping[str, Side]) -> None:
    def work() -> Pulled | Conflicts:
        from klineage.skill.library.git import GitShelf
        from klineage.skill.library.pull import Conflicts, pull

        shelf = library.shelf
        assert isinstance(shelf, GitShelf), "the app opens a workspace's own library"
        try:
            return pull(shelf, where, taken=taken)
        except Conflicts as found:
            return found

    def done(result: Pulled | Conflicts) -> None:
        if isinstance(result, Exception):
            _ask_sides(place, library, where, dict(taken), list(result.conflicts))
            return
        place.notify(pulled_words(result, where), timeout=8)
        place.host.decided()
        place.reload_if_outdated()

    place.job("pull", work, done, busy="pulling …")


def _ask_sides(
    place: Place, library: Library, where: str, taken: dict[str, Side], left: list[CardConflict]
) -> None:
    """Ask whose value to take, one conflict after the other; to go back leaves everything as it was."""
    if not left:
        _pull(place, library, where, taken)
        return
    first, *rest = left
    sides: tuple[tuple[Side, str], ...] = (("ours", first.conflict.ours), ("theirs", first.conflict.theirs))
    rows = [(side, compose((f"{side:<8}", "accent"), _shown(text))) for side, text in sides]
    question = f"{where} and this library have both changed it; before, it was: {_shown(first.conflict.base)}"
    keys = dict(place.host.keys_in_force)

    def chosen(side: Side | None) -> None:
        if side is None:
            place.notify("Nothing was changed.", timeout=3)
        else:
            taken[f"{first.card}:{first.conflict.field}"] = side
            _ask_sides(place, library, where, taken, rest)

    more = f", {len(rest)} more to decide" if rest else ""
    dialog = Choose(f"{first.card}: {first.conflict.field}{more}", question, rows, "takes this one", keys)
    place.ask(dialog, chosen)


def _shown(text: str) -> str:
    return sanitize(" ".join(text.split())) or "(nothing)"


def pulled_words(pulled: Pulled, where: str) -> str:
    """``12 cards came from shipped, 3 changed; 2 lineages came with them``; what was left out is said too."""
    if not pulled.added and not pulled.changed:
        said = f"There was nothing new in {where}"
    else:
        changed = f", {len(pulled.changed)} changed" if pulled.changed else ""
        said = f"{plural(len(pulled.added), 'card')} came from {where}{changed}"
    if pulled.lineages:
        said += f"; {plural(len(pulled.lineages), 'lineage')} came with them"
    return ". ".join((said, *pulled.problems[:2]))
