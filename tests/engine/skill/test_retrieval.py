"""Which cards hold: the union of the best of each dimension, with reasons, and what the others need."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.resources import shipped
from klineage.skill.card import ContractFeature, Scope
from klineage.skill.retrieval import Retrieved, explain, likeness, retrieve
from klineage.skill.retrieval.index import Row, index_of, row_of, together, without
from klineage.skill.retrieval.paths import paths
from klineage.skill.retrieval.target import Target, named_target, target_of
from klineage.walk.reading import read_kernel
from klineage.workload import load

from .cards_for_tests import PLATFORM, a_card, admitted

WORKLOADS = ("gemm", "grouped_gemm", "softmax")
PLATFORMS = (
    "cpu-x86-64-v2",
    "cpu-x86-64-v3",
    "cpu-x86-64-v4",
    "nvidia-sm80",
    "nvidia-sm90",
    "amd-gfx942",
    "of-tomorrow",
)
NAMES = ("tiling", "simd", "unroll", "prefetch")


def few(words: tuple[str, ...], most: int = 2) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(words), unique=True, max_size=most).map(tuple)


features = few(NAMES).map(lambda names: tuple(ContractFeature(name, "kernel") for name in names))
rows = st.builds(
    Row,
    id=st.just("c.x"),
    intent=st.just("Do it."),
    action=st.sampled_from(NAMES),
    surface=st.sampled_from(("c", "triton")),
    status=st.sampled_from(("admitted", "hypothesis", "retired")),
    declared=st.just(Scope()),
    verified=st.builds(Scope, few(WORKLOADS), few(("c", "triton")), few(PLATFORMS), few(NAMES)),
    lifted=st.lists(st.tuples(st.sampled_from(WORKLOADS), st.sampled_from(PLATFORMS)), max_size=1).map(tuple),
    requires=features,
    provides=features,
    conflicts=features,
    steps=st.just((("gemm-c", "a" * 40),)),
    trials=st.integers(0, 3),
)
libraries = st.lists(rows, max_size=12).map(
    lambda found: [replace(row, id=f"{row.surface}.n{number}") for number, row in enumerate(found)]
)
targets = st.builds(
    Target,
    workload=st.sampled_from(("", *WORKLOADS)),
    surface=st.sampled_from(("", "c", "triton")),
    platform=st.sampled_from(("", "cpu-x86-64-v3", "nvidia-sm90")),
    prior=st.none() | few(NAMES, 3),
    action=st.sampled_from(("", "simd")),
)


def alike(row: Row, target: Target) -> dict[str, float]:
    """Likeness said once more, card by card and without arrays."""
    found = {}
    if target.workload:
        found["workload"] = max((likeness.of_workload(target.workload, w) for w in row.workloads), default=0)
    if target.surface:
        found["surface"] = float(target.surface in row.surfaces)
    if target.platform:
        found["platform"] = max((likeness.of_platform(target.platform, p) for p in row.platforms), default=0)
    if target.prior is not None:
        had, has = set(row.priors), set(target.prior)
        shared = len(had & has) / len(had | has) if had | has else 1.0
        found["prior"] = max(shared, 0.25) if "*" in had else shared
    return found


def holds(row: Row, target: Target) -> bool:
    same = alike(row, target)
    if any(same.get(side) == 0 for side in ("surface", "platform")):
        return False
    prior = target.prior
    return prior is None or (
        all(f.name in prior for f in row.requires) and not any(f.name in prior for f in row.conflicts)
    )


def best(found: list[Row], target: Target, k: int, statuses: tuple[str, ...]) -> set[str]:
    """The union of the k best of each dimension, said once more as the module's docstring says it."""
    asked = [
        r
        for r in found
        if r.status in statuses and (not target.action or r.action == target.action) and holds(r, target)
    ]
    dimensions = (
        [name for name in ("workload", "surface", "platform", "prior") if name in alike(asked[0], target)]
        if asked
        else []
    )
    if not dimensions:
        ranked = sorted(asked, key=lambda r: (-r.trials, r.id))
        return {row.id for row in ranked[:k]}
    union: set[str] = set()
    for name in dimensions:
        some = [row for row in asked if alike(row, target)[name] > 0]
        ranked = sorted(
            some,
            key=lambda r: (
                -alike(r, target)[name],
                -round(sum(alike(r, target).values()) * 16 + r.trials, 9),
                r.id,
            ),
        )
        union |= {row.id for row in ranked[:k]}
    return union


def ids(found: Retrieved) -> set[str]:
    return {hit.row.id for hit in found.hits}


