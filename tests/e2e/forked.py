"""klineage in processes that have imported everything already, so that a hundred of them take no minute."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

_COMMAND = """
import os, sys
os.setsid()
os.environ.clear()
os.environ.update(environment)
for stream, file in ((1, os.devnull), (2, errors)):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
from klineage_tui.cli import main
sys.exit(main(words))
"""


def fork_server() -> ForkServerContext:
    """What ``start`` forks from; its process begins with the first of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["klineage_tui.cli", "klineage_tui.commands.automatic", "klineage_tui.presentation.walk",
         "klineage_tui.proposers", "klineage.walk", "klineage.gate", "klineage.surface.c_static", "git",
         "klineage.proposer.registry", "klineage.proposer.model.proposer", "klineage.proposer.rules",
         "klineage.proposer.features.audit", "klineage.proposer.features.c", "importlib.metadata"]
    )  # fmt: skip
    return context


def start(forks: ForkServerContext, path: Path, *words: str) -> BaseProcess:
    """A command on the workspace at ``path``, leader of a group of its own, with the environment as it is now; what it
    complains of is in ``path / "errors"``."""
    names = {
        "environment": dict(os.environ),
        "errors": str(path / "errors"),
        "words": [*words, "-w", str(path)],
    }
    process = forks.Process(target=exec, args=(_COMMAND, names))
    process.start()
    return process
