"""bundle create and bundle open: a lineage with its rejected attempts and gate reports in one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from klineage_tui.commands.common import Run, add_json, add_workspace, opened_workspace, print_json, say


def bundle_command(parser: argparse.ArgumentParser) -> Run:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|open")
    create = actions.add_parser("create", help="write a lineage to a bundle")
    create.add_argument("id", metavar="ID")
    create.add_argument("file", metavar="FILE", type=Path, nargs="?", help="default: ID.bundle")
    opened = actions.add_parser("open", help="read a bundle into the workspace")
    opened.add_argument("file", metavar="FILE", type=Path)
    opened.add_argument(
        "--as", dest="name", default="", metavar="NAME", help="the name to give it here (default: its own)"
    )
    for sub in (create, opened):
        add_workspace(sub)
        add_json(sub)
    return _bundle


def _bundle(arguments: argparse.Namespace) -> int:
    from klineage.lineage import bundle_create, bundle_open

    if arguments.action == "create":
        file: Path = arguments.file or Path(f"{arguments.id}.bundle")
        with opened_workspace(arguments) as workspace:
            bundle_create(workspace, arguments.id, file)
        name = arguments.id
        sentence = f"{name}: written to {file}; klineage bundle open {file} -w DIR reads it into a workspace"
    else:
        file = arguments.file
        with opened_workspace(arguments, create=True) as workspace:
            name = bundle_open(file, workspace, arguments.name)
            sentence = f"{name}: read from {file} into {workspace.path}"
    print_json({"id": name, "file": str(file)}) if arguments.json else say(sentence)
    return 0


COMMANDS = {"bundle": bundle_command}
