"""Trials of cards on kernels that they were not lifted from: what is demanded, who may make the edit, what is written down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.gate import Report, Verdict, report_from_json
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.proposer.base import Attempt, Proposer, Task
from klineage.proposer.candidate import Candidate
from klineage.resources import shipped
from klineage.skill.admission import (
    Made,
    Materializer,
    Source,
    Target,
    Trial,
    admit,
    declared,
    held_out,
    held_out_targets,
    less,
    materializer_named,
    named,
    of_file,
    recorded,
    reproduced,
    sources,
)
from klineage.skill.admission import trying as trying_module
from klineage.skill.admission.by_patch import has_place, patched
from klineage.skill.admission.held_out import operator_of
from klineage.skill.card import Card, Carrier, Contract, ContractFeature, Effect, Precondition, Verification
from klineage.skill.file import parse, render
from klineage.skill.library import Library, report_name
from klineage.skill.lift import source_of
from klineage.skill.lift.shelving import lift
from klineage.skill.staleness import fingerprints, stale, verified_scope
from klineage.skill.trial import Gain
from klineage.workload import Workload
from klineage.workload import parse as parse_workload

from .lineages import CPU, Lineage, Showed, failed, made, report

EXPERTS = shipped("experts")


def effect(gain: float, quantity: str = "time", trust: str = "measured-cpu", **more: str) -> Effect:
    half = 0.01 if quantity == "time" else 0.0
    return Effect(quantity, gain, gain - half, gain + half, trust, CPU, "softmax", **more)  # type: ignore[arg-type]


def gain(value: float, half: float = 0.01, quantity: str = "time", trust: str = "measured-cpu") -> Gain:
    return Gain(quantity, value, value - half, value + half, trust, "bench", "thread_cpu_time", 0.01)


def card_with(*effects: Effect, **more: object) -> Card:
    tile = ContractFeature("register_tiling", "anchor")
    card = Card("c.tile", "Keep a tile of sums in registers.", "register_tiling", "c", rule="c.register-tile")
    card = replace(card, contract=Contract((), (tile,), (tile,)), effects=effects)
    return replace(card, **more)  # type: ignore[arg-type]


# -- what is demanded -----------------------------------------------------------------------------------------------


@given(st.floats(1.02, 50), st.floats(0.5, 60), st.floats(0, 0.5))
def test_at_least_half_of_what_an_effect_adds_is_needed(declares: float, shows: float, half: float) -> None:
    found = reproduced(card_with(effect(declares)), [gain(shows, half)])
    if shows - half < 1 + (declares - 1) / 2 - 1e-9:
        assert not found.holds
    if found.holds:
        assert shows - half > 1.01
    if shows - half >= max(1 + (declares - 1) / 2 + 1e-9, 1.0101):
        assert found.holds


def test_an_interval_that_reaches_below_the_half_is_not_enough() -> None:
    assert reproduced(card_with(effect(1.8)), [gain(1.45, 0.02)]).holds
    assert not reproduced(card_with(effect(1.8)), [gain(1.45, 0.1)]).holds


def test_what_is_within_the_noise_is_nothing() -> None:
    noisy = replace(gain(1.03, 0.001), noise=0.05)
    found = reproduced(card_with(effect(1.04)), [noisy])
    assert not found.holds
    assert "beyond noise" in found.why


def test_several_effects_declare_their_geometric_mean() -> None:
    (one,) = declared(card_with(effect(2.0), effect(8.0)))
    assert one.gain == pytest.approx(4.0)
    assert one.needed == pytest.approx(2.5)


def test_where_it_was_measured_in_order_counts_before_alone() -> None:
    (one,) = declared(card_with(effect(2.0), effect(9.0, position="last")))
    assert one.position == "in-order"
    assert one.gain == pytest.approx(2.0)
    (one,) = declared(card_with(effect(9.0, position="last"), effect(3.0, position="first")))
    assert one.position == "last"
    assert one.gain == pytest.approx(9.0)


def test_a_time_and_a_count_do_not_stand_for_each_other() -> None:
    bytes_only = card_with(effect(2.0, "bytes", "interpreted"))
    assert not reproduced(bytes_only, [gain(5.0)]).holds
    assert reproduced(bytes_only, [gain(1.6, 0.0, "bytes", "interpreted")]).holds
    on_gpu = card_with(effect(2.0, trust="measured-gpu"))
    assert not reproduced(on_gpu, [gain(5.0, trust="measured-cpu")]).holds


def test_a_card_is_tried_for_what_it_is_for_and_not_for_what_else_changed() -> None:
    card = card_with(effect(4.0, "bytes", "interpreted"), effect(1.1, "instructions", "interpreted"))
    shown = [gain(1.2, 0, "bytes", "interpreted"), gain(9.0, 0, "instructions", "interpreted")]
    assert not reproduced(card, shown).holds


def test_a_loss_declares_nothing() -> None:
    assert declared(card_with(effect(0.4, "operations", "interpreted"))) == ()
    assert declared(card_with(Effect("time", 1.02, 0.99, 1.05, "measured-cpu", CPU, "softmax"))) == ()


# -- what is held out -----------------------------------------------------------------------------------------------


def rmsnorm(*without: str) -> Target:
    return less(of_file(EXPERTS / "rmsnorm/c/reference.c", platform=CPU), without)


def source_like(target: Target, **more: object) -> Source:
    same = Source(
        "a", target.workload.name, operator_of(target.workload), target.kernel.surface, target.platform,
        frozenset(target.prior_actions),
    )  # fmt: skip
    return replace(same, **more)  # type: ignore[arg-type]


def test_what_a_card_was_lifted_from_is_not_held_out() -> None:
    target = rmsnorm()
    assert held_out(target, [source_like(target)]) == ()
    assert held_out(target, []) == ()


def test_another_workload_surface_platform_or_set_of_mechanisms_is() -> None:
    target = rmsnorm("simd")
    other = source_like(target, workload="softmax", operator="x")
    assert held_out(target, [other]) == ("workload",)
    assert held_out(target, [source_like(target, platform="cpu-x86-64-v4")]) == ("platform",)
    assert held_out(target, [source_like(target, surface="triton")]) == ("surface",)
    assert held_out(target, [source_like(target, actions=frozenset())]) == ("prior_actions",)
    older = replace(target, kernel=replace(target.kernel, flags=("-march=x86-64-v2",)))
    assert held_out(older, [source_like(target)]) == ("capabilities",)
    assert held_out(target, [other, source_like(target)]) == ()


def test_a_new_size_or_a_new_name_of_an_operator_is_the_same_operator() -> None:
    target = rmsnorm()
    text = (
        target.workload.source.decode().replace('"rows": 256', '"rows": 512').replace('"""Root', '"""A root')
    )
    again = parse_workload(text.encode(), name="my_norm", path=Path("mine/workload.py"))
    renamed = replace(target, workload=again)
    assert operator_of(again) == operator_of(target.workload)
    assert held_out(renamed, [source_like(target)]) == ()
    other = text.replace("xp.mean(x * x", "xp.mean(x * x * x")
    changed = parse_workload(other.encode(), name="my_norm", path=Path("mine/workload.py"))
    assert held_out(replace(target, workload=changed), [source_like(target)]) == ("workload",)


# -- targets --------------------------------------------------------------------------------------------------------


def test_a_target_is_named_as_it_is_read_again() -> None:
    target = rmsnorm("register_tiling")
    assert (
        target.name == "experts/rmsnorm/c/reference.c less prefetch, unroll, simd, alignment, register_tiling"
    )
    again = named(target.name, platform=CPU)
    assert again.kernel == target.kernel
    assert again.prior_actions == ("restrict",)


def test_a_folder_with_several_kernels_asks_which(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match=r"naive.c, reference.c"):
        of_file(EXPERTS / "rmsnorm/c")
    with pytest.raises(KlineageError, match="no kernel"):
        of_file(tmp_path)
    (tmp_path / "kernel.c").write_bytes((EXPERTS / "rmsnorm/c/naive.c").read_bytes())
    with pytest.raises(KlineageError, match=r"no workload.py beside"):
        of_file(tmp_path)
    assert of_file(tmp_path, "rmsnorm", CPU).workload.name == "rmsnorm"


def test_what_no_rule_takes_out_stays_and_says_so() -> None:
    with pytest.raises(KlineageError, match="cannot take fusion out of"):
        less(of_file(EXPERTS / "addmm/triton/naive.py", platform="nvidia-sm90"), ["fusion"])


# -- trials ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scripted:
    """A materializer that answers as it is told."""

    made: Sequence[Made]
    name: str = "model:test"

    def answers(self, card: Card, target: Target, failed: Callable[[], tuple[object, ...]]) -> Iterator[Made]:
        for number, answer in enumerate(self.made):
            assert len(failed()) == number
            yield answer


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Gates that are not run: ``ratios`` is what each kernel shows, by hash; None fails it."""
    told = SimpleNamespace(ratios={}, phases=[])

    def judged(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, *phase: str, **_: object
    ) -> Report:
        told.phases += phase
        ratio = told.ratios.get(kernel.hash, 1.0)
        if ratio is None:
            return failed(kernel, workload, platform, "y[0] is wrong")
        return report(kernel, baseline or kernel, workload, platform, Showed(ratio))

    monkeypatch.setattr(trying_module, "judged", judged)
    return told


