"""Mechanisms in the text of CUDA kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from klineage.kernel import Kernel
from klineage.proposer.features.cuda_shapes import shapes
from klineage.proposer.features.finding import Cue
from klineage.proposer.features.words import Reading, assembly_cues, compiled, word_cues

_EXP2 = "base two may be the algorithm's own"
_WORDS = compiled(
    {
        r"(?:wmma|mma_sync|nvcuda|warpgroup_\w+)": ("mma", ""),
        r"(?:memcpy_async|__pipeline_memcpy_async)": ("async_copy", ""),
        r"(?:CUtensorMap|cuTensorMapEncodeTiled|cp_async_bulk_tensor_\w+)": ("tensor_descriptor", ""),
        r"(?:__half2|half2|__nv_bfloat162|nv_bfloat162|__hfma2|__hadd2|__hmul2|__hmax2|__hmin2)": ("packed_math", ""),
        r"(?:__shfl\w*|__reduce_\w+_sync|__match_\w+_sync|__ballot_sync|__any_sync|__all_sync)": ("warp_exchange", ""),
        r"(?:__ld(?:g|cg|ca|cs|lu|cv)|__st(?:wb|cg|cs|wt)|__nv_ldg\w*)": ("cache_policy", ""),
        r"(?:__restrict__|__restrict)": ("restrict", ""),
        r"(?:__launch_bounds__|__maxnreg__)": ("launch_bounds", ""),
        r"(?:__builtin_assume_aligned)": ("alignment", ""),
        r"(?:__builtin_prefetch|__prefetch_\w+)": ("prefetch", ""),
        r"(?:__expf|__exp10f|__logf|__log2f|__log10f|__sinf|__cosf|__tanf|__powf|__fdividef|__fdiv_\w+|__tanhf)": (
            "math_approx", "",
        ),
        r"(?:exp2f?|hexp2|h2exp2)": ("math_approx", _EXP2),
        r"(?:rsqrtf?|__frsqrt_rn|hrsqrt|h2rsqrt)": ("fast_rsqrt", ""),
        r"(?:__cluster_dims__|cluster_group|this_cluster|map_shared_rank)": ("split_or_cluster", ""),
        r"(?:SPLIT_?K|split_?k|NUM_SPLITS|num_splits|SPLITS)": (
            "split_or_cluster", "the name speaks of splitting, the text alone does not prove it",
        ),
        r"(?:cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion)": ("launch_overlap", ""),
        r"(?:producer|is_producer|consumer|is_consumer|warp_role|WarpRole|Producer|Consumer)": (
            "warp_specialize", "the name speaks of roles, the text alone does not prove that warps differ",
        ),
        r"(?:STAGES|NUM_STAGES|kStages|num_stages|PIPE|PIPELINE_DEPTH)": (
            "pipeline", "the name speaks of stages, the text alone does not prove that loads run ahead",
        ),
    }
)  # fmt: skip
_PTX = compiled(
    {
        r"\b(?:wgmma|mma\.sync|wmma|tcgen05\.mma|ldmatrix|stmatrix)\b[\w.]*": ("mma", ""),
        r"\bcp\.async\.bulk\.(?:prefetch\.)?tensor\b[\w.:]*|\bprefetch\.tensormap\b": (
            "tensor_descriptor",
            "",
        ),
        r"\bcp\.async(?!\.bulk\.(?:prefetch\.)?tensor)\b[\w.]*": ("async_copy", ""),
        r"\bmbarrier\b[\w.]*": (
            "pipeline",
            "a barrier in shared memory also serves other orders than a pipeline",
        ),
        r"\bsetmaxnreg\b[\w.]*": ("register_redistribution", ""),
        r"\bsetmaxnreg\b": (
            "warp_specialize",
            "warps with other numbers of registers mostly have other tasks",
        ),
        r"\bgriddepcontrol\b[\w.]*": ("launch_overlap", ""),
        r"\b(?:mapa|barrier\.cluster)\b[\w.]*": ("split_or_cluster", ""),
        r"\b(?:createpolicy|ld\.global\.(?:nc|L1|L2)|st\.global\.(?:cs|wt|cg))\b[\w.:]*|\bL[12]::\w+": (
            "cache_policy",
            "",
        ),
        r"\b(?:ld|st)\.[\w.:]*\bv[248]\b": ("vectorize", ""),
        r"\b(?:shfl|redux|vote|match)\.[\w.]*sync\b[\w.]*": ("warp_exchange", ""),
        r"\bprefetch\.(?:global|local)\b[\w.]*": ("prefetch", ""),
        r"\b(?:ex2|lg2|rcp|sqrt|sin|cos|tanh)\.approx\b[\w.]*": ("math_approx", ""),
        r"\brsqrt\.approx\b[\w.]*": ("fast_rsqrt", ""),
        r"\b(?:fma|add|mul)(?:\.r[nz])?\.(?:bf16x2|f16x2|f32x2)\b": ("packed_math", ""),
    }
)
# The parser does not see these: they are blank in what it reads.
_BLANK = re.compile(rb"\b__cluster_dims__\s*\([^()]*\)")
_UNROLL = re.compile(rb"#[ \t]*pragma[ \t]+(?:unroll|GCC[ \t]+unroll)\b[^\r\n]*")


def cues(kernel: Kernel) -> Iterator[Cue]:
    """Everything in the text that speaks of a mechanism."""
    reading = Reading(kernel)
    yield from word_cues(reading, _WORDS)
    yield from assembly_cues(reading, _PTX, "inline_asm")
    yield from _unrolled(reading)
    yield from _clusters(reading)
    yield from shapes(reading)


def _unrolled(reading: Reading) -> Iterator[Cue]:
    for start, end in reading.unit.loop_pragmas:
        text = reading.unit.source[start:end].strip()
        depth = text.rpartition(b"unroll")[2].strip(b" ()")
        if _UNROLL.match(text) and depth != b"1" and reading.live_after(end):
            yield reading.cue("unroll", start, text.decode("utf-8", "replace"))


def _clusters(reading: Reading) -> Iterator[Cue]:
    for match in _BLANK.finditer(reading.unit.source):
        inside = reading.unit.root.descendant_for_byte_range(match.start(), match.end())
        if (inside is None or inside.type != "comment") and reading.live_after(match.end()):
            yield reading.cue("split_or_cluster", match.start(), match.group().decode("utf-8", "replace"))