@settings(max_examples=80, deadline=None)
@given(libraries, targets, st.integers(1, 3), st.booleans())
def test_the_union_of_the_best_of_each_dimension(
    found: list[Row], target: Target, k: int, every: bool
) -> None:
    statuses = ("admitted", "hypothesis") if every else ("admitted",)
    answer = retrieve(index_of(found), target, k=k, hypotheses=every)
    assert ids(answer) == best(found, target, k, statuses)
    assert all(hit.needs for hit in answer.near)
    assert not ids(answer) & {hit.row.id for hit in answer.near}
    assert answer.considered == sum(
        r.status in statuses and (not target.action or r.action == target.action) for r in found
    )


@settings(max_examples=40, deadline=None)
@given(libraries, targets)
def test_every_hit_says_why(found: list[Row], target: Target) -> None:
    spoken = bool(target.workload or target.surface or target.platform or target.prior is not None)
    answer = retrieve(index_of(found), target, hypotheses=True)
    for hit in answer.hits:
        same = {name: worth for name, worth in alike(hit.row, target).items() if worth}
        assert {match.dimension: pytest.approx(match.likeness) for match in hit.matches} == same
        assert bool(hit.matches) == spoken
        assert all(match.why for match in hit.matches)
        assert bool(hit.caveats) == (hit.row.status == "hypothesis")


@settings(max_examples=40, deadline=None)
@given(libraries, st.integers(0, 12), st.sets(st.integers(0, 11)), targets)
def test_an_index_in_parts_answers_as_a_whole(
    found: list[Row], cut: int, gone: set[int], target: Target
) -> None:
    dropped = [f"{row.surface}.n{n}" for n, row in enumerate(found) if n in gone]
    kept = [row for row in found if row.id not in dropped]
    parts = without(together(index_of(found[:cut]), index_of(found[min(cut, 3) :])), dropped)
    whole = index_of(kept)
    assert sorted(parts.ids) == sorted(whole.ids)
    assert {parts.row(n).id: parts.row(n) for n in range(len(parts))} == {row.id: row for row in kept}
    one, two = retrieve(parts, target, hypotheses=True), retrieve(whole, target, hypotheses=True)
    assert one.hits == two.hits
    assert one.near == two.near


def test_of_two_libraries_the_first_counts() -> None:
    mine = row_of(admitted(replace(a_card(), intent="Mine."), "gemm"))
    theirs = [row_of(admitted(a_card(), "gemm")), row_of(admitted(a_card("c.simd", action="simd"), "gemm"))]
    both = together(index_of([mine]), index_of(theirs))
    assert both.ids == ("c.prefetch", "c.simd")
    assert both.row(0).intent == "Mine."


def test_a_hypothesis_of_ones_own_hides_nothing_that_was_admitted() -> None:
    mine = row_of(replace(a_card(), intent="Mine."))
    theirs = row_of(admitted(replace(a_card(), intent="Theirs."), "gemm"))
    assert (mine.status, theirs.status) == ("hypothesis", "admitted")
    assert together(index_of([mine]), index_of([theirs])).row(0).intent == "Theirs."
    assert together(index_of([theirs]), index_of([mine])).row(0).intent == "Theirs."
    away = row_of(replace(a_card(), intent="Mine.", status="retired", retired="too slow"))
    assert together(index_of([away]), index_of([theirs])).row(0).intent == "Mine.", (
        "what was put away stays so"
    )


def test_verified_scope_counts_and_a_declared_one_does_not() -> None:
    declared = replace(
        admitted(a_card(), "layernorm"), scope=Scope(("gemm",), ("c",), ("nvidia-sm90",), ("*",))
    )
    found = retrieve(index_of([row_of(declared)]), Target("gemm"))
    assert found.hits == ()
    (hit,) = retrieve(index_of([row_of(declared)]), Target("layernorm")).hits
    assert [match.why for match in hit.matches] == ["verified on layernorm"]
    (hit,) = retrieve(index_of([row_of(declared)]), Target("softmax")).hits
    assert [match.why for match in hit.matches] == ["lifted from softmax"]


def test_an_edit_makes_the_scope_that_rested_on_it_stale() -> None:
    card = admitted(a_card(), "layernorm")
    edited = replace(card, carrier=replace(card.carrier, after="other();\n"))
    assert ids(retrieve(index_of([row_of(card)]), Target("layernorm"))) == {"c.prefetch"}
    assert ids(retrieve(index_of([row_of(edited)]), Target("layernorm"))) == set()
    (hit,) = retrieve(index_of([row_of(edited)]), Target("softmax")).hits
    assert hit.caveats == ("edited since a trial accepted it; admit it again",)


