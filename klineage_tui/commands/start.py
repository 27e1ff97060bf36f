"""demo and new: where a walk begins."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import Run, add_json, add_workspace, opened_workspace, print_json, say


def demo_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("dir", metavar="DIR", nargs="?", type=Path, default=Path("klineage-demo"))
    parser.add_argument("--no-app", action="store_true", help="make the workspace only")
    add_json(parser)
    return _demo


def _demo(arguments: argparse.Namespace) -> int:
    from klineage.walk import demo

    ids = demo(arguments.dir)
    if arguments.json:
        print_json([{"id": id, "workspace": str(arguments.dir)} for id in ids])
    elif arguments.no_app:
        say(f"{arguments.dir}: {', '.join(ids)}")
        say(f"next: klineage {arguments.dir}, or klineage walk {ids[0]} -w {arguments.dir}")
    if arguments.no_app or arguments.json:
        return 0
    from klineage_tui.app import run

    return run(arguments.dir, None)


def new_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("kernel", metavar="KERNEL", type=Path, help="the expert kernel's source file")
    parser.add_argument(
        "--workload",
        required=True,
        metavar="W",
        help="a shipped workload's name, or a path to yours (docs/workloads.md)",
    )
    parser.add_argument("--surface", metavar="S", help="triton, c or cuda (default: from the file's name)")
    parser.add_argument("--platform", metavar="P", help="default: this machine's (nvidia-sm90 without a GPU)")
    parser.add_argument("--entry", metavar="NAME", help="the function to enter, when the file has several")
    parser.add_argument("--id", metavar="ID", help="name the lineage (default: <workload>-<surface>)")
    add_workspace(parser)
    add_json(parser)
    return _new


def _new(arguments: argparse.Namespace) -> int:
    from klineage.walk import new_lineage, tested_oracle

    with opened_workspace(arguments, create=True) as workspace:
        name = new_lineage(
            workspace,
            arguments.kernel,
            arguments.workload,
            surface=arguments.surface,
            platform=arguments.platform,
            entry=arguments.entry,
            lineage_id=arguments.id,
        )
        surface = workspace.meta(workspace.head(name).commit).surface
    oracle = tested_oracle(arguments.workload, surface)
    if arguments.json:
        print_json({"id": name, "oracle": oracle})
    else:
        folder = shlex.quote(str(arguments.workspace or default_workspace()))
        say(f"{name}: opened; next: klineage {folder} --lineage {name}, or klineage walk {name} -w {folder}")
        say(f"{arguments.workload}: {oracle}")
    return 0


COMMANDS = {"demo": demo_command, "new": new_command}
