"""doctor: what this machine can gate, which safety layers hold, and how to get what is missing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klineage_tui.commands.common import Run, add_host, add_json, print_json, say, use_host

if TYPE_CHECKING:
    from klineage.gate import Capability


def doctor_command(parser: argparse.ArgumentParser) -> Run:
    add_host(parser)
    add_json(parser)
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="time equal kernels, and kernels with 0.5 to 5 %% of work planted: how often the profile is wrong here",
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of the calibration's runs")
    return _doctor


def _doctor(arguments: argparse.Namespace) -> int:
    from klineage.gate import capabilities

    use_host(arguments)
    if arguments.calibrate:
        from klineage_tui.commands import calibrating

        return calibrating.run(arguments)
    rows = [_git(), *capabilities()]
    if arguments.json:
        print_json(rows)
        return 0
    width = max(len(row.name) for row in rows)
    for row in rows:
        say(f"{'ok' if row.ok else 'no':<3} {row.name:<{width}}  {row.detail}")
        if not row.ok and row.remedy:
            say(f"    {'':<{width}}  to get it: {row.remedy}")
    return 0


def _git() -> Capability:
    from klineage.errors import KlineageError
    from klineage.gate import Capability
    from klineage.lineage.plumbing import find_git

    try:
        return Capability("git", True, find_git())
    except KlineageError as error:
        return Capability("git", False, str(error), "apt install git (or your system's way)")


COMMANDS = {"doctor": doctor_command}