@pytest.mark.parametrize(
    ("target", "verified", "found"),
    [
        ("nvidia-sm90", "nvidia-sm80", True),
        ("nvidia-sm90a", "nvidia-sm90", True),
        ("nvidia-sm80", "nvidia-sm90", False),
        ("cpu-x86-64-v4", "cpu-x86-64-v3", True),
        ("cpu-x86-64-v2", "cpu-x86-64-v3", False),
        ("cpu-aarch64", "cpu-x86-64-v3", False),
    ],
)
def test_platforms_are_ordered(target: str, verified: str, found: bool) -> None:
    row = replace(row_of(admitted(a_card(), "gemm", platform=verified)), lifted=())
    answer = retrieve(index_of([row]), Target("gemm", platform=target))
    assert bool(answer.hits) == found
    if not found:
        assert [(need.kind, need.what) for need in answer.near[0].needs] == [("platform", verified)]


def test_a_near_miss_says_what_must_come_first() -> None:
    card = admitted(a_card("c.unroll", action="unroll", requires=("simd",)), "gemm", prior=("simd",))
    index = index_of([row_of(card)])
    naive = retrieve(index, Target("gemm", "c", PLATFORM, ()))
    assert naive.hits == ()
    assert [need.why for need in naive.near[0].needs] == ["the kernel must have simd first"]
    assert ids(retrieve(index, Target("gemm", "c", PLATFORM, ("simd",)))) == {"c.unroll"}
    again = explain(index, Target("gemm", "c", PLATFORM, ("simd", "unroll")), "c.unroll")
    assert again is not None
    assert [(need.kind, need.why) for need in again.needs] == [("conflict", "unroll is there already")]
    assert explain(index, Target("gemm"), "c.nothing") is None


def test_retired_cards_and_hypotheses_are_not_served() -> None:
    retired = replace(admitted(a_card("c.old"), "gemm"), status="retired", retired="merged into c.prefetch")
    index = index_of([row_of(retired), row_of(a_card("c.new"))])
    assert retrieve(index, Target("gemm")).hits == ()
    assert retrieve(index, Target("softmax")).hidden == 1
    assert ids(retrieve(index, Target("softmax"), hypotheses=True)) == {"c.new"}


def test_the_way_on_begins_with_what_the_kernel_has() -> None:
    steps = (
        ("c.restrict", "restrict", ()),
        ("c.simd", "simd", ("restrict",)),
        ("c.unroll", "unroll", ("simd",)),
    )
    commits = [letter * 40 for letter in "0cba"]  # the order of the lineage is not that of the ids
    cards = [
        admitted(a_card(name, action=action, requires=needs, lifted="gemm", commit=commits[n]), "softmax")
        for n, (name, action, needs) in enumerate(steps, start=1)
    ]
    index = index_of([row_of(card) for card in reversed(cards)])
    (way,) = paths(index, Target("gemm", "c", PLATFORM, ("restrict",)), lambda lineage: commits)
    assert (way.lineage, way.there, way.without) == ("gemm-c", 1, 0)
    assert [(step.row.id, step.state, step.needs) for step in way.left] == [
        ("c.simd", "next", ()),
        ("c.unroll", "later", ("simd",)),
    ]
    (unread,) = paths(index, Target("gemm", "c", PLATFORM, ()), lambda lineage: ())
    assert [step.row.id for step in unread.steps] == ["c.restrict", "c.simd", "c.unroll"]
    assert (
        paths(index, Target("gemm", "c", PLATFORM, ("restrict", "simd", "unroll")), lambda lineage: commits)
        == ()
    )
    assert paths(index, Target("gemm", "triton", "", ()), lambda lineage: commits) == ()


def of_kernel(source: bytes = b"", platform: str = PLATFORM, prior: tuple[str, ...] = ()) -> Target:
    workload = load("softmax")
    kernel = read_kernel(shipped("experts") / "softmax" / "c" / "kernel.c", workload)
    return target_of(replace(kernel, source=source) if source else kernel, workload, platform, prior=prior)


NAIVE = b"""#include <stdint.h>

void softmax(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
            y[r * columns + c] = x[r * columns + c];
}
"""


def at_anchor(query: str, *names: str, requires: tuple[str, ...] = (), check: str = "") -> Row:
    card = admitted(a_card("c.simd", action="simd", check=check), "gemm")
    there = tuple(ContractFeature(name) for name in names)
    contract = replace(
        card.contract, requires=tuple(ContractFeature(n) for n in requires), provides=there, conflicts=there
    )
    return replace(row_of(card), anchor=query, requires=contract.requires, provides=there, conflicts=there)


