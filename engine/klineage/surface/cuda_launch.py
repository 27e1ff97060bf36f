"""The declared launches of a CUDA file: comments that say what a host program would do, as data.

    // klineage: scratch partial fp32 (m, 8)
    // klineage: launch split_kernel grid=(cdiv(n, TILE), cdiv(m, TILE)) block=(256) shared=2 * TILE * sizeof(float)
    // klineage: launch join_kernel grid=(m) args=(partial, y, count=8) when=n > 64

Launches run in the order of their lines. Expressions may name dimensions, integer constants of the file, and
as arguments also buffers, scratch and scalars.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from klineage.kernel import Kernel
from klineage.surface.cuda_source import Parameter, constants, parameters
from klineage.surface.expression import NotAnExpression, Tree, names_of, parse_expression
from klineage.surface.problem import Problem
from klineage.surface.tree import parse_kernel

_DIRECTIVE = re.compile(r"^\s*//\s*klineage:\s*(\S*)\s*(.*?)\s*$")
_KEYS = ("grid", "block", "shared", "args", "when", "cooperative")
_KEY = re.compile(rf"\b({'|'.join(_KEYS)})\s*=(?!=)")
_NAME = re.compile(r"[A-Za-z_]\w*")
ELEMENTS = ("fp64", "fp32", "fp16", "bf16", "int64", "int32", "int8", "uint8")


@dataclass(frozen=True)
class Launch:
    """One launch of a ``__global__`` function. ``arguments`` by position, then by parameter name."""

    kernel: str
    line: int
    grid: tuple[Tree, ...]
    block: tuple[Tree, ...]
    shared: Tree = 0
    when: Tree = 1
    cooperative: bool = False
    positional: tuple[Tree, ...] | None = None
    named: tuple[tuple[str, Tree], ...] = ()

    def arguments(self, parameters: tuple[Parameter, ...]) -> list[Tree]:
        """What each parameter gets; one that is not mentioned gets what has its name."""
        given = self.positional or ()
        named = dict(self.named)
        return [
            given[i] if i < len(given) else named.get(name, name) for i, (name, _, _) in enumerate(parameters)
        ]


@dataclass(frozen=True)
class Scratch:
    """A buffer between launches: its contents are undefined before the first."""

    name: str
    type: str
    shape: tuple[Tree, ...]
    line: int


@dataclass(frozen=True)
class Declared:
    """Everything that a file's comments declare. ``problems`` are the lines that could not be read."""

    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...]
    problems: tuple[Problem, ...]

    @property
    def launched(self) -> tuple[str, ...]:
        """The launched kernels, each once, in order of their first launch."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))

    def of(self, entry: str) -> tuple[Launch, ...]:
        """The launches that an entry such as ``split+join`` names."""
        wanted = entry.split("+")
        return tuple(launch for launch in self.launches if launch.kernel in wanted)


def declared(source: bytes) -> Declared:
    """Read the launch and scratch comments of a file."""
    launches: list[Launch] = []
    scratch: list[Scratch] = []
    problems: list[Problem] = []
    if b"klineage:" not in source:
        return Declared((), (), ())
    for number, line in enumerate(source.decode("utf-8", "replace").splitlines(), 1):
        found = _DIRECTIVE.match(line)
        if found is None:
            continue
        word, rest = found.groups()
        try:
            if word == "launch":
                launches.append(_launch(rest, number))
            elif word == "scratch":
                scratch.append(_scratch(rest, number))
            elif word != "flags":
                raise NotAnExpression(f"{word!r} is no klineage comment; known are launch, scratch and flags")
        except NotAnExpression as error:
            problems.append(Problem("launch", f"klineage {word}: {error}", number))
    return Declared(tuple(launches), tuple(scratch), tuple(problems))


def _launch(text: str, line: int) -> Launch:
    name = _NAME.match(text)
    if name is None:
        raise NotAnExpression("name the kernel first: // klineage: launch NAME grid=(...) block=(...)")
    values = _values(text[name.end() :])
    if "block" not in values or "grid" not in values:
        raise NotAnExpression(f"{name[0]} needs both grid=(...) and block=(...)")
    positional, named = _arguments(values["args"]) if "args" in values else (None, ())
    return Launch(
        name[0],
        line,
        grid=_extents(values["grid"], "grid"),
        block=_extents(values["block"], "block"),
        shared=parse_expression(values.get("shared", "0")),
        when=parse_expression(values.get("when", "1")),
        cooperative=values.get("cooperative", "false") in ("true", "1"),
        positional=positional,
        named=named,
    )


def _values(text: str) -> dict[str, str]:
    """``grid=(a, b) shared=0`` by key. A key inside brackets belongs to what is around it."""
    starts = [m for m in _KEY.finditer(text) if _depth(text[: m.start()]) == 0]
    if text[: starts[0].start() if starts else len(text)].strip():
        raise NotAnExpression(
            f"{text.strip()[:40]!r} is not understood; after the name come {', '.join(f'{k}=' for k in _KEYS)}"
        )
    values: dict[str, str] = {}
    ends = [m.start() for m in starts[1:]] + [len(text)] * bool(starts)
    for start, end in zip(starts, ends, strict=True):
        if start[1] in values:
            raise NotAnExpression(f"{start[1]}= stands there twice")
        values[start[1]] = text[start.end() : end].strip()
    return values


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")


def _items(text: str) -> list[str]:
    """``(a, f(b, c))`` as ``["a", "f(b, c)"]``; one item may stand without brackets."""
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") and _balanced(text[1:-1]) else text
    items, depth, begin = [], 0, 0
    for index, letter in enumerate(inner):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            items.append(inner[begin:index].strip())
            begin = index + 1
    return [item for item in (*items, inner[begin:].strip()) if item]


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def _extents(text: str, what: str) -> tuple[Tree, ...]:
    extents = tuple(map(parse_expression, _items(text)))
    if not 1 <= len(extents) <= 3:
        raise NotAnExpression(f"{what} has {len(extents)} extents; it takes one to three")
    return (*extents, *[1] * (3 - len(extents)))


def _arguments(text: str) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
    positional: list[Tree] = []
    named: list[tuple[str, Tree]] = []
    for item in _items(text):
        name = re.match(r"(\w+)\s*=(?!=)\s*(.*)", item)
        if name:
            named.append((name[1], parse_expression(name[2])))
        elif named:
            raise NotAnExpression(f"the argument {item!r} stands after named ones")
        else:
            positional.append(parse_expression(item))
    return tuple(positional), tuple(named)


def _scratch(text: str, line: int) -> Scratch:
    found = re.fullmatch(r"([A-Za-z_]\w*)\s+(\w+)\s+(\(.*\)|\S+)", text)
    if found is None:
        raise NotAnExpression("is written // klineage: scratch NAME TYPE (EXTENT, ...)")
    name, type_, shape = found.groups()
    if type_ not in ELEMENTS:
        raise NotAnExpression(f"{name} has the unknown type {type_}; known are {', '.join(ELEMENTS)}")
    return Scratch(name, type_, tuple(map(parse_expression, _items(shape))), line)


def launch_job(kernel: Kernel, flags: tuple[str, ...] = ()) -> dict[str, Any]:
    """The entry's launches as a worker gets them: plain JSON, nothing left to parse."""
    unit, found = parse_kernel(kernel), declared(kernel.source)
    signatures = {
        name: parameters(unit, f)
        for name in kernel.entry.split("+")
        if (f := unit.function(name)) is not None
    }
    chosen = found.of(kernel.entry)
    arguments = [launch.arguments(signatures.get(launch.kernel, ())) for launch in chosen]
    used = {name for listed in arguments for tree in listed for name in names_of(tree)}
    return {
        "launches": [
            {
                "kernel": launch.kernel,
                "line": launch.line,
                "grid": list(launch.grid),
                "block": list(launch.block),
                "shared": launch.shared,
                "when": launch.when,
                "cooperative": launch.cooperative,
                "parameters": [list(p) for p in signatures.get(launch.kernel, ())],
                "arguments": listed,
            }
            for launch, listed in zip(chosen, arguments, strict=True)
        ],
        "scratch": [[s.name, s.type, list(s.shape)] for s in found.scratch if s.name in used],
        "constants": constants(unit, (*kernel.flags, *flags)),
    }