@pytest.fixture
def target() -> Target:
    return rmsnorm("register_tiling")


def tiled(target: Target, unroll: int) -> Kernel:
    source = target.kernel.source.replace(b"#define UNROLL 1\n", b"#define UNROLL %d\n" % unroll)
    assert source != target.kernel.source
    return replace(target.kernel, source=source)


def test_three_attempts_and_no_more(gates: SimpleNamespace, target: Target) -> None:
    kernels = [tiled(target, n) for n in (2, 4, 8, 16)]
    gates.ratios = {kernels[0].hash: None, kernels[1].hash: 0.95, kernels[2].hash: 0.9, kernels[3].hash: 0.1}
    trial = admit(
        card_with(effect(2.0)),
        target,
        Scripted([Made("model:test", k) for k in kernels]),
        [source_like(rmsnorm())],
    )
    assert not trial.accepted
    assert [attempt.holds for attempt in trial.attempts] == [False] * 3
    assert "wrong" in trial.attempts[0].why
    assert gates.phases == ["admission"] * 3


def test_the_attempt_that_holds_ends_the_trial(gates: SimpleNamespace, target: Target) -> None:
    kernels = [tiled(target, n) for n in (2, 4)]
    gates.ratios = {kernels[0].hash: 0.9, kernels[1].hash: 0.5}
    trial = admit(
        card_with(effect(2.0)),
        target,
        Scripted([Made("model:test", k) for k in kernels]),
        [source_like(rmsnorm())],
    )
    assert trial.accepted
    assert trial.held_out == ("prior_actions",)
    assert trial.admits
    assert len(trial.attempts) == 2


