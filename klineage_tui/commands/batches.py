"""gate-batch: gates that are carried to another machine in one file, and their results, read back."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.commands.common import (
    Run,
    add_json,
    add_workspace,
    opened_walk,
    opened_workspace,
    print_json,
    say,
    shown_command,
)

if TYPE_CHECKING:
    from klineage.walk.batch import Imported


def batch_command(parser: argparse.ArgumentParser) -> Run:
    actions = parser.add_subparsers(dest="action", required=True, metavar="export|run|import")
    export = actions.add_parser(
        "export", help="write a file that gates on another machine: python3 FILE > RESULTS"
    )
    export.add_argument("file", metavar="FILE", type=Path)
    what = export.add_mutually_exclusive_group(required=True)
    what.add_argument("--lineage", dest="id", metavar="ID", help="every state of this lineage's walk")
    what.add_argument("--kernel", metavar="FILE", type=Path, help="one kernel")
    export.add_argument("--workload", metavar="W", help="of --kernel: a shipped workload's name, or a path")
    export.add_argument("--surface", metavar="S", help="of --kernel (default: from the file's name)")
    export.add_argument("--entry", metavar="NAME", help="of --kernel, when the file has several")
    export.add_argument("--host-platform", metavar="P", help="what the other machine is, such as nvidia-sm90")
    add_workspace(export)
    run = actions.add_parser("run", help="run a batch file here, and write its results")
    run.add_argument("file", metavar="FILE", type=Path)
    run.add_argument("results", metavar="RESULTS", type=Path, nargs="?", help="default: FILE with .results")
    read = actions.add_parser("import", help="read results, and note each report on the step of its kernel")
    read.add_argument("file", metavar="RESULTS", type=Path)
    add_workspace(read)
    add_json(read)
    return lambda arguments: {"export": _export, "run": _run, "import": _import}[arguments.action](arguments)


def _export(arguments: argparse.Namespace) -> int:
    from klineage.walk.batch import export_kernel, export_lineage

    file: Path = arguments.file
    if arguments.id:
        with opened_walk(arguments) as walk:
            count = export_lineage(walk, file, arguments.host_platform)
    else:
        from klineage.walk.opening import default_platform
        from klineage.walk.reading import read_kernel
        from klineage.workload import load

        if not arguments.workload:
            raise KlineageError("--kernel needs --workload: a shipped workload's name, or a path to yours")
        workload = load(arguments.workload)
        kernel = read_kernel(arguments.kernel, workload, surface=arguments.surface, entry=arguments.entry)
        platform = arguments.host_platform or default_platform(kernel.surface)
        count = export_kernel(kernel, workload, platform, file)
    say(
        f"{file}: {plural(count, 'gate')}; on the other machine: python3 {file.name} > {file.stem}.results; "
        f"then here: {shown_command(arguments, f'gate-batch import {file.stem}.results')}"
    )
    return 0


def _run(arguments: argparse.Namespace) -> int:
    file: Path = arguments.file
    results: Path = arguments.results or file.with_suffix(".results")
    try:
        with file.open("rb") as program:
            if not program.read(64).startswith(b"# The worker of klineage"):
                raise KlineageError(f"{file} is no batch file; klineage gate-batch export writes one")
        with results.open("wb") as out:
            code = subprocess.run([sys.executable, str(file.resolve())], stdout=out, check=False).returncode
    except OSError as error:
        raise KlineageError(f"{error.filename}: {error.strerror}") from error
    say(f"results are in {results}; where the batch came from: klineage gate-batch import {results.name}")
    return code


def _import(arguments: argparse.Namespace) -> int:
    from klineage.walk.batch import import_results

    with opened_workspace(arguments) as workspace:
        found = import_results(workspace, arguments.file)
    if arguments.json:
        print_json(
            {
                "noted": [{"id": s.id, "commit": s.commit, "report": r} for s, r in found.noted],
                "known": [r.kernel for r in found.known],
                "homeless": [{"label": label, "report": r} for label, r in found.homeless],
                "refused": found.refused,
            }
        )
    else:
        _say_imported(found)
    return 1 if found.refused else 0


def _say_imported(found: Imported) -> None:
    for step, report in found.noted:
        say(
            f"{step.id} {step.number:>2}  {report.verdict.upper()}  {report.platform}, {report.trust}: {report.why}"
        )
    for label, report in found.homeless:
        say(
            f"{label}: {report.verdict.upper()}  {report.why} (no step here has this kernel; nothing is stored)"
        )
    if found.known:
        say(f"{plural(len(found.known), 'report')} had been imported before")
    for sentence in found.refused:
        say(f"refused: {sentence}")


COMMANDS = {"gate-batch": batch_command}
