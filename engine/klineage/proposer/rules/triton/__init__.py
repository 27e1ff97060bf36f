"""Rules for Triton kernels, in the order in which they are proposed: dependents before prerequisites."""

from __future__ import annotations

from klineage.proposer.rules.rule import Rule
from klineage.proposer.rules.triton.alignment import ALIGNMENT
from klineage.proposer.rules.triton.autotune import AUTOTUNE
from klineage.proposer.rules.triton.base_two import BASE_TWO
from klineage.proposer.rules.triton.block_pointers import BLOCK_POINTERS
from klineage.proposer.rules.triton.cache_hints import CACHE_HINTS
from klineage.proposer.rules.triton.descriptors import DESCRIPTORS
from klineage.proposer.rules.triton.dot import DOT
from klineage.proposer.rules.triton.epilogue import EPILOGUE
from klineage.proposer.rules.triton.even_masks import EVEN_MASKS
from klineage.proposer.rules.triton.fusion import FUSION
from klineage.proposer.rules.triton.loop_hints import LOOP_UNROLL, WARP_SPECIALIZE
from klineage.proposer.rules.triton.online_softmax import ONLINE_SOFTMAX
from klineage.proposer.rules.triton.peeling import PEELING
from klineage.proposer.rules.triton.persistent import PERSISTENT
from klineage.proposer.rules.triton.pipelining import PIPELINING
from klineage.proposer.rules.triton.program_order import PROGRAM_ORDER
from klineage.proposer.rules.triton.reciprocal_root import RECIPROCAL_ROOT
from klineage.proposer.rules.triton.split_k import SPLIT_K
from klineage.proposer.rules.triton.split_reduction import SPLIT_REDUCTION
from klineage.proposer.rules.triton.tile_size import TILE_SIZE
from klineage.proposer.rules.triton.warps import WARPS

TRITON_RULES: tuple[Rule, ...] = (
    AUTOTUNE,
    WARP_SPECIALIZE,
    LOOP_UNROLL,
    PIPELINING,
    PROGRAM_ORDER,
    SPLIT_K,
    SPLIT_REDUCTION,
    PERSISTENT,
    BLOCK_POINTERS,
    DESCRIPTORS,
    EVEN_MASKS,
    PEELING,
    CACHE_HINTS,
    ALIGNMENT,
    WARPS,
    TILE_SIZE,
    BASE_TWO,
    ONLINE_SOFTMAX,
    RECIPROCAL_ROOT,
    DOT,
    FUSION,
    EPILOGUE,
)
