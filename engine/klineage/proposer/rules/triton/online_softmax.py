"""Online softmax: a running maximum with rescaling becomes two passes, the maximum first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    argument,
    defined,
    delete_statements,
    jit_functions,
    mentions,
    positional,
    sides,
    stale_comments,
    statements,
    tl_call,
    tl_calls,
    used,
)
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, parse_kernel, walk

STALE = r"(?i)\brunning max|\bonline\b|rescal"


@dataclass(frozen=True)
class _Online:
    """The parts of ``m_new = maximum(m, ...); alpha = exp(m - m_new); ...; m = m_new`` in one loop."""

    loop: Node
    running: str  # m
    new: str  # m_new
    rescale: str  # alpha
    maximum: Node  # the statement that defines m_new
    alpha: Node  # the statement that defines alpha
    update: Node  # m = m_new


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        loops = [n for n in statements(function.body) if n.type == "for_statement"]
        found = [o for loop in loops if (o := _online(unit, loop)) is not None]
        if found:
            settings = {"new": found[0].new, "rescale": found[0].rescale}
            sites.append(Site(function.locus, (Feature(function.locus, "online_algorithm"),), settings))
    return tuple(sites)


def _online(unit: Unit, loop: Node) -> _Online | None:
    body = statements(_body(loop))
    plain = {s.id: p for s in body if (p := sides(s)) is not None}
    for statement in body:
        value = plain[statement.id][1] if statement.id in plain else None
        if value is None or tl_call(unit, value) != "maximum" or len(positional(value)) != 2:
            continue
        running, new = unit.text(positional(value)[0]), unit.text(plain[statement.id][0])
        update = next((s for s in body if s.id in plain and _pair(unit, plain[s.id]) == (running, new)), None)
        alpha = next((s for s in body if s.id in plain and _decay(unit, plain[s.id][1], running, new)), None)
        if update is not None and alpha is not None and running.isidentifier():
            return _Online(loop, running, new, unit.text(plain[alpha.id][0]), statement, alpha, update)
    return None


def _body(loop: Node) -> Node:
    body = loop.child_by_field_name("body")
    assert body is not None
    return body


def _pair(unit: Unit, pair: tuple[Node, Node]) -> tuple[str, str]:
    return unit.text(pair[0]), unit.text(pair[1])


def _decay(unit: Unit, value: Node, running: str, new: str) -> bool:
    if tl_call(unit, value) not in ("exp", "exp2"):
        return False
    return re.sub(r"\s", "", argument(unit, value, 0)) == f"{running}-{new}"


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    loops = (
        [n for n in statements(function.body) if n.type == "for_statement"] if function is not None else []
    )
    found = [o for loop in loops if (o := _online(unit, loop)) is not None]
    if function is None or len(found) != 1:
        raise NotApplicable("not exactly one loop keeps a running maximum: merge the loops first")
    online = found[0]
    for name in _rescaled_sums(unit, online):
        if not _starts_at_zero(unit, function, name):
            raise NotApplicable(f"{name!r} does not start at zero")
    at = unit.line_start(online.loop.start_byte)
    second = merge_edits(delete_statements(unit, _gone(unit, online)), tuple(_second_pass(unit, online)))
    return Rewrite(
        merge_edits(
            (Edit(at, at, _first_pass(unit, online)),), second, stale_comments(unit, function.node, STALE)
        )
    )


def _first_pass(unit: Unit, online: _Online) -> bytes:
    """The loop cut down to what the maximum needs."""
    body = statements(_body(online.loop))
    needed, keep = used(unit, online.maximum) - {online.running}, [online.maximum]
    for statement in reversed(body[: body.index(online.maximum)]):
        if defined(unit, statement) & needed:
            keep.insert(0, statement)
            needed |= used(unit, statement)
    carried = {n for s in body if s not in keep for n in defined(unit, s)} & needed
    kept = {n for s in keep for n in _carried(unit, s)}
    if (carried | kept) - {online.running}:
        names = ", ".join(sorted(carried | kept))
        raise NotApplicable(f"the loop carries {names} from one pass into the next")
    gone = delete_statements(unit, [s for s in body if s not in keep])
    name = sides(online.maximum)
    assert name is not None
    renamed = (Edit(name[0].start_byte, name[0].end_byte, online.running.encode("utf-8", "surrogateescape")),)
    start, end = unit.line_start(online.loop.start_byte), unit.lines_of(online.loop)[1]
    inside = [Edit(e.start - start, e.end - start, e.text) for e in merge_edits(gone, renamed)]
    return apply_edits(unit.source[start:end], inside) + unit.newline(start)


def _carried(unit: Unit, statement: Node) -> set[str]:
    """Names that a statement both reads and redefines: what it leaves for the next iteration."""
    return defined(unit, statement) & used(unit, statement)


def _gone(unit: Unit, online: _Online) -> list[Node]:
    """Statements that the second pass does without: maximum, rescale factor, pure rescaling, update."""
    gone = [online.maximum, online.alpha, online.update]
    for statement in statements(_body(online.loop)):
        if _pure_rescaling(unit, statement, online.rescale):
            gone.append(statement)
    return gone


def _rescaled_sums(unit: Unit, online: _Online) -> set[str]:
    """The names that the loop carries through a product with the rescale factor."""
    body = statements(_body(online.loop))
    scaled = [s for s in body if mentions(unit, s, online.rescale) and s != online.alpha]
    return {name for s in scaled for name in _carried(unit, s)}


def _pure_rescaling(unit: Unit, statement: Node, rescale: str) -> bool:
    """``acc = acc * alpha[:, None]`` or ``acc *= alpha[:, None]``."""
    text = re.sub(r"\s", "", unit.text(statement))
    return re.fullmatch(rf"(\w+)(=\1\*|\*=){rescale}(\[:,None\])?", text) is not None


def _second_pass(unit: Unit, online: _Online) -> list[Edit]:
    """The old maximum's name, and products with the rescale factor without it, in what stays."""
    gone = {s.id for s in _gone(unit, online)}
    edits = []
    for statement in statements(_body(online.loop)):
        if statement.id in gone:
            continue
        for mention in mentions(unit, statement, online.new):
            edits.append(
                Edit(mention.start_byte, mention.end_byte, online.running.encode("utf-8", "surrogateescape"))
            )
        for mention in mentions(unit, statement, online.rescale):
            edits.append(_unscaled(mention))
    return edits


