"""Walks over the rules: every state that proposals lead to, and what must hold at each step."""

from __future__ import annotations

import difflib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.kernel import Feature, Kernel
from klineage.proposer.candidate import Candidate
from klineage.proposer.rules import RULES, after, derive, features, proposals, propose
from klineage.resources import shipped
from klineage.surface.cuda_launch import declared
from klineage.surface.tree import function_locus

FILES = {"triton": "kernel.py", "c": "kernel.c", "cuda": "kernel.cu"}


@pytest.fixture(scope="session")
def expert() -> Callable[[str, str], Kernel]:
    """``expert(workload, surface)``: a shipped expert."""

    def load(workload: str, surface: str) -> Kernel:
        path = Path(shipped("experts")) / workload / surface / FILES[surface]
        source = path.read_bytes()
        entry = "+".join(declared(source).launched) if surface == "cuda" else workload
        return Kernel(surface, path.name, entry, source)  # type: ignore[arg-type]

    return load


@pytest.fixture(scope="session")
def first_walk() -> Callable[[Kernel], list[tuple[Kernel, Candidate]]]:
    """The walk that always takes the first proposal: (state, what was taken from it)."""

    def walk(kernel: Kernel) -> list[tuple[Kernel, Candidate]]:
        steps = []
        while (candidate := next(proposals(kernel), None)) is not None:
            steps.append((kernel, candidate))
            kernel = after(kernel, candidate)
        return steps

    return walk


@pytest.fixture(scope="session")
def reachable() -> Callable[[Kernel], Iterator[tuple[Kernel, Candidate, Kernel]]]:
    """Every step (state, candidate, next state) that proposals lead to, in any order of taking them."""

    def explore(kernel: Kernel) -> Iterator[tuple[Kernel, Candidate, Kernel]]:
        known, todo = {kernel.hash}, [kernel]
        while todo:
            state = todo.pop()
            candidates = propose(state)
            _all_offered(state, candidates)
            for candidate in candidates:
                simpler = after(state, candidate)
                yield state, candidate, simpler
                if simpler.hash not in known:
                    known.add(simpler.hash)
                    todo.append(simpler)

    return explore


def _all_offered(state: Kernel, candidates: list[Candidate]) -> None:
    """What no dependent blocks is offered: no rule fails quietly on this state."""
    present = features(state)
    for rule in RULES[state.surface]:
        for site in rule.detect(state):
            home = function_locus(site.locus)
            blocked = any(f.name in rule.after and function_locus(f.locus) == home for f in present)
            offered = any(c.proposer == f"rules:{rule.name}" and c.locus == site.locus for c in candidates)
            assert offered is not blocked, f"{rule.name} at {site.locus}"


@pytest.fixture(scope="session")
def check_step() -> Callable[[Kernel, Candidate, Kernel], bool]:
    """Assert what holds of every step; the answer is whether the forward edit restored every byte."""

    def check(state: Kernel, candidate: Candidate, simpler: Kernel) -> bool:
        before, now = features(state), features(simpler)
        assert set(before) - set(now) == set(candidate.removes), candidate.proposer
        assert set(now) <= set(before), candidate.proposer
        assert candidate.removes, candidate.proposer
        assert all(Feature.parse(str(f)) == f for f in candidate.removes)
        assert 0 < len(candidate.title) <= 60
        kinds = ("Data types:", "Layout:", "Storage:", "Pipeline:", "Hardware:")
        assert all(p.startswith(kinds) and p.endswith(".") for p in candidate.preconditions)
        assert len(candidate.preconditions) >= 2
        for name, value in candidate.settings.items():  # as trailers of a commit: name=value on a line
            assert not set(name) & set(" =\t\r\n"), name
            assert value == value.strip() and "\n" not in value, name
        source = derive(candidate.proposer, simpler, candidate.locus, candidate.settings)
        restored = Kernel(state.surface, state.filename, state.entry, source, state.config)
        assert set(features(restored)) == set(before), candidate.proposer
        return source == state.source

    return check


