"""Sealing: asked once, then shown step by step; escape stops it before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.numbers import plural
from klineage.proposer.cancel import Cancel
from textual.widgets import Static

from klineage_tui.crash import log_exception
from klineage_tui.keys import shown_key
from klineage_tui.screens.dialog import Dialog
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.lineage import Step
    from klineage.walk import Walk
    from klineage.walk.putting_back import Ask


class SealDialog(Dialog[bool]):
    """Dismissed with True when the lineage was sealed."""

    DEFAULT_CSS = "SealDialog > Vertical { width: 72; }"

    def __init__(
        self,
        walk: Walk,
        states: int,
        pending: int,
        keys: dict[str, str],
        asked: Sequence[str] = (),
        ask: Ask | None = None,
    ) -> None:
        """``asked`` names who may be asked, through ``ask``, for the forward edits of their steps."""
        question = (
            f"Turn {plural(states - 1, 'accepted step')} round: derive each one forward again, gate all "
            f"{states} states, and write the lineage from naive to expert. {_undecided(pending)}{_asked(asked)}"
        )
        super().__init__("Seal the lineage", question, "seals it", keys)
        self._ask = ask
        self._walk = walk
        self._states = states
        self._stop = Cancel()
        self._phase = "asking"  # then "running", then "done" or "failed"
        self._lines: list[str] = []

    def _show(self, lines: list[str], keys: str) -> None:
        self.query_one(".question", Static).update("\n".join(sanitize(line) for line in lines[-12:]))
        self.query_one(".keys", Static).update(keys)

    def action_dialog_confirm(self) -> None:
        if self._phase == "asking":
            self._phase = "running"
            self._show(["starting …"], self.keys_line("", "stops it; nothing is written then"))
            self.run_worker(self._work, thread=True, exit_on_error=False)
        elif self._phase != "running":
            self.dismiss(self._phase == "done")

    def action_dialog_cancel(self) -> None:
        if self._phase == "running":
            self._stop.set()
        else:
            self.dismiss(self._phase == "done")

    def _work(self) -> None:
        try:
            steps = self._walk.seal(
                lambda text: self.app.call_from_thread(self._progress, text), self._stop, self._ask
            )
        except KlineageError as problem:
            self.app.call_from_thread(self._failed, str(problem))
        except Exception as problem:
            log = log_exception(problem)
            self.app.call_from_thread(self._failed, f"internal error ({type(problem).__name__}); see {log}")
        else:
            self.app.call_from_thread(self._done, steps)

    def _progress(self, text: str) -> None:
        self._lines.append(text if text.startswith("asking") else f"gating {text}")
        # A transition is named by its state, K1 to the expert; what is derived is gated in between.
        if text.startswith("K"):
            self.query_one(".title", Static).update(
                f"Seal the lineage: {text.split()[0][1:]} of {plural(self._states - 1, 'transition')}"
            )
        self._show(self._lines, self.keys_line("", "stops it; nothing is written then"))

    def _done(self, steps: tuple[Step, ...]) -> None:
        self._phase = "done"
        derived = sum(step.forward == "derived" for step in steps)
        replayed = sum(step.forward == "replayed" for step in steps)
        sentence = (
            f"Sealed: {len(steps)} states, {plural(derived, 'transition')} derived, {replayed} replayed."
        )
        reasons = [
            f"K{step.number} is replayed, its recorded change put back: {step.found}"
            for step in steps
            if step.forward == "replayed"
        ]
        if reasons:
            reasons = [
                *reasons[:2],
                f"klineage derive {self._walk.id} tries again, or takes an edit of yours.",
            ]
        key = {name: shown_key(self._keys[name]) for name in ("history", "lift")}
        way_on = (
            f"After this, {key['history']} shows the lineage in History, {key['lift']} lifts cards from it."
        )
        self._show([*self._lines, "", *reasons, sentence, way_on], self.keys_line("closes", "closes"))

    def _failed(self, sentence: str) -> None:
        self._phase = "failed"
        self._show([*self._lines, "", sentence], self.keys_line("closes", "closes"))

    def on_unmount(self) -> None:
        self._stop.leave()


def _undecided(pending: int) -> str:
    if not pending:
        return ""
    return f"{plural(pending, 'proposal')} {'is' if pending == 1 else 'are'} still undecided."


def _asked(names: Sequence[str]) -> str:
    if not names:
        return ""
    cost = ", within the spending limit of this lineage" if any(n.startswith("model") for n in names) else ""
    return f" {' and '.join(names)} will be asked for the forward edits of their steps{cost}."
