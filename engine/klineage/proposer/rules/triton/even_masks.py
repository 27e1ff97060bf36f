"""Mask specialisation by a constant: ``if EVEN: load unmasked, else masked`` becomes always masked."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    drop_parameter,
    identifiers,
    is_constexpr,
    jit_functions,
    keywords,
    launch_setting,
    launches,
    parameters,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
)
from klineage.surface.lists import add_element, elements, remove_elements
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, parse_kernel

_TARGETS, _BEHIND = "of", "behind"


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        for name, branches in _flags(unit, function).items():
            value = launch_setting(kernel, function, name)
            if value is None or not all(_same_but_masks(unit, *b[1:]) for b in branches):
                continue
            locus = _locus(unit, function, branches[0][0])
            settings = {name: value} | _as_written(unit, function, name, branches)
            sites.append(Site(locus, (Feature(locus, "mask_specialize"),), settings))
    return tuple(sites)


def _as_written(
    unit: Unit, function: Function, name: str, branches: list[tuple[Node, Node, Node]]
) -> dict[str, str]:
    """What is specialised, and behind which parameter the flag stands, where that is not the first constant."""
    targets = [target for _, then, _ in branches for s in statements(then) if (target := _target(unit, s))]
    order = list(parameters(unit, function))
    constants = [n for n, node in parameters(unit, function).items() if is_constexpr(unit, node)]
    found = {_TARGETS: " ".join(targets)} if targets else {}
    if name in order[1:] and constants[0] != name:
        found[_BEHIND] = order[order.index(name) - 1]
    return found


def _flags(unit: Unit, function: Function) -> dict[str, list[tuple[Node, Node, Node]]]:
    """The constants that only choose between two branches: (statement, then, else) for each."""
    constants = {n for n, node in parameters(unit, function).items() if is_constexpr(unit, node)}
    uses: dict[str, list[tuple[Node, Node, Node] | None]] = {}
    for node in identifiers(function.body) if constants else ():
        if unit.text(node) in constants:
            uses.setdefault(unit.text(node), []).append(_branch(node))
    found = {}
    for name, branches in uses.items():
        known = [branch for branch in branches if branch is not None]
        if len(known) == len(branches):
            found[name] = known
    return found


def _branch(mention: Node) -> tuple[Node, Node, Node] | None:
    statement = mention.parent
    if (
        statement is None
        or statement.type != "if_statement"
        or statement.child_by_field_name("condition") != mention
    ):
        return None
    alternative = statement.child_by_field_name("alternative")
    then = statement.child_by_field_name("consequence")
    otherwise = alternative.child_by_field_name("body") if alternative is not None else None
    if then is None or otherwise is None or alternative is None or alternative.type != "else_clause":
        return None
    return statement, then, otherwise


def _same_but_masks(unit: Unit, then: Node, otherwise: Node) -> bool:
    """Whether the branches differ only in the masks of their loads and stores, and the second has them."""
    plain, masked = (_without_masks(unit, block) for block in (then, otherwise))
    return plain == masked and bool(_masks(unit, otherwise)) and not _masks(unit, then)


def _masks(unit: Unit, block: Node) -> list[Node]:
    return [c for c in tl_calls(unit, block, "load", "store") if "mask" in keywords(unit, c)]


def _without_masks(unit: Unit, block: Node) -> list[str]:
    """The tokens of a block, the ``mask=`` and ``other=`` arguments of accesses left out."""
    skipped: set[int] = set()
    for call in tl_calls(unit, block, "load", "store"):
        skipped |= {k.id for n, k in keywords(unit, call).items() if n in ("mask", "other")}
    tokens, stack = [], [block]
    while stack:
        node = stack.pop()
        if node.id in skipped or node.type == "comment":
            continue
        if not node.children and unit.text(node) != ",":
            tokens.append(unit.text(node))
        stack.extend(reversed(node.children))
    return tokens


def _locus(unit: Unit, function: Function, statement: Node) -> str:
    """The innermost named place around a statement."""
    inside = [
        locus
        for locus, node in unit.loci.items()
        if locus.startswith(function.locus)
        and node.start_byte <= statement.start_byte
        and statement.end_byte <= node.end_byte
    ]
    return max(inside, key=len)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    name = next(iter(site.settings))
    branches = _flags(unit, function).get(name) if function is not None else None
    if function is None or not branches:
        raise NotApplicable(f"no branch on {name}")
    edits = []
    for statement, _, otherwise in branches:
        start = unit.line_start(statement.start_byte)
        end = unit.lines_of(statement)[1]
        edits.append(Edit(start, end, _reindented(unit, otherwise, unit.indent(statement.start_byte), end)))
    return Rewrite(merge_edits(tuple(edits), drop_parameter(unit, function, [name])))


def _reindented(unit: Unit, block: Node, indent: bytes, end: int) -> bytes:
    """The whole lines of a block, moved to another indentation."""
    start, own = unit.line_start(block.start_byte), unit.indent(block.start_byte)
    lines = unit.source[start:end].splitlines(keepends=True)
    return b"".join(indent + line[len(own) :] if line.startswith(own) else line for line in lines)


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function, place = unit.function_at(locus), unit.loci.get(locus)
    flags = [name for name in settings if name not in (_TARGETS, _BEHIND)]
    if function is None or place is None or len(flags) != 1:
        raise NotApplicable("no such place, or not one flag")
    name = flags[0]
    body = place.child_by_field_name("body") if place != function.node else function.body
    run = _masked_run(unit, body, settings.get(_TARGETS, "").split()) if body is not None else []
    if not run:
        raise NotApplicable("no masked loads here to specialise")
    start, end = unit.line_start(run[0].start_byte), unit.lines_of(run[-1])[1]
    indent, newline = unit.indent(start), unit.newline(start)
    deeper = indent + b"    "
    masked = b"".join(
        deeper + line[len(indent) :] for line in unit.source[start:end].splitlines(keepends=True)
    )
    plain = b"".join(
        deeper + line[len(indent) :] for line in _unmasked(unit, run, start, end).splitlines(keepends=True)
    )
    text = (
        indent
        + f"if {name}:".encode("utf-8", "surrogateescape")
        + newline
        + plain
        + indent
        + b"else:"
        + newline
        + masked
    )
    return (Edit(start, end, text), *_passed(unit, function, name, settings))


def _target(unit: Unit, statement: Node) -> str:
    """What a statement loads or stores, in one word: ``x`` for ``x = ...``, ``store(y)`` for ``tl.store(y + ...)``."""
    pair = sides(statement)
    if pair is not None:
        return unit.text(pair[0])
    call = statement.named_children[0] if statement.type == "expression_statement" else None
    base = next(identifiers(positional(call)[0]), None) if _stores(unit, call) and call else None
    return f"store({unit.text(base)})" if base is not None else ""


def _stores(unit: Unit, call: Node | None) -> bool:
    return call is not None and tl_call(unit, call) == "store" and bool(positional(call))


def _masked_run(unit: Unit, body: Node, targets: list[str]) -> list[Node]:
    """The first run of neighbouring statements that are masked loads, of the targets where they are known."""
    run: list[Node] = []
    for statement in statements(body):
        kinds = ("load", "store") if targets else ("load",)
        wanted = not targets or _target(unit, statement) in targets
        masked = any(tl_call(unit, c) in kinds for c in _masks(unit, statement))
        if masked and wanted and statement.type != "for_statement":
            run.append(statement)
        elif run:
            break
    return run


def _unmasked(unit: Unit, run: list[Node], start: int, end: int) -> bytes:
    edits: list[Edit] = []
    for statement in run:
        for call in tl_calls(unit, statement, "load", "store"):
            listing = call.child_by_field_name("arguments")
            gone = [k for n, k in keywords(unit, call).items() if n in ("mask", "other")]
            left = [a for a in elements(listing) if a not in gone] if listing is not None else []
            if (
                listing is not None
                and gone
                and len(left) == 1
                and b"\n" in unit.source[listing.start_byte : listing.end_byte]
            ):
                edits.append(
                    Edit(
                        listing.start_byte,
                        listing.end_byte,
                        f"({unit.text(left[0])})".encode("utf-8", "surrogateescape"),
                    )
                )
            elif listing is not None and gone:
                edits += remove_elements(unit, listing, gone)
    shifted = [Edit(e.start - start, e.end - start, e.text) for e in edits]
    return apply_edits(unit.source[start:end], shifted)


def _passed(unit: Unit, function: Function, name: str, settings: Mapping[str, str]) -> list[Edit]:
    """The flag as a parameter, behind the one that is recorded or before all constants, and in every launch."""
    known = parameters(unit, function)
    listing = function.definition.child_by_field_name("parameters")
    order = list(known.values())
    first = next((i for i, n in enumerate(order) if is_constexpr(unit, n)), len(order))
    if listing is None or first == 0 or name in known:
        raise NotApplicable("the flag cannot be added to the kernel's parameters")
    behind = settings.get(_BEHIND, "")
    edits = [add_element(unit, listing, f"{name}: tl.constexpr", known.get(behind, order[first - 1]))]
    for launch in launches(unit, function.name):
        last = [a for a in launch.arguments.named_children if a.type not in ("keyword_argument", "comment")]
        after = launch.keyword(unit, behind) or (last[-1] if last else None)
        edits.append(add_element(unit, launch.arguments, f"{name}={setting(settings, name)}", after))
    return edits


EVEN_MASKS = Rule(
    name="even-masks",
    action="mask_specialize",
    surface="triton",
    title="Always mask, even when the tile is full",
    adds="Skip the mask where the tile is full",
    at="Masked loads along an extent that the tile divides",
    rationale="A constant says that the tiles divide the extent, so that the loads need no mask; without "
    "it every load is masked.",
    preconditions=(
        "Layout: the flag is true only when the block divides the extent, or the last block reads out of "
        "bounds.",
        "Pipeline: the flag is a compile-time constant, so that each kind of shape gets a kernel of its own.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    known={
        "Layout": Known(change="size", settings={"dim": "*", "value": "+1"}),
    },
)
