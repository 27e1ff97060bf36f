"""gate: judge any kernel file, with no lineage needed."""

from __future__ import annotations

import argparse
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from klineage_tui.commands.common import Run, add_host, add_json, print_json, say, use_host

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.kernel import Kernel
    from klineage.workload import Workload


def gate_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("file", metavar="FILE", type=Path, help="the kernel")
    parser.add_argument(
        "--workload",
        required=True,
        metavar="W",
        help="a shipped workload's name, or a path to yours (docs/workloads.md)",
    )
    parser.add_argument("--against", metavar="FILE", type=Path, help="profile it against this kernel")
    parser.add_argument("--surface", metavar="S", help="triton, c or cuda (default: from the file's name)")
    parser.add_argument("--platform", metavar="P", help="default: this machine's (nvidia-sm90 without a GPU)")
    parser.add_argument("--entry", metavar="NAME", help="the function to enter, when the file has several")
    parser.add_argument(
        "--phase",
        choices=("screening", "acceptance", "admission"),
        default="acceptance",
        help="how much to demand: 3, 5 or 10 seeds (default: acceptance)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=int,
        action="append",
        help="replay this seed (again for more); no evidence",
    )
    parser.add_argument(
        "--counters", action="store_true", help="count instructions too: callgrind for C, ncu on a GPU"
    )
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="compute-sanitizer too, on a GPU (ASan and UBSan run for C anyway)",
    )
    parser.add_argument("--fresh", action="store_true", help="ignore cached results")
    add_host(parser)
    add_json(parser)
    return _gate


def _gate(arguments: argparse.Namespace) -> int:
    from klineage.gate import GateRequest, Verdict, expect, gate

    use_host(arguments)
    expect(arguments.file, arguments.surface, arguments.fresh)  # it begins while the rest is imported
    from klineage.walk.opening import default_platform
    from klineage.workload import load

    workload = load(arguments.workload)
    kernel = _kernel(arguments.file, workload, arguments)
    against = _kernel(arguments.against, workload, arguments) if arguments.against else None
    platform = arguments.platform or default_platform(kernel.surface)
    seeds = tuple(arguments.seed) if arguments.seed else None
    request = GateRequest(
        kernel, workload, platform, against, seeds, arguments.phase, arguments.counters, arguments.sanitize
    )
    report = gate(request, fresh=arguments.fresh)
    words = shlex.split(report.reproduce)
    if words:
        words[2] = str(arguments.file)
        words += ["--against", str(arguments.against)] if arguments.against else []
        report = replace(report, reproduce=shlex.join(words))
    if arguments.json:
        decisive = report.decisive.stage if report.decisive else ""
        told = {"verdict": report.verdict, "why": report.why, "decided_by": decisive, "log": report.log}
        print_json({**_builtins(report), **told})
    else:
        _say_report(report)
    return 0 if report.verdict is Verdict.PASS else 1


def _say_report(report: Report) -> None:
    from klineage_tui.presentation.gate import GateView, gate_lines, trust

    view = GateView(status="current", report=replace(report, reproduce=""))
    lines = [line.text for line in gate_lines(view, width=shutil.get_terminal_size((100, 24)).columns)]
    lines.append("")
    for line, before in zip(lines, ["", *lines], strict=False):
        if line or before:
            say(line)
    say(f"known by: {trust(report)}, {report.platform}")
    if report.fixed_seed:
        say("fixed seed: a replay, no evidence")
    for reason in report.oracle_reasons:
        say(f"weak oracle: {reason}")
    if report.reproduce:  # on one line, to be copied
        say(f"reproduce: {report.reproduce}")


def _kernel(path: Path, workload: Workload, arguments: argparse.Namespace) -> Kernel:
    from klineage.walk.reading import read_kernel

    return read_kernel(path, workload, surface=arguments.surface, entry=arguments.entry)


def _builtins(report: object) -> dict[str, object]:
    import msgspec

    row: dict[str, object] = msgspec.to_builtins(report)
    return row


COMMANDS = {"gate": gate_command}
