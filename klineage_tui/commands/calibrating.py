"""doctor --calibrate: how often the profile is wrong on this machine, and how small an effect it finds."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from klineage_tui.commands.common import print_json, say

if TYPE_CHECKING:
    from klineage.gate.calibration import Calibration, Line

FULL, QUICK = (200, 100), (40, 20)  # A/A runs, runs of each plant


def run(arguments: argparse.Namespace) -> int:
    """Calibrate and print. Returns 0 when both goals are met, else 1."""
    from klineage.gate.calibration import calibrate

    equal, each = QUICK if arguments.quick else FULL
    found = calibrate(equal, each, _progress if sys.stderr.isatty() else None)
    if arguments.json:
        import msgspec

        row: dict[str, object] = msgspec.to_builtins(found)
        print_json({**row, "false_rate": found.false_rate, "found_rate": found.found_rate, "met": found.met})
    else:
        for text in table(found):
            say(text)
    return 0 if found.met else 1


def _progress(done: int, total: int) -> None:
    print(f"\rrun {done + 1} of {total}", end="" if done + 1 < total else "\n", file=sys.stderr, flush=True)


def table(found: Calibration) -> list[str]:
    """The calibration as rows of text, the goals last."""
    from klineage.gate.calibration import LEAST_FOUND, MOST_FALSE

    rows = [
        f"{'planted':>7} {'runs':>5} {'slower':>7} {'faster':>7} {'neutral':>8} {'noisy':>6}"
        f" {'measured':>9} {'interval':>9} {'processes':>10} {'seconds':>8}  instructions"
    ]
    rows += [_row(line, found.lines[0]) for line in found.lines]
    mark = {True: "met", False: "MISSED"}
    return [
        *rows,
        "",
        f"false verdicts   {found.false_rate:.1%} of A/A runs, goal at most {MOST_FALSE:.1%}: "
        f"{mark[found.false_rate <= MOST_FALSE]}",
        f"2 % found        {found.found_rate:.0%}, goal at least {LEAST_FOUND:.0%}: {mark[found.found_rate >= LEAST_FOUND]}",
        f"policy {found.policy}, {found.seconds:.0f} s, load of the machine {found.load[0]:.1f} before and {found.load[1]:.1f} after",
        ", ".join(f"{name} {value}" for name, value in found.environment.items()),
    ]


def _row(line: Line, equal: Line) -> str:
    name = f"{line.plant:.1%}" if line.plant else "A/A"
    counted = ""
    if line.instructions is not None and equal.instructions:
        counted = f"{line.instructions:,} ({line.instructions / equal.instructions - 1:+.2%})"
    return (
        f"{name:>7} {line.runs:>5} {line.slower:>7} {line.faster:>7} {line.neutral:>8} {line.noisy:>6}"
        f" {line.ratio:>8.4f}x {'±' + format(line.width, '.2%'):>9} {line.groups:>10.1f} {line.seconds:>8.2f}  {counted}"
    )
