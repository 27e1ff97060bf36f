"""The gate's calibration on this machine's CPU: how often it is wrong, and what it finds. Takes five minutes.

    python benchmarks/calibration.py [--out benchmarks/results/calibration-cpu.txt] [--quick]

The table is that of ``klineage doctor --calibrate``, with the date as measured.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from pathlib import Path

from klineage import __version__
from klineage.gate.calibration import calibrate

from klineage_tui.commands.calibrating import FULL, QUICK, table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write the table there too")
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    arguments = parser.parse_args()
    equal, each = QUICK if arguments.quick else FULL
    found = calibrate(equal, each)
    now = datetime.datetime.now(datetime.UTC)
    text = "\n".join(
        [
            f"klineage {__version__} on {platform.platform()}, {os.cpu_count()} processors, {now:%Y-%m-%d %H:%M} UTC",
            "",
            *table(found),
        ]
    )
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
