"""The mechanisms that are looked for, surface by surface, in the words that features are named with.

Rules name what they remove by the same words; what only rules can see needs no entry here.
"""

from __future__ import annotations

from klineage.kernel import Surface

#: What a detector can tell from the text or from the compiled code.
_SEEN: dict[Surface, dict[str, str]] = {
    "triton": {
        "tiling": "a program computes a tile, not an element",
        "mma": "products on matrix units",
        "pipeline": "loads of later iterations run ahead of the arithmetic",
        "loop_pipeline": "one loop has a stage count of its own",
        "tensor_descriptor": "tiles are copied by the tensor memory accelerator",
        "warp_specialize": "warps of a block have different tasks",
        "persistent_schedule": "a program takes several tiles, one after the other",
        "l2_raster": "the order of programs keeps operands in L2",
        "split_or_cluster": "one output tile is computed by several programs or blocks",
        "launch_overlap": "the next kernel starts before this one has ended",
        "mask_specialize": "whole tiles run code without masks",
        "cache_policy": "accesses say what caches should do",
        "alignment": "the compiler is told what pointers and offsets are multiples of",
        "math_approx": "a function is replaced by one that the hardware computes faster",
        "fast_rsqrt": "one reciprocal root in place of a root and a division",
        "unroll": "a loop is written out by the compiler",
        "warps": "the launch chooses how many warps a program has",
        "autotune": "the configuration is chosen by measuring",
        "early_exit": "programs with nothing to do end at once",
        "inline_asm": "instructions written by hand, of no mechanism listed here",
    },
    "cuda": {
        "vectorize": "an access moves several elements",
        "packed_math": "an instruction computes two narrow elements",
        "mma": "products on matrix units",
        "smem_staging": "tiles are kept in shared memory",
        "swizzle": "shared memory is permuted or padded against bank conflicts",
        "async_copy": "copies to shared memory run beside the arithmetic",
        "tensor_descriptor": "tiles are copied by the tensor memory accelerator",
        "pipeline": "loads of later iterations run ahead of the arithmetic",
        "double_buffer": "one buffer is filled while the other is read",
        "prefetch": "lines are requested before they are needed",
        "warp_exchange": "lanes of a warp exchange values without memory",
        "warp_specialize": "warps of a block have different tasks",
        "register_redistribution": "warps give registers to others",
        "persistent_schedule": "a block takes several tiles, one after the other",
        "split_or_cluster": "one output tile is computed by several blocks",
        "launch_overlap": "the next kernel starts before this one has ended",
        "cache_policy": "accesses say what caches should do",
        "restrict": "the compiler is told that pointers do not overlap",
        "alignment": "the compiler is told how pointers are aligned",
        "launch_bounds": "the compiler is told how large blocks are",
        "unroll": "a loop is written out by the compiler",
        "math_approx": "a function is replaced by one that the hardware computes faster",
        "fast_rsqrt": "one reciprocal root in place of a root and a division",
        "register_tiling": "a tile of results stays in registers",
        "templatize": "the compiler makes a version for each of several constants",
        "inline_asm": "instructions written by hand, of no mechanism listed here",
    },
    "c": {
        "thread_parallel": "threads share the work",
        "simd": "an instruction computes several elements",
        "unroll": "a loop is written out",
        "register_tiling": "a tile of results stays in registers",
        "cache_block": "loops go over blocks that fit a cache",
        "layout_pack": "operands are copied into the order in which they are read",
        "prefetch": "lines are requested before they are needed",
        "nontemporal_store": "results go past the caches",
        "restrict": "the compiler is told that pointers do not overlap",
        "alignment": "the compiler is told how pointers are aligned",
        "math_approx": "a function is replaced by one that the hardware computes faster",
    },
}

#: Words of the vocabulary that speak of what code means, which no detector reads: only a person can tell.
_MEANT: dict[Surface, tuple[str, ...]] = {
    "triton": (
        "fusion", "online_algorithm", "phase_decomposition", "scan_or_reduce", "recompute_or_cache", "invariant_hoist",
        "precision",
    ),
    "cuda": (
        "tiling", "fusion", "online_algorithm", "phase_decomposition", "scan_or_reduce", "l2_raster",
        "recompute_or_cache", "invariant_hoist", "mask_specialize", "precision", "smem_alias", "early_exit",
        "atomic_compaction", "workspace_reuse",
    ),
    "c": ("tiling", "fusion", "online_algorithm", "phase_decomposition", "invariant_hoist", "precision", "early_exit"),
}  # fmt: skip


def seen(surface: Surface) -> dict[str, str]:
    """The mechanisms that detectors read, each with what it is in a few words."""
    return _SEEN[surface]


def meant(surface: Surface) -> tuple[str, ...]:
    """The mechanisms that only a person can tell."""
    return _MEANT[surface]


def described(surface: Surface, name: str) -> str:
    """What a mechanism is, in a few words; empty for a word of a person's own."""
    return _SEEN[surface].get(name, "")


def names(surface: Surface) -> tuple[str, ...]:
    """Every word that a feature of this surface may be named with without being new."""
    return (*_SEEN[surface], *_MEANT[surface])
