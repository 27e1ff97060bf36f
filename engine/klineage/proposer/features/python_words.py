"""Reading Triton files for calls: by their full names, whatever they were imported as."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from tree_sitter import Node

from klineage.surface.lists import elements
from klineage.surface.tree import Function, Unit, walk

_LANGUAGE = re.compile(r"(?:triton|tl)(?:\.\w+)*")


class Calls:
    """A Triton file with the calls in it. Kernels that nothing launches are left out."""

    def __init__(self, unit: Unit, entry: str) -> None:
        self.unit = unit
        self._entry = entry

    @cached_property
    def _names(self) -> dict[str, str]:
        """What the file's imports call things: local name to full name."""
        found: dict[str, str] = {"tl": "triton.language"}
        for node in walk(self.unit.root):
            if node.type not in ("import_statement", "import_from_statement"):
                continue
            module = node.child_by_field_name("module_name")
            prefix = self.unit.text(module) + "." if module is not None else ""
            for name in node.children_by_field_name("name"):
                full, alias = name, name
                if name.type == "aliased_import":
                    full = name.child_by_field_name("name") or name
                    alias = name.child_by_field_name("alias") or name
                found[self.unit.text(alias)] = prefix + self.unit.text(full)
        return found

    @cached_property
    def kernels(self) -> tuple[Function, ...]:
        """The jit functions that are launched, or called by one that is; all where that cannot be seen."""
        jitted = {f.name: f for f in self.unit.functions if f.jit}
        mentioned = {f.name: _identifiers(self.unit, f.node) for f in self.unit.functions}
        todo = [self._entry] if self._entry in mentioned else list(mentioned)
        todo += [name for name in jitted if self._module_level(name)]
        reached: set[str] = set()
        while todo:
            name = todo.pop()
            if name not in reached:
                reached.add(name)
                todo += mentioned.get(name, set()) & set(mentioned)
        return tuple(f for name, f in jitted.items() if name in reached)

    def _module_level(self, name: str) -> bool:
        """Whether a statement outside every function mentions a name (``fast = kernel``)."""
        inert = ("function_definition", "decorated_definition", "comment")
        rest = [child for child in self.unit.root.children if child.type not in inert]
        return any(name in _identifiers(self.unit, child) for child in rest)

    def callee(self, call: Node) -> str:
        """The last part of what is called, if it is Triton's or a method; empty for a function of the file's own."""
        function = call.child_by_field_name("function")
        if function is None or function.type not in ("attribute", "identifier"):
            return ""
        head, _, rest = self.unit.text(function).partition(".")
        full = self._names.get(head, head) + ("." + rest if rest else "")
        if _LANGUAGE.match(full) or function.type == "attribute":
            return full.rpartition(".")[2]
        return ""

    def under(self, root: Node) -> Iterator[tuple[Node, str]]:
        """The calls below a node, each with what it calls."""
        for node in walk(root):
            if node.type == "call" and (name := self.callee(node)):
                yield node, name

    def inside(self, function: Function) -> Iterator[tuple[Node, str]]:
        yield from self.under(function.body)

    def calls(self, root: Node, name: str) -> bool:
        """Whether a call of that name is below a node."""
        return any(callee == name for _, callee in self.under(root))

    def keywords(self, call: Node) -> dict[str, str]:
        """The keyword arguments of a call, as text on one line."""
        listing = call.child_by_field_name("arguments")
        found = {}
        for argument in elements(listing) if listing is not None else ():
            name, value = argument.child_by_field_name("name"), argument.child_by_field_name("value")
            if argument.type == "keyword_argument" and name is not None and value is not None:
                found[self.unit.text(name)] = " ".join(self.unit.text(value).split())
        return found

    def positional(self, call: Node) -> list[Node]:
        listing = call.child_by_field_name("arguments")
        given = elements(listing) if listing is not None else []
        return [argument for argument in given if argument.type != "keyword_argument"]

    def programs(self, function: Function) -> set[str]:
        """The names that hold a program's number."""
        found = set()
        for node in walk(function.body):
            left = node.child_by_field_name("left") if node.type == "assignment" else None
            right = node.child_by_field_name("right") if node.type == "assignment" else None
            if (
                left is not None
                and right is not None
                and right.type == "call"
                and self.calls(right, "program_id")
            ):
                found.add(self.unit.text(left))
        return found

    def mentions(self, root: Node, names: set[str]) -> bool:
        """Whether a node speaks of any of the names."""
        return bool(_identifiers(self.unit, root) & names)

    @cached_property
    def _all(self) -> tuple[Node, ...]:
        """Every call in the file."""
        return tuple(node for node in walk(self.unit.root) if node.type == "call")

    def launches(self, function: Function) -> list[Node]:
        """The calls ``kernel[grid](...)`` of a kernel."""
        found = []
        for node in self._all:
            called = node.child_by_field_name("function")
            value = (
                called.child_by_field_name("value")
                if called is not None and called.type == "subscript"
                else None
            )
            if value is not None and self.unit.text(value) == function.name:
                found.append(node)
        return found

    def spans(self, function: Function, name: str) -> bool:
        """Whether ``tl.arange`` goes over a parameter."""
        return any(
            name in _identifiers(self.unit, node)
            for node, callee in self.inside(function)
            if callee == "arange"
        )

    @cached_property
    def host_descriptors(self) -> tuple[Node, ...]:
        """The calls of ``TensorDescriptor`` (or its ``from_tensor``) in host code."""
        found = []
        for node in self._all:
            called = node.child_by_field_name("function")
            if called is not None and "TensorDescriptor" in self.unit.text(called).split("."):
                found.append(node)
        return tuple(found)

    def loads_descriptor(self, function: Function) -> bool:
        """Whether a parameter is read or written by a method of its own: ``x_desc.load([...])``."""
        parameters = function.definition.child_by_field_name("parameters")
        given = elements(parameters) if parameters is not None else []
        first = (next((n for n in walk(node) if n.type == "identifier"), None) for node in given)
        named = {
            self.unit.text(name) for name in first if name is not None
        }  # and none of an annotation: tl.constexpr
        for node in walk(function.body):
            called = node.child_by_field_name("function") if node.type == "call" else None
            if called is not None and called.type == "attribute":
                head, _, method = self.unit.text(called).partition(".")
                if head in named and method in ("load", "store", "gather", "scatter"):
                    return True
        return False


def _identifiers(unit: Unit, root: Node) -> set[str]:
    return {unit.text(node) for node in walk(root) if node.type == "identifier"}
