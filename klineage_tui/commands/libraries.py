"""Which libraries of cards a verb reads, and which target it asks about."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import add_workspace, find_step, opened_workspace

if TYPE_CHECKING:
    from klineage.skill.library import Library
    from klineage.skill.retrieval.target import Target


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
    from klineage.skill.library import Library
    from klineage.skill.library.places import library_places

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
        help="a kernel file or its folder; or a lineage of the workspace, at its present state or at another: ID:K2",
    )  # fmt: skip
    parser.add_argument(
        "--workload", metavar="W", default="",
        help="a shipped workload's name, or a path to yours (default: workload.py beside the kernel)",
    )  # fmt: skip
    parser.add_argument(
        "--surface", metavar="S", default="", help="triton, c or cuda, where there is no kernel"
    )
    parser.add_argument(
        "--platform", metavar="P", default="", help="default: this machine's, where there is a kernel"
    )
    parser.add_argument(
        "--prior", metavar="NAME,...", default=None,
        help="optimizations that are there already, beside those that are seen",
    )  # fmt: skip
    parser.add_argument("--action", metavar="A", default="", help="only cards of this action, e.g. prefetch")


def target_from(arguments: argparse.Namespace) -> Target:
    """The target that the options describe. Raises KlineageError where they do not fit together."""
    from klineage.skill.retrieval.target import named_target

    prior = None
    if arguments.prior is not None:
        prior = tuple(filter(None, map(str.strip, arguments.prior.split(","))))
    if not arguments.kernel:
        return named_target(
            arguments.workload, arguments.surface, arguments.platform, prior, arguments.action
        )
    if arguments.surface:
        raise KlineageError("--surface is for a target without a kernel; the kernel's own is known")
    if _is_lineage(arguments):
        return _of_lineage(arguments, prior or ())
    return _of_file(arguments, prior or ())


def _is_lineage(arguments: argparse.Namespace) -> bool:
    name, _, _ = arguments.kernel.partition(":")
    where: Path = arguments.workspace or default_workspace()
    if Path(arguments.kernel).exists() or not (where / ".git").exists():
        return False
    with opened_workspace(arguments) as workspace:
        return name in {summary.id for summary in workspace.lineages()}


def _of_file(arguments: argparse.Namespace, prior: tuple[str, ...]) -> Target:
    from klineage.skill.admission.target import named
    from klineage.skill.retrieval.target import target_of

    found = named(arguments.kernel, workload=arguments.workload or None, platform=arguments.platform or None)
    return target_of(found.kernel, found.workload, found.platform, prior=prior, action=arguments.action)


def _of_lineage(arguments: argparse.Namespace, prior: tuple[str, ...]) -> Target:
    from klineage.skill.retrieval.target import target_of
    from klineage.walk import Walk

    name, _, state = arguments.kernel.partition(":")
    with opened_workspace(arguments) as workspace:
        walk = Walk(workspace, name)
        present = walk.state()
        commit = find_step(walk, state).commit if state else present.head.commit
        report = walk.report_of(commit)
        settled = [finding.name for finding in walk.findings(commit) if finding.state == "present"]
        return target_of(
            walk.kernel_at(commit),
            walk.workload,
            arguments.platform or present.meta.platform,
            reports=(report,) if report else (),
            prior=(*settled, *prior),
            action=arguments.action,
        )
