"""Mechanisms in the text of CUDA kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.features.finding import Cue
from klineage.proposer.features.words import Reading, assembly_cues, compiled, word_cues
from klineage.surface.tree import ancestors, walk

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
_WIDE = re.compile(r"(?:u?(?:int|long|longlong|short|char)|float|double)[248]|(?:u?int)(?:128|64)_t|__int128")
_UNROLL = re.compile(rb"#[ \t]*pragma[ \t]+(?:unroll|GCC[ \t]+unroll)\b[^\r\n]*")


def cues(kernel: Kernel) -> Iterator[Cue]:
    """Everything in the text that speaks of a mechanism."""
    reading = Reading(kernel)
    yield from word_cues(reading, _WORDS)
    yield from assembly_cues(reading, _PTX, "inline_asm")
    yield from _unrolled(reading)
    yield from _vectors(reading)
    yield from _loops(reading)
    yield from _shared(reading)
    yield from _templates(reading)
    yield from _own_arrays(reading)


def _unrolled(reading: Reading) -> Iterator[Cue]:
    for start, end in reading.unit.loop_pragmas:
        text = reading.unit.source[start:end].strip()
        depth = text.rpartition(b"unroll")[2].strip(b" ()")
        if _UNROLL.match(text) and depth != b"1" and reading.live_after(end):
            yield reading.cue("unroll", start, text.decode("utf-8", "replace"))


def _vectors(reading: Reading) -> Iterator[Cue]:
    """Pointers cast to a type that is wider than an element: ``float4``, or an aligned struct with an array in it."""
    unit = reading.unit
    packs: dict[str, bool] = {}  # name -> whether a template parameter may size it
    for node in reading.nodes:
        if (name := _aligned_pack(reading, node)) is not None:
            packs[unit.text(name)] = any(n.type == "template_declaration" for n in ancestors(node))
    for node in reading.nodes:
        if node.type not in ("template_argument_list", "cast_expression") or not reading.live(node):
            continue
        if node.type == "template_argument_list":
            outer = node.parent
            if outer is None or not unit.text(outer).startswith(("reinterpret_cast", "static_cast")):
                continue
            target: Node | None = node
        else:
            target = node.child_by_field_name("type")
        if target is None or "*" not in unit.text(target):
            continue
        words = [
            unit.text(n)
            for n in walk(target)
            if n.type in ("type_identifier", "primitive_type", "identifier")
        ]
        wide = next((w for w in words if _WIDE.fullmatch(w) or w in packs), None)
        if wide is not None:
            doubt = "its width is a parameter, which may be one" if packs.get(wide) else ""
            cue = reading.cue("vectorize", node.start_byte, f"a pointer to {wide}", doubt)
            yield reading.guarded(cue, reading.condition(node))
    for word in reading.words:
        if _WIDE.fullmatch(word.text) and word.text.endswith("4"):
            yield reading.cue(
                "vectorize", word.offset, word.text, "the type may hold values without moving them at once"
            )


def _aligned_pack(reading: Reading, node: Node) -> Node | None:
    """The name of a struct that is aligned and holds an array, or None."""
    if node.type != "struct_specifier" or not re.search(
        r"\b(?:alignas|__align__)\b", reading.unit.text(node)
    ):
        return None
    has_array = any(n.type == "array_declarator" for n in walk(node))
    return next((n for n in walk(node) if n.type == "type_identifier"), None) if has_array else None


def _loops(reading: Reading) -> Iterator[Cue]:
    """Loops whose blocks go on to further tiles, and those that a whole grid strides through."""
    unit = reading.unit
    for node in reading.nodes:
        update = node.child_by_field_name("update") if node.type == "for_statement" else None
        start = node.child_by_field_name("initializer") if node.type == "for_statement" else None
        if update is None or start is None or not reading.live(node):
            continue
        advance, begins = unit.text(update), unit.text(start)
        if "gridDim" not in advance or "blockIdx" not in begins:
            continue
        strided = "blockDim" in advance
        doubt = "the grid strides over elements, which also lets one launch serve any size" if strided else ""
        yield reading.cue(
            "persistent_schedule",
            node.start_byte,
            f"a loop that goes on by {advance.split('=')[-1].strip()}",
            doubt,
        )


def _shared(reading: Reading) -> Iterator[Cue]:
    """Arrays in shared memory: tiles, padding, permuted columns, two buffers."""
    unit = reading.unit
    arrays: set[str] = set()
    for node in reading.nodes:
        qualified = (
            any(unit.text(c) == "__shared__" for c in node.children) if node.type == "declaration" else False
        )
        if not qualified or not reading.live(node):
            continue
        for array in (c for c in walk(node) if c.type == "array_declarator" and _outermost(c)):
            name, extents = _array(reading, array)
            arrays.add(name)
            what = f"__shared__ {name}{''.join(f'[{e}]' for e in extents)}"
            tile = len(extents) > 1
            yield reading.cue(
                "smem_staging", node.start_byte, what, "" if tile else "it may be scratch of a reduction"
            )
            if any(re.search(r"\+\s*(?:\d+|\w*PAD\w*)\s*$", e, re.IGNORECASE) for e in extents[1:]):
                yield reading.cue("swizzle", node.start_byte, what)
            if extents[:1] == ["2"] and len(extents) > 1:
                yield reading.cue("double_buffer", node.start_byte, what, "two of a kind need not take turns")
    for node in reading.nodes:
        base = node.child_by_field_name("argument") if node.type == "subscript_expression" else None
        if base is None or not reading.live(node) or not any(unit.text(n) in arrays for n in walk(base)):
            continue
        mixed = [n for n in walk(node) if n.type == "binary_expression" and _operator(reading, n) == "^"]
        if mixed:
            masked = any(re.search(r"[&%]|>>|<<|/", unit.text(n)) for n in mixed)
            doubt = "" if masked else "lanes that exchange values through memory do the same"
            yield reading.cue("swizzle", node.start_byte, "^ in an index of shared memory", doubt)


def _outermost(array: Node) -> bool:
    return array.parent is None or array.parent.type != "array_declarator"


def _operator(reading: Reading, node: Node) -> str:
    sign = node.child_by_field_name("operator")
    return reading.unit.text(sign) if sign is not None else ""


def _array(reading: Reading, array: Node) -> tuple[str, list[str]]:
    """(name, extents) of an array's declarator."""
    extents: list[str] = []
    inner: Node | None = array
    while inner is not None and inner.type == "array_declarator":
        size = inner.child_by_field_name("size")
        extents.insert(0, reading.unit.text(size) if size is not None else "")
        inner = inner.child_by_field_name("declarator")
    return (reading.unit.text(inner) if inner is not None else ""), extents


def _templates(reading: Reading) -> Iterator[Cue]:
    for node in reading.nodes:
        if node.type == "template_declaration" and any(
            c.type == "function_definition" for c in node.children
        ):
            inside = next(c for c in node.children if c.type == "function_definition")
            if reading.live(inside):
                doubt = "a template may serve one constant only, or keep the text short"
                yield reading.cue("templatize", node.start_byte, "a template", doubt)


def _own_arrays(reading: Reading) -> Iterator[Cue]:
    """Arrays of a thread's own, which live in registers when every index is known."""
    unit = reading.unit
    for node in reading.nodes:
        if node.type != "declaration" or reading.function_of(node) is None or not reading.live(node):
            continue
        if any(unit.text(c) in ("__shared__", "extern", "static") for c in node.children):
            continue
        for array in (c for c in node.named_children if c.type in ("array_declarator", "init_declarator")):
            found = array if array.type == "array_declarator" else array.child_by_field_name("declarator")
            if found is not None and found.type == "array_declarator":
                name, extents = _array(reading, found)
                what = f"{name}{''.join(f'[{e}]' for e in extents)}"
                yield reading.cue(
                    "register_tiling", node.start_byte, what, "it may hold one row and no tile of results"
                )
