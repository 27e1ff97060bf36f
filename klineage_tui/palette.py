"""The command palette: every action, those of the place on screen first, and every theme, by the names of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from klineage_tui.actions import PLACES, actions_of
from klineage_tui.keys import shown_key, shown_keys
from klineage_tui.screens.in_step import InStep
from klineage_tui.screens.place import Place

_REACHED = ("induce", "history", "cards", "library")  # places that a key leads to from everywhere
_ELSEWHERE = 0.7  # of the score of what can be done here


class Palette(InStep, CommandPalette):
    """Textual's palette."""


class Command(NamedTuple):
    text: str
    run: Callable[[], object]
    help: str


class ActionProvider(Provider):
    """Actions first in the registry's order, then themes. A closed action says why in its help."""

    def _commands(self) -> Iterator[Command]:
        screen = self.screen
        if not isinstance(screen, Place):
            return
        keys = screen.host.keys_in_force
        for action in (*actions_of(screen.PLACE), *actions_of("app")):
            reason = screen.closed(action.id)
            about = f"not now: {reason}" if reason else action.description
            run = partial(screen.choose, action.id)
            if action.id != "palette":
                yield Command(action.title.capitalize(), run, f"{shown_keys(keys[action.id])}   {about}")
        for name in screen.host.theme_names():
            yield Command(f"Theme: {name}", partial(screen.host.choose_theme, name), "Use this theme")

    def _elsewhere(self) -> Iterator[Command]:
        """What other places can do. Choosing it goes there: most of it is about what the cursor is on."""
        screen = self.screen
        if not isinstance(screen, Place):
            return
        keys = screen.host.keys_in_force
        named = {action.id for action in actions_of(screen.PLACE)}
        for place in _REACHED:
            for action in actions_of(place):
                if action.id not in named and action.title != "cancel":
                    named.add(action.id)
                    go = partial(screen.host.action_verb, place)
                    way = f"{shown_key(keys[place])}, then {shown_key(keys[action.id])}"
                    yield Command(
                        f"{action.title.capitalize()} in {PLACES[place]}", go, f"{way}   {action.description}"
                    )

    async def discover(self) -> Hits:
        for command in self._commands():
            yield DiscoveryHit(command.text, command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        words = query.casefold().split()
        weighed = [
            *((1.0, one) for one in self._commands()),
            *((_ELSEWHERE, one) for one in self._elsewhere()),
        ]
        for weight, command in weighed:
            # Descriptions are searched too, so that "unroll" or "backward" find what they are about; but for whole
            # words or parts of them, since letters here and there are in every sentence.
            said = all(word in command.help.casefold() for word in words)
            score = weight * max(
                matcher.match(command.text), 0.5 * matcher.match(command.help) if said else 0
            )
            if score > 0:
                yield Hit(score, matcher.highlight(command.text), command.run, help=command.help)
