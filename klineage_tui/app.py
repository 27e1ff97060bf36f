"""The app: places as modes, themes, the palette, and what happens when something goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from klineage.errors import KlineageError
from textual.binding import BindingType
from textual.filter import Monochrome, NoColor
from textual.notifications import SeverityLevel
from textual.reactive import var
from textual.worker import Worker, WorkerState

from klineage_tui.actions import BY_ID, bindings_for
from klineage_tui.config import Config, config_folder, load_config
from klineage_tui.crash import log_exception
from klineage_tui.key_order import KeysInOrder
from klineage_tui.keys import shown_key
from klineage_tui.palette import ActionProvider, Palette
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.screens.lineages import LineagesScreen
from klineage_tui.screens.place import Place
from klineage_tui.session import Session, load_session
from klineage_tui.signals import watch
from klineage_tui.text.sanitize import sanitize, sanitize_lines
from klineage_tui.themes import DEFAULT, VARIABLES, Themes, load_themes
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.too_small import MIN_COLUMNS, MIN_ROWS

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.walk import Walk

REMEMBERED = ("induce", "history", "cards", "library")  # the places that the next start may begin in


def _history() -> Place:
    from klineage_tui.screens.history import HistoryScreen

    return HistoryScreen()


def _cards() -> Place:
    from klineage_tui.screens.cards import CardsScreen

    return CardsScreen()


def _library() -> Place:
    from klineage_tui.screens.library import LibraryScreen

    return LibraryScreen()


def _ablation() -> Place:
    from klineage_tui.screens.ablation import AblationScreen

    return AblationScreen()


class KlineageApp(KeysInOrder[int]):
    """One workspace on screen. The workspace is opened after the first paint, off the screen's thread."""

    TITLE = "klineage"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False  # it would bind a key of its own; the registry has one
    COMMANDS = {ActionProvider}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("app")]
    MODES = {
        "lineages": LineagesScreen,
        "induce": InduceScreen,
        "history": _history,
        "cards": _cards,
        "library": _library,
        "ablation": _ablation,
    }
    DEFAULT_MODE = "lineages"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (MIN_COLUMNS, "-narrow"), (100, "-medium"), (140, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (MIN_ROWS, "-low"), (20, "-high")]

    diff_layout: var[str] = var("auto")

    def __init__(
        self,
        path: Path,
        lineage: str | None,
        config: Config,
        themes: Themes,
        session: Session,
        problems: Sequence[str] = (),
    ) -> None:
        self._themes = themes  # asked for variables while the App is made
        super().__init__()
        self.use_command_palette = True
        self.path = path
        self.workspace: Workspace | None = None
        self.walk: Walk | None = None
        self.revision = 0
        self.last_words = ""  # printed when the terminal is free again
        self.config = config
        self.keys_in_force = config.keymap()
        self._wanted = lineage
        self._ahead = ""  # the place whose key was pressed before there was one to go to
        self._session = session
        self._problems = [*problems, *themes.problems]
        if self.no_color:
            # Textual would grey the colours, and the terminal's own sixteen would all become black.
            self._filters = [NoColor() if isinstance(f, Monochrome) else f for f in self._filters]
        for theme in themes.themes:
            self.register_theme(theme)
        self.set_reactive(KlineageApp.diff_layout, session.layout or config.layout)
        self.set_keymap(self.keys_in_force)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        default = next(theme for theme in self._themes.themes if theme.name == DEFAULT)
        return {name: default.variables[name] for name in VARIABLES}

    # -- start ------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        watch(self)
        self._start_theme()
        if self._wanted or self._remembered():
            self.switch_mode(self._remembered_place())
        self.call_after_refresh(self.open_workspace)

    def ended_by(self, signal: str, code: int) -> None:
        """Leave as quit does, so that the terminal is usable again; every decision is on disk already."""
        self.last_words = f"klineage: ended by {signal}; everything is saved"
        self.exit(code, code)

    def _start_theme(self) -> None:
        wanted = self.config.theme or self._session.theme or DEFAULT
        if wanted not in self._themes.names():
            names = ", ".join(self._themes.names())
            self._problems.append(f"there is no theme '{wanted}'; there are {names}")
            wanted = DEFAULT
        self.theme = wanted

    def _key(self) -> str:
        return str(self.path.resolve())

    def _remembered(self) -> str:
        return self._session.lineages.get(self._key(), "")

    def _remembered_place(self) -> str:
        """Where the person was; another lineage, named on the command line, is met in Induce."""
        if self._wanted and self._remembered() not in ("", self._wanted):
            return "induce"
        place = self._session.places.get(self._key(), "induce")
        return place if place in REMEMBERED else "induce"

    def open_workspace(self) -> None:
        """Open the workspace in a thread; the engine is imported there, after the first paint."""
        self.run_worker(self._open, group="open", thread=True, exit_on_error=False)

    def _open(self) -> None:
        try:
            from klineage.executor import Host, use
            from klineage.walk import open_workspace

            if self.config.host:
                use(Host(self.config.host, self.config.host_python or "python3"))
            workspace = open_workspace(self.path)
            ids = [summary.id for summary in workspace.lineages()]
        except KlineageError as problem:
            self.call_from_thread(self._leave_with, str(problem))
        else:
            self.call_from_thread(self._opened, workspace, ids)

    def _opened(self, workspace: Workspace, ids: list[str]) -> None:
        self.workspace = workspace
        for problem in self._problems:
            self.notify(problem, severity="warning", timeout=10)
        if self._wanted and self._wanted not in ids:
            known = ", ".join(ids) or "none"
            self._leave_with(f"{self.path} has no lineage '{self._wanted}'; it has {known}")
            return
        lineage = self._wanted or (self._remembered() if self._remembered() in ids else "")
        if not lineage and len(ids) == 1:
            lineage = ids[0]
        place = self._ahead or self._remembered_place()
        if lineage:
            self.open_lineage(lineage, place)
        elif place in ("cards", "library"):
            self.go(place)
        else:
            self.switch_mode("lineages")
            self._reload_shown()

    def _leave_with(self, sentence: str) -> None:
        self.last_words = f"klineage: {sanitize(sentence)}"
        self.exit(1, 1)

    def open_lineage(self, lineage: str, place: str = "induce") -> None:
        """Make a lineage the one that every place shows."""
        from klineage.walk import Walk

        assert self.workspace is not None
        self.walk = Walk(self.workspace, lineage)
        self._session.lineages[self._key()] = lineage
        self.go(place)

    # -- what places ask for ------------------------------------------------------------------------

    def go(self, place: str) -> None:
        """Show a place; it is remembered."""
        if place in REMEMBERED:
            self._session.places[self._key()] = place
        self.switch_mode(place)
        self._reload_shown()
        self._remember()

    def show_step(self, lineage: str, commit: str) -> None:
        """Open a lineage in History, at one of its states."""
        from klineage_tui.screens.history import HistoryScreen

        self.open_lineage(lineage, "history")
        if isinstance(self.screen, HistoryScreen):
            self.screen.ask_for(commit)

    def show_card(self, card_id: str) -> None:
        """Go to Cards, at a card of the workspace's library."""
        from klineage_tui.screens.cards import CardsScreen

        self.switch_mode("cards")
        if isinstance(self.screen, CardsScreen):
            self.screen.show_id(card_id)
        self.go("cards")

    def show_ablation(self, lineage: str, commit: str = "") -> None:
        """Go to what the steps of a sealed lineage are worth, at one of them."""
        from klineage_tui.screens.ablation import AblationScreen

        back = self.screen.PLACE if isinstance(self.screen, Place) else "cards"
        self.switch_mode("ablation")
        if isinstance(self.screen, AblationScreen):
            self.screen.show_lineage(lineage, commit, back)
        self.go("ablation")

    def lift(self, *lineages: str) -> None:
        """Lift cards from sealed lineages (all of them, if none is named) into the library, with a question first."""
        from klineage.skill.library import Library

        from klineage_tui.screens.lifting import ask_lift

        if isinstance(self.screen, Place) and self.workspace is not None:
            ask_lift(self.screen, self.workspace, Library.of(self.workspace), lineages)

    def pull(self) -> None:
        """Bring the cards of another library in here, with a question first."""
        from klineage.skill.library import Library

        from klineage_tui.screens.pulling import ask_pull

        if isinstance(self.screen, Place) and self.workspace is not None:
            ask_pull(self.screen, Library.of(self.workspace))

    def _reload_shown(self) -> None:
        if isinstance(self.screen, Place):
            self.screen.reload_if_outdated()

    def decided(self) -> None:
        self.revision += 1

    def theme_names(self) -> list[str]:
        return self._themes.names()

    def choose_theme(self, name: str) -> None:
        self.theme = name
        self._session.theme = name
        self._remember()

    def _remember(self) -> None:
        try:
            self._session.save()
        except KlineageError as problem:
            self.notify(str(problem), severity="warning")

    # -- verbs --------------------------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        """One sentence that says why an action of everywhere cannot be done now; empty when it can."""
        if self.workspace is None and action in (*REMEMBERED, "lineages"):
            return "the workspace is still being opened"
        if self.walk is None and action in ("induce", "history"):
            return "open a lineage first: choose one and press enter"
        return ""

    def action_verb(self, action: str) -> None:
        if self.workspace is None and action in (*REMEMBERED, "lineages"):
            self._ahead = action  # a key pressed while the workspace is being opened is not lost
            return
        if reason := self.why_not(action):
            self.notify(reason, title=BY_ID[action].title, severity="warning")
            return
        self._verbs()[action]()

    def _verbs(self) -> dict[str, Callable[[], object]]:
        return {
            "induce": lambda: self.go("induce"),
            "history": lambda: self.go("history"),
            "cards": lambda: self.go("cards"),
            "library": lambda: self.go("library"),
            "lineages": lambda: self.go("lineages"),
            "next-pane": lambda: self._pane(1),
            "previous-pane": lambda: self._pane(-1),
            "theme": self._next_theme,
            "layout": self._next_layout,
            "palette": self._palette,
            "help": self._help,
            "quit": self.exit,
        }

    def _palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def _pane(self, step: int) -> None:
        if isinstance(self.screen, Place):
            self.screen.next_pane(step)
        elif step > 0:  # in a dialog: the next field
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def _next_theme(self) -> None:
        names = self._themes.names()
        self.choose_theme(names[(names.index(self.theme) + 1) % len(names)])
        self.notify(f"theme {self.theme}", timeout=1.5)

    def _next_layout(self) -> None:
        shown = [view.is_split for view in self.screen.query(DiffView)]
        split = shown[0] if shown else self.diff_layout == "split"
        self.diff_layout = "unified" if split else "split"
        self._session.layout = self.diff_layout
        self._remember()

    def _help(self) -> None:
        from klineage_tui.screens.help import HelpScreen

        if isinstance(self.screen, Place):
            self.push_screen(HelpScreen(self.screen.PLACE, self.keys_in_force))

    def action_help_quit(self) -> None:
        self.notify(f"{shown_key(self.keys_in_force['quit'])} quits; everything is already saved")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Toasts carry foreign text: it is made visible, and never read as markup."""
        safe = "\n".join(sanitize_lines(message))
        super().notify(safe, title=sanitize(title), severity=severity, timeout=timeout, markup=False)

    # -- when something goes wrong ---------------------------------------------------------------------

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A job of the app itself that failed: a defect, so one line and a log, then out."""
        problem = event.worker.error
        if event.state is WorkerState.ERROR and event.worker.node is self and problem is not None:
            log = log_exception(problem)
            self._leave_with(f"internal error ({type(problem).__name__}); the details are in {log}")

    def _fatal_error(self) -> None:
        """Textual would print a traceback with local variables, keys among them."""
        problem = sys.exc_info()[1] or self._exception
        name = type(problem).__name__ if problem is not None else "unknown"
        log = log_exception(problem) if problem is not None else "no file"
        self.last_words = f"klineage: internal error ({name}); your work is on disk, the details are in {log}"
        self.panic()

    async def on_unmount(self) -> None:
        if self.workspace is not None:
            self.workspace.close()


def _require_terminal() -> None:
    """Textual reads keys from stdin and draws on stderr; without a terminal it would hang there."""
    streams = (sys.__stdin__, sys.__stderr__)
    if not all(stream is not None and stream.isatty() for stream in streams):
        raise KlineageError("the app needs a terminal; klineage --help lists the verbs that work without one")
    if os.environ.get("TERM") == "dumb":
        raise KlineageError(
            "TERM=dumb says that this terminal cannot be drawn on; set TERM, or use the verbs of klineage --help"
        )


def run(workspace_path: Path, lineage: str | None) -> int:
    """Show the app until the person leaves. Returns the exit code of the process.

    Raises KlineageError for a workspace that is not there or a configuration that is not understood.
    """
    if not workspace_path.exists():
        raise KlineageError(f"{workspace_path}: there is no such folder; klineage demo makes a workspace")
    _require_terminal()
    config = load_config()
    themes = load_themes(config_folder() / "themes")
    session, problem = load_session()
    app = KlineageApp(workspace_path, lineage, config, themes, session, [problem] if problem else [])
    code = app.run()
    if app.last_words:
        print(app.last_words, file=sys.stderr)  # by print: Textual would break the path of a log
    return app.return_code or code or 0