@pytest.fixture(scope="session")
def check_line_endings() -> Callable[[Kernel, random.Random, tuple[bytes, ...]], None]:
    """Assert that a file with mixed endings and comments is proposed the same edits, other bytes untouched."""

    def check(kernel: Kernel, rng: random.Random, endings: tuple[bytes, ...]) -> None:
        plain = kernel.source.splitlines()
        mixed = [line + rng.choice(endings) for line in plain]
        mixed[-1] = mixed[-1].rstrip(b"\r\n") if rng.random() < 0.5 else mixed[-1]
        odd = Kernel(kernel.surface, kernel.filename, kernel.entry, b"".join(mixed), kernel.config)
        expected = {c.proposer: c for c in propose(kernel)}
        found = propose(odd)
        assert [c.proposer for c in found] == list(expected)
        for candidate in found:
            assert candidate.source.splitlines() == expected[candidate.proposer].source.splitlines()
            _untouched(mixed, candidate.source.splitlines(keepends=True))

    return check


@pytest.fixture(scope="session")
def check_comments() -> Callable[[Kernel, random.Random], None]:
    """Assert that comments at the ends of lines change no proposal, and stay unless their line is edited."""

    def check(kernel: Kernel, rng: random.Random) -> None:
        plain = kernel.source.splitlines(keepends=True)
        marked = [_commented(line, number, kernel, rng) for number, line in enumerate(plain)]
        odd = Kernel(kernel.surface, kernel.filename, kernel.entry, b"".join(marked), kernel.config)
        found = propose(odd)
        expected = propose(kernel)
        assert [c.proposer for c in found] == [c.proposer for c in expected]
        for candidate, without in zip(found, expected, strict=True):
            gone = Counter(plain) - Counter(without.source.splitlines(keepends=True))
            lost = Counter(marked) - Counter(candidate.source.splitlines(keepends=True))
            assert lost.total() <= gone.total(), candidate.proposer

    return check


@pytest.fixture(scope="session")
def damaged() -> Callable[[Kernel, random.Random], Kernel]:
    """The kernel with a few pieces of its source cut out, doubled or sown with brackets."""

    def damage(kernel: Kernel, rng: random.Random) -> Kernel:
        source = bytearray(kernel.source)
        for _ in range(rng.randrange(1, 6)):
            at, length = rng.randrange(len(source)), rng.randrange(1, 60)
            piece = bytes(source[at : at + length])
            match rng.randrange(3):
                case 0:
                    del source[at : at + length]
                case 1:
                    source[at:at] = rng.choice(
                        [b"(", b")", b"\n", b"\xff", b",", b" = ", b"[", b"#", b"{}", b"*"]
                    )
                case _:
                    to = rng.randrange(len(source))
                    source[to:to] = piece
        return Kernel(kernel.surface, kernel.filename, kernel.entry, bytes(source), kernel.config)

    return damage


def _commented(line: bytes, number: int, kernel: Kernel, rng: random.Random) -> bytes:
    """The line with a comment of its own (not always decodable), where one may stand."""
    code = line.rstrip(b"\r\n")
    if (
        not code.strip()
        or code.lstrip().startswith((b"#", b"/*", b"*", b"//"))
        or b"*/" in code
        or rng.random() < 0.3
    ):
        return line
    mark = b"\xe9%d" % number if rng.random() < 0.2 else b"%d" % number
    comment = b"  # " + mark if kernel.surface == "triton" else b"  /* " + mark + b" */"
    return code + comment + line[len(code) :]


def _untouched(before: list[bytes], now: list[bytes]) -> None:
    """Lines that both have are the same to the last byte of their endings."""
    bare = [[line.rstrip(b"\r\n") for line in lines] for lines in (before, now)]
    matcher = difflib.SequenceMatcher(None, *bare, autojunk=False)
    moved = 0
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            moved += sum(x != y for x, y in zip(before[a:b], now[c:d], strict=True))
    assert moved <= _ambiguous(bare[0], matcher), "an untouched line changed its ending"


def _ambiguous(bare: list[bytes], matcher: difflib.SequenceMatcher[bytes]) -> int:
    """How many lines may be matched with an equal neighbour: blank lines, and lines that occur twice."""
    edited = [a for tag, a, _, _, _ in matcher.get_opcodes() if tag != "equal"]
    return sum(bare.count(bare[a]) > 1 or not bare[a] for a in edited if a < len(bare)) + len(edited)
