"""card merge, split, retire, undo, redo: a person's decisions on whole cards, each one commit with its reason."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from klineage_tui.commands.common import print_json, say, shown_command

if TYPE_CHECKING:
    from klineage.skill.library import Library


def add_deciding(sub: Callable[..., argparse.ArgumentParser]) -> None:
    """The arguments of these verbs; ``sub`` adds one."""
    merge = sub("merge", "make two cards one: OTHER is retired, what it knows goes to KEPT", "KEPT", "OTHER")
    split = sub("split", "make two cards of one: what is moved out becomes NEW", "ID", "NEW")
    split.add_argument(
        "--intent", required=True, metavar="TEXT", help="what the new card does, in one sentence"
    )
    split.add_argument(
        "--move", action="append", default=[], metavar="ITEM", required=True,
        help="preconditions.KEY, evidence.KEY, effects.N or risks.N; may be repeated",
    )  # fmt: skip
    retire = sub("retire", "put a card out of use; it stays, with its history", "ID")
    undo = sub("undo", "take the last decision on cards back")
    redo = sub("redo", "take the last undone decision again")
    for decision in (merge, split, retire):
        decision.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    for decision in (merge, split, retire, undo, redo):
        decision.add_argument("--who", default="", metavar="NAME", help="who decides (default: git's user)")


def _merge(arguments: argparse.Namespace, library: Library) -> int:
    from klineage.skill.library.curating import united

    kept, other = library.entry(arguments.kept), library.entry(arguments.other)
    both = united(library.get(kept.id), library.get(other.id), arguments.reason)
    library.save_all(
        both, arguments.who, arguments.reason, title=f"Merge {other.id} into {kept.id}",
        expected={kept.id: kept.revision, other.id: other.revision},
    )  # fmt: skip
    return _decided(arguments, library, [kept.id, other.id], f"{other.id} is merged into {kept.id}")


def _split(arguments: argparse.Namespace, library: Library) -> int:
    from klineage.skill.library.curating import parted

    entry = library.entry(arguments.id)
    rest, new = parted(library.get(arguments.id), arguments.new, arguments.intent, arguments.move)
    library.save_all(
        (rest, new), arguments.who, arguments.reason, title=f"Split {new.id} off {rest.id}",
        expected={rest.id: entry.revision, new.id: ""},
    )  # fmt: skip
    sentence = f"{new.id} is split off {rest.id}; it is a hypothesis until it is tried"
    return _decided(arguments, library, [rest.id, new.id], sentence)


def _retire(arguments: argparse.Namespace, library: Library) -> int:
    from klineage.skill.library.curating import retired

    library.update(
        arguments.id, lambda card: retired(card, arguments.reason), arguments.who, arguments.reason,
        title=f"Retire {arguments.id}",
    )  # fmt: skip
    return _decided(arguments, library, [arguments.id], f"{arguments.id} is retired")


def _turn(arguments: argparse.Namespace, library: Library) -> int:
    what = (library.undo if arguments.action == "undo" else library.redo)(arguments.who)
    done = "taken back" if arguments.action == "undo" else "taken again"
    print_json({arguments.action: what}) if arguments.json else say(f"{done}: {what}")
    return 0


def _decided(arguments: argparse.Namespace, library: Library, ids: Sequence[str], sentence: str) -> int:
    from klineage.skill.staleness import verified_by

    if arguments.json:
        print_json([{"id": key, "revision": library.entry(key).revision} for key in ids])
    else:
        for card in filter(None, (library.entry(key).card for key in ids)):
            if card.status == "admitted" and not verified_by(card):
                again = shown_command(arguments, f"admit {card.id}")
                say(f"stale: no trial of {card.id} is of the card as it is now; {again} tries it again")
        say(f"{sentence}; {shown_command(arguments, 'card undo')} takes it back")
    return 0


DECISIONS: Mapping[str, Callable[[argparse.Namespace, Library], int]] = {
    "merge": _merge, "split": _split, "retire": _retire, "undo": _turn, "redo": _turn,
}  # fmt: skip
