"""Probes: what a violation shows of a precondition, what becomes of it in the card, and real gates of real violations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.gate import Counts, Measurement, Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.platform import detect, satisfies
from klineage.skill.card import Card, Evidence, Precondition, Probe
from klineage.skill.file import render
from klineage.skill.library import Library
from klineage.skill.probe import Judge, Probed, State, probe, probe_card, state_of, violated
from klineage.skill.probe import judging as module
from klineage.skill.probe.weighing import Finding
from klineage.skill.staleness import probe_is_stale
from klineage.skill.transitions import transitions
from klineage.walk.trust import trust
from klineage.workload import Workload, load, parse

Patch = pytest.MonkeyPatch

WORKLOAD = """\"\"\"Doubled rows: y = 2 x\"\"\"
ELEMENT = {"c": "fp32"}
SIZES = {"small": {"rows": 4, "columns": 16}, "ragged": {"rows": 3, "columns": 8},
         "bench": {"rows": 256, "columns": 2048}}
OUTPUTS = ("y",)
def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "y": (element, (rows, columns))}
def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}
def reference(xp, x):
    return {"y": 2 * x}
def cost(itemsize, rows, columns):
    return {"bytes": itemsize * 2 * rows * columns, "operations": rows * columns}
"""
HEAD = """#include <stdint.h>
typedef float wide __attribute__((vector_size(32), may_alias));
void doubled(const float *x, float *y, int64_t rows, int64_t columns) {
"""
PLAIN = HEAD + "  for (int64_t i = 0; i < rows * columns; i++) y[i] = 2 * x[i];\n}\n"
#: Eight columns at a time, from an address that is promised to be a multiple of 32: what is left of a row is forgotten.
WIDE = (
    HEAD
    + """  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c + 8 <= columns; c += 8)
      *(wide *)(y + i * columns + c) = 2 * *(const wide *)(x + i * columns + c);
}
"""
)


def _workload() -> Workload:
    return parse(WORKLOAD.encode(), name="doubled", path=Path("doubled/workload.py"))


def _kernel(text: str) -> Kernel:
    return Kernel("c", "kernel.c", "doubled", text.encode())


STATE = State(_kernel(PLAIN), _kernel(WIDE), _workload(), "cpu-x86-64-v2", name="doubled K1")


# What a violation shows, with gates whose outcomes are chosen here.


def _report(state: State, verdict: Verdict, *, gain: tuple[float, float, float] | None = None, stage: str = "correctness",
            trust_: Trust = Trust.MEASURED_CPU, code: float = 0.0, counts: tuple[int, int] | None = None) -> Report:  # fmt: skip
    stages = [
        StageResult("compile", Verdict.PASS, "ok", "built", numbers={"sass LDGSTS": code} if code else {})
    ]
    if verdict is not Verdict.PASS:
        stages.append(StageResult(stage, verdict, "mismatch", "y[3] is 0, not 2"))
        return Report(state.after.hash, state.workload.hash, state.platform, "2", trust_, tuple(stages))
    stages.append(StageResult("correctness", Verdict.PASS, "ok", "5 seeds"))
    measured = None
    if gain is not None:
        ratio, low, high = (1 / value for value in (gain[1], gain[2], gain[0]))
        measured = Measurement(1.0, "thread_cpu_time", 20, "small", 1 / ratio, ratio, low, high, 0.001)
    amounts = [Counts("small", {"bytes_loaded": n}) for n in counts] if counts else [None, None]
    profile = StageResult("profile", Verdict.PASS if gain or counts else Verdict.NOISY, "ok", "too noisy for a number",
                          measurement=measured, counts=amounts[0], baseline_counts=amounts[1])  # fmt: skip
    return Report(state.after.hash, state.workload.hash, state.platform, "2", trust_, (*stages, profile))


BROKEN = violated(STATE, "size", {"dim": "columns", "value": "+1"})


def _judged_with(
    monkeypatch: pytest.MonkeyPatch, own: Report, broken: Report, plain: Report | None = None
) -> Finding:
    def gate(kernel: Kernel, baseline: Kernel | None, workload: Workload, *_: object, **__: object) -> Report:
        if workload == STATE.workload:
            return own
        if baseline is not None:
            return broken
        assert plain is not None, "the kernel without the optimization is judged only where the other fails"
        return plain

    monkeypatch.setattr(module, "judged", gate)
    return Judge()(STATE, BROKEN, "columns +1")


def _passing(gain: tuple[float, float, float] | None = (1.9, 2.0, 2.1), **more: object) -> Report:
    return _report(STATE, Verdict.PASS, gain=gain, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "broken", "plain", "outcome", "words"),
    [
        (_passing(), _report(STATE, Verdict.FAIL), _passing(None), "confirmed", "columns +1: correctness fails: y[3] is 0"),
        (_passing(), _report(STATE, Verdict.FAIL), _report(STATE, Verdict.FAIL), "untested", "fails as well"),
        (_passing(), _report(STATE, Verdict.FAIL), _report(STATE, Verdict.ERROR), "untested", "nothing was judged"),
        (_passing(), _report(STATE, Verdict.TIMEOUT), _passing(None), "confirmed", "correctness fails"),
        (_passing(), _report(STATE, Verdict.TIMEOUT, stage="compile"), None, "untested", "nothing was judged"),
        (_passing(), _report(STATE, Verdict.UNSUPPORTED), None, "untested", "nothing was judged"),
        (_passing(), _report(STATE, Verdict.ERROR), None, "untested", "nothing was judged"),
        (_report(STATE, Verdict.FAIL), _passing(), None, "untested", "does not pass here as it is"),
        (_passing(), _passing((1.0, 1.05, 1.1)), None, "confirmed", "loses its effect: 1.05x [1.00, 1.10] time, measured-cpu"),
        (_passing(), _passing((1.6, 1.7, 1.8)), None, "refuted", "nothing breaks: 1.70x"),
        (_passing(), _passing((1.2, 1.5, 1.8)), None, "untested", "too close to call"),
        (_passing(), _passing(None), None, "untested", "what it gains is not known"),
        (_passing((0.99, 1.0, 1.01)), _passing((0.99, 1.0, 1.01)), None, "refuted", "no effect to lose"),
        (_passing((0.6, 1.0, 1.6)), _passing(), None, "untested", "shows no gain here even as it is"),
        (_passing((0.5, 0.6, 0.7)), _passing(), None, "untested", "shows no gain here even as it is"),
    ],
)  # fmt: skip
def test_an_outcome_says_no_more_than_the_gates_do(
    monkeypatch: pytest.MonkeyPatch,
    own: Report,
    broken: Report,
    plain: Report | None,
    outcome: str,
    words: str,
) -> None:
    finding = _judged_with(monkeypatch, own, broken, plain)
    assert finding.outcome == outcome
    assert words in finding.found
    assert finding.reports and (finding.trust == "measured-cpu")


def test_exact_counts_decide_without_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(after: int, before: int) -> Report:
        return _report(STATE, Verdict.PASS, counts=(after, before), trust_=Trust.INTERPRETED)

    kept = _judged_with(monkeypatch, counted(100, 400), counted(100, 390))
    lost = _judged_with(monkeypatch, counted(100, 400), counted(100, 120))
    assert (kept.outcome, lost.outcome, lost.trust) == ("refuted", "confirmed", "interpreted")
    assert "bytes" in lost.found and "time" not in lost.found


def _compiled(own: dict[str, int], other: dict[str, int]) -> Report:
    profile = StageResult(
        "profile", Verdict.PASS, "ok", "", counts=Counts("small", own), baseline_counts=Counts("small", other)
    )
    base = _report(STATE, Verdict.PASS, counts=(1, 1), trust_=Trust.INTERPRETED)
    return replace(base, stages=(*base.stages[:-1], profile))


@pytest.mark.parametrize(("after", "shown"), [(390, "refuted"), (120, "confirmed")])
def test_counts_of_an_interpreter_say_nothing_of_registers_or_caches(
    monkeypatch: pytest.MonkeyPatch, after: int, shown: str
) -> None:
    """They are the same wherever the data lies, so they show neither that an effect is kept nor that it is lost."""
    own = _compiled({"bytes_loaded": 100}, {"bytes_loaded": 400})
    broken = _compiled({"bytes_loaded": 100}, {"bytes_loaded": after})
    monkeypatch.setattr(
        module, "judged", lambda k, b, workload, *_, **__: own if workload == STATE.workload else broken
    )
    outcomes = {kind: Judge(kind=kind)(STATE, BROKEN, "words") for kind in ("storage", "hardware", "layout")}
    assert {kind: finding.outcome for kind, finding in outcomes.items()} == {
        "storage": "untested", "hardware": "untested", "layout": shown,
    }  # fmt: skip
    assert "counts of bytes say nothing of storage" in outcomes["storage"].found


@pytest.mark.parametrize(
    ("declared", "outcome"), [((), "refuted"), (("bytes",), "refuted"), (("bytes", "time"), "refuted"), (("time",), "untested")]
)  # fmt: skip
def test_no_count_speaks_for_a_time_that_the_card_declares(
    monkeypatch: pytest.MonkeyPatch, declared: tuple[str, ...], outcome: str
) -> None:
    counted = _compiled({"bytes_loaded": 100}, {"bytes_loaded": 400})
    monkeypatch.setattr(module, "judged", lambda *_, **__: counted)
    finding = Judge(kind="layout", declared=frozenset(declared))(STATE, BROKEN, "words")
    assert finding.outcome == outcome
    if outcome == "untested":
        assert "the card gains time, which nothing here shows" in finding.found


@pytest.mark.parametrize(
    ("then", "now", "without", "outcome"),
    [(0, 1840, 0, "confirmed"), (0, 1840, 1840, "untested"), (40, 40, 0, "untested"), (40, 8, 0, "untested")],
)
def test_registers_that_are_spilled_are_a_static_fact(
    monkeypatch: pytest.MonkeyPatch, then: int, now: int, without: int, outcome: str
) -> None:
    own = _compiled({"bytes_loaded": 1, "spill_bytes": then}, {"bytes_loaded": 4, "spill_bytes": 0})
    broken = _compiled({"bytes_loaded": 1, "spill_bytes": now}, {"bytes_loaded": 4, "spill_bytes": without})
    monkeypatch.setattr(
        module, "judged", lambda k, b, workload, *_, **__: own if workload == STATE.workload else broken
    )
    finding = Judge(kind="storage")(STATE, BROKEN, "BLOCK_M = 256, not 128")
    assert finding.outcome == outcome
    if outcome == "confirmed":
        assert finding.trust == "static"
        assert "spills 1,840 bytes of registers, 0 as it is, and 0 without the optimization" in finding.found


def test_instructions_that_are_gone_are_a_static_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(code: float) -> Report:
        return _report(STATE, Verdict.PASS, counts=(100, 100), trust_=Trust.INTERPRETED, code=code)

    monkeypatch.setattr(module, "judged", lambda kernel, baseline, workload, *_, **__: (
        compiled(48.0) if workload == STATE.workload else compiled(after)))  # fmt: skip
    for after, outcome in ((0.0, "confirmed"), (24.0, "confirmed"), (40.0, "refuted")):
        finding = Judge(code="async_copy")(STATE, BROKEN, "words")
        assert (finding.outcome, finding.trust) == (outcome, "static")
        assert f"{after:.0f} async_copy instructions" in finding.found


# What becomes of it in a card.


def _card(copied: Workspace, *preconditions: Precondition, lineage: str = "softmax-c") -> Card:
    step = next(t for t in transitions(copied, lineage) if t.step.action == "register_tiling")
    evidence = (Evidence("e1", "transition", lineage, step.commit),)
    return Card(
        "c.tile",
        "Tile it",
        "register_tiling",
        "c",
        rule="c.register-tile",
        preconditions=preconditions,
        evidence=evidence,
    )


@pytest.fixture
def library(copied: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Library:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("softmax-c", "gemm-c"):
        trust(copied, name)
    return Library.of(copied)


def _chosen(
    monkeypatch: pytest.MonkeyPatch, gain_of: Callable[[Workload], tuple[float, float, float] | None]
) -> list[Workload]:
    """Gates that say what ``gain_of`` says of a workload: a failure for None. Returns the workloads that were gated."""
    seen: list[Workload] = []

    def gate(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, *_: object, **__: object
    ) -> Report:
        seen.append(workload)
        state = replace(STATE, after=kernel, workload=workload, platform=platform)
        gain = gain_of(workload)
        if gain is None and baseline is not None:
            return _report(state, Verdict.FAIL)
        return _report(state, Verdict.PASS, gain=gain or (1.0, 1.0, 1.0))

    monkeypatch.setattr(module, "judged", gate)
    return seen


def _narrow(workload: Workload) -> tuple[float, float, float] | None:
    return (1.9, 2.0, 2.1) if workload.sizes["bench"]["columns"] >= 100 else None


def test_what_is_found_is_written_with_its_evidence_and_its_risk(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    _chosen(monkeypatch, _narrow)
    narrow = Precondition("p1", "layout", "Rows are wide.", "columns >= 64")
    prose = Precondition("p2", "hardware", "The stars are right.")
    library.save(_card(copied, narrow, prose), "Ann", "mine")
    told: list[Probed] = []
    card, done = probe_card(library, "c.tile", who="Ann", on_probed=told.append)
    assert [(p.key, p.finding.outcome) for p in done] == [("p1", "confirmed"), ("p2", "untested")]
    assert list(done) == told
    assert card == library.get("c.tile")
    own = card.preconditions[0].probe
    assert own is not None and own.change == "size" and own.outcome == "confirmed"
    assert own.settings["dim"] == "columns" and int(own.settings["value"]) < 64
    assert "y[3] is 0, not 2" in own.found and own.platform and own.trust == "measured-cpu"
    cited = {e.key: e for e in card.evidence}
    assert [cited[key].kind for key in own.evidence] == ["probe"]
    assert b"y[3] is 0" in library.report(cited[own.evidence[0]].report)
    assert [(r.kind, r.origin, r.evidence) for r in card.risks] == [("observed", "probe", own.evidence)]
    assert not probe_is_stale(card.preconditions[0])
    assert card.preconditions[1] == prose
    log = library.history("c.tile")
    assert (log[0].who, log[0].title) == ("Ann", "Probe c.tile: p1 confirmed")
    assert "Probe" not in library.undoable(), "what a machine adds is no decision of a person"


def test_an_edit_turns_a_probe_stale_and_probing_again_renews_it(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    _chosen(monkeypatch, _narrow)
    library.save(
        _card(copied, Precondition("p1", "layout", "Rows are wide.", "columns >= 64")), "Ann", "mine"
    )
    card, _ = probe_card(library, "c.tile")
    looser = replace(card.preconditions[0], check="columns >= 8")
    library.save(replace(card, preconditions=(looser,)), "Ann", "eight will do")
    assert probe_is_stale(library.get("c.tile").preconditions[0])
    again, (probed,) = probe_card(library, "c.tile")
    assert not probe_is_stale(again.preconditions[0])
    assert probed.finding.outcome == "confirmed" and int(probed.settings["value"]) < 8
    assert len([r for r in again.risks if r.origin == "probe"]) == 1


def test_a_probe_that_cannot_be_made_says_why_in_the_card(library: Library, copied: Workspace) -> None:
    """Else the card would be said to wait for a probe that was tried, for good."""
    asked = Precondition("p1", "pipeline", "Blocks first.", probe=Probe("feature", {"name": "cache_block"}))
    prose = Precondition("p2", "layout", "Rows.")
    library.save(_card(copied, asked, prose), "Ann", "mine")
    card, done = probe_card(library, "c.tile")
    first, second = card.preconditions
    assert [one.finding.outcome for one in done] == ["untested", "untested"]
    assert first.probe is not None and first.probe.outcome == "untested" and not first.probe.evidence
    assert first.probe.found == done[0].finding.found != "" and second == prose
    assert library.get("c.tile") == card and not probe_is_stale(first)
    count = len(library.history("c.tile"))
    probe_card(library, "c.tile")
    assert len(library.history("c.tile")) == count, "what is known already is not written again"


def test_a_card_that_nothing_breaks_says_what_was_tried(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    _chosen(monkeypatch, lambda workload: (1.9, 2.0, 2.1))
    both = [
        Precondition(k, "layout", f"Rows {k}.", c)
        for k, c in (("p1", "columns >= 64"), ("p2", "rows % 2 == 0"))
    ]
    library.save(_card(copied, *both), "Ann", "mine")
    card, _ = probe_card(library, "c.tile")
    (risk,) = card.risks
    assert (risk.kind, risk.origin) == ("none-found", "probe")
    assert "columns = 32 (which breaks: Rows p1.)" in risk.text and "rows = 255" in risk.text
    assert len(risk.evidence) == 2
    _chosen(monkeypatch, _narrow)
    card, _ = probe_card(library, "c.tile", ["p1"])
    assert [r.kind for r in card.risks] == ["observed"], "what was found takes the place of what was not"


def test_noise_takes_back_nothing_that_was_seen(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    _chosen(monkeypatch, _narrow)
    library.save(
        _card(copied, Precondition("p1", "layout", "Rows are wide.", "columns >= 64")), "Ann", "mine"
    )
    card, _ = probe_card(library, "c.tile")
    _chosen(monkeypatch, lambda workload: (0.5, 1.0, 2.0))
    again, (probed,) = probe_card(library, "c.tile")
    assert probed.finding.outcome == "untested"
    assert again == card


def test_a_precondition_that_its_own_state_does_not_meet_is_doubted(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    _chosen(monkeypatch, lambda workload: (1.9, 2.0, 2.1))
    library.save(_card(copied, Precondition("p1", "layout", "Few rows.", "columns < 3")), "Ann", "mine")
    card, (probed,) = probe_card(library, "c.tile")
    assert probed.finding.outcome == "refuted" and not probed.change
    assert "does not meet it (at bench, columns is" in card.preconditions[0].doubt
    assert "gains 2.00x" in card.preconditions[0].doubt
    assert card.preconditions[0].evidence


def test_a_search_goes_on_until_the_effect_is_gone_and_keeps_both_sides(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    seen = _chosen(monkeypatch, _narrow)
    library.save(
        _card(copied, Precondition("p1", "layout", "Rows are wide.", "columns >= 512")), "Ann", "mine"
    )
    own = load("softmax").sizes["bench"]["columns"]
    card, (probed,) = probe_card(library, "c.tile", searching=True)
    boundary = probed.boundary
    assert boundary is not None and boundary.standing is not None and boundary.broken is not None
    last, first = (int(rung.settings["value"]) for rung in (boundary.standing, boundary.broken))
    assert first < 100 <= last == 2 * first and own % last == 0
    assert f"stands at columns = {last}" in boundary.text
    assert len(seen) <= 3 * (len(boundary.rungs) + 1) + 2, "no value is gated twice"
    assert boundary.text in " ".join(r.text for r in card.risks)
    assert f"stands at columns = {last}" in card.preconditions[0].doubt, (
        "the check asks for more than is needed"
    )
    twice, _ = probe_card(library, "c.tile", searching=True)
    assert twice.risks == card.risks
    assert [r.kind for r in card.risks] == ["observed"], "something broke, so nothing says that nothing did"


def test_divisors_are_searched_next_to_the_cards_own_size(
    library: Library, copied: Workspace, monkeypatch: Patch
) -> None:
    _chosen(monkeypatch, lambda w: (1.9, 2.0, 2.1) if w.sizes["bench"]["columns"] % 8 == 0 else None)
    library.save(
        _card(copied, Precondition("p1", "layout", "Whole vectors.", "columns % 32 == 0")), "Ann", "mine"
    )
    _, (probed,) = probe_card(library, "c.tile", searching=True)
    assert (
        probed.boundary is not None
        and probed.boundary.standing is not None
        and probed.boundary.broken is not None
    )
    assert probed.boundary.standing.words == "columns a multiple of 8"
    assert probed.boundary.broken.words == "columns a multiple of 4"


@pytest.mark.parametrize(
    ("own", "subject"),
    [
        (Probe("size", {"dim": "columns", "value": "7"}), "boundary of columns"),
        (Probe("size", {"dim": "*", "value": "/8"}), "boundary of every dimension"),
        (Probe("stride", {"buffer": "x", "bytes": "16"}), "boundary of the alignment of rows of x"),
        (Probe("misalign", {"buffer": "*", "bytes": "4"}), "boundary of the alignment of every buffer"),
        (Probe("platform", {"platform": "cpu-x86-64-v2"}), "boundary of the platform"),
        (Probe("setting", {"name": "UNROLL", "value": "64"}), "boundary of UNROLL"),
        (Probe("setting", {"name": "*", "value": "x8"}), "boundary of its numbers"),
        (Probe("dtype", {"element": "fp64"}), "has no order"),
        (Probe("size", {"dim": "*", "value": "+1"}), "no direction to search in"),
    ],
    ids=lambda x: f"{x.change}-{'-'.join(x.settings.values())}" if isinstance(x, Probe) else "",
)
def test_every_change_that_has_an_order_can_be_searched(
    copied: Workspace, monkeypatch: Patch, own: Probe, subject: str
) -> None:
    _chosen(monkeypatch, lambda workload: (1.9, 2.0, 2.1))
    step = next(t for t in transitions(copied, "softmax-c") if t.step.action == "register_tiling")
    state = replace(state_of(step), platform="cpu-x86-64-v3")
    card = _card(copied, Precondition("p1", "layout", "It is so.", "", own))
    probed = probe(card, "p1", [state], Judge(), searching=True)
    assert probed.finding.outcome == "refuted", probed.finding.found
    assert subject in (probed.boundary.text if probed.boundary else probed.unsearched)
    if probed.boundary:
        words = [rung.words for rung in probed.boundary.rungs]
        assert (len(set(words)) == len(words) and "nothing broke from" in probed.boundary.text) or len(
            words
        ) == 1


def test_a_cancelled_probe_writes_nothing(library: Library, copied: Workspace) -> None:
    library.save(
        _card(copied, Precondition("p1", "layout", "Rows are wide.", "columns >= 64")), "Ann", "mine"
    )
    before = library.entry("c.tile").revision
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(KlineageError, match="cancelled"):
        probe_card(library, "c.tile", judge=Judge(cancel=cancel))
    assert library.entry("c.tile").revision == before


def test_code_of_somebody_else_is_not_run(
    library: Library, copied: Workspace, monkeypatch: Patch, tmp_path: Path
) -> None:
    library.save(_card(copied, Precondition("p1", "layout", "Rows.", "columns >= 64")), "Ann", "mine")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    with pytest.raises(KlineageError, match="add --trust"):
        probe_card(library, "c.tile")


def test_a_folder_from_elsewhere_is_not_run_unasked(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "cards").mkdir(parents=True)
    evidence = (Evidence("e1", "transition", "softmax-c", "0" * 40),)
    card = Card("c.tile", "Tile it", "tiling", "c", evidence=evidence)
    (tmp_path / "theirs" / "cards" / "c.tile.md").write_bytes(render(card))
    folder = Library.open(tmp_path / "theirs")
    with pytest.raises(KlineageError, match="came from elsewhere"):
        probe_card(folder, "c.tile")
    with pytest.raises(KlineageError, match=r"no bundles/softmax-c\.bundle"):
        probe_card(folder, "c.tile", trusted=True)


def test_a_card_without_states_of_its_own_says_so(library: Library, copied: Workspace) -> None:
    card = _card(copied, Precondition("p1", "layout", "Rows.", "columns >= 64"))
    library.save(replace(card, evidence=()), "Ann", "mine")
    with pytest.raises(KlineageError, match="cites no transition"):
        probe_card(library, "c.tile")
    with pytest.raises(KlineageError, match="no precondition 'p7'; it has p1"):
        library.save(replace(card, id="c.other"), "Ann", "mine")
        probe_card(library, "c.other", ["p7"])


# Real gates.


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("private_cache")
def test_a_tail_that_is_forgotten_is_found_by_a_real_gate() -> None:
    if not satisfies(detect().cpu_platform, "cpu-x86-64-v2"):
        pytest.skip("needs an x86-64 processor")
    card = Card("c.wide", "Widen it", "simd", "c", preconditions=(
        Precondition("p1", "layout", "A row is whole vectors.", "columns % 8 == 0"),
        Precondition("p2", "storage", "Buffers are aligned to a vector.", "", Probe("misalign", {"buffer": "x", "bytes": "4"})),
    ))  # fmt: skip
    tail = probe(card, "p1", [STATE], Judge(phase="screening"))
    assert (tail.finding.outcome, tail.change) == ("confirmed", "size"), tail.finding.found
    assert "correctness fails" in tail.finding.found
    base = probe(card, "p2", [STATE], Judge(phase="screening"))
    assert (base.finding.outcome, base.settings) == ("confirmed", {"buffer": "x", "bytes": "4"}), (
        base.finding.found
    )
    assert base.finding.trust == "measured-cpu" and len(base.finding.reports) == 2