def test_an_edit_that_is_not_this_card_is_no_success_however_fast(
    gates: SimpleNamespace, target: Target
) -> None:
    faster = replace(target.kernel, source=target.kernel.source.replace(b"#define STEP", b"#define  STEP"))
    both = of_file(EXPERTS / "rmsnorm/c/reference.c", platform=CPU).kernel
    gates.ratios = {faster.hash: 0.1, both.hash: 0.1}
    answers = [Made("model:test", target.kernel), Made("model:test", faster), Made("model:test", both)]
    trial = admit(card_with(effect(2.0)), target, Scripted(answers), [source_like(rmsnorm())])
    assert not trial.accepted
    assert [a.why for a in trial.attempts][:2] == [
        "the edit changes nothing",
        "the edit does not bring in register_tiling, which the card provides",
    ]
    assert "too, which the card does not provide" in trial.attempts[2].why
    assert trial.reports == ()


def test_both_outcomes_are_written_down_and_nothing_is_overwritten(
    gates: SimpleNamespace, target: Target
) -> None:
    good, bad = tiled(target, 4), tiled(target, 2)
    gates.ratios = {good.hash: 0.5, bad.hash: 0.97}
    card, known = card_with(effect(2.0)), [source_like(rmsnorm())]
    once = recorded(card, admit(card, target, Scripted([Made("rules:x", bad)]), known))
    assert once.status == "hypothesis"
    twice = recorded(
        once, admit(once, target, Scripted([Made("model:test; prompt 1", good, "by hand")]), known)
    )
    thrice = recorded(twice, admit(twice, target, Scripted([Made("rules:x", bad)]), known))
    assert [entry.accepted for entry in thrice.verification] == [False, True, False]
    assert [entry.key for entry in thrice.verification] == ["v1", "v2", "v3"]
    assert thrice.verification[:2] == twice.verification
    assert thrice.status == twice.status == "admitted"
    assert len({item.key for item in thrice.evidence}) == len(thrice.evidence) == 3
    entry = thrice.verification[1]
    assert (entry.materializer, entry.quantity, entry.gain) == ("model:test; prompt 1", "time", 2.0)
    assert (entry.target, entry.prior_actions, entry.trust) == (target.name, ("restrict",), "measured-cpu")
    assert verified_scope(thrice).workloads == ("rmsnorm",)
    assert parse(render(thrice), "c.tile.md") == thrice


