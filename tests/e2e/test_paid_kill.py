"""A model's walk is killed a hundred times, with answers that are cut off now and then: no step is lost, no call is
made twice, and not a token is counted twice or not at all."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import Counter
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from klineage.ledger import Ledger, Usage, load_prices
from klineage.walk import Walk, WalkState, new_lineage, open_workspace, walk_automatically

from ..messages_server import MessagesServer, Received, Reply
from ..model_walk import RulesModel, kernel_in
from .commands import git

KILLS = 100
SEED = int(os.environ.get("KLINEAGE_TEST_SEED", "20261129"))
MODEL = "claude-haiku-4-5"
BUDGET = "20"
EXPERT = Path(__file__).parents[2] / "experts" / "add_rmsnorm" / "c" / "kernel.c"

_WALKER = """
import os, sys
os.environ.clear()
os.environ.update(environment)
for stream, file in ((1, os.devnull), (2, errors)):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
from klineage_tui.cli import main
sys.exit(main(words))
"""


@pytest.fixture(scope="module")
def forks() -> ForkServerContext:
    """Processes that have imported everything already, so that a hundred of them take no minute."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["klineage_tui.cli", "klineage_tui.commands.automatic", "klineage.walk", "klineage.gate", "git",
         "klineage.proposer.registry", "klineage.proposer.model.proposer", "klineage.proposer.rules"]
    )  # fmt: skip
    return context


def start_walk(forks: ForkServerContext, path: Path, lineage: str) -> BaseProcess:
    words = ["walk", lineage, "-w", str(path), "--proposer", f"model:{MODEL}", "--budget", BUDGET]
    errors = str(path / "errors")
    names = {"environment": dict(os.environ), "errors": errors, "words": words}
    process = forks.Process(target=exec, args=(_WALKER, names))
    process.start()
    return process


def state_of(path: Path, lineage: str) -> WalkState:
    workspace = open_workspace(path)
    try:
        return Walk(workspace, lineage).state()
    finally:
        workspace.close()


def fresh_lineage(path: Path) -> str:
    workspace = open_workspace(path, create=True)
    try:
        return new_lineage(workspace, EXPERT, "add_rmsnorm")
    finally:
        workspace.close()


def fill_the_cache_of_gate_results(path: Path) -> int:
    """Walk once by the rules: the model will propose the same bytes. Returns how many steps there are."""
    lineage = fresh_lineage(path)
    workspace = open_workspace(path)
    try:
        outcome = walk_automatically(Walk(workspace, lineage))
    finally:
        workspace.close()
    assert outcome.stopped == "simplest form"
    return len(outcome.accepted)


def test_a_hundred_kills_of_a_paid_walk(
    tmp_path: Path, messages: MessagesServer, forks: ForkServerContext
) -> None:
    print(f"seed {SEED}")
    moments = random.Random(SEED)
    spoiled: set[str] = set()  # kernels whose first answer is cut off

    def sometimes_cut_off(request: Received, reply: Reply) -> Reply:
        kernel = kernel_in(request).hash
        if kernel in spoiled:
            return reply
        spoiled.add(kernel)
        return replace(reply, cut=40, stop_reason="max_tokens")

    messages.otherwise = RulesModel(sometimes_cut_off)
    path = tmp_path / "workspace"
    steps = fill_the_cache_of_gate_results(path)
    lineages = [fresh_lineage(path)]
    kept: list[str] = [state_of(path, lineages[-1]).head.commit]
    killed_at: Counter[int] = Counter()  # by how many steps the walk had
    reach, idle = (
        0.5,
        0,
    )  # seconds until the latest kill, longer where the machine is too slow to get anywhere
    while sum(killed_at.values()) < KILLS or len(killed_at) < 4:
        process = start_walk(forks, path, lineages[-1])
        process.join(moments.uniform(0.0, reach))
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join(60)
            killed_at[len(kept)] += 1
        assert process.exitcode in (0, -signal.SIGKILL), (path / "errors").read_text()
        now = [step.commit for step in state_of(path, lineages[-1]).steps]
        assert now[: len(kept)] == kept, f"kill {sum(killed_at.values())}: an accepted step was lost"
        idle = 0 if len(now) > len(kept) else idle + 1
        if idle == 30:
            reach, idle = 1.5 * reach, 0
        kept = now
        if process.exitcode == 0:
            lineages.append(fresh_lineage(path))
            kept = [state_of(path, lineages[-1]).head.commit]
    process = start_walk(forks, path, lineages[-1])
    process.join(120)
    assert process.exitcode == 0, (path / "errors").read_text()
    print(
        f"{sum(killed_at.values())} kills of {len(lineages)} walks, by steps: {dict(sorted(killed_at.items()))}"
    )

    for lineage in lineages:
        state = state_of(path, lineage)
        assert (len(state.steps) - 1, state.rejected) == (steps, ())
    git(path, "fsck", "--strict", "--no-dangling")

    book = Ledger.of(path / ".git").read()
    total, served = book.total(), messages.served
    assert (total.open, book.torn) == (0, ())
    assert total.usage == Usage(served.input, served.cache_read, served.cache_write, served.output)
    price = load_prices().find(MODEL)
    assert price is not None
    assert total.dollars == price.cost(total.usage)
    assert len(spoiled) == steps + 1
    needed = len(lineages) * (steps + 1) + len(spoiled)
    assert total.calls == served.calls == needed, "a call was paid for twice"
