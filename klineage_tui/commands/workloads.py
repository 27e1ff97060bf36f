"""workload: what a workload is, as the workload.py that gates work with; also for other projects' problems."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from klineage_tui.commands.common import Run, add_json, print_json, say


def workload_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument(
        "workload",
        metavar="W",
        help="a shipped workload's name, or a file: workload.py, KernelBench, FlashInfer-Trace, problem file",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="write it there, to edit it")
    add_json(parser)
    return _workload


def _workload(arguments: argparse.Namespace) -> int:
    from klineage.errors import KlineageError
    from klineage.workload import load

    found = load(arguments.workload)
    if arguments.out is not None:
        try:
            with arguments.out.open("xb") as file:
                file.write(found.source)
        except FileExistsError:
            raise KlineageError(
                f"{arguments.out} is there already; name another file, or remove it"
            ) from None
    if arguments.json:
        names = (
            "name",
            "title",
            "element",
            "sizes",
            "hidden",
            "outputs",
            "mutates",
            "scalars",
            "distributions",
        )
        told = {name: getattr(found, name) for name in names}
        print_json({**told, "hash": found.hash, "source": found.source.decode("utf-8", "replace")})
    elif arguments.out is not None:
        say(
            f"{found.name}: written to {arguments.out}; next: klineage gate KERNEL --workload {arguments.out}"
        )
    elif sys.stdout.isatty():
        say(found.source.decode("utf-8", "replace"))
    else:  # into a file: byte for byte
        sys.stdout.buffer.write(found.source)
    return 0


COMMANDS = {"workload": workload_command}
