"""Naming a step that a person made: its action, what it removes, its title; prefilled with what is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.proposer import vocabulary
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.suggester import Suggester
from textual.widgets import Input, Static

from klineage_tui.keys import shown_key
from klineage_tui.screens.dialog import FormDialog
from klineage_tui.text.columns import clip
from klineage_tui.text.sanitize import sanitize

_WIDE = 60  # cells of a row in the box
_SEEN = 3  # features that are listed


@dataclass(frozen=True)
class Said:
    """What a person says of their step. ``removes``: features, a name or ``locus / name`` each.

    new_word: the action is meant as it is, though it looks like a slip.
    """

    action: str
    title: str
    removes: tuple[str, ...]
    new_word: bool = False


@dataclass(frozen=True)
class Seen:
    """What the detectors make of an edit: ``gone`` and ``come``, each as ``locus / name``."""

    gone: tuple[str, ...]
    come: tuple[str, ...]


class _Words(Suggester):
    """The rest of a word of the vocabulary, those that are seen gone first."""

    def __init__(self, likely: Sequence[str]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._likely = tuple(likely)

    async def get_suggestion(self, value: str) -> str | None:
        start, _, word = value.rpartition("+")
        before = f"{start}+" if start else ""
        found = vocabulary.completions(word, self._likely) if word.strip() else []
        return next((before + each for each in found if each.startswith(word)), None)


class NameStep(FormDialog[Said]):
    """Enter takes what is written; dismissed with it, or with None when the person goes back.

    problem: why what was said before cannot be so. An action that is sent a second time is meant as it is.
    """

    DEFAULT_CSS = """
    NameStep .row { margin-top: 1; }
    NameStep .label { width: 9; }
    NameStep #naming-hint { padding-left: 9; color: $muted; height: 1; }
    NameStep #naming-problem { color: $verdict-warn; }
    """

    def __init__(self, said: Said, seen: Seen, keys: dict[str, str], problem: str = "") -> None:
        super().__init__("Name this step", seen_in_words(seen), "takes it", keys)
        self._said, self._seen, self._problem = said, seen, sanitize(problem)

    def answer(self) -> ComposeResult:
        if self._problem:
            again = " Sent again, it is taken as your own word." if "did you mean" in self._problem else ""
            yield Static(self._problem + again, id="naming-problem", markup=False)
        likely = [feature.rpartition(" / ")[2] for feature in self._seen.gone]
        yield from _row("action", self._said.action, "a word such as pipeline", _Words(likely))
        yield Static(id="naming-hint", markup=False)
        removes = ", ".join(self._said.removes)
        yield from _row(
            "removes", removes, "features, with commas; nothing if it removes none", _Words(likely)
        )
        yield from _row("title", self._said.title, "what it does, in a few words")
        following, completes = shown_key(self._keys["next-pane"]), shown_key("right")
        yield Static(f"{following} next field   {completes} completes the word", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one("#naming-action", Input).focus()
        self._explain()

    def on_input_changed(self, message: Input.Changed) -> None:
        if message.input.id == "naming-action":
            self._explain()

    def _explain(self) -> None:
        typed = self._value("action")
        self.query_one("#naming-hint", Static).update(Content(clip(explained(typed), _WIDE - 9)))

    def _value(self, field: str) -> str:
        return self.query_one(f"#naming-{field}", Input).value.strip()

    def action_dialog_confirm(self) -> None:
        action, title = self._value("action"), self._value("title")
        missing = "an action" if not action else "a title" if not title else ""
        if missing:
            self.notify(f"A step needs {missing}: type a few letters.", severity="warning")
            return
        removes = tuple(part.strip() for part in self._value("removes").split(",") if part.strip())
        again = bool(self._problem) and action == self._said.action
        self.dismiss(Said(action, title, removes, again))


def explained(typed: str) -> str:
    """What an action means, or what was probably meant, or which words go on from here."""
    try:
        words = vocabulary.normal(typed).split("+")
    except KlineageError:
        return "a word of letters, digits and _; two with +" if typed else "e.g. tiling, pipeline, simd"
    word = words[-1]
    if word in vocabulary.ACTIONS:
        return vocabulary.ACTIONS[word]
    going_on = [each for each in vocabulary.completions(word) if each.startswith(word)]
    if going_on:
        return "… " + ", ".join(going_on)
    if (meant := vocabulary.nearest(word)) is not None:
        return f"did you mean {meant}?"
    return "edited by hand" if word == "edit" else "a word of your own"


def _row(field: str, value: str, placeholder: str, suggester: Suggester | None = None) -> ComposeResult:
    with Horizontal(classes="row"):
        yield Static(field, classes="label", markup=False)
        yield Input(
            value=sanitize(value),
            placeholder=placeholder,
            suggester=suggester,
            select_on_focus=True,
            id=f"naming-{field}",
        )


def seen_in_words(seen: Seen) -> str:
    """What the detectors make of an edit, in a sentence or two that are safe to show."""
    gone = f"Your edit takes out {_listed(seen.gone)}."
    if not seen.gone:
        gone = "The detectors see nothing gone; say what your edit takes out."
    come = f" It puts in {_listed(seen.come)}, and a step back adds nothing." if seen.come else ""
    return sanitize(gone + come)


def _listed(features: Sequence[str]) -> str:
    shown = [f"{name} at {locus}" for locus, _, name in (f.rpartition(" / ") for f in features[:_SEEN])]
    more = len(features) - _SEEN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
