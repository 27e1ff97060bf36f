"""The ledger: exact sums, hard limits, torn files, and several processes at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.ledger import (
    Book,
    By,
    Call,
    Ledger,
    Limit,
    Meter,
    OverBudget,
    Price,
    Prices,
    Usage,
    estimate,
    marks,
    new_call_id,
    parse_dollars,
)

BEGIN = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)
PRICES = Prices(
    BEGIN.date(),
    "made up",
    {
        "plain": Price(Decimal(4), Decimal("0.2"), Decimal(5), Decimal(20)),
        "free": Price(Decimal(0), Decimal(0), Decimal(0), Decimal(0)),
        "banded": Price(
            Decimal("0.1"), Decimal("0.01"), Decimal("0.125"), Decimal("0.5"), above=100_000,
            long=Price(Decimal("0.5"), Decimal("0.05"), Decimal("0.625"), Decimal("2.5")),
        ),
    },
)  # fmt: skip

tokens = st.integers(0, 300_000)
usages = st.builds(Usage, input=tokens, cached=tokens, cache_write=tokens, output=tokens)
models = st.sampled_from(["plain", "free", "banded"])


def call(name: str, worst: Usage, *, model: str = "plain", lineage: str = "gemm", step: str = "k0",
         when: datetime = BEGIN) -> Call:  # fmt: skip
    return Call(name, lineage, step, f"model:{model}", model, "prompt", when, worst)


def ledger_at(folder: Path) -> Ledger:
    return Ledger.of(folder, PRICES)


def exactly(price: Price, usage: Usage) -> Fraction:
    """What a usage costs, in exact fractions and by another way than the ledger's."""
    rates = price.long if price.long is not None and usage.prompt > price.above else price
    million = Fraction(1, 1_000_000)
    kinds = ("input", "cached", "cache_write", "output")
    return sum(
        (Fraction(getattr(rates, kind)) * getattr(usage, kind) * million for kind in kinds), Fraction(0)
    )


@given(model=models, usage=usages)
def test_a_cost_is_exact_and_never_above_the_worst_case(model: str, usage: Usage) -> None:
    price = PRICES.models[model]
    assert Fraction(price.cost(usage)) == exactly(price, usage)
    assert price.cost(usage) <= price.at_most(usage)
    assert price.cost(usage) <= price.at_most(Usage(input=usage.prompt, output=usage.output))


events = st.lists(
    st.tuples(st.sampled_from(["reserve", "settle", "release"]), st.integers(0, 5), models, usages,
              st.sampled_from(["a", "b"]), st.integers(0, 50)),
    max_size=25,
)  # fmt: skip


