"""library: bring cards from elsewhere, merge libraries that went apart, compare them, write one as a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import (
    Run,
    add_json,
    add_library,
    add_workspace,
    opened_library,
    opened_workspace,
    print_json,
    say,
    short_value,
    shown_command,
)

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library import Library
    from klineage.skill.library.merge import Side as Taken
    from klineage.skill.library.pull import CardConflict, Pulled


def library_command(parser: argparse.ArgumentParser) -> Run:
    actions = parser.add_subparsers(dest="action", required=True, metavar="pull|merge|diff|write")
    for name, what in (
        ("pull", "bring the cards of a folder or of another workspace into this one"),
        ("merge", "merge a library that went its own way: a workspace, or a branch such as origin/library"),
    ):
        sub = actions.add_parser(name, help=what)
        sub.add_argument(
            "source", metavar="SOURCE", help="a folder with cards/, a workspace, a branch, or: shipped"
        )
        sub.add_argument(
            "--take", action="append", default=[], metavar="WHAT=SIDE",
            help="of what both sides changed: CARD:FIELD, CARD or '*', and ours or theirs; may be repeated",
        )  # fmt: skip
        sub.add_argument("--who", default="", metavar="NAME", help="who brings them (default: git's user)")
        add_workspace(sub)
        add_json(sub)
    diff = actions.add_parser("diff", help="compare two libraries, card by card and field by field")
    diff.add_argument("a", metavar="A", help="a folder with cards/, a workspace, or: shipped")
    diff.add_argument("b", metavar="B", nargs="?", help="another (default: the workspace's)")
    add_workspace(diff)
    add_json(diff)
    write = actions.add_parser(
        "write", help="write the cards, with the reports and lineages they cite, to a folder"
    )
    write.add_argument("folder", metavar="FOLDER", type=Path)
    write.add_argument("--all", action="store_true", help="hypotheses too (default: admitted cards)")
    add_library(write)
    add_json(write)
    return _library


def _library(arguments: argparse.Namespace) -> int:
    return {"pull": _pull, "merge": _pull, "diff": _diff, "write": _write}[arguments.action](arguments)


def _pull(arguments: argparse.Namespace) -> int:
    from klineage.skill.library.git import GitShelf
    from klineage.skill.library.pull import Conflicts, pull

    try:
        with opened_workspace(arguments, create=arguments.action == "pull") as workspace:
            pulled = pull(GitShelf(workspace), arguments.source, arguments.who, taken_sides(arguments.take))
    except Conflicts as conflicts:
        if arguments.json:
            print_json({"conflicts": [_conflict_row(item) for item in conflicts.conflicts]})
        else:
            for item in conflicts.conflicts:
                say(f"CONFLICT {item}")
        raise
    if arguments.json:
        print_json(pulled)
    else:
        _say_pulled(arguments, pulled)
    return 0


def _conflict_row(item: CardConflict) -> dict[str, object]:
    said = item.conflict
    return {
        "card": item.card, "line": item.line, "field": said.field, "base": said.base, "ours": said.ours,
        "theirs": said.theirs,
    }  # fmt: skip


def taken_sides(words: Sequence[str]) -> dict[str, Taken]:
    """``--take c.prefetch:intent=theirs`` as what a pull asks for."""
    found: dict[str, Taken] = {}
    for word in words:
        what, sign, side = word.rpartition("=")
        if not sign or side not in ("ours", "theirs"):
            raise KlineageError(f"--take cannot be {word!r}; write CARD:FIELD=ours, CARD=theirs or '*=ours'")
        found[what.strip()] = "ours" if side == "ours" else "theirs"
    return found


def _say_pulled(arguments: argparse.Namespace, pulled: Pulled) -> None:
    for word, ids in (("new", pulled.added), ("changed", pulled.changed)):
        for name in ids:
            say(f"{word:<8} {name}")
    for name in pulled.lineages:
        there = pulled.renamed.get(name)
        why = f", which is {there} there: that name is taken here" if there else ""
        say(f"lineage  {name}{why}")
    for problem in pulled.problems:
        say(f"left out: {problem}")
    if not pulled.added and not pulled.changed:
        say(f"nothing new in {arguments.source}")
    else:
        what = f"{plural(len(pulled.added), 'card')} new, {len(pulled.changed)} changed"
        say(f"{what}; {shown_command(arguments, 'card undo')} takes it back")


def _diff(arguments: argparse.Namespace) -> int:
    from klineage.skill.library.fields import changed_fields

    one, two = _side(arguments.a), _side(arguments.b or str(arguments.workspace or default_workspace()))
    try:
        a, b = _cards(one), _cards(two)
        problems = [entry.problem for library in (one, two) for entry in library.cards() if entry.problem]
    finally:
        one.close()
        two.close()
    changed = {key: changed_fields(a[key], b[key]) for key in sorted(a.keys() & b.keys()) if a[key] != b[key]}
    only_a, only_b = sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys())
    if arguments.json:
        print_json({"only_a": only_a, "only_b": only_b, "changed": changed, "problems": problems})
        return 0
    for word, ids in (("only A", only_a), ("only B", only_b)):
        for name in ids:
            say(f"{word:<8} {name}")
    for name, fields in changed.items():
        say(f"differs  {name}")
        for field in fields:
            say(f"         {field.field}")
            say(f"           A  {short_value(field.before)}")
            say(f"           B  {short_value(field.after)}")
    for problem in problems:
        say(f"broken   {problem}")
    if not (only_a or only_b or changed or problems):
        say("the same cards")
    return 0


def _side(where: str) -> Library:
    from klineage.skill.library import Library

    return Library.open(where)


def _cards(library: Library) -> dict[str, Card]:
    return {entry.id: entry.card for entry in library.cards() if entry.card is not None}


def _write(arguments: argparse.Namespace) -> int:
    from klineage.skill.card import STATUSES
    from klineage.skill.library.folder_write import write_folder

    with opened_library(arguments) as library:
        written = write_folder(library, arguments.folder, STATUSES if arguments.all else ("admitted",))
    if arguments.json:
        print_json(written)
    else:
        for card_id in written.removed:
            say(f"removed  {card_id}")
        for problem in written.problems:
            say(f"left out: {problem}")
        count = f"{plural(len(written.cards), 'card')}, {plural(written.reports, 'report')}"
        say(f"{count} and {plural(len(written.lineages), 'lineage')} in {arguments.folder}")
    return 1 if written.problems else 0


COMMANDS = {"library": library_command}
