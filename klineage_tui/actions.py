"""Every action of the app, once: keys, palette, footer, help, docs and command-line verbs are read from here.

Importing this module needs no Textual, so that the command line can read its verbs from it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from klineage.errors import KlineageError

from klineage_tui.keys import normal_keys, shown_keys, split_keys

if TYPE_CHECKING:
    from textual.binding import Binding

Preset = Literal["default", "vim"]
PRESETS: tuple[Preset, ...] = ("default", "vim")

# "view" is any list of lines; "editor", "hunks" and "dialog" are screens on top of a place.
PLACES: dict[str, str] = {
    "app": "Everywhere",
    "lineages": "Lineages",
    "induce": "Induce",
    "history": "History",
    "cards": "Cards",
    "library": "Library",
    "ablation": "Ablation",
    "view": "Moving in lists, code and diffs",
    "editor": "Editing a kernel in the app",
    "hunks": "Choosing changes of a proposal",
    "features": "The features of a kernel",
    "evidence": "The evidence of a card",
    "dialog": "Questions",
}
SCREENS = ("lineages", "induce", "history", "cards", "library", "ablation")


@dataclass(frozen=True)
class Action:
    """One thing a person can do.

    key, vim: Textual key names, comma-separated; an empty ``vim`` means the default keys.
    footer:   position in the footer of its places, lowest first; None keeps it out.
    verb:     the command of the same meaning on the command line, if there is one.
    """

    id: str
    title: str
    description: str
    key: str
    places: tuple[str, ...]
    vim: str = ""
    footer: int | None = None
    verb: str = ""

    def keys(self, preset: Preset) -> str:
        return (self.vim or self.key) if preset == "vim" else self.key


def _a(
    id: str,
    title: str,
    keys: str,
    places: str,
    description: str,
    footer: int | None = None,
    *,
    vim: str = "",
    verb: str = "",
) -> Action:
    default, vim = normal_keys(keys), normal_keys(vim)
    return Action(id, title, description, default, tuple(places.split()), vim, footer, verb)


# fmt: off
ACTIONS: tuple[Action, ...] = (
    # Everywhere
    _a("induce", "Induce", "1", "app", "Go to Induce: proposals, their diffs and gates"),
    _a("history", "History", "2", "app", "Go to History: steps, comparisons, blame", verb="log"),
    _a("cards", "Cards", "3", "app", "Go to Cards: what each one claims, what shows it, what needs you"),
    _a("library", "Library", "4", "app", "Go to Library: which cards hold for a kernel, and why"),
    _a("lineages", "Lineages", "o", "app", "Open another lineage of this workspace"),
    _a("next-pane", "Next pane", "tab", "app", "Focus the next pane, or the next tab when narrow"),
    _a("previous-pane", "Previous pane", "shift+tab", "app", "Focus the previous pane or tab"),
    _a("theme", "Theme", "t", "app", "Switch to the next theme; the choice is remembered"),
    _a("layout", "Unified or split", "d", "app", "Show diffs in one column or side by side"),
    _a("palette", "Commands", "ctrl+p", "app", "Search every command", vim="ctrl+p,colon"),
    _a("help", "help", "question_mark", "app evidence", "Show every key of this place", footer=90),
    _a("quit", "Quit", "q", "app", "Leave; everything is already saved", footer=80),
    # Induce
    _a("accept", "accept", "a", "induce", "Commit this gated proposal as a step", 1, verb="accept"),
    _a("reject", "reject", "x", "induce", "Keep it as a rejected attempt, with a reason", 2, verb="reject"),
    _a("edit", "edit", "e", "induce", "Edit this proposal here; the draft is saved as you type", 3),
    _a("editor", "editor", "E", "induce", "Edit this proposal in $EDITOR, at the changed line", 5),
    _a("changes", "changes", "c", "induce", "Take some changes of this proposal and not the others", 12),
    _a("name", "Name", "N", "induce", "Say what your edit removes, and what it is called"),
    _a("gate", "gate", "g", "induce", "Check it: static, compile, correctness, profile", 4, verb="gate"),
    _a("skip", "skip", "s", "induce", "Leave this proposal for later and go to the next", 6),
    _a("undo", "undo", "u", "induce history", "Take back the last decision", 7, verb="undo"),
    _a("redo", "redo", "ctrl+r,U", "induce history", "Bring back the decision that was undone", verb="redo"),
    _a("next-pending", "next pending", "n", "induce", "Go to the next undecided proposal", 8),
    _a("next-proposal", "Next proposal", "]", "induce", "Show the next proposal", verb="propose"),
    _a("previous-proposal", "Previous proposal", "[", "induce", "Show the previous proposal"),
    _a("ask", "ask", "p", "induce", "Ask a model or a command for a proposal, with a hint", 10, verb="propose"),
    _a("walk", "walk", "W", "induce", "Walk by itself: take what passes, step by step, until a limit", 11, verb="walk"),
    _a("features", "Features", "f", "induce", "Show what mechanisms the kernel has, and settle the unknown ones", verb="features"),
    _a("seal", "seal", "S", "induce", "End the walk: derive and check the forward lineage", 9, verb="seal"),
    _a("cancel", "cancel", "escape", "induce", "Stop the running gate, seal or question", footer=0),
    # History
    _a("compare-from", "mark", "m", "history", "Mark this state as the one to compare with", 1, verb="diff"),
    _a("blame", "blame", "b", "history", "Show which optimization wrote each line", 2, verb="blame"),
    _a("waterfall", "waterfall", "w", "history", "Show the latency of each step as bars", 3),
    _a("direction", "direction", "f", "history", "Switch between the walk and the sealed lineage", 4),
    _a("git-commands", "git", "c", "history", "Show the plain git commands for what is on screen", 5),
    _a("branch", "Branch", "B", "history", "Go on from the state under the cursor as a lineage of its own", verb="branch"),
    # Cards
    _a("card-accept", "accept", "a", "cards", "Admit this card, which a held-out kernel has shown", 1),
    _a("card-retire", "retire", "x", "cards", "Take this card out of use, with a reason; it is kept", 2),
    _a("card-edit", "edit", "e", "cards", "Edit the field under the cursor, with a reason", 3, verb="card"),
    _a("card-try", "try", "g", "cards", "Gate this card alone on a kernel that it has never seen", 4, verb="admit"),
    _a("card-probe", "probe", "p", "cards", "Break the precondition under the cursor, and gate what happens", 5, verb="probe"),
    _a("card-check", "check", "c", "cards", "Evaluate the preconditions on a kernel: holds, fails, unknown", 8, verb="check"),
    _a("card-skip", "skip", "s", "cards", "Leave this card for later and go to the next", 9),
    _a("card-next", "next", "n", "cards", "Go to the next card that needs you", 6),
    _a("card-undo", "undo", "u", "cards", "Take back the last decision on the library", 7),
    _a("card-redo", "redo", "ctrl+r,U", "cards", "Bring back the decision that was undone"),
    _a("card-editor", "editor", "E", "cards", "Edit the whole card in $EDITOR; it is checked before it is taken", 12),
    _a("card-whole", "Whole card", "w", "cards", "Edit the whole card here, checked as you type"),
    _a("card-add", "Add", "+", "cards", "Add a precondition, or a risk where the cursor is on one"),
    _a("card-remove", "Remove", "-", "cards", "Take the precondition or risk under the cursor out of the card"),
    _a("card-boundary", "Boundary", "b", "cards", "Search where the precondition under the cursor begins to matter", verb="probe"),
    _a("card-merge", "Merge", "M", "cards", "Unite another card with this one; what it knows goes here"),
    _a("card-revisions", "Revisions", "r", "cards", "Show who edited this card, when and why"),
    _a("card-cancel", "cancel", "escape", "cards", "Stop the running probe or trial", 0),
    _a("ablation", "ablation", "A", "history cards", "Show what each step is worth first, in order and last", 15, verb="ablate"),
    _a("lift", "lift", "L", "induce history cards library", "Lift cards from a sealed lineage", 13, verb="lift"),
    # Library
    _a("library-search", "target", "/", "library", "Say for what kernel or words cards are looked for", 1, verb="retrieve"),
    _a("library-all", "all", "v", "library", "Show the hypotheses too, and not only what is admitted", 2),
    _a("library-export", "export", "x", "library", "Write cards as Agent Skills or training records", 3, verb="export"),
    _a("library-pull", "pull", "P", "cards library", "Bring the shipped cards, or another library's, in here", 14, verb="library"),
    # Ablation
    _a("ablation-measure", "measure", "g", "ablation", "Gate every step alone, first and last; escape stops it", 2, verb="ablate"),
    _a("ablation-offer", "require", "r", "ablation", "Let the card of this step require what it stands on, with a reason", 3),
    _a("ablation-record", "write", "w", "ablation", "Write what is shown first and last into the cards of the lineage", 4),
    _a("ablation-history", "history", "H", "ablation", "Show this step in History", 5),
    _a("ablation-leave", "back", "escape", "ablation", "Stop measuring, or go back to where you came from", 6),
    # The evidence of a card
    _a("evidence-history", "history", "H", "evidence", "Show this step in History", 1),
    _a("evidence-leave", "leave", "escape", "evidence", "Go back to the card", 2),
    # Lists, code and diffs
    _a("line-down", "Down", "down,j", "view", "One line down"),
    _a("line-up", "Up", "up,k", "view", "One line up"),
    _a("scroll-left", "Left", "left", "view", "Scroll to the left", vim="left,h"),
    _a("scroll-right", "Right", "right", "view", "Scroll to the right", vim="right,l"),
    _a("page-down", "Page down", "pagedown,space", "view", "One page down", vim="pagedown,space,ctrl+f"),
    _a("page-up", "Page up", "pageup", "view", "One page up", vim="pageup,ctrl+b"),
    _a("to-top", "Top", "home", "view", "First line"),
    _a("to-end", "End", "end", "view", "Last line", vim="end,G"),
    _a("next-hunk", "Next change", "}", "view", "Next changed block", vim="},J"),
    _a("previous-hunk", "Previous change", "{", "view", "Previous changed block", vim="{,K"),
    _a("open", "open", "enter", "lineages library ablation view", "Open or select what the cursor is on", 1),
    # The editor in the app
    _a("editor-done", "done", "ctrl+s", "editor", "Take these bytes as the proposal and go back", 1),
    _a("editor-leave", "leave", "escape", "editor", "Go back; the draft is kept and offered again", 2),
    _a("editor-discard", "discard", "ctrl+g", "editor", "Throw the draft away, after a question", 3),
    # Choosing changes
    _a("hunk-toggle", "take or leave", "space", "hunks", "Take the change under the cursor, or leave it out", 1),
    _a("hunk-all", "all", "a", "hunks", "Take every change, or none", 2),
    _a("hunks-take", "done", "enter", "hunks", "Make the changes that are taken your proposal", 3),
    _a("hunks-leave", "leave", "escape", "hunks", "Go back; the proposal stays as it is", 4),
    # The features of a kernel
    _a("feature-present", "present", "p", "features", "Say that this unknown mechanism is there", 1),
    _a("feature-absent", "absent", "a", "features", "Say that this unknown mechanism is not there", 2),
    _a("feature-ask", "ask a model", "m", "features", "Ask a model about what is unknown; you decide", 3, verb="features"),
    _a("features-leave", "leave", "escape,f", "features", "Go back to the proposals", 4),
    # Questions
    _a("dialog-confirm", "confirm", "enter,y", "dialog", "Answer yes, or send what is typed", 1),
    _a("dialog-cancel", "cancel", "escape,n", "dialog", "Go back; nothing happens", 2),
    _a("dialog-next", "next", "down", "dialog", "The next of several choices", vim="down"),
    _a("dialog-previous", "previous", "up", "dialog", "The choice before", vim="up"),
)
# fmt: on

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}


def actions_of(place: str) -> tuple[Action, ...]:
    """The actions of one place, in the order of the registry. Raises KeyError for an unknown place."""
    PLACES[place]
    return tuple(action for action in ACTIONS if place in action.places)


def keymap(preset: Preset = "default", overrides: Mapping[str, str] | None = None) -> dict[str, str]:
    """Action id -> comma-separated Textual keys, after the preset and the person's overrides.

    Raises KlineageError when an override names no action, is empty, or leaves one key with two meanings.
    """
    keys = {action.id: action.keys(preset) for action in ACTIONS}
    for id, wanted in (overrides or {}).items():
        if id not in keys:
            raise KlineageError(f"keys: there is no action '{id}'; docs/keys.md lists them all")
        keys[id] = normal_keys(wanted)
        if not all(split_keys(keys[id])):
            raise KlineageError(f"keys: '{id}' needs at least one key, not {wanted!r}")
    _refuse_conflicts(keys)
    return keys


def bindings_for(place: str) -> list[Binding]:
    """The Textual bindings of a place, each with the action's id so that a keymap can move it.

    Screens get ``verb('<id>')`` and answer it (see ``screens.place``); views, editors and dialogs get
    the id itself with underscores, e.g. ``action_line_down``.
    """
    from textual.binding import Binding

    keys = keymap()
    return [
        Binding(
            keys[action.id],
            f"verb('{action.id}')" if place in ("app", *SCREENS) else action.id.replace("-", "_"),
            action.title,
            show=action.footer is not None,
            tooltip=action.description,
            id=action.id,
            # Before the focused widget: tab leaves no view, and no view keeps a key of the editor or the choice.
            priority=place in ("editor", "hunks") or action.id in ("next-pane", "previous-pane"),
        )
        for action in actions_of(place)
    ]


def _refuse_conflicts(keys: Mapping[str, str]) -> None:
    """A key has one meaning on each screen: its own actions, the app's, and those of its views."""
    for screen in SCREENS:
        _refuse_within(keys, (screen, "app", "view"))
    for screen in ("features", "evidence", "dialog"):
        _refuse_within(keys, (screen, "view"))
    _refuse_within(keys, ("editor",))
    _refuse_within(keys, ("hunks",))


