"""``python -m klineage.worker --kind KIND`` serves; with ``--once FILE.json`` it answers one request."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

KINDS = ("native", "interpreter", "compiler", "gpu")


def main(argv: Sequence[str] | None = None, source: str = "") -> None:
    """The command line. ``source``: the hash of this program, when it is one file."""
    parser = argparse.ArgumentParser(prog="python -m klineage.worker", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="end after so long without a request")
    parser.add_argument(
        "--once", metavar="FILE", help="answer the request in this JSON file and print the result"
    )
    arguments = parser.parse_args(argv)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # read once, when numpy is imported
    from klineage.worker.faults import WorkerError
    from klineage.worker.preload import version

    try:
        if not version("numpy"):
            text = f"numpy is not installed for {sys.executable} (Python {platform.python_version()})"
            raise WorkerError("no_numpy", text)
    except WorkerError as refusal:
        print(json.dumps({"refused": refusal.reason, "summary": str(refusal)}))
        return
    from klineage.worker.environment import forget
    from klineage.worker.server import run_once, serve

    forget()

    if arguments.once is None:
        serve(arguments.kind, source, arguments.idle)
        for stream in (sys.stdout, sys.stderr):  # what an imported package had to say
            stream.flush()
        os._exit(
            0
        )  # taking torch down in good order would take half a second, and there is nothing left to lose
    request = json.loads(Path(arguments.once).read_text(encoding="utf-8"))
    print(json.dumps(run_once(request, arguments.kind)))


if __name__ == "__main__":
    main()
