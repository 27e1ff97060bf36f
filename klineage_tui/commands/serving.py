"""mcp: cards, checks and gates as tools of a Model Context Protocol server."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from klineage.errors import KlineageError

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import Run, add_host, add_workspace, use_host


def mcp_command(parser: argparse.ArgumentParser) -> Run:
    add_workspace(parser)
    parser.add_argument(
        "--library", metavar="PATH", type=Path, action="append", default=[],
        help="serve the cards of this folder or workspace, and of no other (again for more)",
    )  # fmt: skip
    add_host(parser)
    return _mcp


def _mcp(arguments: argparse.Namespace) -> int:
    if importlib.util.find_spec("mcp") is None:
        raise KlineageError("klineage mcp needs the extra; pip install 'klineage-tui[mcp]' adds it")
    from klineage.interop.mcp.server import serve
    from klineage.skill.library.places import library_places

    workspace: Path = arguments.workspace or default_workspace()
    if not workspace.is_dir():
        raise KlineageError(
            f"there is no folder {workspace}; name the workspace with -w DIR, best by its absolute path"
        )
    places = tuple(arguments.library) or library_places(None, workspace)
    use_host(arguments)
    serve(workspace.absolute(), tuple(place.absolute() for place in places))
    return 0


COMMANDS = {"mcp": mcp_command}
