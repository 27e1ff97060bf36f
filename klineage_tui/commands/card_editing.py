"""card edit: in $EDITOR, from a file, or field by field; what cannot be a card is named by line and never saved."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

from klineage_tui.commands.card_problems import problem_line, problem_rows
from klineage_tui.commands.common import print_json, say, shown_command

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library import Library


def add_edit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE",
        help="set one field: intent, preconditions.p1.text, scope.workloads ...; @FILE reads it from a file; may be repeated",
    )  # fmt: skip
    parser.add_argument("--file", type=Path, metavar="FILE", help="take this file as the card")
    parser.add_argument("--new", action="store_true", help="the card is not there yet: begin one")
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="why, for the record (asked for in a terminal)"
    )
    parser.add_argument("--who", default="", metavar="NAME", help="who edits (default: git's user)")


def edit(arguments: argparse.Namespace, library: Library) -> int:
    """Run ``card edit``."""
    if arguments.set and arguments.file:
        raise KlineageError("give --set or --file, not both")
    if not arguments.reason and not sys.stdin.isatty():
        raise KlineageError("say why with --reason; every edit is kept with its reason")
    revision, before = _before(arguments, library)
    after = _after(arguments, before)
    if after == before and revision:
        say("nothing changed")
        return 0
    try:
        reason = arguments.reason or _asked("why (for the record): ")
        revision = _saved(arguments, library, revision, (before, after), reason)
    except KlineageError as error:
        raise KlineageError(f"{error}; {_kept(arguments.id, after)}") from error
    return _told(arguments, library, revision)


def _before(arguments: argparse.Namespace, library: Library) -> tuple[str, bytes]:
    """(revision, file) of the card as it is; of one to begin, ("", a file to fill in)."""
    if not arguments.new:
        entry = library.entry(arguments.id)
        return entry.revision, library.source(arguments.id)
    from klineage.skill.card import check_id
    from klineage.skill.file import render

    if check_id(arguments.id) in library.stamps():
        raise KlineageError(f"there is a card {arguments.id} already; edit it without --new")
    return "", render(_template(arguments.id))


def _template(card_id: str) -> Card:
    from klineage.skill.card import Anchor, Card, Carrier, Precondition, Risk

    surface, _, words = card_id.partition(".")
    return Card(
        card_id, "What it does, in one sentence.", words.partition("-")[0], surface,  # type: ignore[arg-type]  # checked
        preconditions=(Precondition("p1", "storage", "What must hold before, and what breaks without it."),),
        risks=(Risk("What can go wrong."),),
        anchor=Anchor("Where it acts."),
        carrier=Carrier("the code before\n", "the code after\n"),
    )  # fmt: skip


def _after(arguments: argparse.Namespace, before: bytes) -> bytes:
    if arguments.file:
        try:
            return bytes(arguments.file.read_bytes())
        except OSError as error:
            raise KlineageError(f"cannot read {arguments.file}: {error.strerror}") from error
    if not arguments.set:
        return _in_editor(arguments.id, before)
    from klineage.skill.file import edited, parse
    from klineage.skill.library.setting import with_fields

    name = f"{arguments.id}.md"
    card = with_fields(parse(before, name), [_assignment(word) for word in arguments.set])
    return edited(before, card)


def _assignment(word: str) -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign:
        raise KlineageError(f"--set cannot be {word!r}; write FIELD=VALUE")
    if not text.startswith("@"):
        return name.strip(), text
    try:
        return name.strip(), Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KlineageError(f"cannot read {text[1:]} for {name}: {error}") from error


def _in_editor(card_id: str, before: bytes) -> bytes:
    """What the person makes of the file; opened again, at the line that is wrong, as long as they want to mend it."""
    import re

    from klineage.skill.library.sound import sound_card

    from klineage_tui.config import editor_command, load_config
    from klineage_tui.editor import edit_outside

    name, text, line = f"{card_id}.md", before, 1
    card = _readable(before, name)
    while True:
        text = edit_outside(editor_command(load_config()), name, text, line, nullcontext)
        try:
            sound_card(text, name, card)
            return text
        except KlineageError as error:
            said = str(error)
            try:
                again = sys.stdin.isatty() and _again(error)
            except KlineageError:
                again = False
            if not again:
                raise KlineageError(f"{said}; nothing was saved; {_kept(card_id, text)}") from error
            found = re.match(r"[^:]*:(\d+):", said)
            line = int(found[1]) if found else 1


def _readable(data: bytes, name: str) -> Card | None:
    from klineage.skill.file import parse

    try:
        return parse(data, name)
    except KlineageError:
        return None  # it is opened to be mended


def _again(error: KlineageError) -> bool:
    say(str(error))
    return _asked("edit it again? [Y/n] ").lower() in ("", "y", "yes")


def _asked(question: str) -> str:
    """The person's answer. Raises KlineageError when they stop, so that what they wrote is kept."""
    try:
        return input(question).strip()
    except (EOFError, KeyboardInterrupt) as stopped:
        raise KlineageError("stopped; nothing was saved") from stopped


def _kept(card_id: str, text: bytes) -> str:
    """Where the text that was not saved can be found; said, so that no edit is lost."""
    folder = Path(tempfile.mkdtemp(prefix="klineage-edit-"))
    file = folder / f"{card_id}.md"
    file.write_bytes(text)
    return f"your text is in {file}; klineage card edit {card_id} --file takes it from there"


def _saved(
    arguments: argparse.Namespace, library: Library, revision: str, sides: tuple[bytes, bytes], reason: str
) -> str:
    """Save the edit; where somebody saved another meanwhile, merge the two field by field."""
    from klineage.lineage import Moved
    from klineage.skill.file import parse
    from klineage.skill.library.merge import merge_cards

    before, after = sides
    card_id, who = arguments.id, arguments.who
    try:
        return library.save_source(card_id, after, who, reason, expected=revision)
    except Moved:
        entry = library.entry(card_id)
        if entry.card is None or not revision:
            raise
        name = f"{card_id}.md"
        merged, conflicts = merge_cards(parse(before, name), entry.card, parse(after, name))
        if conflicts:
            fields = ", ".join(conflict.field for conflict in conflicts)
            raise KlineageError(
                f"somebody has edited {fields} of {card_id} meanwhile; nothing was saved"
            ) from None
        say(f"{card_id} was edited meanwhile, elsewhere in it; both edits are kept")
        return library.save(merged, who, reason, expected=entry.revision)


def _told(arguments: argparse.Namespace, library: Library, revision: str) -> int:
    from klineage.skill.staleness import stale

    card = library.get(arguments.id)
    rows = problem_rows(library, [library.entry(card.id)])
    old = dict(stale(card))
    if arguments.json:
        print_json({"id": card.id, "revision": revision, "stale": old, "problems": rows})
        return 0
    for row in rows:
        say(problem_line(row))
    for key, fields in old.items():
        say(f"stale: {key} rests on {', '.join(fields)}, edited since")
    say(f"{card.id} is saved; {shown_command(arguments, 'card undo')} takes it back")
    return 0
