"""What every place shares: one road from key, palette and footer to a verb, or to why it is closed."""

from __future__ import annotations

from typing import ClassVar

from textual.screen import Screen

from klineage_tui.actions import BY_ID


class Place(Screen[None]):
    """A screen whose actions come from the registry: ``verb(id)`` runs ``do_<id>``, or says why not.

    Subclasses set ``PLACE`` (a key of ``actions.PLACES``) and ``BINDINGS = bindings_for(PLACE)``.
    """

    PLACE: ClassVar[str] = ""

    def why_not(self, action: str) -> str:
        """One sentence that says why the action cannot be done now; empty when it can."""
        return ""

    def action_verb(self, action: str) -> None:
        """Do it, or say why not."""
        if reason := self.why_not(action):
            self.notify(reason, title=BY_ID[action].title.capitalize(), severity="warning", timeout=4)
            return
        getattr(self, "do_" + action.replace("-", "_"))()

    def refresh_actions(self) -> None:
        """Tell the footer that what can be done has changed."""
        self.refresh_bindings()