def test_a_trial_that_is_not_held_out_admits_nothing(gates: SimpleNamespace, target: Target) -> None:
    good = tiled(target, 4)
    gates.ratios = {good.hash: 0.5}
    trial = admit(card_with(effect(2.0)), target, Scripted([Made("rules:x", good)]), [source_like(target)])
    assert trial.accepted
    assert not trial.admits
    assert recorded(card_with(effect(2.0)), trial).status == "hypothesis"


def test_an_edit_of_the_card_afterwards_makes_its_trial_stale(gates: SimpleNamespace, target: Target) -> None:
    good = tiled(target, 4)
    gates.ratios = {good.hash: 0.5}
    card = card_with(effect(2.0), preconditions=(Precondition("p1", "storage", "It fits in registers."),))
    tried = recorded(card, admit(card, target, Scripted([Made("rules:x", good)]), [source_like(rmsnorm())]))
    assert stale(tried) == {}
    edited = replace(tried, preconditions=(replace(card.preconditions[0], text="It fits in the cache."),))
    assert stale(edited) == {"v1": ("precondition.p1",)}


def test_a_card_that_was_edited_while_it_was_tried_is_not_admitted_by_that(
    gates: SimpleNamespace, target: Target
) -> None:
    good = tiled(target, 4)
    gates.ratios = {good.hash: 0.5}
    card = card_with(effect(2.0), preconditions=(Precondition("p1", "storage", "It fits in registers."),))
    trial = admit(card, target, Scripted([Made("rules:x", good)]), [source_like(rmsnorm())])
    edited = replace(card, preconditions=(replace(card.preconditions[0], text="It fits in the cache."),))
    late = recorded(edited, trial)
    assert late.status == "hypothesis"
    assert stale(late) == {"v1": ("precondition.p1",)}
    assert recorded(card, trial).status == "admitted"


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (card_with(), "declares no effect beyond noise"),
        (card_with(effect(2.0), status="retired", retired="merged into c.other"), "is retired"),
        (card_with(effect(2.0), contract=Contract((ContractFeature("cache_block"),), (ContractFeature("register_tiling"),))),
         "it needs cache_block first"),
        (card_with(effect(2.0), contract=Contract((), (ContractFeature("restrict"),))), "it has restrict already"),
        (card_with(effect(2.0), preconditions=(Precondition("p1", "layout", "Long rows.", "hidden >= 1000000"),)),
         "does not hold on"),
    ],
)  # fmt: skip
def test_where_a_trial_would_say_nothing_it_is_refused(
    card: Card, words: str, gates: SimpleNamespace, target: Target
) -> None:
    with pytest.raises(KlineageError, match=words):
        admit(card, target, Scripted([Made("rules:x", tiled(target, 4))]))
    assert gates.phases == []


def test_a_precondition_that_fails_can_be_tried_against(gates: SimpleNamespace, target: Target) -> None:
    card = card_with(
        effect(2.0), preconditions=(Precondition("p1", "layout", "Long rows.", "hidden >= 1000000"),)
    )
    good = tiled(target, 4)
    gates.ratios = {good.hash: 0.5}
    assert admit(card, target, Scripted([Made("rules:x", good)]), anyway=True).accepted


def test_a_trial_can_be_made_again_from_its_entry(gates: SimpleNamespace, tmp_path: Path) -> None:
    card = card_with(effect(2.0), carrier=Carrier(settings={"UNROLL": "4"}))
    with made(tmp_path) as workspace:
        Lineage.open(workspace, "softmax").seal()
        for name in ("softmax-c:K1", "experts/rmsnorm/c/reference.c less register_tiling"):
            target = named(name, workspace, platform=CPU, runs=False)
            gates.ratios = {tiled(target, 4).hash: 0.5}
            trial = admit(card, target, materializer_named("rules"), [source_like(rmsnorm())])
            entry = recorded(card, trial).verification[-1]
            there = named(entry.target, workspace, platform=entry.platform, runs=False)
            assert there.kernel == target.kernel
            maker = materializer_named(entry.materializer.partition(":")[0])
            again = admit(card, there, maker, [source_like(rmsnorm())])
            assert again.accepted == trial.accepted is True