def _unscaled(mention: Node) -> Edit:
    """Take a factor, with its subscript, out of the product that it stands in."""
    factor = mention
    if factor.parent is not None and factor.parent.type == "subscript":
        factor = factor.parent
    product = factor.parent
    if product is not None and product.type == "binary_operator":
        left, right = product.child_by_field_name("left"), product.child_by_field_name("right")
        sign = product.child_by_field_name("operator")
        if left is not None and right is not None and sign is not None and sign.type == "*":
            if right == factor:
                return Edit(left.end_byte, right.end_byte)
            return Edit(left.start_byte, right.start_byte)
    raise NotApplicable("the rescale factor is used other than as a factor")


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    new, rescale = setting(settings, "new"), setting(settings, "rescale")
    pair = _two_passes(unit, function) if function is not None else None
    if function is None or pair is None:
        raise NotApplicable("no pass for the maximum followed by a pass that uses it, over the same range")
    first, second, maximum = pair
    target = sides(maximum)
    assert target is not None
    running = unit.text(target[0])
    body = statements(_body(second))
    weights = next((s for s in body if mentions(unit, s, running)), None)
    exponential = _exponential(unit, weights) if weights is not None else None
    if weights is None or exponential is None:
        raise NotApplicable("the second pass takes no exponential of a difference with the maximum")
    indent, newline = unit.indent(weights.start_byte), unit.newline(weights.start_byte)
    edits = [Edit(unit.line_start(first.start_byte), unit.line_start(second.start_byte))]
    edits += [
        _line_at(unit.line_start(weights.start_byte), indent, f"{new} = {unit.text(target[1])}", newline)
    ]
    for statement in body:
        edits += [
            Edit(m.start_byte, m.end_byte, new.encode("utf-8", "surrogateescape"))
            for m in mentions(unit, statement, running)
        ]
    lines = [f"{rescale} = {exponential}({running} - {new})"]
    edits.append(_line_at(unit.line_end(weights.end_byte), indent, lines[0], newline))
    edits += _rescaled(unit, function, second, rescale, indent, newline)
    end = unit.line_end(body[-1].end_byte)
    last = f"{running} = {new}"
    lead = b"" if unit.source[:end].endswith((b"\n", b"\r")) else newline
    return (*edits, Edit(end, end, lead + indent + last.encode("utf-8", "surrogateescape") + newline))


