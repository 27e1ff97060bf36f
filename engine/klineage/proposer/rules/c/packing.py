"""Packed panels: copies in the order in which the inner loop reads become reads of the matrix itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import (
    arguments,
    body_start,
    calls,
    dead_items,
    deleted,
    deleted_item,
    home,
    innermost,
    macro_text,
    node_at,
    without_double_blanks,
)
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk


@dataclass(frozen=True)
class _Packer:
    """``panel[p * width + i] = source[(r + i) * lead + p]``: which parameter plays which part."""

    function: Function
    order: dict[str, int]  # part ("source", "lead", "width", "depth", "panel", "rows") to argument position
    element: str


@dataclass(frozen=True)
class _Panel:
    """One buffer that is filled by one call of the packer."""

    name: str
    declaration: Node
    size: str
    statement: Node  # the call
    parts: dict[str, str]  # the call's arguments by part
    loop: str  # the place of the loop or function that the call is in


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    packer = _packer(unit)
    panels = _panels(unit, packer) if packer is not None else []
    if packer is None or not panels or not any(f.exported for f in unit.functions):
        return ()
    settings = {"function": packer.function.name, "element": packer.element}
    for panel in panels:
        settings |= {f"{panel.name}.{part}": text for part, text in panel.parts.items()}
        settings |= {f"{panel.name}.size": panel.size, f"{panel.name}.loop": panel.loop}
    locus = home(unit)
    return (Site(locus, (Feature(locus, "layout_pack"),), settings),)


def _packer(unit: Unit) -> _Packer | None:
    """The first function that copies a matrix into panels."""
    for function in unit.functions:
        parameters = _parameters(unit, function)
        for node in walk(function.body):
            left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
            right = node.child_by_field_name("right") if node.type == "assignment_expression" else None
            if left is None or right is None or left.type != "subscript_expression":
                continue
            parts = _copied(unit, left, right)
            if parts is None or any(name not in parameters for name in parts.values()):
                continue
            order = {part: list(parameters).index(name) for part, name in parts.items()}
            rest = [i for i in range(len(parameters)) if i not in order.values()]
            depth = [i for i in rest if _bounds(unit, function, list(parameters)[i])]
            if len(rest) == 2 and len(parameters) == 6 and depth:
                order["depth"] = _depth(unit, function, list(parameters), rest)
                order["rows"] = next(i for i in rest if i != order["depth"])
                return _Packer(function, order, parameters[parts["panel"]])
    return None


def _parameters(unit: Unit, function: Function) -> dict[str, str]:
    """Parameter names in order, with the type's name."""
    found = {}
    for node in walk(function.definition):
        if node.type == "parameter_declaration":
            name = next((n for n in walk(node) if n.type == "identifier"), None)
            kind = node.child_by_field_name("type")
            if name is not None and kind is not None:
                found[unit.text(name)] = unit.text(kind)
        elif node == function.body:
            break
    return found


def _copied(unit: Unit, left: Node, right: Node) -> dict[str, str] | None:
    """The parts of ``panel[p * width + i] = [... ?] source[(r + i) * lead + p] [: ...]``."""
    if right.type == "conditional_expression":
        inner = right.child_by_field_name("consequence")
        right = inner if inner is not None else right
    if right.type != "subscript_expression":
        return None
    to, source = (_sum_of_product(unit, n.child_by_field_name("index")) for n in (left, right))
    panel, matrix = left.child_by_field_name("argument"), right.child_by_field_name("argument")
    if to is None or source is None or panel is None or matrix is None:
        return None
    (step, width), lane = to
    (row, lead), depth = source
    if step != depth or not row.startswith("(") or not row.strip("()").endswith(lane):
        return None
    return {"source": unit.text(matrix), "lead": lead, "width": width, "panel": unit.text(panel)}


def _sum_of_product(unit: Unit, node: Node | None) -> tuple[tuple[str, str], str] | None:
    """((a, b), c) of ``a * b + c``."""
    left = node.child_by_field_name("left") if node is not None else None
    right = node.child_by_field_name("right") if node is not None else None
    if (
        left is None
        or right is None
        or left.type != "binary_expression"
        or b"*" not in [c.text for c in left.children]
    ):
        return None
    factors = left.child_by_field_name("left"), left.child_by_field_name("right")
    if factors[0] is None or factors[1] is None:
        return None
    return (unit.text(factors[0]), unit.text(factors[1])), unit.text(right)


