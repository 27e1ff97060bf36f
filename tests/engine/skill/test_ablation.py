"""What each optimization is worth alone, and which stand on others; the kernels are real, what they take is told."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from klineage.errors import KlineageError
from klineage.gate import Report
from klineage.kernel import Feature, Kernel
from klineage.lineage import Workspace
from klineage.proposer import rules
from klineage.skill.ablation import Ablation, ablate, keep, kept, matrix, offers, told
from klineage.skill.ablation import measuring as ablation_module
from klineage.skill.ablation.cards import ablated, record, with_offer
from klineage.skill.ablation.recalling import recalled
from klineage.skill.admission import declared
from klineage.skill.card import Card
from klineage.skill.library import Library, report_name
from klineage.skill.lift import source_of
from klineage.skill.lift.shelving import lift
from klineage.walk import trust
from klineage.workload import Workload

from klineage_tui.presentation.ablation import ablation_row, lines

from .lineages import Lineage, Showed, failed, made, report, seal_again


def milliseconds(names: set[str]) -> float | None:
    """What a kernel with these mechanisms takes: tiles pay on packed panels only, vectors need aligned arrays."""
    if "simd" in names and "alignment" not in names:
        return None
    taken = 100.0
    taken /= 4 if {"register_tiling", "layout_pack"} <= names else 1
    taken /= 8 if "simd" in names else 1
    return taken / (1.2 if "cache_block" in names else 1)


@pytest.fixture(scope="module")
def gates() -> Iterator[SimpleNamespace]:
    asked = SimpleNamespace(pairs=[])

    def judged(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, **_: object
    ) -> Report:
        asked.pairs.append((kernel.hash, baseline.hash if baseline else ""))
        took = milliseconds({feature.name for feature in rules.features(kernel)})
        if took is None:
            return failed(kernel, workload, platform, "load of misaligned address")
        before = milliseconds({f.name for f in rules.features(baseline)}) if baseline else took
        return report(kernel, baseline or kernel, workload, platform, Showed(took / (before or took)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablation_module, "judged", judged)
        yield asked


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("ablation")
    with pytest.MonkeyPatch.context() as patch, made(folder / "workspace") as found:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        Lineage.open(found, "gemm").seal()
        trust.trust_repository(found)
        yield found


@pytest.fixture(scope="module")
def found(workspace: Workspace, gates: SimpleNamespace) -> Ablation:
    return ablate(workspace, "gemm-c")


@pytest.fixture(scope="module")
def cards(workspace: Workspace) -> list[Card]:
    return [one.card for one in lift(source_of(workspace, ["gemm-c"])) if one.card is not None]


def card_by(cards: list[Card], rule: str) -> Card:
    return next(card for card in cards if card.rule == rule)


def test_each_optimization_is_measured_first_in_order_and_last(found: Ablation) -> None:
    rows = {row.action: row for row in found.rows}
    assert [row.number for row in found.rows] == list(range(1, len(found.rows) + 1))
    assert told(rows["cache_block"].first) == "1.20x ±1.0%"
    assert told(rows["register_tiling"].in_order) == "4.00x ±1.0%"
    assert told(rows["simd"].in_order) == "8.00x ±1.0%"
    assert told(rows["restrict"].last) == "1.00x, within noise"
    assert rows["prefetch"].last.gain is None
    assert "cannot be taken out of the expert alone" in rows["layout_pack"].last.problem
    assert told(rows["simd"].first) == "did not pass"
    assert told(rows["layout_pack"].first) == "does not apply"


def test_what_pays_only_after_another_names_it(found: Ablation) -> None:
    needs = {row.action: row.needs for row in found.rows}
    packing, blocks, aligned = (
        next(row.name for row in found.rows if row.action == action)
        for action in ("layout_pack", "cache_block", "alignment")
    )
    assert needs["register_tiling"] == (packing,)
    assert needs["simd"] == (aligned,)
    assert needs["layout_pack"] == (blocks,)
    assert needs["restrict"] == needs["prefetch"] == needs["cache_block"] == ()
    why = next(row.why for row in found.rows if row.action == "simd")
    assert "pays only after" in why
    assert "misaligned" in why


def test_noise_is_no_reason_to_need_another(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors on what is not aligned are too noisy for a number here: that they need alignment is not shown by it."""

    def judged(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, **_: object
    ) -> Report:
        names = {feature.name for feature in rules.features(kernel)}
        took = milliseconds(names | {"alignment"})
        noisy = "simd" in names and "alignment" not in names
        before = (
            milliseconds({f.name for f in rules.features(baseline)} | {"alignment"}) if baseline else took
        )
        ratio = None if noisy and baseline else (took or 1) / (before or 1)
        return report(kernel, baseline or kernel, workload, platform, Showed(ratio))

    monkeypatch.setattr(ablation_module, "judged", judged)
    row = next(row for row in ablate(workspace, "gemm-c").rows if row.action == "simd")
    assert told(row.first) == "too noisy" and row.in_order.pays
    assert row.needs == () and row.why == ""


