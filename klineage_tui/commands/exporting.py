"""export and import-cards: cards to and from other tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.numbers import plural

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import (
    Run,
    add_json,
    add_workspace,
    opened_workspace,
    print_json,
    say,
)
from klineage_tui.commands.libraries import add_libraries, opened_libraries

if TYPE_CHECKING:
    from klineage.interop.authors import Imported
    from klineage.interop.training import Shelved
    from klineage.skill.card import Card
    from klineage.skill.library import Library


def export_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("cards", nargs="*", metavar="CARD", help="only these (default: every admitted card)")
    parser.add_argument(
        "--as",
        dest="form",
        choices=("skills", "jsonl"),
        required=True,
        help="Agent Skills, or training records",
    )
    parser.add_argument(
        "--to", type=Path, required=True, metavar="PATH",
        help="the folder that skills are written under, e.g. .claude/skills; or the file of the records ('-': print them)",
    )  # fmt: skip
    parser.add_argument(
        "--layout", choices=("one", "family", "each"), default="one",
        help="one skill for all cards, one for each workload, or one for each card (default: one)",
    )  # fmt: skip
    parser.add_argument(
        "--name",
        default="",
        metavar="NAME",
        help="of the one skill, or what the names of families begin with",
    )
    parser.add_argument(
        "--all", action="store_true", help="hypotheses too, marked as such; never retired cards"
    )
    parser.add_argument("--force", action="store_true", help="write into folders of others, too")
    add_libraries(parser)
    add_json(parser)
    return _export


def _export(arguments: argparse.Namespace) -> int:
    with opened_libraries(arguments) as libraries:
        kept, problems = _chosen(libraries, arguments)
        if arguments.form == "skills":
            return _skills(kept, problems, arguments)
        return _records(kept, problems, libraries, arguments)


def _chosen(libraries: tuple[Library, ...], arguments: argparse.Namespace) -> tuple[list[Shelved], list[str]]:
    """The cards that were asked for, each from the first library that has it, and what is wrong with others.

    Where all admitted cards are asked for, an admitted one counts before an earlier library's hypothesis of its name.
    """
    from klineage.interop.training import Shelved
    from klineage.skill.card import takes_its_place

    found: dict[str, Shelved] = {}
    problems: list[str] = []
    for library in libraries:
        for entry in library.cards():
            if entry.card is None:
                problems.append(entry.problem)
                continue
            earlier = found.get(entry.id)
            wanted_all = not (arguments.cards or arguments.all)
            if earlier is None or (wanted_all and takes_its_place(earlier.card.status, entry.card.status)):
                found[entry.id] = Shelved(entry.card, library.path.name, entry.revision)
    missing = [name for name in arguments.cards if name not in found]
    if missing:
        raise KlineageError(
            f"there is no card {', '.join(missing)} here; klineage card list shows what there is"
        )
    statuses = ("admitted", "hypothesis") if arguments.all or arguments.cards else ("admitted",)
    wanted = set(arguments.cards or found)
    return [s for name, s in sorted(found.items()) if name in wanted and s.card.status in statuses], problems


def _skills(kept: list[Shelved], problems: list[str], arguments: argparse.Namespace) -> int:
    from klineage.interop.agent_skills import NAME, skills
    from klineage.interop.skill_folders import clear, write

    made = skills((shelved.card for shelved in kept), arguments.layout, name=arguments.name or NAME)
    places = write(made, arguments.to, force=arguments.force)
    gone = clear(made, arguments.to)
    if arguments.json:
        names = {"skills": [str(place) for place in places], "removed": [str(place) for place in gone]}
        print_json({**names, "cards": len(kept), "problems": problems})
        return 0
    for place in places:
        say(str(place))
    for place in gone:
        left = "; files that klineage has not written are left in it" if place.exists() else ""
        say(f"{place} of an earlier export is removed{left}")
    say(f"{plural(len(kept), 'card')} in {plural(len(places), 'skill')}")
    _say_left_out(problems)
    return 0


def _records(
    kept: list[Shelved], problems: list[str], libraries: tuple[Library, ...], arguments: argparse.Namespace
) -> int:
    from klineage.interop.training import lines, records

    if not kept:
        raise KlineageError(
            "there is no card to export; klineage card list shows the library, --all adds hypotheses"
        )
    missing: list[str] = []
    made = list(lines(records(kept, libraries, missing)))
    if str(arguments.to) == "-":
        for line in made:
            print(line.decode(), end="")
        return 0
    try:
        write_whole(arguments.to, b"".join(made), 0o644)
    except OSError as error:
        raise KlineageError(f"cannot write {arguments.to}: {error.strerror}") from error
    if arguments.json:
        print_json(
            {
                "file": str(arguments.to),
                "records": len(made),
                "missing_lineages": missing,
                "problems": problems,
            }
        )
        return 0
    say(f"{arguments.to}: {plural(len(made), 'record')} of {plural(len(kept), 'card')}")
    _say_left_out([*problems, *missing])
    return 0


def _say_left_out(problems: list[str]) -> None:
    for problem in problems:
        say(f"left out: {problem}")


def import_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="folders with the authors' SKILL.md files, or their JSON",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be imported, and write nothing"
    )
    add_workspace(parser)
    add_json(parser)
    return _import


def _import(arguments: argparse.Namespace) -> int:
    from klineage.interop.authors import read

    reading = read(arguments.paths)
    new, kept = _taken_in(reading.cards, arguments)
    if arguments.json:
        rows = [
            {
                "id": one.card.id,
                "file": str(one.file),
                "form": one.generation,
                "said": list(one.said),
                "new": one in new,
            }
            for one in (*new, *kept)
        ]
        print_json({"cards": rows, "problems": list(reading.problems)})
        return 0 if reading.cards else 1
    for one in new:
        say(f"{one.card.id}  from {one.file} ({one.generation}){''.join(f'; {said}' for said in one.said)}")
    for one in kept:
        say(f"{one.card.id}  is in the library already and was left as it is")
    _say_left_out(list(reading.problems))
    say(
        f"{plural(len(new), 'card')} {'would be imported' if arguments.dry_run else 'imported as hypotheses'}"
    )
    return 0 if reading.cards else 1


def _first_said(library: Library, card: Card) -> bool:
    """Whether the card of this id in the library said the same when it came, whatever people have made of it since."""
    from klineage.interop.authors import says_the_same
    from klineage.skill.file import parse

    first = library.history(card.id)[-1]
    return says_the_same(parse(library.at(card.id, first.commit), card.id), card)


def _taken_in(
    cards: tuple[Imported, ...], arguments: argparse.Namespace
) -> tuple[list[Imported], list[Imported]]:
    """(cards that are new, cards that the library has): the new ones are written, in one commit.

    A card of a name that is taken is the same one where it says what the other said when it first came; else it gets a
    name of its own.
    """
    from klineage.interop.authors import renamed
    from klineage.skill.library import Library

    where: Path = arguments.workspace or default_workspace()
    if arguments.dry_run and not where.exists():
        return list(cards), []
    with opened_workspace(arguments, create=not arguments.dry_run) as workspace:
        library = Library.of(workspace)
        known = set(library.stamps())
        cards = tuple(
            renamed(one) if one.card.id in known and not _first_said(library, one.card) else one
            for one in cards
        )
        new = [one for one in cards if one.card.id not in known]
        if new and not arguments.dry_run:
            library.save_all(
                [one.card for one in new],
                reason="hypotheses: nothing of what they claim was tried here",
                title=f"Import {plural(len(new), 'card')} of the paper's authors",
                expected={one.card.id: "" for one in new},
            )
    return new, [one for one in cards if one.card.id in known]


COMMANDS = {"export": export_command, "import-cards": import_command}
