"""How long 100,000 cards take to open and to be asked, beside looking at every card in plain Python.

    python benchmarks/retrieval.py [--cards 100000] [--queries 200]

The cards are made up, and real: files of the format, written by ``render``, read by ``parse``. They cite lineages of 4 to 8
steps, have been tried on up to four of 300 workloads on 7 platforms after up to four of 20 earlier optimizations, one in
three is a hypothesis and one in twenty was edited since its trial. Times on a shared machine mean little; each row has
its ratio to the comparison of the same run.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.skill.card import (
    Anchor,
    Card,
    Carrier,
    Contract,
    ContractFeature,
    Effect,
    Evidence,
    Precondition,
    Risk,
    Verification,
)  # fmt: skip
from klineage.skill.file import render
from klineage.skill.library import Library
from klineage.skill.library.git import Change, GitShelf
from klineage.skill.library.history import Word
from klineage.skill.retrieval import likeness, retrieve
from klineage.skill.retrieval.index import Index, Row
from klineage.skill.retrieval.index_file import Opened, open_index, source_of
from klineage.skill.retrieval.paths import paths
from klineage.skill.retrieval.target import Target, target_of
from klineage.skill.staleness import fingerprints
from klineage.walk.reading import read_kernel
from klineage.workload import load

WORKLOADS = (*("softmax", "gemm", "layernorm", "topk"), *(f"operator_{n}" for n in range(296)))
PLATFORMS = {
    "c": ("cpu-x86-64-v3", "cpu-x86-64-v4", "cpu-aarch64"),
    "triton": ("nvidia-sm80", "nvidia-sm90", "amd-gfx942"),
    "cuda": ("nvidia-sm80", "nvidia-sm90", "nvidia-sm120"),
}
ACTIONS = (
    "tiling", "register_tiling", "vectorize", "mma", "swizzle", "async_copy", "pipeline", "prefetch", "cache_policy", "fusion",
    "online_algorithm", "invariant_hoist", "mask_specialize", "simd", "unroll", "loop_order", "cache_block", "restrict", "alignment",
    "thread_parallel",
)  # fmt: skip
CHECKS = (
    "row_alignment() % 64 == 0",
    "columns % 16 == 0",
    "itemsize == 4",
    'has("simd")',
    "cache_2 >= 262144",
    "",
)


def cards(number: int, chance: random.Random) -> Iterator[Card]:
    """That many cards, lineage by lineage."""
    made = 0
    while made < number:
        surface = chance.choice(("c", "triton", "cuda"))
        workload, actions = chance.choice(WORKLOADS), chance.sample(ACTIONS, chance.randint(4, 8))
        for place, action in enumerate(actions[: number - made]):
            yield card(made, surface, workload, actions[:place], action, chance)
            made += 1


def card(
    number: int, surface: str, workload: str, before: list[str], action: str, chance: random.Random
) -> Card:
    """One card of a lineage: it may require what came before it."""
    platform = chance.choice(PLATFORMS[surface])
    lineage, commit = f"{workload}-{surface}-{number // 8}", hashlib.sha1(b"%d" % number).hexdigest()
    there = ContractFeature(action, "kernel")
    conditions = tuple(
        Precondition(
            f"p{n}",
            "layout",
            f"Rows are laid out so that step {n} of it is cheap.",
            check,
            origin="rule",
            evidence=("e1",),
        )
        for n, check in enumerate(chance.sample(CHECKS, 3), start=1)
    )
    gain = round(chance.uniform(1.02, 3), 3)
    whole = Card(
        f"{surface}.{action.replace('_', '-')}-{number}",
        f"Let {action} hide what the loop of {workload} waits for.",
        action,
        surface,  # type: ignore[arg-type]
        locus="for",
        rule=f"{surface}.{action}",
        contract=Contract(tuple(ContractFeature(b, "kernel") for b in before[-1:]), (there,), (there,)),
        preconditions=conditions,
        effects=(
            Effect(
                "time",
                gain,
                gain - 0.01,
                gain + 0.01,
                "measured-cpu",
                platform,
                workload,
                "bench",
                evidence=("e1",),
            ),
        ),
        risks=(Risk("It slows small problems.", "observed", "rule", ("e1",)),),
        evidence=(Evidence("e1", "transition", lineage, commit),),
        anchor=Anchor("the innermost loop", "(for_statement) @anchor" if surface == "c" else ""),
        carrier=Carrier(
            "for (i = 0; i < n; i++)\n    y[i] = x[i];\n" * 4,
            "for (i = 0; i < n; i += 8)\n    copy8(y + i, x + i);\n" * 4,
        ),
    )
    if chance.random() < 1 / 3:
        return whole
    marks = fingerprints(whole) if chance.random() > 0.05 else {"anchor": "of an earlier text"}
    trials = tuple(
        Verification(
            f"v{n}", f"{target}-{surface} K{n}", target, whole.surface, chance.choice(PLATFORMS[surface]),
            tuple(chance.sample(ACTIONS, chance.randint(0, 4))), f"rules:{whole.rule}", True, "every gate passed", ("workload",),
            1, "time", gain, gain - 0.01, gain + 0.01, "measured-cpu", "2026-11-29T12:00:00Z", ("e1",), marks,
        )
        for n, target in enumerate(chance.sample(WORKLOADS, chance.randint(1, 4)), start=1)
    )  # fmt: skip
    return replace(whole, status="admitted", verification=trials)


def timed(work: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def every_card(rows: list[Row], target: Target) -> list[Row]:
    """The comparison: each card looked at in turn, with no index."""

    def worth(row: Row) -> float:
        workload = max((likeness.of_workload(target.workload, w) for w in row.workloads), default=0.0)
        platform = max((likeness.of_platform(target.platform, p) for p in row.platforms), default=0.0)
        had, has = set(row.priors), set(target.prior or ())
        return workload + platform + (len(had & has) / len(had | has) if had | has else 1.0)

    asked = [row for row in rows if row.status == "admitted" and row.surface == target.surface]
    return sorted(asked, key=worth, reverse=True)[:20]


def targets(number: int, chance: random.Random) -> list[Target]:
    """Targets that are named, without a kernel."""
    found = []
    for _ in range(number):
        surface = chance.choice(tuple(PLATFORMS))
        prior = tuple(chance.sample(ACTIONS, chance.randint(0, 5)))
        found.append(Target(chance.choice(WORKLOADS), surface, chance.choice(PLATFORMS[surface]), prior))
    return found


def a_kernel() -> Target:
    """A shipped expert, with its facts."""
    workload = load("softmax")
    kernel = read_kernel(shipped("experts") / "softmax" / "c" / "kernel.c", workload)
    return target_of(kernel, workload, "cpu-x86-64-v4")


def row(name: str, times: list[float], base: float = 0.0) -> None:
    ordered = sorted(times)
    last = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    ratio = f"{base / statistics.median(times):10.1f}x" if base else f"{'':>11}"
    print(
        f"{name:<58} {statistics.median(times) * 1e3:>10.1f} {last * 1e3:>10.1f} {ordered[-1] * 1e3:>10.1f} {ratio}"
    )


def asking(index: Index, queries: int, chance: random.Random) -> None:
    rows = [index.row(number) for number in range(len(index))]
    named = targets(queries, chance)
    base = statistics.median(timed(lambda t=t: every_card(rows, t))[0] for t in named[:5])  # type: ignore[misc]
    row("every card looked at in plain Python", [base])
    retrieve(index, named[0])  # what is imported at the first question
    row("retrieve, a target that is named", [timed(lambda t=t: retrieve(index, t))[0] for t in named], base)  # type: ignore[misc]
    kernel = a_kernel()
    retrieve(index, kernel)
    row(
        "retrieve, a kernel with its checks and anchors",
        [timed(lambda: retrieve(index, kernel))[0] for _ in range(queries // 4)],
        base,
    )
    row(
        "the ways on from it, by contracts",
        [timed(lambda: paths(index, kernel, lambda lineage: ()))[0] for _ in range(queries // 4)],
        base,
    )


def opening(name: str, library: Library, kept: Path, first: float, rounds: int = 5) -> Index:
    times, opened = [], None
    for _ in range(rounds):
        seconds, opened = timed(lambda: open_index(source_of(library), kept))
        times.append(seconds)
    assert isinstance(opened, Opened)
    assert opened.renewed == 0
    row(f"open, {name}, nothing changed", times, first)
    return opened.index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cards", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        place, kept = Path(name) / "library", Path(name) / "kept"
        (place / "cards").mkdir(parents=True)
        last = None
        for last in cards(options.cards, chance):
            (place / "cards" / f"{last.id}.md").write_bytes(render(last))
        assert last is not None
        print(
            f"{options.cards:,} cards, {sum(f.stat().st_size for f in (place / 'cards').iterdir()) / 1e6:.0f} MB of files"
        )
        print(f"{'':<58} {'median ms':>10} {'99 % ms':>10} {'worst ms':>10} {'ratio':>11}")
        library = Library.open(place)
        first, opened = timed(lambda: open_index(source_of(library), kept))
        assert isinstance(opened, Opened)
        assert not opened.problems
        row("open for the first time: every file is read", [first])
        index = opening("a folder", library, kept, first)
        edited = place / "cards" / f"{last.id}.md"
        edited.write_bytes(render(replace(last, intent="Edited meanwhile.")))
        row(
            "open, one file changed",
            [timed(lambda: open_index(source_of(Library.open(place)), kept))[0]],
            first,
        )
        branch(place, Path(name) / "workspace", kept, first)
        print(f"the index on disk: {sum(f.stat().st_size for f in kept.iterdir()) / 2e6:.0f} MB")
        asking(index, options.queries, chance)


def branch(folder: Path, place: Path, kept: Path, first: float) -> None:
    """The same cards as the branch of a workspace."""
    workspace = Workspace.create(place)
    try:
        shelf = GitShelf(workspace)
        files = {f"cards/{file.name}": file.read_bytes() for file in (folder / "cards").iterdir()}
        shelf.commit(lambda tip: Change(Word("Take in the cards"), files))
        open_index(source_of(Library.of(workspace)), kept)
        times = []
        for _ in range(5):  # each with a library that has looked at nothing yet
            times.append(timed(lambda: open_index(source_of(Library.of(workspace)), kept))[0])
        row("open, a branch, nothing changed", times, first)
    finally:
        workspace.close()


if __name__ == "__main__":
    main()