@pytest.mark.parametrize(("half", "needed"), [(0.01, ("K1 restrict",)), (0.09, ())])
def test_one_needs_another_only_where_it_is_shown_to_be_worth_less_without(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, half: float, needed: tuple[str, ...]
) -> None:
    """Blocks gain 1.08x in order, and 1.01x on the naive form, which an interval of 9 % does not tell apart."""

    def judged(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, **_: object
    ) -> Report:
        names, before = (
            {f.name for f in rules.features(one)} if one else set() for one in (kernel, baseline)
        )
        gain = 1.0
        if "cache_block" in names - before:
            gain = 1.08 if "restrict" in names else 1.01
        showed = Showed(1 / gain, half if gain == 1.01 else 0.01)
        return report(kernel, baseline or kernel, workload, platform, showed)

    monkeypatch.setattr(ablation_module, "judged", judged)
    row = next(row for row in ablate(workspace, "gemm-c").rows if row.action == "cache_block")
    assert row.in_order.pays
    assert not row.first.pays
    assert row.needs == needed


def test_it_is_offered_as_contract_and_scope(found: Ablation) -> None:
    by_action = {offer.action: offer for offer in offers(found)}
    assert set(by_action) == {"register_tiling", "simd", "layout_pack", "alignment"}
    offer = by_action["register_tiling"]
    assert offer.prior_actions == ("layout_pack",)
    assert [(feature.name, feature.where) for feature in offer.requires] == [("layout_pack", "function")]


def test_every_kernel_passes_alone_before_it_is_a_baseline(found: Ablation, gates: SimpleNamespace) -> None:
    alone = set()
    for kernel, baseline in gates.pairs:
        assert not baseline or baseline in alone
        if not baseline:
            alone.add(kernel)


def test_the_matrix_and_its_json_say_the_same(found: Ablation) -> None:
    shown = "\n".join(lines(found))
    row = ablation_row(found)
    assert matrix(found)[0] == ("optimization", "first", "in order", "last", "stands on")
    assert len(row["optimizations"]) == len(matrix(found)) - 1 == len(found.rows)
    tiled = next(o for o in row["optimizations"] if o["action"] == "register_tiling")
    assert tiled["in_order"]["shown"]["gain"] == pytest.approx(4.0)
    assert tiled["in_order"]["shown"]["trust"] == "measured-cpu"
    assert "measured-cpu, thread_cpu_time" in shown
    assert "4.00x" in shown


def test_a_mechanism_is_taken_out_whatever_stands_on_it(workspace: Workspace) -> None:
    lineage = Lineage.open(workspace, "softmax", lineage_id="softmax-again")
    simd = next(feature for feature in rules.features(lineage.expert) if feature.name == "simd")
    assert "simd" not in {candidate.action for candidate in rules.propose(lineage.expert)}
    without = rules.taken_out("vector-types", lineage.expert, [simd])
    assert set(rules.features(lineage.expert)) - set(rules.features(without)) == {simd}
    with pytest.raises(rules.NotApplicable, match="not there any more"):
        rules.taken_out("vector-types", without, [simd])
    with pytest.raises(rules.NotApplicable, match="no rule"):
        rules.taken_out("nothing", without, [Feature("kernel.c::softmax", "simd")])


