"""Rules for C kernels on kernels that they have never seen: what was taken out of one is put on another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from klineage.kernel import Kernel
from klineage.proposer import rules
from klineage.proposer.rules.fitting import Fit, fits
from klineage.resources import shipped
from klineage.skill.admission import less, of_file

EXPERTS = shipped("experts")
CPU = "cpu-x86-64-v3"


def recorded(form: str, rule: str) -> dict[str, str]:
    """The settings with which a rule takes its mechanism out of a form."""
    kernel = of_file(EXPERTS / form, platform=CPU).kernel
    return dict(next(c.settings for c in rules.propose(kernel) if c.proposer == f"rules:{rule}"))


def first_fit(rule: str, settings: dict[str, str], kernel: Kernel) -> tuple[Fit, Kernel]:
    """The first way that the rule fits, and what it makes."""
    for fit in fits(rule, kernel, settings):
        try:
            source = rules.derive(f"rules:{rule}", kernel, fit.locus, fit.settings)
        except rules.NotApplicable:
            continue
        return fit, replace(kernel, source=source)
    raise AssertionError(f"{rule} fits nowhere")


@pytest.mark.parametrize(
    ("rule", "form", "target", "name"),
    [
        ("unroll", "gemm/c/tall.c", "grouped_gemm/c/tiles.c", "unroll"),
        ("vector-loop", "topk/c/plain.c", "softmax/c/plain.c", "simd"),
        ("nontemporal-stores", "layernorm/c/stream.c", "add_rmsnorm/c/stream.c", "nontemporal_store"),
    ],
)
def test_what_another_kernel_had_comes_back_to_the_byte(rule: str, form: str, target: str, name: str) -> None:
    whole = of_file(EXPERTS / target, platform=CPU)
    fit, made = first_fit(rule, recorded(form, rule), less(whole, [name]).kernel)
    assert made.source == whole.kernel.source
    assert fit.adapted, "the names of the other kernel are not those that were recorded"


def test_a_promise_is_made_for_every_pointer_that_has_another_beside_it() -> None:
    whole = of_file(EXPERTS / "grouped_gemm/c/outer.c", platform=CPU)
    plain = less(whole, ["restrict"]).kernel
    fit, made = first_fit("restrict", recorded("bmm/c/outer.c", "restrict"), plain)
    assert fit.settings["add_one"] == "a b y"
    assert "clear" not in fit.settings, "a single pointer overlaps no other"
    assert made.source.count(b"restrict ") == whole.kernel.source.count(b"restrict ") - 1


def test_a_block_is_carried_over_to_a_sweep_of_the_same_extent() -> None:
    target = of_file(EXPERTS / "addmm/c/tiles.c", platform=CPU).kernel
    fit, made = first_fit("cache-block", recorded("gemm/c/dots.c", "cache-block"), target)
    assert fit.locus == "tiles.c::addmm"
    assert b"for (int64_t jc = 0; jc < n; jc += NC) {" in made.source
    assert b"#define NC 192\n" in made.source
    assert {f.name for f in rules.features(made)} == {f.name for f in rules.features(target)} | {
        "cache_block"
    }


def test_nothing_is_unrolled_where_no_loop_runs_a_constant_number_of_times() -> None:
    kernel = of_file(EXPERTS / "bmm/c/naive.c", platform=CPU).kernel
    settings = recorded("gemm/c/tall.c", "unroll")
    assert [
        fit for fit in fits("unroll", kernel, settings) if fit.adapted[0].startswith("it is put on")
    ] == []


def test_a_panel_is_copied_from_the_rows_that_another_kernel_passes_on() -> None:
    target = of_file(EXPERTS / "addmm/c/strips.c", platform=CPU).kernel
    fit, made = first_fit("panel-copy", recorded("grouped_gemm/c/panels.c", "panel-copy"), target)
    assert fit.settings["source"] == "b + p * n + c"
    assert b"copy_panel(b + p * n + c, n, depth, NR, panel);" in made.source
    (back,) = [c for c in rules.propose(made) if c.proposer == "rules:panel-copy"]
    assert back.kernel(made).source == target.source


def test_a_panel_that_is_read_without_its_distance_stays() -> None:
    kernel = of_file(EXPERTS / "grouped_gemm/c/panels.c", platform=CPU).kernel
    other = kernel.source.replace(b"line(x + r * k + p, panel, NR,", b"line(x + r * k + p, panel + 0, NR,")
    assert other != kernel.source
    left = replace(kernel, source=other)
    assert "rules:panel-copy" not in {c.proposer for c in rules.propose(left)}
    reasons = {one.rule.name: one.reason for one in rules.why_not(left)}
    assert "'panel, width' of a call" in reasons["panel-copy"]
