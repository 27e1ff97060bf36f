"""What rules see and do not offer: every site is offered or has a reason."""

from __future__ import annotations

import pytest
from klineage.kernel import Kernel
from klineage.proposer.rules import RULES, propose, why_not

SHIPPED = [("gemm", "c"), ("add_rmsnorm", "c"), ("gemm", "triton"), ("fmha", "triton")]


@pytest.mark.parametrize(("workload", "surface"), SHIPPED)
def test_every_site_is_offered_or_says_why_not(workload, surface, expert) -> None:
    kernel = expert(workload, surface)
    offered = {(c.proposer, c.locus) for c in propose(kernel)}
    hindered = {(f"rules:{n.rule.name}", n.site.locus) for n in why_not(kernel)}
    seen = {(f"rules:{r.name}", site.locus) for r in RULES[kernel.surface] for site in r.detect(kernel)}
    assert offered
    assert hindered
    assert offered | hindered == seen
    assert not offered & hindered


def test_a_dependent_is_named(expert) -> None:
    reasons = {n.rule.name: n.reason for n in why_not(expert("gemm", "c"))}
    assert reasons["vector-types"] == "after unroll, which stands on it"
    assert reasons["packing"] == "after simd, alignment and register_tiling, which stand on it"


def test_what_is_in_the_way_is_named() -> None:
    text = "typedef float v __attribute__((vector_size(16)));\nvoid entry(const float *x, float *y)\n{\n"
    text += "    const float *z = __builtin_assume_aligned(x, 64);\n    *(v *)y = *(v *)z;\n}\n"
    kernel = Kernel("c", "kernel.c", "entry", text.encode())
    reasons = {n.rule.name: n.reason for n in why_not(kernel)}
    assert reasons["alignment-hints"].startswith("vectors that are not declared unaligned are loaded")
