"""The configurations that an ``@triton.autotune`` decorator offers, read without running anything."""

from __future__ import annotations

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.surface.lists import elements
from klineage.surface.tree import Function, Unit, parse_kernel

Config = tuple[tuple[str, int], ...]
LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def decorator(unit: Unit, function: Function) -> Node | None:
    """The ``@triton.autotune(...)`` node above a jit function, or None."""
    for node in function.node.children:
        if node.type == "decorator" and _called(unit, node).split(".")[-1] == "autotune":
            return node
    return None


def arguments(unit: Unit, node: Node) -> dict[str, Node]:
    """The arguments of a decorator that is a call: by name, positional ones as ``"0"``, ``"1"`` ..."""
    call = next((c for c in node.named_children if c.type == "call"), None)
    listing = call.child_by_field_name("arguments") if call is not None else None
    found: dict[str, Node] = {}
    for index, argument in enumerate(elements(listing) if listing is not None else ()):
        name, value = argument.child_by_field_name("name"), argument.child_by_field_name("value")
        if argument.type == "keyword_argument" and name is not None and value is not None:
            found[unit.text(name)] = value
        else:
            found[str(index)] = argument
    return found


def configurations(unit: Unit, function: Function) -> tuple[Config, ...]:
    """Every configuration written out as literals, in order; empty when they are computed or there are
    none."""
    node = decorator(unit, function)
    if node is None:
        return ()
    given = arguments(unit, node)
    listing = given.get("configs", given.get("0"))
    if listing is None or listing.type != "list":
        return ()
    configs = [_configuration(unit, element) for element in elements(listing)]
    return tuple(c for c in configs if c is not None) if None not in configs else ()


def pinned(kernel: Kernel, function: Function) -> Config:
    """The configuration that counts: the kernel's pinned one, else the first written out, else nothing."""
    unit = parse_kernel(kernel)
    if decorator(unit, function) is None:
        return ()
    if kernel.config:
        return kernel.config
    offered = configurations(unit, function)
    return offered[0] if offered else ()


def _called(unit: Unit, node: Node) -> str:
    call = next((c for c in node.named_children if c.type == "call"), None)
    target = call.child_by_field_name("function") if call is not None else None
    return unit.text(target) if target is not None else ""


def _configuration(unit: Unit, node: Node) -> Config | None:
    """``triton.Config({"BLOCK": 64}, num_warps=4)`` as pairs; None when a value is no integer literal."""
    if node.type != "call":
        return None
    listing = node.child_by_field_name("arguments")
    pairs: list[tuple[str, int]] = []
    for argument in elements(listing) if listing is not None else ():
        if argument.type == "dictionary":
            for pair in elements(argument):
                key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
                if key is None or value is None or value.type != "integer":
                    return None
                pairs.append((unit.text(key).strip("\"'"), int(unit.text(value), 0)))
        elif argument.type == "keyword_argument":
            name, value = argument.child_by_field_name("name"), argument.child_by_field_name("value")
            if name is None or value is None or unit.text(value) == "None":
                continue
            if value.type != "integer":
                return None
            pairs.append((unit.text(name), int(unit.text(value), 0)))
        else:
            return None
    return tuple(pairs)