def _bounds(unit: Unit, function: Function, name: str) -> bool:
    """Whether a loop runs up to the parameter."""
    for node in walk(function.body):
        condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
        right = condition.child_by_field_name("right") if condition is not None else None
        if right is not None and unit.text(right) == name:
            return True
    return False


def _depth(unit: Unit, function: Function, names: list[str], rest: list[int]) -> int:
    """The one of two extents that a panel is advanced by (``panel += width * depth``)."""
    for node in walk(function.body):
        sign = node.child_by_field_name("operator") if node.type == "assignment_expression" else None
        if sign is not None and unit.text(sign) == "+=" and "*" in unit.text(node):
            found = [i for i in rest if names[i] in unit.text(node)]
            if len(found) == 1:
                return found[0]
    return rest[1]


def _panels(unit: Unit, packer: _Packer) -> list[_Panel]:
    arrays = _arrays(unit)
    found = []
    for call in calls(unit, unit.root, packer.function.name):
        given, statement = [unit.text(a) for a in arguments(call)], call.parent
        parts = {part: given[index] for part, index in packer.order.items() if index < len(given)}
        name = parts.pop("panel", "")
        if statement is None or statement.type != "expression_statement" or name not in arrays:
            return []
        declaration, size = arrays[name]
        found.append(_Panel(name, declaration, size, statement, parts, innermost(unit, statement)))
    return found if len({p.name for p in found}) == len(found) else []


def _arrays(unit: Unit) -> dict[str, tuple[Node, str]]:
    """The arrays of the file by name: declaration and extent."""
    found = {}
    for node in walk(unit.root):
        declarator = node.child_by_field_name("declarator") if node.type == "declaration" else None
        if declarator is None or declarator.type != "array_declarator":
            continue
        name, size = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("size")
        if name is not None and size is not None:
            found[unit.text(name)] = (node, unit.text(size))
    return found


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    packer = _packer(unit)
    panels = _panels(unit, packer) if packer is not None else []
    if packer is None or not panels:
        raise NotApplicable("nothing is packed here")
    edits = [deleted_item(unit, packer.function.node)]
    for panel in panels:
        if _value(unit, panel.parts["width"]) != 1:
            raise NotApplicable("the panels are interleaved: the tile that reads them must be one wide first")
        edits += [deleted(unit, panel.statement), deleted(unit, panel.declaration)]
        edits += _direct(unit, panel, packer.function)
    edits = list(merge_edits(edits))
    return Rewrite(without_double_blanks(unit, merge_edits(edits, dead_items(unit, edits))))


def _value(unit: Unit, text: str) -> int | None:
    """The value of an expression of macros and ``*``, or None."""
    macros = {}
    for node in walk(unit.root):
        name = node.child_by_field_name("name") if node.type == "preproc_def" else None
        if name is not None:
            macros[unit.text(name)] = macro_text(unit, node)
    product = 1
    for factor in text.strip("() ").replace("(", "").replace(")", "").split("*"):
        word = factor.strip()
        if word.isdigit():
            product *= int(word)
        elif "/" in word and all(
            part.strip() in macros or part.strip().isdigit() for part in word.split("/")
        ):
            whole, divisor = (_value(unit, part.strip()) for part in word.split("/", 1))
            if not whole or not divisor or whole % divisor:
                return None
            product *= whole // divisor
        elif word in macros:
            inner = _value(unit, macros[word])
            if inner is None:
                return None
            product *= inner
        else:
            return None
    return product


