"""Lifting cards from the app: what it would come to is shown first, then written as one decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from klineage_tui.presentation.lifting import lift_counts, lift_lines
from klineage_tui.screens.dialog import ListDialog
from klineage_tui.screens.place import Place
from klineage_tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.skill.library import Library
    from klineage.skill.lift.shelving import Lift

_WIDE = 104


class LiftDialog(ListDialog[bool]):
    """What lifting comes to, a row or more for each optimization; dismissed with True when it is to be written."""

    def __init__(self, lifts: Sequence[Lift], where: str, keys: dict[str, str]) -> None:
        self._writes = any(one.state in ("new", "updated") for one in lifts)
        confirm = "writes them to the library" if self._writes else ""
        super().__init__(f"Lift cards from {where}", lift_counts(lifts), confirm, keys)
        self._lifts = lifts

    def answer(self) -> ComposeResult:
        yield LineView(cursor=False)

    def on_resize(self) -> None:
        cells = min(_WIDE, self.size.width * 94 // 100 - 6) - 2
        self.query_one(LineView).show(Lines(lift_lines(self._lifts, cells)), keep_position=True)

    def action_dialog_confirm(self) -> None:
        self.dismiss(self._writes)

    def action_dialog_cancel(self) -> None:
        self.dismiss(False)


def ask_lift(place: Place, workspace: Workspace, library: Library, lineages: Sequence[str]) -> None:
    """Read what lifting comes to off the screen's thread, show it, and write it after a yes."""
    names = ", ".join(lineages) if lineages else "every sealed lineage"

    def read() -> tuple[Lift, ...]:
        from klineage.skill.lift import source_of
        from klineage.skill.lift.shelving import lift

        return lift(source_of(workspace, lineages), library)

    def show(lifts: tuple[Lift, ...]) -> None:
        dialog = LiftDialog(lifts, names, dict(place.host.keys_in_force))
        place.ask(dialog, lambda yes: _put(place, library, lifts) if yes else None)

    place.job("lift", read, show, busy="reading steps …")


def _put(place: Place, library: Library, lifts: Sequence[Lift]) -> None:
    def work() -> None:
        from klineage.skill.lift.shelving import put

        put(library, lifts)

    def done(_: None) -> None:
        first = next(one.id for one in lifts if one.state in ("new", "updated"))
        place.host.decided()
        place.host.show_card(first)

    place.job("lift", work, done)
