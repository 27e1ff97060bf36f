"""Rules for CUDA kernels, in the order in which they are proposed: dependents before prerequisites."""

from __future__ import annotations

from dataclasses import replace

from klineage.proposer.rules.c.pragmas import UNROLL
from klineage.proposer.rules.c.restrict import RESTRICT
from klineage.proposer.rules.cuda.async_copy import ASYNC_COPY
from klineage.proposer.rules.cuda.cache_operators import CACHE_OPERATORS
from klineage.proposer.rules.cuda.double_buffer import DOUBLE_BUFFER
from klineage.proposer.rules.cuda.fast_math import FAST_MATH, RECIPROCAL_ROOT
from klineage.proposer.rules.cuda.grid_stride import GRID_STRIDE
from klineage.proposer.rules.cuda.launch_bounds import LAUNCH_BOUNDS
from klineage.proposer.rules.cuda.register_tile import REGISTER_TILE
from klineage.proposer.rules.cuda.shared_layout import PADDING, SWIZZLE
from klineage.proposer.rules.cuda.specialization import SPECIALIZATION
from klineage.proposer.rules.cuda.staging import STAGING
from klineage.proposer.rules.cuda.vectors import VECTORS
from klineage.proposer.rules.cuda.warp_shuffles import WARP_SHUFFLES
from klineage.proposer.rules.rule import Rule

CUDA_RULES: tuple[Rule, ...] = (
    LAUNCH_BOUNDS,
    replace(UNROLL, surface="cuda"),
    CACHE_OPERATORS,
    FAST_MATH,
    RECIPROCAL_ROOT,
    ASYNC_COPY,
    VECTORS,
    PADDING,
    SWIZZLE,
    DOUBLE_BUFFER,
    STAGING,
    GRID_STRIDE,
    SPECIALIZATION,
    REGISTER_TILE,
    WARP_SHUFFLES,
    replace(RESTRICT, surface="cuda"),
)
