"""Which libraries of cards a verb reads, and which target it asks about."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import add_workspace, opened_workspace

if TYPE_CHECKING:
    from klineage.skill.library import Library
    from klineage.skill.target import Target


def add_libraries(parser: argparse.ArgumentParser) -> None:
    add_workspace(parser)
    parser.add_argument(
        "--library", metavar="PATH", type=Path, action="append", default=[],
        help="read the cards of this folder or workspace, and of no other (again for more); default: those of the "
        "workspace, then the shipped ones",
    )  # fmt: skip


@contextmanager
def opened_libraries(arguments: argparse.Namespace) -> Iterator[tuple[Library, ...]]:
    """The libraries that were named; else that of the workspace, if there is one, and the shipped one."""
    from klineage.skill.libraries import library_places
    from klineage.skill.library import Library

    places = arguments.library or library_places(arguments.workspace, default_workspace())
    if not places:
        raise KlineageError(
            "there are no cards here; name a workspace with -w DIR, or a library with --library PATH"
        )
    libraries: list[Library] = []
    try:
        for place in places:
            libraries.append(Library.open(place))
        yield tuple(libraries)
    finally:
        for library in libraries:
            library.close()


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel", nargs="?", default="", metavar="KERNEL|ID",
        help="a kernel file (with --workload), or a lineage of the workspace: its present state",
    )  # fmt: skip
    parser.add_argument(
        "--workload", metavar="W", default="", help="a shipped workload's name, or a path to yours"
    )
    parser.add_argument(
        "--surface", metavar="S", default="", help="triton, c or cuda (default: from the file's name)"
    )
    parser.add_argument(
        "--platform", metavar="P", default="", help="default: this machine's, where there is a kernel"
    )
    parser.add_argument("--entry", metavar="NAME", help="the function to enter, when the file has several")
    parser.add_argument(
        "--prior",
        metavar="NAME,...",
        default=None,
        help="optimizations that are there already, beside those that are seen",
    )
    parser.add_argument("--action", metavar="A", default="", help="only cards of this action, e.g. prefetch")


def target_from(arguments: argparse.Namespace) -> Target:
    """The target that the options describe. Raises KlineageError where they do not fit together."""
    from klineage.platform import parse as parse_platform
    from klineage.proposer.vocabulary import checked
    from klineage.skill.target import Target

    prior = (
        None if arguments.prior is None else tuple(filter(None, map(str.strip, arguments.prior.split(","))))
    )
    action = checked(arguments.action) if arguments.action else ""
    if arguments.platform:
        parse_platform(arguments.platform)
    if not arguments.kernel:
        name = Path(arguments.workload).name if arguments.workload else ""
        return Target(name, arguments.surface, arguments.platform, prior, action)
    file = Path(arguments.kernel)
    if file.suffix and file.is_file():
        return _of_file(file, arguments, prior or (), action)
    return _of_lineage(arguments, prior or (), action)


def _of_file(file: Path, arguments: argparse.Namespace, prior: tuple[str, ...], action: str) -> Target:
    from klineage.skill.target import target_of
    from klineage.walk.opening import default_platform
    from klineage.walk.reading import read_kernel
    from klineage.workload import load

    if not arguments.workload:
        raise KlineageError(
            f"say what {file} computes with --workload: a shipped workload's name, or a path to yours"
        )
    workload = load(arguments.workload)
    kernel = read_kernel(file, workload, surface=arguments.surface or None, entry=arguments.entry)
    platform = arguments.platform or default_platform(kernel.surface)
    return target_of(kernel, workload, platform, prior=prior, action=action)


def _of_lineage(arguments: argparse.Namespace, prior: tuple[str, ...], action: str) -> Target:
    from klineage.skill.target import target_of
    from klineage.walk import Walk

    with opened_workspace(arguments) as workspace:
        walk = Walk(workspace, arguments.kernel)
        state = walk.state()
        report = walk.report_of(state.head.commit)
        return target_of(
            state.kernel,
            walk.workload,
            arguments.platform or state.meta.platform,
            reports=(report,) if report else (),
            prior=(*(feature.name for feature in state.features), *prior),
            action=action,
        )