def _direct(unit: Unit, panel: _Panel, packer: Function) -> list[Edit]:
    """``panel + i * depth`` reads row i of the panel: with panels of one row, ``source + i * lead``."""
    edits = []
    for node in walk(unit.root):
        if node.type != "identifier" or unit.text(node) != panel.name:
            continue
        inside = (panel.declaration, panel.statement, packer.node)
        if any(o.start_byte <= node.start_byte < o.end_byte for o in inside):
            continue
        whole = node.parent
        offset = (
            whole.child_by_field_name("right")
            if whole is not None and whole.type == "binary_expression"
            else None
        )
        if whole is None or offset is None or whole.child_by_field_name("left") != node:
            raise NotApplicable(f"{panel.name} is read in a way that is not 'panel + row * depth'")
        factors = [offset.child_by_field_name(side) for side in ("left", "right")]
        texts = [unit.text(f) for f in factors if f is not None]
        if offset.type != "binary_expression" or panel.parts["depth"] not in texts or len(texts) != 2:
            raise NotApplicable(f"{panel.name} is read in a way that is not 'panel + row * depth'")
        texts.remove(panel.parts["depth"])
        text = f"{panel.parts['source']} + {texts[0]} * {panel.parts['lead']}"
        edits.append(Edit(whole.start_byte, whole.end_byte, text.encode("utf-8", "surrogateescape")))
    return edits


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """A packer, a buffer for each panel, a call in each loop, and reads of the panels."""
    unit = parse_kernel(kernel)
    function, element = setting(settings, "function"), setting(settings, "element")
    panels = [key.removesuffix(".size") for key in settings if key.endswith(".size")]
    target = unit.function_at(locus)
    if target is None or not panels or unit.function(function) is not None:
        raise NotApplicable("no function to pack panels for, or something is packed already")
    edits = []
    for name in panels:
        part = {
            p: setting(settings, f"{name}.{p}") for p in ("source", "lead", "rows", "depth", "width", "loop")
        }
        edits += _packed(unit, name, part)
        given = ", ".join([*(part[p] for p in ("source", "lead", "rows", "depth", "width")), name])
        edits.append(_call(unit, part["loop"], f"{function}({given});"))
    at = unit.line_start(target.node.start_byte)
    newline = unit.newline(at)
    buffers = [f"static {element} {name}[{settings[f'{name}.size']}];" for name in panels]
    text = (
        newline.join(
            line.encode("utf-8", "surrogateescape")
            for line in [*buffers, "", *_function_text(function, element), ""]
        )
        + newline
    )
    return (*edits, Edit(at, at, text))


def _packed(unit: Unit, name: str, part: Mapping[str, str]) -> list[Edit]:
    head, tail = f"{part['source']} + ", f" * {part['lead']}"
    edits = []
    for node in walk(unit.root):
        text = unit.text(node) if node.type == "binary_expression" else ""
        if text.startswith(head) and text.endswith(tail) and "+" not in text[len(head) :]:
            row = text[len(head) : -len(tail)]
            edits.append(
                Edit(
                    node.start_byte,
                    node.end_byte,
                    f"{name} + {row} * {part['depth']}".encode("utf-8", "surrogateescape"),
                )
            )
    if not edits:
        raise NotApplicable(f"nothing reads rows of {part['source']!r}")
    return edits


def _call(unit: Unit, place: str, call: str) -> Edit:
    """A statement after the declarations at the top of a loop's or function's body."""
    node = node_at(unit, place)
    body = node.child_by_field_name("body")
    at = body_start(unit, node)
    for child in body.named_children if body is not None else ():
        if child.type not in ("declaration", "comment"):
            break
        at = unit.line_end(child.end_byte)
    indent = unit.indent(node.start_byte) + b"    "
    return Edit(at, at, indent + call.encode("utf-8", "surrogateescape") + unit.newline(at))


def _function_text(name: str, element: str) -> list[str]:
    return [
        f"static inline void {name}(const {element} *source, int64_t lead, int64_t rows, int64_t depth,"
        " int64_t width,",
        f"{' ' * len(f'static inline void {name}(')}{element} *panel)",
        "{",
        "    for (int64_t r = 0; r < rows; r += width) {",
        "        for (int64_t p = 0; p < depth; ++p)",
        "            for (int64_t i = 0; i < width; ++i)",
        "                panel[p * width + i] = r + i < rows ? source[(r + i) * lead + p] : 0;",
        "        panel += width * depth;",
        "    }",
        "}",
    ]


PACKING = Rule(
    name="packing",
    action="layout_pack",
    surface="c",
    title="Read the matrices instead of packed panels",
    adds="Pack the matrices into panels",
    at="The loops over blocks, before the innermost one reads its operands",
    rationale="Panels hold the operands in the order in which the inner loop reads them, so that it walks "
    "memory one line after the other; without them it reads rows that lie far apart.",
    preconditions=(
        "Layout: the inner loop reads its operands in one fixed order, so that a panel can have that order.",
        "Storage: a panel fits in the cache that it is packed for, and is read often enough to pay for the "
        "copy.",
        "Pipeline: the operand does not change while its panel is in use.",
        "Data types: the copy may convert the elements once instead of at every use.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("simd", "register_tiling", "alignment"),
    known={
        "Storage": Known("least_extent() > 1", "size"),
    },
)
