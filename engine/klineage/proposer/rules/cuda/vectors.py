"""Vector loads and stores become one access an element."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import home
from klineage.proposer.rules.cuda.code import declared_type, extents, has_kernel
from klineage.proposer.rules.cuda.vector_names import (
    KEY,
    Named,
    declared_again,
    made_from,
    named_pointer,
    recorded_names,
)
from klineage.proposer.rules.rewritten import Special, function_of, recorded, removed, restored
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, merge_edits, parse_kernel, walk

_LANES = "xyzw"
_BUILT_IN = {
    f"{name}{lanes}": (element, lanes)
    for name, element in (
        ("float", "float"), ("double", "double"), ("int", "int"), ("uint", "unsigned"), ("short", "short"),
    )
    for lanes in (2, 4)
}  # fmt: skip
_SPELLED = {
    "unsigned": ("unsigned", "unsigned int", "uint32_t"),
    "int": ("int", "int32_t"),
    "short": ("short", "int16_t"),
}
_POINTER = re.compile(r"&(?P<base>\w+)\[(?P<at>.+)\]|(?P<sum>\w+) \+ (?P<by>.+)|(?P<plain>\w+)")
_HOLE = re.compile(r"(?<!\w)_(?!\w)")
_LOOSE = re.compile(r"[?<>=&|^]")


@dataclass(frozen=True)
class _Access:
    """``*reinterpret_cast<const T *>(pointer)`` or ``reinterpret_cast<const T *>(pointer)[index]``."""

    node: Node
    type: str
    spelling: str  # with _ for the pointer and the index
    pointer: str
    index: str


@dataclass(frozen=True)
class _Pack:
    """An aligned structure that holds nothing but an array: its element type, member and parameter."""

    element: str
    member: str
    lanes: str
    parameter: str


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not has_kernel(unit) or not _casts(unit):
        return ()
    locus = home(unit)
    try:
        found, named = _found(unit)
        settings = recorded(unit, found, _declarations(unit, named)) | recorded_names(unit, named)
    except NotApplicable:
        settings = {}  # removing says why
    return (Site(locus, (Feature(locus, "vectorize"),), settings),)


def _declarations(unit: Unit, named: list[Named]) -> list[Edit]:
    return [Edit(*unit.lines_of(n.declaration)) for n in named]


@lru_cache(maxsize=64)
def _casts(unit: Unit) -> list[tuple[Node, str]]:
    """(cast, type) of every pointer that is cast to a wider type."""
    packs, found = _packs(unit), []
    for node in walk(unit.root):
        callee = node.child_by_field_name("function") if node.type == "call_expression" else None
        if (
            callee is not None
            and callee.type == "template_function"
            and unit.text(callee).startswith("reinterpret_cast")
        ):
            target = callee.child_by_field_name("arguments")
        else:
            target = node.child_by_field_name("type") if node.type == "cast_expression" else None
        text = " ".join(unit.text(target).split()) if target is not None else ""
        if target is not None and target.type == "template_argument_list":
            text = text[1:-1].strip()
        match = re.fullmatch(r"(?:const )?((\w+)(?: ?<[^<>]*>)?)(?: const)? ?\*", text)
        if match and (match[2] in _BUILT_IN or match[2] in packs):
            found.append((node, match[1]))
    return found


@lru_cache(maxsize=64)
def _packs(unit: Unit) -> dict[str, _Pack]:
    """The structures through which vectors are read, by name."""
    found: dict[str, _Pack] = {}
    if re.search(rb"\balignas\b|\b__align__\b", unit.source) is None:
        return found
    for node in walk(unit.root):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if node.type != "struct_specifier" or name is None or body is None:
            continue
        if not re.search(rb"\balignas\b|\b__align__\b", unit.source[node.start_byte : body.start_byte]):
            continue
        fields = [c for c in body.named_children if c.type != "comment"]
        arrays = [n for f in fields for n in f.named_children if n.type == "array_declarator"]
        type_ = fields[0].child_by_field_name("type") if len(fields) == 1 else None
        member = next((n for a in arrays for n in walk(a) if n.type == "field_identifier"), None)
        if type_ is None or len(arrays) != 1 or member is None or len(extents(arrays[0])) != 1:
            continue
        outer = node.parent
        listing = outer.child_by_field_name("parameters") if outer is not None else None
        parameter = (
            next((unit.text(n) for n in walk(listing) if n.type == "identifier"), "") if listing else ""
        )
        found[unit.text(name)] = _Pack(
            unit.text(type_), unit.text(member), unit.text(extents(arrays[0])[0]), parameter
        )
    return found


def _found(unit: Unit) -> tuple[list[Special], list[Named]]:
    """Every vector access, and the vector pointers that are no longer needed. Raises NotApplicable."""
    found: list[Special] = []
    names: list[Named] = []
    for cast, type_ in _casts(unit):
        named = named_pointer(unit, cast)
        if named is None:
            found.append(_special(unit, _access(unit, cast, type_)))
            continue
        given = cast.child_by_field_name("arguments") or cast.child_by_field_name("value")
        inner = unit.text(given) if given is not None else ""
        pointer = inner[1:-1] if inner.startswith("(") and inner.endswith(")") else inner
        accesses = [_Access(n, type_, f"{named.name}[_]", pointer, index) for n, index in named.elements]
        found += [_special(unit, access) for access in accesses]
        names.append(named)
    return found, names


def _access(unit: Unit, cast: Node, type_: str) -> _Access:
    line = f"line {unit.line(cast.start_byte)}"
    given = cast.child_by_field_name("arguments") or cast.child_by_field_name("value")
    if given is None:
        raise NotApplicable(f"{line}: a cast of nothing")
    inner = unit.text(given)
    bracketed = inner.startswith("(") and inner.endswith(")")
    pointer = inner[1:-1] if bracketed else inner
    outer = cast.parent
    while outer is not None and outer.type == "parenthesized_expression":
        outer = outer.parent
    if outer is None or outer.type not in ("pointer_expression", "subscript_expression"):
        raise NotApplicable(f"{line}: a pointer to {type_} is kept, not read or written at once")
    text, at = unit.text(outer), given.start_byte - outer.start_byte
    hole = ("(&_)" if pointer.startswith("&") else "(_)") if bracketed else "_"
    spelling = text.encode("utf-8", "surrogateescape")
    rest = spelling[at + given.end_byte - given.start_byte :].decode("utf-8", "surrogateescape")
    index = ""
    if outer.type == "subscript_expression":
        listing = outer.child_by_field_name("indices")
        index = unit.text(listing)[1:-1] if listing is not None else ""
        rest = rest.replace(f"[{index}]", "[_]")
    elif not text.startswith("*"):
        raise NotApplicable(f"{line}: the address of a {type_} is taken")
    return _Access(
        outer, type_, spelling[:at].decode("utf-8", "surrogateescape") + hole + rest, pointer, index
    )


def _special(unit: Unit, access: _Access) -> Special:
    line = f"line {unit.line(access.node.start_byte)}"
    named = access.spelling.endswith("[_]") and access.spelling[:-3].isidentifier()
    indexed = bool(access.index) and not access.pointer.isidentifier() and not named
    if re.search(r"\+\+|--|\(", access.pointer + access.index) or indexed:
        raise NotApplicable(f"{line}: the address is computed in a way that is not known here")
    name = access.type.partition("<")[0].strip()
    pack = _packs(unit).get(name)
    element = _BUILT_IN[name][0] if pack is None else pack.element
    base = _split(access.pointer)[0]
    function = function_of(unit, access.node)
    type_ = declared_type(unit, function, base) if function is not None else None
    if type_ not in [f"{spelled} *" for spelled in _SPELLED.get(element, (element,))]:
        raise NotApplicable(
            f"{line}: {base} is no pointer to {element}, so its elements are not those of {name}"
        )
    return _pack_statement(unit, access, pack) if pack is not None else _built_in(unit, access)


def _split(pointer: str) -> tuple[str, str]:
    """(base, offset) of ``&x[i]``, ``x + i`` or ``x``."""
    match = _POINTER.fullmatch(pointer)
    if match is None:
        raise NotApplicable(f"{pointer} is an address that is not known here")
    return match["base"] or match["sum"] or match["plain"], match["at"] or match["by"] or ""


def _elements(access: _Access, lanes: int) -> list[str]:
    base, offset = _split(access.pointer)
    if access.index:
        simple = re.fullmatch(r"\w+", access.index)
        own = f"{lanes} * {access.index}" if simple else f"{lanes} * ({access.index})"
        offset = f"{offset} + {own}" if offset else own
    elif _LOOSE.search(offset):
        offset = f"({offset})"
    return [
        f"{base}[{' + '.join(filter(None, (offset, str(lane) if lane or not offset else '')))}]"
        for lane in range(lanes)
    ]


def _stored(unit: Unit, access: _Access) -> tuple[Node, Node] | None:
    """(statement, value) when the access is the left side of a statement."""
    parent = access.node.parent
    if (
        parent is None
        or parent.type != "assignment_expression"
        or parent.child_by_field_name("left") != access.node
    ):
        return None
    statement, value = parent.parent, parent.child_by_field_name("right")
    sign = parent.child_by_field_name("operator")
    if (
        statement is None
        or statement.type != "expression_statement"
        or value is None
        or sign is None
        or unit.text(sign) != "="
    ):
        raise NotApplicable(
            f"line {unit.line(access.node.start_byte)}: a vector is written inside an expression"
        )
    return statement, value


def _built_in(unit: Unit, access: _Access) -> Special:
    lanes = _BUILT_IN[access.type][1]
    elements, stored = _elements(access, lanes), _stored(unit, access)
    if stored is None:
        return Special(access.node, access.spelling, f"make_{access.type}({', '.join(elements)})")
    statement, value = stored
    if value.type != "identifier":
        raise NotApplicable(
            f"line {unit.line(value.start_byte)}: what is stored has no name whose parts could be stored"
        )
    indent, newline = unit.indent(statement.start_byte), unit.newline(statement.start_byte).decode()
    space = indent.decode() + "  "
    lines = [f"{e} = {unit.text(value)}.{lane};" for e, lane in zip(elements, _LANES, strict=False)]
    body = "".join(f"{space}{text}{newline}" for text in lines)
    return Special(statement, f"{access.spelling} = _;", f"{{{newline}{body}{indent.decode()}}}")


def _pack_statement(unit: Unit, access: _Access, pack: _Pack) -> Special:
    """A statement that loads or stores a whole structure, as a loop over its elements."""
    argument = access.type.partition("<")[2].removesuffix(">").strip()
    lanes = argument if pack.lanes == pack.parameter and argument else pack.lanes
    element = _element(access)
    loop, stored, parent = (
        f"for (int lane = 0; lane < {lanes}; lane++)",
        _stored(unit, access),
        access.node.parent,
    )
    function = function_of(unit, access.node)
    if function is not None and re.search(r"\blanes?\b", unit.text(function.node)):
        raise NotApplicable("the names 'lane' or 'lanes' are taken")
    newline, indent = (
        unit.newline(access.node.start_byte).decode(),
        unit.indent(access.node.start_byte).decode(),
    )
    if stored is not None:
        text = f"{loop} {element} = {unit.text(stored[1])}.{pack.member}[lane];"
        return Special(stored[0], f"{access.spelling} = _;", text)
    block = parent.parent if parent is not None else None
    if (
        parent is not None
        and parent.type == "return_statement"
        and block is not None
        and block.type == "compound_statement"
    ):
        lines = [f"{access.type} lanes;", f"{loop} lanes.{pack.member}[lane] = {element};", "return lanes;"]
        return Special(parent, f"return {access.spelling};", f"{newline}{indent}".join(lines))
    raise NotApplicable(
        f"line {unit.line(access.node.start_byte)}: {access.type} is read inside an expression"
    )


def _element(access: _Access) -> str:
    if access.index:
        raise NotApplicable("structures are indexed as an array")
    base, offset = _split(access.pointer)
    return f"{base}[{offset} + lane]" if offset else f"{base}[lane]"


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    found, named = _found(unit)
    recorded(unit, found, _declarations(unit, named))
    return Rewrite(merge_edits(removed(found), _declarations(unit, named)))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    accesses = {name: value for name, value in settings.items() if not name.startswith(KEY)}
    written = partial(_written, made=made_from(settings))
    return merge_edits(restored(unit, accesses, written), declared_again(unit, settings))


def _through_name(spelling: str, plain: str, made: Mapping[str, tuple[str, str]]) -> str | None:
    """``rows[i]`` for what is an element from a named pointer on."""
    name = spelling.partition("[")[0]
    first = re.match(r"(?:make_\w+\(|\{ )\w+\[(.+?)\](?:, | = (\w+)\.x;)", plain)
    if first is None or name not in made or made[name][0] not in _BUILT_IN:
        return None
    lanes, offset = _BUILT_IN[made[name][0]][1], _split(made[name][1])[1]
    index = first[1].removeprefix(f"{offset} + " if offset else "").removeprefix(f"{lanes} * ")
    return f"{name}[{_bare(index)}]" + (f" = {first[2]};" if first[2] else "")


def _written(spelling: str, plain: str, *, made: Mapping[str, tuple[str, str]]) -> str | None:
    """A spelling with its holes filled from the plain form: the pointer, the index, what is stored."""
    if re.match(r"\w+\[_\]", spelling):
        return _through_name(spelling, plain, made)
    lanes = re.search(r"\w+?([24]) ?(?:const ?)?\*", spelling)
    loop = re.search(r"for \(int lane = 0; lane < .+?; lane\+\+\) (.+?);", plain)
    if loop is not None:
        target, _, value = loop[1].partition(" = ")
        stored = spelling.endswith("= _;")
        pointer = _whole(target if stored else value, r"(?:(.+) \+ )?lane", spelling)
        return _filled(spelling, pointer, "", value.rpartition(".")[0] if stored else "")
    first = re.match(r"(?:make_\w+\(|\{ )(\w+\[.+?\])(?:, | = (\w+)\.x;)", plain)
    if first is None or lanes is None:
        return None
    if "[_]" in spelling:
        inner = first[1].partition("[")[2][:-1].removeprefix(f"{lanes[1]} * ")
        return _filled(spelling, first[1].partition("[")[0], _bare(inner), first[2] or "")
    return _filled(spelling, _whole(first[1], r"(0|.+)", spelling), "", first[2] or "")


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _whole(element: str, inside: str, spelling: str) -> str:
    """The pointer to an element: ``x + i`` of ``x[i]``."""
    base, _, index = element.partition("[")
    match = re.fullmatch(inside, index[:-1])
    offset = match[1] if match is not None and match[1] not in (None, "0") else ""
    if "(&_)" in spelling:
        return f"{base}[{_bare(offset) or '0'}]"
    return f"{base} + {_bare(offset) if _LOOSE.search(offset) else offset}" if offset else base


def _filled(spelling: str, pointer: str, index: str, value: str) -> str:
    """The holes of a spelling, in their order: the pointer, the index where there is one, what is stored."""
    parts = _HOLE.split(spelling)
    values = [pointer, *([index] if index else []), *([value] if value else [])]
    if len(parts) != len(values) + 1:
        raise NotApplicable(f"{spelling!r} is no way to write a vector")
    return parts[0] + "".join(value + part for value, part in zip(values, parts[1:], strict=True))


VECTORS = Rule(
    name="vectors",
    action="vectorize",
    surface="cuda",
    title="Load and store one element at a time",
    adds="Load and store vectors",
    at="Loops in which a thread loads or stores neighbouring elements one at a time",
    rationale="A thread moves a whole aligned vector in one instruction; without it each element takes an "
    "instruction of its own, and each of them moves less of a memory line for a warp.",
    preconditions=(
        "Layout: the elements of a vector are neighbours in memory.",
        "Storage: each vector begins at an address that is a multiple of its size, also in the second row.",
        "Pipeline: what is left at the end of a row is no vector, and goes another way.",
        "Hardware: loads and stores of up to 16 bytes a thread.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll",),
    known={
        "Storage": Known("row_alignment() >= 16", "misalign", {"buffer": "*", "bytes": "1"}),
    },
)
