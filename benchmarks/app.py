"""How fast the app answers, in a real pseudo-terminal of 160x48, beside an empty Textual app and an empty Python.

    python benchmarks/app.py [--steps 5000] [--rounds 7]

Single times on a shared machine mean little; each row is a median with its ratio to the comparison of the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from klineage.lineage import Workspace

from benchmarks import lineage_git
from tests.e2e.terminal import Terminal

KLINEAGE = [sys.executable, "-m", "klineage_tui.cli"]
HELLO = "from textual.app import App\nfrom textual.widgets import Label\nclass H(App):\n def compose(self): yield Label('hello')\nH().run()"


def command(words: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(words, capture_output=True, check=True)
    return time.perf_counter() - start


def first_text(words: list[str], wanted: str) -> float:
    """Seconds from starting a program to its text on the screen."""
    start = time.perf_counter()
    with Terminal(words, 160, 48) as terminal:
        _until(terminal, lambda: wanted in terminal.text())
        return time.perf_counter() - start


def key(terminal: Terminal, name: str, changed: Callable[[str], bool]) -> float:
    start = time.perf_counter()
    terminal.send(name)
    _until(terminal, lambda: changed(terminal.text()))
    return time.perf_counter() - start


def _until(terminal: Terminal, condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.perf_counter() + seconds
    while not condition():
        if time.perf_counter() > end:
            raise SystemExit(f"nothing came within {seconds} s; the screen:\n{terminal.text()}")
        terminal.read(0.002)


@contextmanager
def long_lineage(steps: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        workspace = Workspace.create(path)
        lineage_git.write(workspace, 40)
        workspace.close()
        lineage_git.lengthen(path, steps)
        yield path


def stepping(path: Path, rounds: int) -> list[float]:
    """Seconds from a key to the next step's diff, at the end of a long walk that was really written."""
    times = []
    with Terminal([*KLINEAGE, str(path)], 160, 48) as terminal:
        _until(terminal, lambda: " here" in terminal.text())
        terminal.send("2")
        _until(terminal, lambda: "WHY" in terminal.text())
        for _ in range(rounds):
            before = terminal.text()
            times.append(key(terminal, "up", lambda now, before=before: now != before))
            terminal.read(0.2)
    return times


def resident(path: Path) -> float:
    """MiB that the app's own process holds once its first screen stands."""
    with Terminal([*KLINEAGE, str(path)], 160, 48) as terminal:
        _until(terminal, lambda: " here" in terminal.text())
        status = Path(f"/proc/{terminal.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def row(name: str, seconds: float, compared: float, against: str, budget: str) -> None:
    print(
        f"{name:<44} {seconds * 1000:>8.0f} ms {seconds / compared:>7.2f}x of {against:<22} budget {budget}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed klineage has compiled modules
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp()

    def median(measure: Callable[[], float]) -> float:
        return statistics.median(measure() for _ in range(arguments.rounds))

    python = median(lambda: command([sys.executable, "-c", "pass"]))
    for option in ("--help", "--version"):
        row(
            f"klineage {option}",
            median(lambda option=option: command([*KLINEAGE, option])),
            python,
            "an empty Python",
            "60 ms",
        )
    hello = median(lambda: first_text([sys.executable, "-c", HELLO], "hello"))
    with long_lineage(arguments.steps) as path:
        shown = median(lambda: first_text([*KLINEAGE, str(path)], f"{arguments.steps - 1}"))
        row(f"first screen, {arguments.steps} steps", shown, hello, "an empty Textual app", "300 ms")
        row(
            "next step in History",
            statistics.median(stepping(path, arguments.rounds)),
            python,
            "an empty Python",
            "50 ms",
        )
        print(f"{'resident, before any worker':<44} {resident(path):>8.0f} MiB {'':>36} budget 70 MiB")
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
