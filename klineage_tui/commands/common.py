"""What every verb shares: the workspace option, JSON output, clean text output."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage_tui.cli import default_workspace
from klineage_tui.text.sanitize import sanitize_lines

if TYPE_CHECKING:
    from klineage.lineage import Step, Workspace
    from klineage.skill.library import Library
    from klineage.walk import Walk

_VALUE_CELLS = 100  # of a value in a row
Run = Callable[[argparse.Namespace], int]


def add_workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-w", "--workspace", type=Path, default=None, metavar="DIR",
        help="the workspace (default: $KLINEAGE_WORKSPACE, or here)",
    )  # fmt: skip


def shown_command(arguments: argparse.Namespace, words: str) -> str:
    """A command to type next, on the workspace that this one was given."""
    where = "" if arguments.workspace is None else f" -w {shlex.quote(str(arguments.workspace))}"
    return f"klineage {words}{where}"


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_lineage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the lineage; klineage list shows them")
    add_workspace(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """For the verbs that run a lineage's code."""
    parser.add_argument(
        "--trust", action="store_true",
        help="run the code of this repository's lineages, which came from elsewhere; remembered",
    )  # fmt: skip


def add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", metavar="USER@HOST",
        help="gate on this machine, reached by ssh; nothing is installed there ('' is here; default: config.toml's host)",
    )  # fmt: skip
    parser.add_argument(
        "--host-python",
        metavar="FILE",
        help="the Python there that has numpy, torch and triton (default: python3)",
    )


def use_host(arguments: argparse.Namespace) -> None:
    """From now on this command gates where its options, else the configuration, say."""
    from klineage.executor import Host, use

    from klineage_tui.config import load_config

    config = load_config()
    address = config.host if arguments.host is None else arguments.host
    use(Host(address, arguments.host_python or config.host_python or "python3") if address else None)


@contextmanager
def opened_workspace(arguments: argparse.Namespace, *, create: bool = False) -> Iterator[Workspace]:
    from klineage.walk import open_workspace

    workspace = open_workspace(arguments.workspace or default_workspace(), create=create)
    try:
        yield workspace
    finally:
        workspace.close()


def add_library(parser: argparse.ArgumentParser) -> None:
    """For the verbs on cards: the workspace's library, or another one to be read."""
    add_workspace(parser)
    parser.add_argument(
        "--library", metavar="PATH", help="another library: a folder with cards/, a workspace, or: shipped",
    )  # fmt: skip


@contextmanager
def opened_library(arguments: argparse.Namespace) -> Iterator[Library]:
    from klineage.skill.library import Library

    library = Library.open(arguments.library or arguments.workspace or default_workspace())
    try:
        yield library
    finally:
        library.close()


@contextmanager
def opened_walk(arguments: argparse.Namespace) -> Iterator[Walk]:
    from klineage.walk import Walk

    if "host" in arguments:
        use_host(arguments)
    with opened_workspace(arguments) as workspace:
        walk = Walk(workspace, arguments.id)
        if getattr(arguments, "trust", False):
            walk.trust()
        yield walk


def say(text: str = "") -> None:
    """Print text from anywhere: kernels, compilers and commits may hold anything, so it is made visible."""
    print("\n".join(sanitize_lines(text)))


def short_value(text: str) -> str:
    """The value of a field in one row."""
    from klineage_tui.text.columns import clip

    return clip(" ".join(text.split()), _VALUE_CELLS) or "(nothing)"


def print_json(value: Any) -> None:
    """One JSON value on stdout; dataclasses, enums, bytes (as text) and times included."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value)).decode())


def step_row(step: Step) -> dict[str, Any]:
    """A step as the JSON object that every verb prints: stable snake_case keys."""
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(step)
    return row


def say_step(step: Step) -> None:
    """One line for a step that was just taken or turned down."""
    from klineage_tui.presentation.details import outcome

    mark = "x" if step.decision == "rejected" else "o"
    say(f"{mark} {step.number:>2}  {step.subject:<46}  {outcome(step)}".rstrip())


def find_step(walk: Walk, name: str) -> Step:
    """A step by number (0 is the expert), `K`-number of the sealed lineage, `x`-number of a rejected
    attempt, or a prefix of its commit. Raises KlineageError listing what there is."""
    from klineage.errors import KlineageError

    state = walk.state()
    forward = walk.forward()
    named = {str(step.number): step for step in state.steps}
    named |= {f"K{step.number}": step for step in forward}
    named |= {f"x{number}": step for number, step in enumerate(state.rejected, start=1)}
    if name in named:
        return named[name]
    everything = (*state.steps, *forward, *state.rejected)
    matching = {s.commit: s for s in everything if len(name) >= 4 and s.commit.startswith(name.lower())}
    if len(matching) == 1:
        return next(iter(matching.values()))
    raise KlineageError(
        f"{walk.id} has no step {name!r}; it has {', '.join(named)} (or a commit, at least 4 digits)"
    )
