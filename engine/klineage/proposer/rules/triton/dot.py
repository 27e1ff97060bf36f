"""Tensor-core products: ``tl.dot`` becomes a broadcast product and a sum."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    assignment,
    is_constexpr,
    jit_functions,
    keywords,
    launch_setting,
    names,
    parameters,
    positional,
    tl_calls,
    value_of,
)
from klineage.surface.tree import Edit, Function, Unit, parse_kernel

_PLAIN = ("acc", "input_precision", "allow_tf32")
_LEFT, _RIGHT = "[:, :, None]", "[None, :, :]"
_CAST = ".to(tl.float32)"
_ELEMENTS = 32 * 32 * 32  # of a broadcast product that the registers of one program still hold
_HEAD = 128  # a usual extent that the problem sets


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        calls = tl_calls(unit, function.body, "dot")
        if not calls or any(not _understood(unit, c) for c in calls):
            continue
        settings: dict[str, str] = {}
        for index, call in enumerate(calls, start=1):
            options = {n: value_of(k) for n, k in keywords(unit, call).items() if n != "acc"}
            settings |= {f"dot.{index}.{n}": unit.text(v) for n, v in options.items()}
        sites.append(Site(function.locus, (Feature(function.locus, "mma"),), settings))
    return tuple(sites)


def _understood(unit: Unit, call: Node) -> bool:
    return 2 <= len(positional(call)) <= 3 and all(n in _PLAIN for n in keywords(unit, call))


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    calls = tl_calls(unit, function.body, "dot")
    if any(inner != call for call in calls for inner in tl_calls(unit, call, "dot")):
        raise NotApplicable("products inside each other")
    if not _fits(kernel, function):
        raise NotApplicable("the tile is too large, or of unknown size, for a product in registers")
    return Rewrite(tuple(e for call in calls for e in _multiply_add(unit, call)))


def _fits(kernel: Kernel, function: Function) -> bool:
    """Whether the product of all extents of the tile is small; one may be set by the problem (a head)."""
    unit = parse_kernel(kernel)
    spans = tl_calls(unit, function.body, "arange")
    constants = [n for n, node in parameters(unit, function).items() if is_constexpr(unit, node)]
    sizes = [
        launch_setting(kernel, function, n) for n in constants if any(n in names(unit, s) for s in spans)
    ]
    known = [int(size) for size in sizes if size is not None and size.isdigit()]
    return (
        len(known) >= 2
        and len(sizes) - len(known) <= 1
        and math.prod(known) <= _ELEMENTS // (_HEAD ** (len(sizes) - len(known)))
    )


def _multiply_add(unit: Unit, call: Node) -> list[Edit]:
    """``acc = tl.dot(a, b, acc)`` to ``acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)``, in fp32."""
    given, named = positional(call), keywords(unit, call)
    start = value_of(named["acc"]) if "acc" in named else (given[2] if len(given) == 3 else None)
    product = f"tl.sum({_operand(unit, given[0])}{_LEFT} * {_operand(unit, given[1])}{_RIGHT}, axis=1)"
    parent = call.parent
    left = parent.child_by_field_name("left") if parent is not None and parent.type == "assignment" else None
    if start is not None and left is not None and parent is not None and unit.text(left) == unit.text(start):
        return [Edit(left.end_byte, call.end_byte, f" += {product}".encode("utf-8", "surrogateescape"))]
    if start is not None:
        product = f"({unit.text(start)} + {product})"
    return [Edit(call.start_byte, call.end_byte, product.encode("utf-8", "surrogateescape"))]


def _operand(unit: Unit, node: Node) -> str:
    text = unit.text(node)
    if node.type in ("binary_operator", "unary_operator", "conditional_expression"):
        text = f"({text})"
    return f"{text}{_CAST}"


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    found = _products(unit, function) if function is not None else []
    if not found:
        raise NotApplicable("no broadcast product that is summed over its middle axis")
    edits = []
    for index, (call, left, right) in enumerate(found, start=1):
        options = "".join(
            f", {name.split('.', 2)[2]}={value}"
            for name, value in settings.items()
            if name.startswith(f"dot.{index}.")
        )
        edits.append(_dot(unit, call, left, right, options))
    return tuple(edits)


def _products(unit: Unit, function: Function) -> list[tuple[Node, str, str]]:
    """Every ``tl.sum(A[:, :, None] * B[None, :, :], axis=1)`` with the text of A and B."""
    found = []
    for call in tl_calls(unit, function.body, "sum"):
        given, axis = positional(call), keywords(unit, call).get("axis")
        over = (
            unit.text(value_of(axis)) if axis is not None else (unit.text(given[1]) if len(given) > 1 else "")
        )
        product = given[0] if given else None
        if over != "1" or product is None or product.type != "binary_operator":
            continue
        left, right = (_broadcast(unit, product.child_by_field_name(side)) for side in ("left", "right"))
        if left is not None and right is not None and left[1] == _LEFT and right[1] == _RIGHT:
            found.append((call, left[0], right[0]))
    return found


def _broadcast(unit: Unit, node: Node | None) -> tuple[str, str] | None:
    """(operand, subscript) of ``operand.to(tl.float32)[...]``; the cast is dropped."""
    value = node.child_by_field_name("value") if node is not None and node.type == "subscript" else None
    if node is None or value is None:
        return None
    subscript = unit.text(node)[len(unit.text(value)) :].strip()
    text = unit.text(value).removesuffix(_CAST)
    if text.startswith("(") and value.type == "call" and text.endswith(")"):
        text = text[1:-1]
    return text, subscript


def _dot(unit: Unit, call: Node, left: str, right: str, options: str) -> Edit:
    parent = call.parent
    target = parent.child_by_field_name("left") if parent is not None else None
    if parent is not None and parent.type == "augmented_assignment" and target is not None:
        statement = parent.parent
        if statement is not None and assignment(statement) == parent and "+=" in unit.text(parent):
            name = unit.text(target)
            text = f"{name} = tl.dot({left}, {right}, {name}{options})"
            return Edit(parent.start_byte, parent.end_byte, text.encode("utf-8", "surrogateescape"))
    text = f"tl.dot({left}, {right}{options})"
    return Edit(call.start_byte, call.end_byte, text.encode("utf-8", "surrogateescape"))


DOT = Rule(
    name="tensor-core-dot",
    action="mma",
    surface="triton",
    title="Multiply and add without tensor cores",
    adds="Multiply on tensor cores",
    at="A product of tiles that is written as a broadcast multiplication and a sum",
    rationale="tl.dot runs on the matrix unit; the same product written as a broadcast multiplication and "
    "a sum runs on the ordinary multiply-add units.",
    preconditions=(
        "Data types: fp16, bf16, tf32, fp8 or int8 operands of one type, with a wider accumulator.",
        "Layout: every extent of the tile is a power of two and at least 16.",
        "Storage: the operands reach the matrix unit through shared memory or in its fragment layout.",
        "Hardware: a matrix unit for that type (sm_70 and later for fp16, sm_80 for bf16 and tf32).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "pipeline", "loop_pipeline", "tiling"),
    known={
        "Data types": Known(
            'element in ("fp16", "bf16", "fp32", "int8")', "dtype", {"element": "fp64", "code": "mma"}
        ),
        "Hardware": Known('satisfies("nvidia-sm80") or element == "fp16"', "platform", {"code": "mma"}),
    },
)