# -- who makes the edit ---------------------------------------------------------------------------------------------


def test_nobody_else_is_a_materializer() -> None:
    with pytest.raises(KlineageError, match="who could materialize"):
        materializer_named("everybody")
    with pytest.raises(KlineageError, match="name its file"):
        materializer_named("person")


def test_a_person_writes_the_kernel(gates: SimpleNamespace, target: Target, tmp_path: Path) -> None:
    good = tiled(target, 4)
    gates.ratios = {good.hash: 0.5}
    (tmp_path / "mine.c").write_bytes(good.source)
    trial = admit(card_with(effect(2.0)), target, materializer_named("person", file=tmp_path / "mine.c"))
    assert trial.accepted
    assert trial.last.made.by == "person"


@dataclass
class Model:
    """A proposer that keeps what it was asked."""

    answers: list[Candidate | None]
    tasks: list[Task]
    name: str = "model:test"

    def attempts(self, task: Task, *_: object) -> Iterator[Attempt]:
        self.tasks.append(task)
        answer = self.answers.pop(0)
        yield Attempt(self.name, answer, "" if answer else "no JSON")


def test_a_model_is_given_the_card_alone_and_what_failed(gates: SimpleNamespace, target: Target) -> None:
    good = tiled(target, 4)
    gates.ratios = {good.hash: 0.5}
    answer = Candidate("register_tiling", "kernel.c::rmsnorm_row", "Tile", "Because.", good.source)
    model = Model([None, answer], [])
    card = card_with(
        effect(2.0),
        preconditions=(Precondition("p1", "storage", "It fits in registers."),),
        notes="secret lineage",
        carrier=Carrier(settings={"MR": "6"}),
    )

    def ask(name: str) -> Proposer:
        return model

    trial = admit(card, target, materializer_named("model:test", ask=ask))
    assert trial.accepted
    assert trial.last.made.by == "model:test"
    first, second = model.tasks
    assert first.goal is not None
    assert first.kernel == target.kernel
    assert "It fits in registers." in first.goal.rationale
    assert "Its settings were MR=6; choose those that fit here." in first.goal.rationale
    assert first.goal.settings == {}
    assert "secret lineage" not in repr(first.goal)
    assert [feature.name for feature in first.goal.adds] == ["register_tiling"]
    assert (len(first.tried), [tried.why for tried in second.tried]) == (0, ["no JSON"])


BEFORE = "    for (int j = 0; j < NV; ++j)\n        w[j] = b[j];\n"
AFTER = "#pragma GCC unroll 4\n" + BEFORE


def test_a_patch_finds_its_place_in_other_names() -> None:
    source = b"void f(float *p, float *q)\n{\n    for (int u = 0; u < WIDE; ++u)\n        p[u] = q[u];\n}\n"
    found = patched("c", BEFORE, AFTER, source, 12)
    assert found is not None
    assert found.replace(b"#pragma GCC unroll 4\n", b"").split() == source.split()
    assert found.index(b"#pragma GCC unroll 4") < found.index(b"for (int u")


def test_a_patch_with_two_places_or_none_is_not_made() -> None:
    loop = b"    for (int u = 0; u < WIDE; ++u)\n        p[u] = q[u];\n"
    assert patched("c", BEFORE, AFTER, b"void f(float *p, float *q)\n{\n" + loop + loop + b"}\n", 12) is None
    assert patched("c", BEFORE, AFTER, b"void f(float *p)\n{\n    p[0] = 1;\n}\n", 3) is None


def test_a_name_of_a_patch_is_the_same_name_throughout() -> None:
    mixed = b"void f(float *p, float *q)\n{\n    for (int u = 0; u < WIDE; ++u)\n        p[u] = q[v];\n}\n"
    assert patched("c", BEFORE, AFTER, mixed, 40) is None


@given(st.sampled_from(["a", "b1", "row"]), st.sampled_from(["n", "wide"]))
def test_a_patch_renames_what_it_puts_in(name: str, extent: str) -> None:
    before, after = "x = tl.load(p + i)\n", "x = tl.load(p + i, mask=i < n)\n"
    source = f"{name} = tl.load({name}_ptr + {extent}_at)\n".encode()
    found = patched("triton", before, after, source, 12)
    assert found == f"{name} = tl.load({name}_ptr + {extent}_at, mask={extent}_at < n)\n".encode()


