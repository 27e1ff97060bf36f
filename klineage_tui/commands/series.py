"""import-series: a lineage from hand-written versions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_workspace,
    opened_workspace,
    print_json,
    say,
    shown_command,
    step_row,
    use_host,
)

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.walk.series import Placed, Series
    from klineage.walk.versions import Version


def import_command(parser: argparse.ArgumentParser) -> Run:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--files", nargs="+", type=Path, metavar="FILE",
        help="the versions in order, or one folder, or one quoted pattern such as 'v*.c' (numbers count: v2 before v10)",
    )  # fmt: skip
    source.add_argument(
        "--git", nargs="+", metavar="WORD",
        help="REPOSITORY PATH [REV..REV]: the versions of one file in a git history, oldest first",
    )  # fmt: skip
    parser.add_argument(
        "--naive-first", action="store_true", help="the first is the naive form, the last the expert"
    )
    parser.add_argument(
        "--workload", required=True, metavar="W", help="a shipped workload's name, or a path to yours"
    )
    parser.add_argument("--surface", metavar="S", help="triton, c or cuda (default: from the file's name)")
    parser.add_argument("--platform", metavar="P", help="default: this machine's (nvidia-sm90 without a GPU)")
    parser.add_argument("--entry", metavar="NAME", help="the function to enter, the same in every version")
    parser.add_argument("--id", metavar="ID", help="name the lineage (default: <workload>-<surface>)")
    add_workspace(parser)
    add_host(parser)
    add_json(parser)
    return _import


def _import(arguments: argparse.Namespace) -> int:
    from klineage.walk.series import import_series
    from klineage.workload import load

    use_host(arguments)
    versions = _versions(arguments)
    workload = load(arguments.workload)
    with opened_workspace(arguments, create=True) as workspace:
        series = import_series(
            workspace,
            versions,
            workload,
            naive_first=arguments.naive_first,
            surface=arguments.surface,
            platform=arguments.platform,
            entry=arguments.entry,
            lineage_id=arguments.id,
            on_placed=None if arguments.json else _say_placed,
            on_gate=_progress(),
        )
    if arguments.json:
        print_json({"id": series.id, "versions": [_row(placed) for placed in series.placed]})
    else:
        _say_end(series, arguments)
    return 0


def _versions(arguments: argparse.Namespace) -> tuple[Version, ...]:
    from klineage.walk.versions import from_files, from_history

    if arguments.files:
        return from_files(arguments.files)
    if not 2 <= len(arguments.git) <= 3:
        raise KlineageError("--git needs a repository and the path of a kernel in it, then perhaps REV..REV")
    repository, path, *revisions = arguments.git
    return from_history(Path(repository), path, *revisions)


def _say_placed(placed: Placed) -> None:
    from klineage_tui.presentation.details import outcome

    _clear_progress()
    name = placed.version.name
    if placed.how == "known":
        say(f"=     {name:<20}  was imported before")
    elif placed.how == "same":
        say(f"=     {name:<20}  has the bytes of the version before")
    elif placed.step is not None:
        mark = "x" if placed.how == "rejected" else "o"
        about = placed.why if placed.how == "rejected" else outcome(placed.step)
        say(f"{mark} {placed.step.number:>2}  {name:<20}  {placed.step.subject:<40}  {about}".rstrip())


def _say_end(series: Series, arguments: argparse.Namespace) -> None:
    known = series.count("known")
    parts = [plural(series.count("accepted"), "step")]
    parts += [f"{n} {word}" for word in ("rejected", "same") if (n := series.count(word))]
    parts += [f"{plural(known, 'version')} known"] if known else []
    say(f"{series.id}: {', '.join(parts)}; {shown_command(arguments, f'seal {series.id}')} turns it round")


def _row(placed: Placed) -> dict[str, Any]:
    return {
        "version": placed.version.name,
        "how": placed.how,
        "why": placed.why,
        "step": None if placed.step is None else step_row(placed.step),
    }


def _progress() -> Callable[[Version, GateEvent], None] | None:
    """One line on a terminal's stderr that says what the gate does now; nothing elsewhere."""
    if not sys.stderr.isatty():
        return None
    from klineage_tui.text.sanitize import sanitize

    def show(version: Version, event: GateEvent) -> None:
        line = f"{version.name[:30]}: {event.stage} {event.state} {event.detail[:40]}"
        sys.stderr.write(f"\r\x1b[K{sanitize(line)}")
        sys.stderr.flush()

    return show


def _clear_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


COMMANDS = {"import-series": import_command}