def test_a_lineage_that_is_not_sealed_or_not_trusted_is_refused(
    workspace: Workspace, gates: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lineage.open(workspace, "topk")
    trust.trust_repository(workspace)
    before = list(gates.pairs)
    with pytest.raises(KlineageError, match="klineage seal topk-c"):
        ablate(workspace, "topk-c")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nobody"))
    with pytest.raises(trust.Untrusted):
        ablate(workspace, "gemm-c")
    assert gates.pairs == before


def test_it_is_written_into_the_cards_of_the_lineage_once(cards: list[Card], found: Ablation) -> None:
    card = card_by(cards, "c.cache-block")
    assert card.effects == ()
    measured, reports = ablated(card, found)
    assert [(effect.position, round(effect.gain, 3)) for effect in measured.effects] == [("first", 1.2)]
    (item,) = (item for item in measured.evidence if item.kind == "ablation")
    assert measured.effects[0].evidence == (item.key,)
    assert [report_name(told) for told in reports] == [item.report]
    assert ablated(measured, found)[0] == measured
    assert [one.position for one in declared(measured)] == ["first"]
    other = replace(card, evidence=())
    assert ablated(other, found) == (other, ())


@contextmanager
def copied(workspace: Workspace, folder: Path) -> Iterator[Workspace]:
    """The workspace as another process has it, to be written to."""
    shutil.copytree(workspace.path, folder)
    with made(folder) as copy:
        yield copy


def test_it_is_kept_until_the_lineage_is_sealed_again(
    workspace: Workspace, found: Ablation, tmp_path: Path
) -> None:
    with copied(workspace, tmp_path / "copy") as copy:
        assert kept(copy, "gemm-c") is None
        keep(copy, replace(found, rows=found.rows[:1]))
        keep(copy, found)
        with made(copy.path) as reopened:
            here = kept(reopened, "gemm-c")
            assert here is not None and here.ablation == found
        before = [operation.kind for operation in copy.operations("gemm-c")]
        assert "seal" in before[-1], "what was measured is no decision"
        seal_again(copy, "gemm-c")
        assert kept(copy, "gemm-c") is None


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"ablation": 1}', b"\xff"])
def test_what_is_kept_and_is_no_ablation_is_named(workspace: Workspace, data: bytes, tmp_path: Path) -> None:
    with copied(workspace, tmp_path / "copy") as copy:
        copy.keep_ablation("gemm-c", data)
        with pytest.raises(KlineageError, match="git update-ref -d refs/klineage/ablation/gemm-c drops it"):
            kept(copy, "gemm-c")


def test_the_cards_say_again_what_was_written_into_them(
    workspace: Workspace, found: Ablation, cards: list[Card], tmp_path: Path
) -> None:
    with copied(workspace, tmp_path / "copy") as copy:
        library = Library.of(copy)
        library.save_all(cards)
        silent = recalled(copy, library, "gemm-c")
        assert {told(row.first) for row in silent.rows[1:]} == {"not said"}
        assert "c.cache-block" in record(library, found)
        again = recalled(copy, library, "gemm-c")
        assert [row.name for row in again.rows] == [row.name for row in found.rows]
        for row, measured in zip(again.rows[1:-1], found.rows[1:-1], strict=True):
            for cell, other in ((row.first, measured.first), (row.last, measured.last)):
                assert told(cell) == (told(other) if other.pays else "not said")
        assert {told(row.in_order) for row in again.rows} == {"1.00x, within noise"}, "as the steps have it"


def test_an_offer_becomes_contract_and_scope_once(cards: list[Card], found: Ablation) -> None:
    card = card_by(cards, "c.register-tile")
    offer = next(offer for offer in offers(found) if offer.action == "register_tiling")
    bare = replace(card, contract=replace(card.contract, requires=()))
    taken = with_offer(bare, offer)
    assert taken.contract.requires == offer.requires
    assert taken.scope.prior_actions == ("layout_pack",)
    assert with_offer(taken, offer) == taken