LOOPS = '(for_statement) @anchor (#not-has-descendant? @anchor "for_statement")'


def test_a_kernel_is_asked_at_its_own_places() -> None:
    here = of_kernel(NAIVE)
    assert here.prior == ()
    assert [hit.row.id for hit in retrieve(index_of([at_anchor(LOOPS, "simd")]), here).hits] == ["c.simd"]
    nowhere = retrieve(index_of([at_anchor("(while_statement) @anchor", "simd")]), here)
    assert [(need.kind, need.why) for need in nowhere.near[0].needs] == [
        ("anchor", "its anchor is nowhere in this kernel")
    ]
    broken = retrieve(index_of([at_anchor("(no_such_node) @anchor", "simd")]), here)
    assert [hit.row.id for hit in broken.hits] == ["c.simd"]  # it proves nothing, so it keeps nothing away


def test_what_a_c_kernel_has_it_has_everywhere() -> None:
    expert = of_kernel()
    assert {"simd", "unroll", "restrict"} <= set(expert.prior or ())
    found = retrieve(index_of([at_anchor(LOOPS, "simd")]), expert)
    assert [(need.kind, need.why) for need in found.near[0].needs] == [("conflict", "simd is there already")]
    gone = retrieve(index_of([at_anchor("(while_statement) @anchor", "simd")]), expert)
    assert [need.why for need in gone.near[0].needs] == ["simd is there already"]
    assert retrieve(index_of([at_anchor(LOOPS, "prefetch", requires=("simd",))]), expert).hits
    assert retrieve(index_of([at_anchor(LOOPS, "prefetch", requires=("smem_staging",))]), expert).hits == ()
    by_word = of_kernel(prior=("smem_staging",))
    assert retrieve(index_of([at_anchor(LOOPS, "prefetch", requires=("smem_staging",))]), by_word).hits


def test_checks_are_asked_of_the_kernel() -> None:
    here = of_kernel(NAIVE)
    (hit,) = retrieve(index_of([at_anchor(LOOPS, "simd", check="itemsize == 4")]), here).hits
    assert [(c.condition.key, c.state) for c in hit.checked] == [("p1", "holds")]
    (near,) = retrieve(index_of([at_anchor(LOOPS, "simd", check="itemsize == 2")]), here).near
    assert [(need.kind, need.what) for need in near.needs] == [("check", "Rows are contiguous.")]
    (doubtful,) = retrieve(index_of([at_anchor(LOOPS, "simd", check="spill_bytes == 0")]), here).hits
    assert [c.state for c in doubtful.checked] == ["unknown"]
    assert any(caveat.startswith("not known: Rows are contiguous.") for caveat in doubtful.caveats)
    own = replace(at_anchor(LOOPS, "simd", check='setting("distance") > 4'), settings={"distance": "8"})
    assert [c.state for c in retrieve(index_of([own]), here).hits[0].checked] == ["holds"]
    assert [
        c.state for c in retrieve(index_of([replace(own, settings={"distance": "2"})]), here).near[0].checked
    ] == ["fails"]


def test_a_capability_of_the_hardware() -> None:
    row = replace(at_anchor("", "prefetch"), requires=(ContractFeature("x86-64-v4", "hardware"),))
    assert retrieve(index_of([row]), of_kernel(NAIVE, "cpu-x86-64-v4")).hits
    (near,) = retrieve(index_of([row]), of_kernel(NAIVE)).near
    assert [need.why for need in near.needs] == ["the hardware must have x86-64-v4"]


def test_many_cards_that_fail_do_not_hide_one_that_holds() -> None:
    failing = [replace(at_anchor(LOOPS, "simd", check="itemsize == 2"), id=f"c.n{n}") for n in range(60)]
    holding = replace(at_anchor(LOOPS, "simd", check="itemsize == 4"), id="c.z")
    found = retrieve(index_of([*failing, holding]), of_kernel(NAIVE), k=1, near=3)
    assert [hit.row.id for hit in found.hits] == ["c.z"]
    assert [hit.row.id for hit in found.near] == ["c.n0", "c.n1", "c.n10"]


def test_a_workload_is_named_or_a_path_that_there_is() -> None:
    assert named_target("of-tomorrow").workload == "of-tomorrow"
    assert named_target(str(shipped("experts") / "gemm")).workload == "gemm"
    assert named_target(str(shipped("experts") / "gemm" / "workload.py")).workload == "gemm"
    for path in ("/nowhere/gemm", "gemm.py", "./gemm"):
        with pytest.raises(KlineageError, match=f"no workload '{path}'; give the path"):
            named_target(path)
