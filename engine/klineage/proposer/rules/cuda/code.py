"""Reading CUDA code: integer constants that a file defines, declared names, how blocks are launched."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.c.code import macro_edit
from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.cuda_launch import Launch, declared
from klineage.surface.tree import Edit, Function, Unit, ancestors, walk

LARGEST_BLOCK = 1024


def has_kernel(unit: Unit) -> bool:
    """Whether something in the file can be launched by its name."""
    return any(f.exported for f in unit.functions)


def launches(kernel: Kernel, function: Function | None = None) -> tuple[Launch, ...]:
    """The declared launches of the kernel's entry, or those that run a function: a kernel's own, else all."""
    found = declared(kernel.source).of(kernel.entry)
    if function is None or not function.jit:
        return found
    return tuple(launch for launch in found if launch.kernel == function.name)


def flat_blocks(kernel: Kernel, function: Function) -> None:
    """Raise NotApplicable unless ``threadIdx.x`` numbers the threads of every block that runs a function."""
    found = launches(kernel, function)
    if not found:
        raise NotApplicable("no launch says how many threads a block has")
    if any(launch.block[1:] != (1, 1) for launch in found):
        raise NotApplicable("a block has several dimensions, so threadIdx.x does not number its threads")


def constants(unit: Unit) -> dict[str, Node]:
    """The integer constants that the file defines once, outside every ``#if``: name to definition.

    The definition is a ``preproc_def``, or the ``init_declarator`` of a ``constexpr`` or ``const``.
    """
    found: dict[str, list[Node]] = {}
    for node in walk(unit.root):
        if node.type == "preproc_def":
            name = node.child_by_field_name("name")
            if name is not None:
                found.setdefault(unit.text(name), []).append(node)
        elif node.type == "init_declarator" and _constant(unit, node):
            name = node.child_by_field_name("declarator")
            if name is not None:
                found.setdefault(unit.text(name), []).append(node)
    return {
        name: nodes[0]
        for name, nodes in found.items()
        if len(nodes) == 1 and not any(a.type.startswith("preproc_if") for a in ancestors(nodes[0]))
    }


def _constant(unit: Unit, declarator: Node) -> bool:
    declaration = declarator.parent
    if declaration is None or declaration.type != "declaration" or declaration.parent is None:
        return False
    words = {unit.text(c) for c in declaration.children if c.type == "type_qualifier"}
    return declaration.parent.type == "translation_unit" and bool(words & {"constexpr", "const"})


def value_of(unit: Unit, definition: Node) -> str:
    """The text of a constant's value, without a comment after it."""
    value = definition.child_by_field_name("value")
    return unit.text(value).split("//")[0].split("/*")[0].strip() if value is not None else ""


def whole(unit: Unit, definition: Node) -> int | None:
    """The value of a constant that is written as a number."""
    text = value_of(unit, definition)
    return int(text) if text.isdigit() else None


def constant_edit(unit: Unit, definition: Node, value: str) -> Edit:
    """Give a constant another value."""
    if definition.type == "preproc_def":
        return macro_edit(unit, definition, value)
    node = definition.child_by_field_name("value")
    if node is None:
        raise NotApplicable("the constant has no value")
    return Edit(node.start_byte, node.end_byte, value.encode("utf-8", "surrogateescape"))


def identifiers(unit: Unit, root: Node, *names: str) -> list[Node]:
    """The places where code names one of ``names``."""
    kinds = ("identifier", "type_identifier", "field_identifier")
    return [n for n in walk(root) if n.type in kinds and unit.text(n) in names]


def declarations(unit: Unit, function: Function) -> Iterator[tuple[str, Node, Node]]:
    """(name, declarator, declaration) of every parameter and local of a function."""
    for node in walk(function.node):
        if node.type not in ("parameter_declaration", "declaration"):
            continue
        for declarator in node.children_by_field_name("declarator"):
            name: Node | None = declarator
            while name is not None and name.type != "identifier":
                inner = name.child_by_field_name("declarator")
                name = inner or next((c for c in name.named_children if c.type.endswith(_NAMES)), None)
            if name is not None:
                yield unit.text(name), declarator, node


_NAMES = ("declarator", "identifier")


def declared_type(unit: Unit, function: Function, name: str) -> str | None:
    """``float`` for a scalar, ``float *`` for a pointer or an array (one star a level); None when unknown.

    None as well for a name that is declared twice with different types.
    """
    types = set()
    for known, declarator, node in declarations(unit, function):
        type_node = node.child_by_field_name("type")
        if known == name and type_node is not None:
            inside = declarator.child_by_field_name("value")
            end = inside.start_byte if inside is not None else declarator.end_byte
            depth = sum(
                n.type in ("*", "&", "array_declarator") and n.start_byte < end for n in walk(declarator)
            )
            types.add(" ".join(unit.text(type_node).split()) + (" " + "*" * depth if depth else ""))
    return types.pop() if len(types) == 1 else None


def shared_arrays(unit: Unit, function: Function) -> dict[str, Node]:
    """The ``__shared__`` arrays of a function with extents: name to outermost array declarator."""
    found = {}
    for name, declarator, node in declarations(unit, function):
        shared = any(c.type == "type_qualifier" and unit.text(c) == "__shared__" for c in node.children)
        if shared and declarator.type == "array_declarator":
            found[name] = declarator
    return found


def extents(declarator: Node) -> list[Node]:
    """The extents of an array declarator, outermost first."""
    found: list[Node] = []
    current: Node | None = declarator
    while current is not None and current.type == "array_declarator":
        size = current.child_by_field_name("size")
        if size is not None:
            found.insert(0, size)
        current = current.child_by_field_name("declarator")
    return found


def subscripts(unit: Unit, function: Function, name: str) -> list[list[Node]] | None:
    """The index nodes of every access ``name[a][b]``; None when the name is used in any other way."""
    found: list[list[Node]] = []
    for node in walk(function.body):
        if node.type != "identifier" or unit.text(node) != name or _declares(node):
            continue
        indices: list[Node] = []
        outer = node
        while outer.parent is not None and outer.parent.type == "subscript_expression":
            if outer.parent.child_by_field_name("argument") != outer:
                break
            outer = outer.parent
            listing = outer.child_by_field_name("indices")
            indices += (
                [c for c in listing.named_children if c.type != "comment"] if listing is not None else []
            )
        if not indices:
            return None
        found.append(indices)
    return found


def _declares(node: Node) -> bool:
    return node.parent is not None and node.parent.type in ("array_declarator", "declaration")
