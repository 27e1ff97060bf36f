"""A model's walk is killed a hundred times, with answers that are cut off now and then: no step is lost, no call is
made twice, and not a token is counted twice or not at all."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from klineage.ledger import Ledger, Usage, load_prices
from klineage.lineage import Workspace
from klineage.walk import Walk, new_lineage, open_workspace, walk_automatically

from ..messages_server import MessagesServer, Received, Reply
from ..model_walk import RulesModel, kernel_in
from .commands import git
from .forked import fork_server, start

KILLS = 100
SEED = int(os.environ.get("KLINEAGE_TEST_SEED", "20261129"))
MODEL = "claude-haiku-4-5"
BUDGET = "20"
EXPERT = Path(__file__).parents[2] / "experts" / "add_rmsnorm" / "c" / "kernel.c"


@pytest.fixture(scope="module")
def forks() -> ForkServerContext:
    return fork_server()


def start_walk(forks: ForkServerContext, path: Path, lineage: str) -> BaseProcess:
    return start(forks, path, "walk", lineage, "--proposer", f"model:{MODEL}", "--budget", BUDGET)


def pace(forks: ForkServerContext, path: Path, lineage: str) -> float:
    """Seconds that one step takes here and now, when its gate is cached and nobody has to be asked."""
    times = []
    for number in (1, 2, 3):
        began = time.monotonic()
        process = start(forks, path, "walk", lineage, "--max-steps", "1")
        process.join(300)
        assert process.exitcode == 0, (path / "errors").read_text()
        if number > 1:  # the first waits for the server of forks
            times.append(time.monotonic() - began)
    return min(times)


def fresh_lineage(workspace: Workspace) -> str:
    return new_lineage(workspace, EXPERT, "add_rmsnorm")


def fill_the_cache_of_gate_results(workspace: Workspace) -> int:
    """Walk once by the rules: the model will propose the same bytes. Returns how many steps there are."""
    outcome = walk_automatically(Walk(workspace, fresh_lineage(workspace)))
    assert outcome.stopped == "simplest form"
    return len(outcome.accepted)


def commits(workspace: Workspace, lineage: str) -> list[str]:
    return [step.commit for step in workspace.history(lineage)]


@pytest.mark.timeout(3600)
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
    workspace = open_workspace(path, create=True)
    steps = fill_the_cache_of_gate_results(workspace)
    lineages = [fresh_lineage(workspace)]
    kept = commits(workspace, lineages[-1])
    killed_at: Counter[int] = Counter()  # by how many steps the walk had
    reach, idle = 1.5 * pace(forks, path, fresh_lineage(workspace)), 0  # seconds until the latest kill
    while sum(killed_at.values()) < KILLS or len(killed_at) < 4:
        process = start_walk(forks, path, lineages[-1])
        process.join(moments.uniform(0.0, reach))
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join(60)
            killed_at[len(kept)] += 1
        assert process.exitcode in (0, -signal.SIGKILL), (path / "errors").read_text()
        now = commits(workspace, lineages[-1])
        assert now[: len(kept)] == kept, f"kill {sum(killed_at.values())}: an accepted step was lost"
        idle = 0 if len(now) > len(kept) else idle + 1
        if idle == 20:  # the machine has become too slow for it to get anywhere
            reach, idle = 1.5 * reach, 0
        kept = now
        if process.exitcode == 0:
            lineages.append(fresh_lineage(workspace))
            kept = commits(workspace, lineages[-1])
    process = start_walk(forks, path, lineages[-1])
    process.join(300)
    assert process.exitcode == 0, (path / "errors").read_text()
    print(
        f"{sum(killed_at.values())} kills within {reach:.2f} s of {len(lineages)} walks, by steps: {killed_at}"
    )

    for lineage in lineages:
        state = Walk(workspace, lineage).state()
        assert (len(state.steps) - 1, state.rejected) == (steps, ())
    workspace.close()
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
