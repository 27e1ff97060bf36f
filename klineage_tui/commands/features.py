"""features: what mechanisms a kernel has, and a person's word where no detector can tell."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError

from klineage_tui.commands.automatic import limit_of
from klineage_tui.commands.common import Run, add_json, add_workspace, find_step, opened_walk, print_json, say
from klineage_tui.commands.deriving import add_budget

if TYPE_CHECKING:
    from klineage.kernel import Feature, Kernel
    from klineage.proposer.features import Finding
    from klineage.proposer.features.opinions import Opinion
    from klineage.walk import Walk

_SHOWN = 6  # line numbers in a row


def features_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("id", metavar="ID|FILE", help="a lineage, or a kernel file (.py, .c, .cu, .cuh)")
    add_workspace(parser)
    parser.add_argument(
        "--surface", metavar="S", help="of a file: triton, c or cuda (default: from its name)"
    )
    parser.add_argument("--step", metavar="N", help="of this state (default: the current one)")
    parser.add_argument("--all", action="store_true", help="list what is absent too")
    parser.add_argument(
        "--settle", metavar="NAME=STATE",
        help="say that an unknown mechanism (a name, or 'locus / name') is present or absent; undo takes it back",
    )  # fmt: skip
    parser.add_argument(
        "--audit", metavar="NAME", help="ask a model about what is unknown, model[:ID]; what it cites is looked up, and you decide",
    )  # fmt: skip
    add_budget(parser)
    parser.add_argument("--why", default="", help="with --settle: how you know, in a few words")
    add_json(parser)
    return _features


def _features(arguments: argparse.Namespace) -> int:
    file = Path(arguments.id)
    if file.suffix and file.is_file():
        if arguments.step or arguments.settle or arguments.audit:
            raise KlineageError(f"--step, --settle and --audit are for a lineage, and {file} is a file")
        return _of_file(file, arguments)
    with opened_walk(arguments) as walk:
        commit = find_step(walk, arguments.step).commit if arguments.step else None
        if arguments.settle:
            name, sign, state = arguments.settle.rpartition("=")
            if not sign:
                raise KlineageError(
                    f"--settle cannot be {arguments.settle!r}; write NAME=present or NAME=absent"
                )
            walk.settle(name.strip(), state.strip(), arguments.why, commit=commit)
        findings = walk.findings(commit)
        of = _of_walk(walk, commit)
        opinions = _asked(walk, arguments, of[1], findings) if arguments.audit else {}
        _show(arguments, findings, of, opinions)
    return 0


def _asked(
    walk: Walk, arguments: argparse.Namespace, kernel: Kernel, findings: tuple[Finding, ...]
) -> dict[Feature, Opinion]:
    """What the model says of what is unknown."""
    from klineage.proposer.registry import Context, auditor_named

    from klineage_tui.config import load_config

    named = argparse.Namespace(**{**vars(arguments), "proposer": arguments.audit})
    limit = limit_of(named)
    limits = (limit,) if limit else ()
    context = Context(walk.workspace.git.place, walk.id, load_config().proposer, limits=limits)
    unknown = [finding for finding in findings if finding.state == "unknown"]
    return {o.feature: o for o in auditor_named(arguments.audit, context).opinions(kernel, unknown)}


def _of_walk(walk: Walk, commit: str | None) -> tuple[str, Kernel, str]:
    """(what is shown, its kernel, its compiled code in one line)."""
    from klineage.proposer.features import code_of

    state = walk.state()
    at = commit or state.head.commit
    report = walk.report_of(at)
    code = code_of(report) if report is not None else None
    return walk.id, walk.kernel_at(at), code.text if code is not None else ""


def _of_file(file: Path, arguments: argparse.Namespace) -> int:
    from klineage.proposer.features import audit
    from klineage.walk.reading import loose_kernel

    kernel = loose_kernel(file, arguments.surface)
    _show(arguments, audit(kernel), (str(file), kernel, ""), {})
    return 0


def _show(
    arguments: argparse.Namespace,
    findings: tuple[Finding, ...],
    of: tuple[str, Kernel, str],
    opinions: Mapping[Feature, Opinion],
) -> None:
    from klineage.proposer.features import described

    what, kernel, code = of
    if arguments.json:
        rows = [finding_row(kernel, finding, opinions.get(finding.feature)) for finding in findings]
        print_json(
            {"of": what, "surface": kernel.surface, "kernel": kernel.hash, "code": code, "features": rows}
        )
        return
    if code:
        say(f"compiled: {code}")
    texts = kernel.text.splitlines()
    shown = [
        f
        for f in findings
        if arguments.all or f.state == "present" or f.lines or f.settled or f.feature in opinions
    ]
    for finding in shown:
        who = f"  settled by {finding.who}" if finding.settled else ""
        say(f"{finding.state:<8} {finding.name:<24} {finding.locus}{_lines(finding)}{who}")
        say(f"         {finding.why or described(kernel.surface, finding.name)}")
        if finding.lines and finding.lines[0] <= len(texts):
            say(f"         {finding.lines[0]:>4} | {texts[finding.lines[0] - 1].strip()}")
        if opinion := opinions.get(finding.feature):
            _say_opinion(opinion)
    open_ = [f.name for f in findings if f.state == "unknown" and not f.lines and f.feature not in opinions]
    if open_ and not arguments.all:
        say(f"no text shows for certain: {', '.join(open_)}")


def _lines(finding: Finding) -> str:
    if not finding.lines:
        return ""
    some = ", ".join(str(line) for line in finding.lines[:_SHOWN])
    return f"  line{'s' if len(finding.lines) > 1 else ''} {some}{', ...' if len(finding.lines) > _SHOWN else ''}"


def _say_opinion(opinion: Opinion) -> None:
    cited = ", ".join(str(citation.line) for citation in opinion.citations)
    say(f"         {opinion.by} says {opinion.state}: {opinion.why}{f' (lines {cited})' if cited else ''}")
    for fault in opinion.faults:
        say(f"         UNSUPPORTED: {fault}")


def finding_row(kernel: Kernel, finding: Finding, opinion: Opinion | None = None) -> dict[str, Any]:
    """A finding as the JSON object that is printed of it."""
    from klineage.proposer.features import described

    return {
        "name": finding.name,
        "locus": finding.locus,
        "state": finding.state,
        "lines": list(finding.lines),
        "why": finding.why,
        "by": finding.by,
        "settled_by": finding.who or None,
        "what": described(kernel.surface, finding.name),
        "opinion": opinion and {**asdict(opinion), "supported": opinion.supported},
    }


COMMANDS = {"features": features_command}
