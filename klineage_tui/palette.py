"""The command palette: every action of the place on screen, every theme, by the names of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider

from klineage_tui.actions import actions_of
from klineage_tui.keys import shown_keys
from klineage_tui.screens.place import Place


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

    async def discover(self) -> Hits:
        for command in self._commands():
            yield DiscoveryHit(command.text, command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands():
            # Descriptions are searched too, so that "unroll" or "backward" find what they are about.
            score = max(matcher.match(command.text), 0.5 * matcher.match(command.help))
            if score > 0:
                yield Hit(score, matcher.highlight(command.text), command.run, help=command.help)
