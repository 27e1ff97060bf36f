"""doctor: what this machine can gate, which safety layers hold, and how to get what is missing."""

from __future__ import annotations

import argparse

from klineage_tui.commands.common import Run, add_json, print_json, say


def doctor_command(parser: argparse.ArgumentParser) -> Run:
    add_json(parser)
    return _doctor


def _doctor(arguments: argparse.Namespace) -> int:
    from klineage.gate import capabilities
    from klineage.lineage import git_capability

    rows = [git_capability(), *capabilities()]
    if arguments.json:
        print_json(rows)
        return 0
    width = max(len(row.name) for row in rows)
    for row in rows:
        say(f"{'ok' if row.ok else 'no':<3} {row.name:<{width}}  {row.detail}")
        if not row.ok and row.remedy:
            say(f"    {'':<{width}}  to get it: {row.remedy}")
    return 0


COMMANDS = {"doctor": doctor_command}