def test_a_patch_is_offered_only_where_it_has_a_place() -> None:
    kernel = Kernel("c", "kernel.c", "f", b"void f(float *p, float *q)\n{\n" + BEFORE.encode() + b"}\n")
    there = replace(of_file(EXPERTS / "softmax" / "c" / "kernel.c"), kernel=kernel)
    card = replace(card_with(effect(1.5)), carrier=Carrier(BEFORE, AFTER))
    assert has_place(card, there)
    assert not has_place(card, of_file(EXPERTS / "bmm" / "c" / "naive.c"))
    assert not has_place(replace(card, carrier=Carrier(BEFORE, "")), there)


# -- whole ----------------------------------------------------------------------------------------------------------


@contextmanager
def softmax_cards(folder: Path) -> Iterator[tuple[Workspace, Library]]:
    with made(folder) as workspace:
        lineage = Lineage.open(workspace, "softmax")
        lineage.seal({"register-tile": Showed(1 / 1.2), "vector-types": Showed(1 / 7.0)})
        library = Library.of(workspace)
        library.save_all([one.card for one in lift(source_of(workspace))], "Ann", "lifted")
        yield workspace, library


def test_suggestions_are_held_out_and_say_why(tmp_path: Path) -> None:
    with softmax_cards(tmp_path) as (workspace, library):
        card = library.get("c.register-tile")
        known = sources(card, library.lineage)
        assert {source.workload for source in known} == {"softmax"}
        found = held_out_targets(card, known, workspace)
        overtaken = Verification(
            "v1", found[-1].target.name, "softmax", "c", "cpu-x86-64-v3", (), "rules:register-tile", True, "so it was",
            ("workload",), rested_on={"anchor": "of other words"},
        )  # fmt: skip
        failed = replace(
            overtaken, key="v2", target=found[0].target.name, accepted=False, rested_on=fingerprints(card)
        )
        again = held_out_targets(replace(card, verification=(overtaken, failed)), known, workspace)
    fitting = [one.target.name for one in again if one.fits]
    assert fitting[-1] == found[0].target.name and len(fitting) > 1, (
        "what has failed would fail again: others first"
    )
    assert again[0].target.name == found[-1].target.name, "what an edit has overtaken is tried again there"
    assert found[0].fits
    assert {"rmsnorm", "layernorm", "add_rmsnorm", "topk"} <= {
        one.target.workload.name for one in found if one.fits
    }
    assert all(one.held_out for one in found)
    own = {one.held_out for one in found if one.target.workload.name == "softmax"}
    assert own == {("prior_actions",)}, "another form of the same operator differs in what it has already"
    assert all("register_tiling" not in one.target.prior_actions for one in found)
    assert "rmsnorm" in next(one.why for one in found if one.target.workload.name == "rmsnorm")


def test_a_rule_is_tried_on_a_real_kernel_and_recorded_in_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with softmax_cards(tmp_path / "workspace") as (_, library):
        card = library.get("c.register-tile")
        target = named("experts/rmsnorm/c/reference.c less register_tiling", platform="cpu-native")
        by: Materializer = materializer_named("rules")
        trial: Trial = admit(card, target, by, sources(card, library.lineage))
        first = trial.attempts[0]
        assert first.report is not None
        assert first.report.verdict is Verdict.PASS, first.report.log
        assert first.made.by == "rules:register-tile"
        assert b"#define UNROLL 4\n" in (first.made.kernel or target.kernel).source
        library.update(card.id, lambda now: recorded(now, trial), reports=trial.reports, machine=True)
        kept = library.get(card.id)
        # A busy machine may measure too coarsely to show anything: then the log says that.
        assert kept.status == ("admitted" if trial.accepted else "hypothesis")
        assert [entry.accepted for entry in kept.verification] == [trial.accepted]
        name = next(item.report for item in kept.evidence if item.kind == "trial")
        told = library.report(name)
    assert name == report_name(told) == hashlib.sha256(told).hexdigest()[:16] + ".json"
    stored = report_from_json(told)
    assert (stored.phase, len(stored.seeds)) == ("admission", 10)
    assert stored.baseline == target.kernel.hash