def _two_passes(unit: Unit, function: Function) -> tuple[Node, Node, Node] | None:
    """Neighbouring loops over one range, the first ending in ``m = maximum(m, ...)``; with that statement."""
    body = statements(function.body)
    for first, second in pairwise(body):
        if first.type != "for_statement" or second.type != "for_statement":
            continue
        ranges = [loop.child_by_field_name("right") for loop in (first, second)]
        if None in ranges or len({unit.text(r) for r in ranges if r is not None}) != 1:
            continue
        last = next(reversed(statements(_body(first))), None)
        pair = sides(last) if last is not None else None
        if last is None or pair is None or tl_call(unit, pair[1]) != "maximum":
            continue
        if argument(unit, pair[1], 0) == unit.text(pair[0]) and pair[0].type == "identifier":
            return first, second, last
    return None


def _exponential(unit: Unit, statement: Node) -> str | None:
    for node in walk(statement):
        if node.type == "call" and tl_call(unit, node) in ("exp", "exp2"):
            function = node.child_by_field_name("function")
            return unit.text(function) if function is not None else None
    return None


def _rescaled(
    unit: Unit, function: Function, loop: Node, rescale: str, indent: bytes, newline: bytes
) -> list[Edit]:
    """Every sum that the loop carries, multiplied by the factor before it grows."""
    edits: list[Edit] = []
    for statement in statements(_body(loop)):
        for name in sorted(_carried(unit, statement)):
            pair = sides(statement)
            left = pair[1].child_by_field_name("left") if pair is not None else None
            if left is not None and unit.text(left) == name and _rank(unit, function, name) == 1:
                edits.append(
                    Edit(left.end_byte, left.end_byte, f" * {rescale}".encode("utf-8", "surrogateescape"))
                )
                continue
            factor = rescale if _rank(unit, function, name) == 1 else f"{rescale}[:, None]"
            after = _first_carried(unit, loop)
            at = (
                unit.line_end(after.end_byte) if after != statement else unit.line_start(statement.start_byte)
            )
            edits.append(_line_at(at, indent, f"{name} = {name} * {factor}", newline))
    return edits


def _first_carried(unit: Unit, loop: Node) -> Node:
    return next(s for s in statements(_body(loop)) if _carried(unit, s))


def _rank(unit: Unit, function: Function, name: str) -> int:
    """The number of axes that a carried value was created with; a plain number counts as a row's."""
    value = _initial(unit, function, name)
    made = tl_calls(unit, value, "zeros", "full")
    shape = positional(made[0])[:1] if made else []
    if shape and shape[0].type in ("tuple", "list"):
        return len([c for c in shape[0].named_children if c.type != "comment"])
    if value.type in ("float", "integer", "unary_operator"):
        return 1
    raise NotApplicable(f"the shape of {name!r} cannot be read")


def _initial(unit: Unit, function: Function, name: str) -> Node:
    """What a carried value starts from."""
    for node in walk(function.body):
        left = node.child_by_field_name("left") if node.type == "assignment" else None
        right = node.child_by_field_name("right") if node.type == "assignment" else None
        if left is not None and right is not None and unit.text(left) == name:
            return right
    raise NotApplicable(f"{name!r} does not start in this function")


def _starts_at_zero(unit: Unit, function: Function, name: str) -> bool:
    """Whether a sum starts at zero: rescaling by exp(-inf) would forget any other start, a plain sum keeps it."""
    value = _initial(unit, function, name)
    if tl_call(unit, value) == "zeros":
        return True
    filled = argument(unit, value, 1) if tl_call(unit, value) == "full" else unit.text(value)
    return filled in ("0", "0.0")


def _line_at(at: int, indent: bytes, text: str, newline: bytes) -> Edit:
    return Edit(at, at, indent + text.encode("utf-8", "surrogateescape") + newline)


ONLINE_SOFTMAX = Rule(
    name="online-softmax",
    action="online_algorithm",
    surface="triton",
    title="Find the maximum in a pass of its own",
    adds="Find the maximum online, in one pass",
    at="The two loops of a softmax: one finds the maximum, the next sums and weighs",
    rationale="A running maximum with rescaled sums reads every block once; finding the maximum first "
    "needs no rescaling and reads everything twice.",
    preconditions=(
        "Data types: the running maximum and sums are fp32, or rescaling loses digits block by block.",
        "Storage: the sums and the output tile stay in registers for the whole loop.",
        "Pipeline: each block's maximum is known before its weights are used, so the loop is sequential.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("mask_specialize",),
)
