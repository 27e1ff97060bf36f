"""Deciding on cards: admit, retire, merge, take back. Every decision is one commit of the library, with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage_tui.card_queue import CardQueue, Item, counts, trials
from klineage_tui.screens.card_lists import Choose, choice_line, choice_names
from klineage_tui.screens.cards_panes import CardsPanes
from klineage_tui.screens.dialog import AskReason

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library import Library


class CardsDecisions(CardsPanes):
    """Adds the verbs that decide on whole cards. A save expects the version that was on screen."""

    _queue: CardQueue = CardQueue()
    _library: Library | None = None

    def __init__(self) -> None:
        super().__init__()
        self._deciding = False

    @property
    def library(self) -> Library:
        assert self._library is not None, "verbs run only while a library is open"
        return self._library

    def _here(self) -> tuple[Item, Card]:
        item = self._queue.current
        assert item is not None and item.card is not None, "why_not says so"
        return item, item.card

    def do_card_accept(self) -> None:
        """Admit: the person's own word, on a trial that is there."""
        item, card = self._here()
        shown = [v for v in trials(card) if counts(v, item.marks)][-1]
        self._save(
            item, replace(card, status="admitted"), f"{shown.key} shows it on {shown.target}", next_after=True
        )

    def do_card_retire(self) -> None:
        from klineage.skill.library.curating import retired

        item, card = self._here()
        question = f"Take {item.id} out of use? It is kept, with its history, and served to nobody."

        def answered(reason: str | None) -> None:
            if reason:
                self._save(item, retired(card, reason), reason, next_after=True)

        keys = dict(self.host.keys_in_force)
        self.app.push_screen(AskReason("Retire", question, keys, confirm="retires it"), answered)

    def mergeable(self, item: Item) -> list[Item]:
        """The other cards that can be merged into this one."""
        from klineage.skill.library.curating import why_not_united

        card = item.card
        assert card is not None, "why_not says so"
        return [o for o in self._queue.items if o.card is not None and not why_not_united(card, o.card)]

    def do_card_merge(self) -> None:
        """Unite another card with this one: what it knows goes here, and it is retired."""
        from klineage.skill.library.curating import twins

        item, card = self._here()
        same = self.mergeable(item)
        pairs = twins([card, *(other.card for other in same if other.card is not None)])
        alike = {
            name: twin.why
            for twin in pairs
            if item.id in (twin.one, twin.two)
            for name in (twin.one, twin.two)
        }
        same.sort(key=lambda other: other.id not in alike)
        names = choice_names([other.id for other in same])
        rows = [
            (other, choice_line(name, alike.get(other.id) or (other.card.intent if other.card else "")))
            for other, name in zip(same, names, strict=True)
        ]
        question = (
            f"Which card is the same optimization as {item.id}? What it knows goes here, and it is retired."
        )
        dialog = Choose("Merge", question, rows, "merges it into this one", dict(self.host.keys_in_force))
        self.app.push_screen(dialog, lambda other: self._merge(item, other) if other else None)

    def _merge(self, item: Item, other: Item) -> None:
        library = self.library

        def answered(reason: str | None) -> None:
            if not reason:
                return

            def work() -> None:
                from klineage.skill.library.curating import united

                both = united(library.get(item.id), library.get(other.id), reason)
                expected = {item.id: item.revision, other.id: other.revision}
                library.save_all(
                    both, reason=reason, title=f"Merge {other.id} into {item.id}", expected=expected
                )

            self._decide(work, f"{other.id} is merged into {item.id}.")

        question = f"Merge {other.id} into {item.id}: evidence and trials of both are kept."
        keys = dict(self.host.keys_in_force)
        self.app.push_screen(AskReason("Why?", question, keys, confirm="merges them"), answered)

    def do_card_undo(self) -> None:
        library = self.library
        self._decide(library.undo, "Taken back: {}")

    def do_card_redo(self) -> None:
        library = self.library
        self._decide(library.redo, "Taken again: {}")

    def _save(
        self,
        item: Item,
        card: Card,
        reason: str,
        failed: Callable[[str], None] | None = None,
        *,
        next_after: bool = False,
    ) -> None:
        library = self.library

        def work() -> None:
            library.save(card, reason=reason, expected=item.revision)

        self._decide(work, "", failed, next_after=next_after)

    def _decide(
        self,
        work: Callable[[], object],
        said: str,
        failed: Callable[[str], None] | None = None,
        *,
        next_after: bool = False,
    ) -> None:
        """One decision at a time, off the screen's thread; then everything is read again."""
        self._deciding = True
        self.drop("cards")

        def done(what: object) -> None:
            if said:
                self.notify(said.format(what), timeout=4)
            if next_after:
                self.go_on()
            self.host.decided()
            self.reload()

        def broken(sentence: str) -> None:
            self._deciding = False
            self.complain(sentence)
            self.reload()

        self.job("decision", work, done, failed or broken)

    def go_on(self) -> None:
        """Go to the next card that needs a person, as soon as the library is read again."""
        raise NotImplementedError
