"""Testing a card: one probe or trial at a time, its progress, its result, and how to stop it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from klineage.numbers import plural

from klineage_tui.card_queue import declares_gain, never_probed
from klineage_tui.presentation.card_evidence import precondition_of
from klineage_tui.presentation.card_form import Ref
from klineage_tui.screens.card_lists import Choose, choice_line, choice_names
from klineage_tui.screens.cards_checks import CardsChecks
from klineage_tui.screens.runs import Run, RunProgress
from klineage_tui.screens.trusting import trusting

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.skill.admission.suggest import Suggestion
    from klineage.skill.card import Card

    from klineage_tui.card_trials import Offer


class CardsRuns(CardsChecks):
    """Runs what the verbs ``card-probe`` and ``card-try`` begin, and shows it in the lower pane."""

    def __init__(self) -> None:
        super().__init__()
        self._run: Run | None = None  # the one that runs
        self._last: Run | None = None  # the one that is shown

    def _show_bar(self) -> None:
        """Draw the footer again."""
        raise NotImplementedError

    def start_run(self, card_id: str, title: str, work: Callable[[Run], str]) -> None:
        """Run ``work`` in a thread; it returns the sentence that says what came of it, and has saved it already."""
        run = self._run = self._last = Run(card_id, title)
        self.job(
            "test",
            lambda: work(run),
            lambda said: self._ended(run, said),
            lambda said: self._failed(run, said),
        )
        self._ticker = self.set_interval(0.2, self.show_test)
        if self.has_class("-narrow"):
            self.choose_tab(1)
        self.show_test()
        self._show_bar()

    def tell(self, run: Run, event: GateEvent | str) -> None:
        """Called from the run's thread."""
        self.post_message(RunProgress(run, event))

    def on_run_progress(self, message: RunProgress) -> None:
        message.run.heard(message.event)
        if message.run is self._run:
            self.show_test()

    def _ended(self, run: Run, said: str) -> None:
        self._finish(run, said)
        if self.app.screen is not self or (self._queue.current and self._queue.current.id != run.subject):
            self.notify(f"{run.subject}: {said}", timeout=6)
        self.host.decided()
        self.reload_if_outdated()

    def _failed(self, run: Run, said: str) -> None:
        self._finish(run, "stopped; nothing was written" if run.cancel.is_set() else said)
        if not run.cancel.is_set():
            self.complain(said)

    def _finish(self, run: Run, said: str) -> None:
        run.end(said)
        if self._run is run:
            self._run = None
            self._ticker.stop()
        self.show_test()
        self._show_bar()

    def show_test(self) -> None:
        """The run on screen, until the reader goes to another field after its end."""
        run = self._last
        if run is None:
            return
        left, right = run.heading()
        self.show_run(left, right, run.lines(self.lower_cells, self.key_of("card-cancel")))

    def forget_test(self) -> None:
        """Show evidence again, unless a test runs."""
        if self._run is None:
            self._last = None

    def why_not_test(self, action: str, card: Card) -> str:
        """Why a card cannot be tested now; empty when it can."""
        if action == "card-check":
            return (
                ""
                if any(p.check for p in card.preconditions) or card.anchor.query
                else "it has nothing to evaluate"
            )
        if action in ("card-probe", "card-boundary", "card-try") and self._run is not None:
            return f"{self._run.title} is running; {self.key_of('card-cancel')} stops it"
        if action in ("card-probe", "card-boundary"):
            found = precondition_of(card, self._field.key) if self._field.kind == "precondition" else None
            if found is None:
                if action == "card-probe" and self._waiting(card) is not None:
                    return ""
                pane = self.key_of("next-pane")
                return (
                    f"put the cursor on a precondition ({pane} goes to the card): that is what a probe breaks"
                )
            how = self.key_of("card-edit")
            if found.probe is None and not found.check:
                return f"nobody has said how to break {found.key}; {how} gives it a probe or a check"
            return ""
        if action == "card-try" and card.status == "retired":
            return "it is retired, and not tried any more"
        if action == "card-try" and not declares_gain(card):
            return (
                f"it declares no gain beyond noise; {self.key_of('ablation')} measures what it is worth alone"
            )
        return ""

    def do_card_probe(self) -> None:
        """Break the precondition under the cursor on the card's own state, and write what comes of it; where the
        cursor is elsewhere, bring it to the first one that waits for that."""
        _, card = self._here()
        waiting = self._waiting(card)
        if precondition_of(card, self._field.key) is None and waiting is not None:
            self.form_view.focus()
            self.form_view.move_to(self._form.row_of(waiting))
            key = self.key_of("card-probe")
            self.notify(
                f"{waiting.key} is under the cursor now: {key} once more breaks it, and gates what happens."
            )
            return
        self._probe(searching=False)

    def _waiting(self, card: Card) -> Ref | None:
        """The first precondition that was never probed, or was edited since."""
        item = self._queue.current
        unprobed = item.marks.unprobed if item is not None else frozenset()
        keys = [p.key for p in card.preconditions if p.key in unprobed or p.key in never_probed(card)]
        return Ref("precondition", keys[0]) if keys else None

    def do_card_boundary(self) -> None:
        """The same, then on to where it begins to break: several gates."""
        self._probe(searching=True)

    def _probe(self, *, searching: bool) -> None:
        _, card = self._here()
        key = self._field.key
        library = self.library

        def work(run: Run) -> str:
            from klineage.skill.probe.judging import Judge
            from klineage.skill.probe.run import probe_card

            def on_event(words: str, event: GateEvent | None) -> None:
                self.tell(run, words if event is None else event)

            judge = Judge(on_event=on_event, cancel=run.cancel)
            _, (probed,) = probe_card(library, card.id, [key], judge=judge, searching=searching)
            found = [f"{probed.finding.outcome.upper()}: {probed.finding.found}"]
            if searching:
                found.append(probed.boundary.text if probed.boundary is not None else probed.unsearched)
            return ". ".join(found)

        lineages = [e.lineage for e in card.evidence if e.kind == "transition"]
        word = "SEARCH" if searching else "PROBE"
        trusting(self, lineages, lambda: self.start_run(card.id, f"{word} {key} of {card.id}", work))

    def do_card_try(self) -> None:
        """Ask for a kernel that the card has never seen, and gate the card alone on it."""
        from klineage_tui.card_trials import offer, told

        _, card = self._here()
        library, workspace = self.library, self.host.workspace
        assert workspace is not None

        def choose(offered: Offer) -> None:
            found = offered.found
            if not found:
                self.notify(_nowhere(card, offered.others), severity="warning", timeout=10)
                return
            names = choice_names([each.target.name for each in found])
            rows = [(each, choice_line(name, told(each))) for each, name in zip(found, names, strict=True)]
            question = "On which kernel? It must pass every gate and show half of the effect; at most three attempts."
            wholes = [f"{each.target.name}: {told(each)}" for each in found]
            keys = dict(self.host.keys_in_force)
            dialog = Choose(f"Try {card.id}", question, rows, "tries it there", keys, wholes)
            self.ask(dialog, lambda each: self._try_on(card, each) if each else None)

        self.job("suggestions", lambda: offer(library, workspace, card), choose, busy="looking for kernels …")

    def _try_on(self, card: Card, suggestion: Suggestion) -> None:
        from klineage_tui.card_trials import try_on

        library, target = self.library, suggestion.target

        def work(run: Run) -> str:
            say = lambda text: self.tell(run, text)  # noqa: E731
            return try_on(library, card.id, suggestion, say, lambda event: self.tell(run, event), run.cancel)

        lineages = [target.lineage] if target.lineage else []
        trusting(self, lineages, lambda: self.start_run(card.id, f"TRY {card.id} on {target.name}", work))

    def do_card_cancel(self) -> None:
        if self._run is not None:
            self._run.cancel.set()
            self.show_test()

    def on_unmount(self) -> None:
        if self._run is not None:
            self._run.cancel.set()


def _nowhere(card: Card, others: int) -> str:
    """Why there is no kernel to try a card on, and what to do."""
    if others:
        return (
            f"Neither its rule nor its code finds a place in {plural(others, 'kernel')} that it has never seen. In a "
            f"shell, klineage admit {card.id} --with asks a model, a command or a person to put it there."
        )
    return (
        f"No {card.surface} kernel here differs from what it was lifted from and has what it requires; "
        "klineage new brings one in, klineage admit takes any file."
    )
