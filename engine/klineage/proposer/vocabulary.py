"""The words for what an optimization is: an open vocabulary, so that steps of different people can be compared.

A word of one's own is allowed. A word that is almost one of these is taken for a slip and not for a new word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from klineage.errors import KlineageError

#: word -> what it means, in a few words
ACTIONS: Mapping[str, str] = MappingProxyType({
    "tiling": "work is cut into blocks that fit the machine",
    "smem_staging": "operands wait in shared memory",
    "register_tiling": "a block of results is kept in registers",
    "vectorize": "loads and stores of several elements at once",
    "packed_math": "one instruction computes two or more small values",
    "mma": "a matrix instruction",
    "fragment_io": "operands are loaded in the layout that a matrix instruction wants",
    "swizzle": "shared memory is permuted or padded against bank conflicts",
    "layout_pack": "an operand is copied into the order in which it is read",
    "smem_transpose": "a transposition through shared memory",
    "async_copy": "copies that run beside the computation",
    "pipeline": "loads of later iterations overlap this one",
    "loop_pipeline": "one loop has a pipeline depth of its own",
    "double_buffer": "two buffers, one filled while the other is read",
    "prefetch": "data is asked for before it is needed",
    "cache_policy": "hints about what caches should keep",
    "nontemporal_store": "stores that pass the caches by",
    "warp_specialize": "warps with different roles",
    "register_redistribution": "registers move from one warp group to another",
    "launch_bounds": "a promise about the block's size, for the register allocator",
    "warps": "a chosen number of warps a program",
    "persistent_schedule": "programs stay and take tile after tile",
    "l2_raster": "an order of programs that reuses the L2 cache",
    "split_or_cluster": "one result is split over several programs, or programs form a cluster",
    "launch_overlap": "the next kernel starts before this one ends",
    "block_pointer": "addresses come from a block pointer, in place of pointers and masks",
    "inline_asm": "instructions written by hand",
    "tensor_descriptor": "addresses come from a descriptor in hardware (TMA)",
    "fusion": "several operations in one kernel",
    "online_algorithm": "one pass with a running correction in place of two",
    "phase_decomposition": "a computation in separate phases",
    "scan_or_reduce": "a tree, or stages, in place of a chain",
    "warp_exchange": "values pass between lanes without memory",
    "invariant_hoist": "what a loop does not change is computed before it",
    "recompute_or_cache": "values are kept, or computed again, whichever is cheaper",
    "mask_specialize": "whole blocks run without bounds checks",
    "math_approx": "a cheaper formula or base",
    "fast_rsqrt": "a fast reciprocal square root",
    "precision": "a narrower type where it is enough",
    "smem_alias": "two uses share one piece of shared memory",
    "atomic_compaction": "results are gathered with atomics",
    "early_exit": "work that is not needed is not begun",
    "workspace_reuse": "a buffer serves more than once",
    "templatize": "a parameter is fixed when compiling",
    "autotune": "a configuration is chosen by measuring",
    "alignment": "the compiler is told what addresses are multiples of",
    "restrict": "the compiler is told that pointers do not overlap",
    "thread_parallel": "work is spread over threads of a CPU",
    "simd": "vector instructions of a CPU",
    "unroll": "a loop is written out several times",
    "loop_order": "loops run in the order in which memory lies",
    "cache_block": "loops are blocked for the caches of a CPU",
})  # fmt: skip

_WORD = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST = 40
_CLOSE = 0.78  # likeness from which an unknown word is taken for a slip: "pipline", "tilling"


def normal(action: str) -> str:
    """The action as it is written: lower case, ``_`` for blanks and hyphens, parts joined by ``+``.

    Raises KlineageError for what is no word.
    """
    parts = [re.sub(r"[\s_-]+", "_", part.strip().lower()) for part in action.split("+")]
    for part in parts:
        if not _WORD.fullmatch(part) or len(part) > _LONGEST:
            raise KlineageError(
                f"{action!r} is no name of an action; use a word such as pipeline, or tiling+autotune for two"
            )
    return "+".join(dict.fromkeys(parts))


def nearest(word: str, known: Iterable[str] = ()) -> str | None:
    """The word of the vocabulary (or of ``known``) that an unknown one was probably meant to be, if any.

    None too for a word that is known already.
    """
    words = {*ACTIONS, *known}
    if word in words:
        return None
    return next(iter(get_close_matches(word, sorted(words), n=1, cutoff=_CLOSE)), None)


def checked(action: str, known: Iterable[str] = ()) -> str:
    """The action in its normal form. Raises KlineageError, with the nearest word, for a probable slip.

    known: more words that are taken as they are, e.g. those that the detectors of a kernel use.
    """
    words = normal(action).split("+")
    for word in words:
        if (meant := nearest(word, known)) is not None:
            raise KlineageError(f"there is no action {word!r} in the vocabulary; did you mean {meant!r}?")
    return "+".join(words)


def completions(start: str, first: Iterable[str] = ()) -> list[str]:
    """The words that begin with ``start`` or have it inside, ``first`` (what is most likely) before the others."""
    ordered = list(dict.fromkeys([*first, *ACTIONS]))
    wanted = start.strip().lower()
    ahead = [word for word in ordered if word.startswith(wanted)]
    return ahead + [word for word in ordered if wanted in word and word not in ahead]