@settings(deadline=None, max_examples=30)
@given(events=events)
def test_any_sequence_adds_up(
    events: list[tuple[str, int, str, Usage, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Against a model that a child could follow: a dictionary of what each call is known to cost."""
    ledger = ledger_at(tmp_path_factory.mktemp("ledger"))
    known: dict[str, tuple[str, str, Fraction]] = {}  # id -> (state, lineage, dollars)
    for what, number, model, usage, lineage, hours in events:
        name = f"call-{number}"
        price = PRICES.models[model]
        if what == "reserve":
            reserved = call(name, usage, model=model, lineage=lineage, when=BEGIN + timedelta(hours=hours))
            if name in known:
                with pytest.raises(KlineageError, match="already"):
                    ledger.reserve(reserved)
            else:
                ledger.reserve(reserved)
                known[name] = ("open", lineage, Fraction(price.at_most(usage)))
        elif name not in known:
            with pytest.raises(KlineageError, match="never reserved"):
                ledger.settle(name, usage) if what == "settle" else ledger.release(name, "x")
        elif what == "settle":
            entry = ledger.settle(name, usage)
            if known[name][0] != "settled":
                own = PRICES.models[entry.call.model]
                known[name] = ("settled", known[name][1], exactly(own, usage))
        elif known[name][0] == "settled":
            with pytest.raises(KlineageError, match="cannot be released"):
                ledger.release(name, "x")
        else:
            ledger.release(name, "x")
            known[name] = ("released", known[name][1], Fraction(0))

    book = ledger.read()
    total = book.total()
    spent = sum((cost for state, _, cost in known.values() if state == "settled"), Fraction(0))
    open_ = sum((cost for state, _, cost in known.values() if state == "open"), Fraction(0))
    assert (Fraction(total.dollars), Fraction(total.at_most)) == (spent, open_)
    assert total.calls == sum(state != "released" for state, _, _ in known.values())
    for by in get_args(By):
        groups = book.by(by).values()
        assert sum((group.committed for group in groups), Decimal(0)) == total.committed
        assert sum((group.usage for group in groups), Usage()) == total.usage
    for lineage in ("a", "b"):
        mine = sum((cost for _, home, cost in known.values() if home == lineage), Fraction(0))
        assert Fraction(book.of(lineage).total().committed) == mine


@settings(deadline=None, max_examples=25)
@given(
    worsts=st.lists(st.tuples(usages, usages, st.booleans()), max_size=12), limit=st.decimals(0, 30, places=2)
)
def test_a_limit_is_never_passed(
    worsts: list[tuple[Usage, Usage, bool]], limit: Decimal, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is settled (never more than was reserved) or left open, and with a new ledger object each time."""
    folder = tmp_path_factory.mktemp("ledger")
    price = PRICES.models["plain"]
    for number, (worst, used, settle) in enumerate(worsts):
        before = ledger_at(folder).read()
        reserved = call(f"c{number}", worst)
        fits = before.total().committed + price.at_most(worst) <= limit
        if not fits:
            with pytest.raises(OverBudget, match="is left"):
                ledger_at(folder).reserve(reserved, Limit(limit, "gemm"))
            assert ledger_at(folder).read() == before
            continue
        ledger_at(folder).reserve(reserved, Limit(limit, "gemm"))
        if settle:
            part = Usage(*(min(a, b) for a, b in zip(vars(worst).values(), vars(used).values(), strict=True)))
            ledger_at(folder).settle(f"c{number}", part)
        assert ledger_at(folder).read().total().committed <= limit


def test_a_limit_counts_its_own_lineage_and_all_lineages_without_one(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    big = Usage(input=100_000, output=100_000)  # at most $2.50
    ledger.reserve(call("one", big, lineage="fmha"), Limit(Decimal(3), "gemm"))
    ledger.reserve(call("two", big), Limit(Decimal(3), "gemm"), Limit(Decimal(6)))
    with pytest.raises(
        OverBudget, match=r"may cost up to \$2\.5000, but of \$6 for this workspace only \$1\.0000 is left"
    ):
        ledger.reserve(call("three", big, lineage="other"), Limit(Decimal(6)))
    with pytest.raises(OverBudget, match=r"\$3 for gemm only \$0\.5000"):
        ledger.reserve(call("three", big), Limit(Decimal(3), "gemm"))
    ledger.release("two", "not sent")
    assert ledger.reserve(call("three", big), Limit(Decimal(3), "gemm")).state == "open"


def test_an_unknown_model_is_refused_under_a_limit_and_counted_without_one(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    with pytest.raises(OverBudget, match=r"mystery has no price.*prices\.toml"):
        ledger.reserve(call("one", Usage(1), model="mystery"), Limit(Decimal(9)))
    ledger.reserve(call("one", Usage(1), model="mystery"))
    assert ledger.read().total().unpriced == 1
    ledger.settle("one", Usage(1000, 0, 0, 1000))
    assert (ledger.read().total().dollars, ledger.read().total().unpriced) == (0, 1)
    with pytest.raises(OverBudget, match="earlier calls of mystery have no price"):
        ledger.reserve(call("two", Usage(1)), Limit(Decimal(9)))
    priced = Prices(PRICES.date, "", {**PRICES.models, "mystery": PRICES.models["plain"]})
    later = Ledger.of(tmp_path, priced)
    assert later.read().total().dollars == Decimal("0.024")
    later.reserve(call("two", Usage(1)), Limit(Decimal(9)))


def test_what_a_command_does_not_tell_leaves_a_limit_to_models(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    ledger.reserve(call("one", Usage(), model="command:mine"))
    ledger.settle("one", Usage())
    assert ledger.read().total().unpriced == 1
    assert ledger.reserve(call("two", Usage(1)), Limit(Decimal(9))).state == "open"


def test_a_call_keeps_the_price_that_it_was_reserved_at(tmp_path: Path) -> None:
    ledger_at(tmp_path).reserve(call("one", Usage(1_000_000)))
    dearer = Prices(PRICES.date, "", {"plain": PRICES.models["banded"]})
    later = Ledger.of(tmp_path, dearer)
    assert later.settle("one", Usage(500_000)).dollars == 2
    assert later.read().total().dollars == 2


@settings(deadline=None, max_examples=30)
@given(cut=st.integers(0, 10_000), garbage=st.sampled_from([b"", b"\0\0\0", b'{"v": 1, "ev', b"\xff\xfe"]))
def test_a_torn_last_line_costs_only_itself(
    cut: int, garbage: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A file cut anywhere, with anything behind: what was whole is counted, and what comes after is whole."""
    ledger = ledger_at(tmp_path_factory.mktemp("ledger"))
    for number in range(4):
        ledger.reserve(call(f"c{number}", Usage(1000, output=1000)))
        if number % 2:
            ledger.settle(f"c{number}", Usage(10, output=10))
    data = ledger.path.read_bytes()
    cut %= len(data) + 1
    ledger.path.write_bytes(data[:cut] + garbage)
    whole = [line for line in data[:cut].split(b"\n")[:-1] if line]
    tail = (data[:cut] + garbage).split(b"\n")[-1]
    if tail and tail in data.split(b"\n"):
        whole.append(tail)  # only its end is missing
        tail = b""
    reference = ledger_at(tmp_path_factory.mktemp("reference"))
    reference.path.parent.mkdir()
    reference.path.write_bytes(b"".join(line + b"\n" for line in whole))
    assert ledger.read().entries == reference.read().entries
    assert [torn.number for torn in ledger.read().torn] == ([len(whole) + 1] if tail else [])
    for each in (ledger, reference):
        each.reserve(call("after", Usage(7)))
        each.settle("after", Usage(7))
    assert [entry.call.id for entry in ledger.read().entries] == [e.call.id for e in reference.read().entries]
    assert ledger.read().total() == reference.read().total()
    assert ledger.read().entry("after") is not None


def test_a_line_of_a_newer_version_is_not_passed_over(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    ledger.reserve(call("one", Usage(1)))
    with ledger.path.open("a") as file:
        file.write('{"v": 2, "event": "refund"}\n')
    for act in (
        ledger.read,
        lambda: ledger.reserve(call("two", Usage(1))),
        lambda: ledger.settle("one", Usage(1)),
    ):
        with pytest.raises(KlineageError, match="line 2: its version is 2"):
            act()


def test_a_disk_that_refuses_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "klineage").write_text("a file where the folder should be")
    with pytest.raises(KlineageError, match=r"cannot write .*ledger.jsonl"):
        ledger_at(tmp_path).reserve(call("one", Usage(1)))


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """In a child whose files may not grow beyond the third line's middle."""
    ledger = ledger_at(tmp_path)
    ledger.reserve(call("one", Usage(1)))
    size = ledger.path.stat().st_size
    script = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_ledger as t
from pathlib import Path
ledger = t.ledger_at(Path({str(tmp_path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 60}, {size + 60}))
try:
    ledger.reserve(t.call("two", t.Usage(1)))
except t.KlineageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert "cannot write" in done.stdout, done.stderr
    assert ledger.path.stat().st_size == size
    assert [entry.call.id for entry in ledger.read().entries] == ["one"]


def _append(folder: Path, who: str, count: int, ready: Callable[[], object]) -> None:
    ready()
    ledger = ledger_at(folder)
    for number in range(count):
        ledger.reserve(call(f"{who}-{number}", Usage(1000, output=50), lineage=who))
        ledger.settle(f"{who}-{number}", Usage(900, output=40))


def test_two_processes_append_whole_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    writers = [context.Process(target=_append, args=(tmp_path, who, 40, barrier.wait)) for who in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    lines = (tmp_path / "klineage" / "ledger.jsonl").read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 160
    book = ledger_at(tmp_path).read()
    assert (book.total().calls, book.total().open, book.torn) == (80, 0, ())
    assert book.total().dollars == 80 * PRICES.models["plain"].cost(Usage(900, output=40))
    assert {key: total.calls for key, total in book.by("lineage").items()} == {"a": 40, "b": 40}


def _reserve_until_refused(folder: Path, who: str, ready: Callable[[], object]) -> None:
    ready()
    ledger, number = ledger_at(folder), 0
    try:
        while True:
            ledger.reserve(call(f"{who}-{number}", Usage(1000, output=2000)), Limit(Decimal(1)))
            number += 1
    except OverBudget:
        pass


def test_two_processes_share_one_limit(tmp_path: Path) -> None:
    """Each call may cost $0.045: 22 fit into a dollar, whoever makes them."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    racers = [
        context.Process(target=_reserve_until_refused, args=(tmp_path, who, barrier.wait)) for who in "ab"
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(120)
        assert racer.exitcode == 0
    total = ledger_at(tmp_path).read().total()
    assert (total.open, total.committed) == (22, Decimal("0.99"))


def test_a_writer_that_is_killed_holds_nobody_up(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for kills in range(1, 6):
        writer = context.Process(target=_append, args=(tmp_path, f"k{kills}", 10_000, lambda: None))
        writer.start()
        path = tmp_path / "klineage" / "ledger.jsonl"
        size = path.stat().st_size if path.exists() else 0
        while not path.exists() or path.stat().st_size < size + 2_000:
            assert writer.is_alive()
            time.sleep(0.001)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join(60)
        book = ledger_at(tmp_path).read()
        assert book.total().open <= kills
        assert book.torn == ()
    ledger_at(tmp_path).reserve(call("after", Usage(1)))


def test_days_are_those_of_utc(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    ledger.reserve(call("one", Usage(1), when=BEGIN))
    ledger.reserve(call("two", Usage(1), when=BEGIN + timedelta(hours=1)))
    assert list(ledger.read().by("day")) == ["2026-11-29", "2026-11-30"]


@given(before=st.decimals(0, 20, places=2), more=st.decimals(0, 20, places=2))
def test_marks_are_passed_once(before: Decimal, more: Decimal) -> None:
    limit = Limit(Decimal(10))
    after = before + more
    passed = marks(before, after, limit)
    assert passed == tuple(m for m in (50, 80, 100) if before < Decimal(m) / 10 <= after)
    assert marks(after, after, limit) == ()


def test_a_meter_tells_each_mark_once_and_knows_earlier_runs(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    limit = Limit(Decimal(1), "gemm")
    ledger.reserve(call("before", Usage(50_000)), limit)
    ledger.settle("before", Usage(50_000))  # $0.20 in an earlier run
    meter = Meter(ledger, "gemm", limit)
    assert (meter.read().percent, meter.read().passed) == (20, ())
    ledger.reserve(call("one", Usage(160_000)), limit)
    assert meter.read().passed == (50, 80, 100)  # it may cost $0.80
    ledger.settle("one", Usage(80_000))
    reading = meter.read()
    assert (reading.percent, reading.passed, reading.total.dollars) == (52, (), Decimal("0.52"))


def test_an_estimate_says_what_it_is_based_on(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    price = PRICES.models["plain"]
    guess = estimate(Book(), "plain", price, 10, 9_000)
    assert "guess" in guess.basis
    assert guess.dollars == 10 * price.cost(Usage(input=9_000, output=7_000))
    for number, output in enumerate((1_000, 3_000)):
        ledger.reserve(call(f"c{number}", Usage(9, output=9_000)))
        ledger.settle(f"c{number}", Usage(0, output=output))
    known = estimate(ledger.read(), "plain", price, 10, 9_000)
    assert known.dollars == Decimal("0.4")
    assert "2 earlier calls" in known.basis


def test_ids_are_file_names_in_the_order_of_time() -> None:
    ids = [new_call_id(BEGIN + timedelta(seconds=number)) for number in range(5)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 5
    assert all(name.replace("-", "").isalnum() for name in ids)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "ten", "1,5", "1e999999999"])
def test_dollars_that_are_none(text: str) -> None:
    with pytest.raises(KlineageError, match="cannot be"):
        parse_dollars(text)


def test_dollars() -> None:
    assert parse_dollars("$2.50") == Decimal("2.5")
    assert parse_dollars(" 10 ") == 10
