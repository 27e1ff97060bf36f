"""``python -m klineage.worker --kind KIND`` serves; with ``--once FILE.json`` it answers one request."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from klineage.worker.server import KINDS, run_once, serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m klineage.worker", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument(
        "--once", metavar="FILE", help="answer the request in this JSON file and print the result"
    )
    arguments = parser.parse_args()
    if arguments.once is None:
        serve(arguments.kind)
    else:
        print(
            json.dumps(run_once(json.loads(Path(arguments.once).read_text(encoding="utf-8")), arguments.kind))
        )


if __name__ == "__main__":
    main()