#: What a key does in a question's inputs and in its list: the same to whoever presses it.
_ALIKE = {"dialog-confirm": "open", "dialog-next": "line-down", "dialog-previous": "line-up"}


def _refuse_within(keys: Mapping[str, str], places: tuple[str, ...]) -> None:
    meaning: dict[str, str] = {}
    for action in ACTIONS:
        if not set(places) & set(action.places):
            continue
        for key in split_keys(keys[action.id]):
            other = meaning.setdefault(key, action.id)
            if _ALIKE.get(other, other) != _ALIKE.get(action.id, action.id):
                where = PLACES[places[0]]
                raise KlineageError(
                    f"keys: '{shown_keys(key)}' would mean both '{other}' and '{action.id}' in {where}; "
                    "give one of them another key"
                )


def key_sheet() -> str:
    """docs/keys.md, whole."""
    lines = [
        "# Keys",
        "",
        "Generated by `python -m klineage_tui.actions`; change `klineage_tui/actions.py` instead.",
        "",
        'Choose a preset with `keys = "vim"` in the configuration file, and move any action by its id',
        'under `[overrides]`, e.g. `accept = "y"`. A key with two meanings is refused at the start.',
    ]
    for place, heading in PLACES.items():
        lines += [
            "",
            f"## {heading}",
            "",
            "| action | default | vim | what it does | command |",
            "|---|---|---|---|---|",
        ]
        for action in actions_of(place):
            command = f"`klineage {action.verb}`" if action.verb else ""
            lines.append(
                f"| `{action.id}` | {_cell(action.key)} | {_cell(action.keys('vim'))} "
                f"| {action.description} | {command} |"
            )
    return "\n".join(lines) + "\n"


def _cell(keys: str) -> str:
    return " ".join(f"`{shown_keys(key)}`" for key in split_keys(keys)).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(key_sheet())
