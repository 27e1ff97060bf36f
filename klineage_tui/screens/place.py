"""What every place shares: one road from key, palette and footer to a verb, or to why it is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

from klineage.errors import KlineageError
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, get_current_worker

from klineage_tui.actions import BY_ID
from klineage_tui.crash import log_exception
from klineage_tui.keys import shown_key
from klineage_tui.screens.in_step import InStep
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.walk import Walk

    from klineage_tui.config import Config

T = TypeVar("T")


class Host(Protocol):
    """What a place may ask of the app."""

    workspace: Workspace | None  # None until it is open
    walk: Walk | None  # the open lineage
    revision: int  # grows with every decision, on any lineage
    diff_layout: str  # "auto", "unified" or "split"; reactive, so it can be watched
    config: Config
    keys_in_force: dict[str, str]  # action id -> keys
    last_words: str  # printed when the terminal is free again

    def open_lineage(self, lineage: str, place: str = "induce") -> None:
        """Make a lineage the one that every place shows."""

    def go(self, place: str) -> None:
        """Show a place; it is remembered."""

    def show_step(self, lineage: str, commit: str) -> None:
        """Open a lineage in History, at one of its states."""

    def show_card(self, card_id: str) -> None:
        """Go to Cards, at a card of the workspace's library."""

    def show_ablation(self, lineage: str, commit: str = "") -> None:
        """Go to what the steps of a sealed lineage are worth, at one of them."""

    def lift(self, *lineages: str) -> None:
        """Lift cards from sealed lineages (all of them, if none is named) into the library, with a question first."""

    def pull(self) -> None:
        """Bring the cards of another library in here, with a question first."""

    def decided(self) -> None:
        """Say that a decision is on disk, so that other places read again when shown."""

    def action_verb(self, action: str) -> None:
        """Do an action of everywhere, or say why not."""

    def why_not(self, action: str) -> str:
        """Why an action of everywhere cannot be done now; empty when it can."""

    def theme_names(self) -> list[str]:
        """The themes that can be chosen, in the order in which the key goes through them."""

    def choose_theme(self, name: str) -> None:
        """Use a theme, now and at the next start."""


def once_drawn(screen: Screen[Any], do: Callable[[], None]) -> None:
    """Do this once what has changed is drawn; not on a screen that is left by then, and loses its widgets one by one."""

    def unless_left() -> None:
        if screen.display:
            do()

    screen.call_after_refresh(unless_left)


class JobDone(Message):
    """A job of a place ended; delivered to the place on its own thread."""

    def __init__(self, worker: Worker[None], deliver: Callable[[], None]) -> None:
        super().__init__()
        self.worker = worker
        self.deliver = deliver


class Place(InStep, Screen[None]):
    """A screen whose actions come from the registry: ``verb(id)`` runs ``do_<id>``, or says why not.

    Subclasses set ``PLACE`` (a key of ``actions.PLACES``), ``BINDINGS = bindings_for(PLACE)``, and
    ``reload``, which is called when the place is shown for the first time, for another lineage, or
    after a decision was taken elsewhere.
    """

    PLACE: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self._seen: tuple[object, int] | None = None
        self._latest: dict[str, Worker[None]] = {}  # job of each group
        self._working: dict[Worker[None], str] = {}  # jobs that say what they do

    @property
    def host(self) -> Host:
        return cast(Host, self.app)

    def on_mount(self) -> None:
        self.mount(TooSmall())

    def on_screen_resume(self) -> None:
        self.reload_if_outdated()

    def reload_if_outdated(self) -> None:
        """Read the walk again, unless what is shown is current."""
        now = (self.host.walk, self.host.revision)
        if now != self._seen and self.host.walk is not None:
            self._seen = now
            self.reload()

    def reload(self) -> None:
        """Read the walk of the host and show it."""

    # -- verbs ----------------------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        """One sentence that says why the action cannot be done now; empty when it can."""
        return ""

    def closed(self, action: str) -> str:
        """Why an action of this place, or of everywhere, cannot be done now; empty when it can."""
        return self.why_not(action) if self.PLACE in BY_ID[action].places else self.host.why_not(action)

    def choose(self, action: str) -> None:
        """Do what the footer or the palette names: an action of this place, or of everywhere."""
        if self.PLACE in BY_ID[action].places:
            self.action_verb(action)
        else:
            self.host.action_verb(action)

    def on_action_bar_chosen(self, message: ActionBar.Chosen) -> None:
        self.choose(message.action)

    def action_verb(self, action: str) -> None:
        """Do it, or say why not."""
        if reason := self.why_not(action):
            self.notify(reason, title=BY_ID[action].title.capitalize(), severity="warning")
            return
        getattr(self, "do_" + action.replace("-", "_"))()

    def next_pane(self, step: int) -> None:
        """Move the focus to the next (1) or previous (-1) pane."""
        if step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    # -- work off the screen's thread ---------------------------------------------------------------

    def job(
        self,
        group: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[str], None] | None = None,
        *,
        busy: str = "",
    ) -> Worker[None]:
        """Run ``work`` in a thread, then ``done`` with its result on this screen's thread.

        busy: what the last row says meanwhile, of work that may take seconds: ``pulling …``.
        A newer job of the same group takes the place of an older one, whose result is dropped. A
        KlineageError arrives at ``failed`` as its sentence (a toast, if there is no ``failed``).
        """

        def run() -> None:
            worker = get_current_worker()
            complain = failed or self.complain
            deliver: Callable[[], None]
            try:
                result = work()
            except KlineageError as problem:
                sentence = str(problem)
                deliver = lambda: complain(sentence)  # noqa: E731
            except Exception as problem:  # a defect: keep the app alive, the evidence in a file
                log = log_exception(problem)
                sentence = f"internal error ({type(problem).__name__}); the details are in {log}"
                deliver = lambda: complain(sentence)  # noqa: E731
            else:
                deliver = lambda: done(result)  # noqa: E731
            self.post_message(JobDone(cast("Worker[None]", worker), deliver))

        self.drop(group)
        worker = self._latest[group] = cast(
            "Worker[None]",
            self.run_worker(run, group=group, exclusive=True, thread=True, exit_on_error=False),
        )
        if busy:
            self._working[worker] = busy
            self._show_working()
        return worker

    def drop(self, group: str) -> None:
        """Forget the latest job of a group, whether it runs or has ended and its result is on the way."""
        if (job := self._latest.get(group)) is not None:
            job.cancel()

    def _show_working(self) -> None:
        self._working = {job: words for job, words in self._working.items() if not job.is_cancelled}
        for bar in self.query(ActionBar):
            bar.show_busy(next(reversed(self._working.values()), ""))

    def on_job_done(self, message: JobDone) -> None:
        message.stop()
        if self._working.pop(message.worker, ""):
            self._show_working()
        if not message.worker.is_cancelled and self.is_attached:
            message.deliver()

    def ask(self, dialog: Screen[T], answered: Callable[[T | None], None]) -> None:
        """Ask on top of this place what took a while to prepare; nothing pops up under hands that are elsewhere by now."""
        if self.app.screen is self:
            self.app.push_screen(dialog, answered)
        else:
            self.notify("Not asked, since you are elsewhere by now; press the key again.", severity="warning")

    def key_of(self, action: str) -> str:
        """The key that does an action, as people know it."""
        return shown_key(self.host.keys_in_force[action])

    def complain(self, sentence: str) -> None:
        """A toast for something that went wrong."""
        self.notify(sentence, severity="error", timeout=10)
