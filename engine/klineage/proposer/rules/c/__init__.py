"""Rules for C kernels, in the order in which they are proposed: dependents before prerequisites."""

from __future__ import annotations

from klineage.proposer.rules.c.alignment import ALIGNMENT
from klineage.proposer.rules.c.cache_block import CACHE_BLOCK
from klineage.proposer.rules.c.loop_order import LOOP_ORDER
from klineage.proposer.rules.c.nontemporal import NONTEMPORAL
from klineage.proposer.rules.c.packing import PACKING
from klineage.proposer.rules.c.panel_copy import PANEL_COPY
from klineage.proposer.rules.c.pragmas import SIMD_PRAGMA, THREADS, UNROLL
from klineage.proposer.rules.c.prefetch import PREFETCH
from klineage.proposer.rules.c.register_tile import REGISTER_TILE
from klineage.proposer.rules.c.restrict import RESTRICT
from klineage.proposer.rules.c.vector_loop import VECTOR_LOOP
from klineage.proposer.rules.c.vectors import VECTORS
from klineage.proposer.rules.rule import Rule

C_RULES: tuple[Rule, ...] = (
    THREADS,
    PREFETCH,
    NONTEMPORAL,
    UNROLL,
    SIMD_PRAGMA,
    VECTOR_LOOP,
    VECTORS,
    ALIGNMENT,
    REGISTER_TILE,
    PACKING,
    PANEL_COPY,
    CACHE_BLOCK,
    LOOP_ORDER,
    RESTRICT,
)
