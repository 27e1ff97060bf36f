"""list, log, show, diff, blame: reading a lineage."""

from __future__ import annotations

import argparse
from itertools import count

from klineage_tui.commands.common import (
    Run,
    add_json,
    add_lineage,
    add_workspace,
    find_step,
    opened_walk,
    opened_workspace,
    print_json,
    say,
    shown_command,
    step_row,
)


def list_command(parser: argparse.ArgumentParser) -> Run:
    add_workspace(parser)
    add_json(parser)
    return _list


def _list(arguments: argparse.Namespace) -> int:
    with opened_workspace(arguments) as workspace:
        summaries = workspace.lineages()
    if arguments.json:
        print_json(summaries)
        return 0
    if not summaries:
        say("no lineages here yet; klineage new KERNEL --workload W starts one")
    for summary in summaries:
        if summary.problem:
            say(f"{summary.id:<24} broken: {summary.problem}")
            continue
        say(
            f"{summary.id:<24} {summary.steps:>3} steps  {'sealed' if summary.sealed else 'open':<7} {summary.title}"
        )
    return 0


def log_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "--forward", action="store_true", help="the sealed lineage, naive first (default when sealed)"
    )
    parser.add_argument(
        "--backward", action="store_true", help="the walk, expert first (default until sealed)"
    )
    parser.add_argument("--rejected", action="store_true", help="the rejected attempts too")
    add_json(parser)
    return _log


def _log(arguments: argparse.Namespace) -> int:
    with opened_walk(arguments) as walk:
        state = walk.state()
        forward = walk.forward()
        use_forward = bool(forward) and not arguments.backward if not arguments.forward else True
        steps = list(forward if use_forward else state.steps)
        if arguments.rejected:
            steps += state.rejected
    if arguments.json:
        print_json([step_row(step) for step in steps])
        return 0
    if arguments.forward and not forward:
        seal = shown_command(arguments, f"seal {arguments.id}")
        say(f"{arguments.id} is not sealed yet; {seal} writes the forward lineage")
    from klineage_tui.presentation.details import outcome
    from klineage_tui.text.columns import pad, widest

    cells = widest([step.subject for step in steps])
    for step in steps:
        name = (
            f"x{step.number}" if step.decision == "rejected" else f"{'K' if use_forward else ''}{step.number}"
        )
        say(f"{step.commit[:10]}  {name:>4}  {pad(step.subject, cells)}  {outcome(step)}".rstrip())
    return 0


def show_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "step", metavar="STEP", help="0 is the expert, K0 the naive form, x1 a rejected attempt; or a commit"
    )
    parser.add_argument("--source", action="store_true", help="print the kernel itself")
    add_json(parser)
    return _show


def _show(arguments: argparse.Namespace) -> int:
    with opened_walk(arguments) as walk:
        step = find_step(walk, arguments.step)
        reports = walk.reports(step.commit)
        kernel = walk.kernel_at(step.commit)
    if arguments.json:
        print_json({**step_row(step), "reports": reports, "source": kernel.text, "filename": kernel.filename})
        return 0
    from klineage_tui.presentation.details import step_details

    for line in step_details(step):
        say(line)
    if arguments.source:
        say()
        say(kernel.text)
    return 0


def diff_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument("a", metavar="A", help="a step, as in show")
    parser.add_argument("b", metavar="B", help="another step")
    add_json(parser)
    return _diff


def _diff(arguments: argparse.Namespace) -> int:
    from klineage_tui.text.unified import unified_diff

    with opened_walk(arguments) as walk:
        one, two = find_step(walk, arguments.a), find_step(walk, arguments.b)
        before, after = walk.kernel_at(one.commit), walk.kernel_at(two.commit)
    diff = unified_diff(before.source, after.source, before.filename)
    if arguments.json:
        print_json({"a": one.commit, "b": two.commit, "filename": before.filename, "diff": diff})
    elif diff:
        say(diff)
    return 0


def blame_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_json(parser)
    return _blame


def _blame(arguments: argparse.Namespace) -> int:
    from klineage_tui.presentation.blame import writers as line_writers
    from klineage_tui.presentation.walk import step_name
    from klineage_tui.text.highlight import split_lines

    with opened_walk(arguments) as walk:
        forward = walk.forward() if walk.state().sealed else ()
        steps = forward or walk.state().steps
        kernel, writers = line_writers(walk, steps, sealed=bool(forward), stop=lambda: False)
        lines = list(zip(count(1), writers, split_lines(kernel.text)[0], strict=False))
    if arguments.json:
        print_json(
            [
                {
                    "line": number,
                    "commit": step.commit if step else None,
                    "step": step.number if step else None,
                    "action": step.action if step else None,
                    "text": text,
                }
                for number, step, text in lines
            ]
        )
        return 0
    for number, step, text in lines:
        who = f"{step.action or 'naive':<20} {step_name(step):<4}" if step else f"{'still there':<25}"
        say(f"{who} {number:>5}  {text}")
    return 0


COMMANDS = {
    "list": list_command,
    "log": log_command,
    "show": show_command,
    "diff": diff_command,
    "blame": blame_command,
}
