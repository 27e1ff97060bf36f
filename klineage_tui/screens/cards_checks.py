"""The checks of a card, evaluated on a kernel that a person chooses. Nothing of the kernel is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klineage_tui.card_checks import Checked, Choice, checked, choices
from klineage_tui.screens.card_lists import Choose, choice_line, choice_names
from klineage_tui.screens.cards_edits import CardsEdits
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.card import Card

    from klineage_tui.card_queue import Item
    from klineage_tui.presentation.card_form import Parts


class CardsChecks(CardsEdits):
    """Adds the verb ``card-check``. An answer belongs to the revision of the card that was asked."""

    def __init__(self) -> None:
        super().__init__()
        self._checked: dict[str, Checked] = {}  # revision of a card -> what a kernel answered

    def do_card_check(self) -> None:
        """Ask for a kernel, then evaluate every check on it."""
        item, card = self._here()
        workspace = self.host.workspace
        assert workspace is not None
        walk = self.host.walk
        lineage = walk.id if walk is not None else ""

        def choose(found: tuple[Choice, ...]) -> None:
            if not found:
                self.notify(
                    f"there is no {card.surface} kernel in this workspace or among the experts",
                    severity="warning",
                )
                return
            names = choice_names([choice.name for choice in found])
            rows = [
                (choice, choice_line(name, choice.about)) for choice, name in zip(found, names, strict=True)
            ]
            question = "On which kernel? Nothing is run: its text, its workload and its reports are read."
            keys, wholes = (
                dict(self.host.keys_in_force),
                [f"{choice.name}: {choice.about}" for choice in found],
            )
            dialog = Choose(f"Check {card.id}", question, rows, "evaluates the checks on it", keys, wholes)
            self.ask(dialog, lambda choice: self._check_on(item, card, choice) if choice else None)

        self.job("choices", lambda: choices(workspace, card, lineage), choose, busy="looking for kernels …")

    def _check_on(self, item: Item, card: Card, choice: Choice) -> None:
        def show(found: Checked) -> None:
            self._checked[item.revision] = found
            self.redraw()

        self.job("check", lambda: checked(card, choice), show)

    def _answers_of(self, item: Item | None) -> Mapping[str, Parts]:
        found = self._checked.get(item.revision) if item is not None else None
        return found.answers if found is not None else {}

    def _places_of(self, item: Item | None) -> str:
        found = self._checked.get(item.revision) if item is not None else None
        return found.places if found is not None else ""

    def _target_name(self, item: Item) -> str:
        found = self._checked.get(item.revision)
        return f"checked on {sanitize(found.target)}" if found is not None else ""
