"""The declared launches of a CUDA file: comments that say what a host program would do, as data.

    // klineage: scratch partial fp32 (m, 8)
    // klineage: tensor_map x_map x box=(TILE, 64) swizzle=128
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
from klineage.surface.cuda_comment import extents, keyed, listed
from klineage.surface.cuda_source import Parameter, constants, parameters
from klineage.surface.expression import NotAnExpression, Tree, names_of, parse_expression
from klineage.surface.problem import Problem
from klineage.surface.tree import parse_kernel

_DIRECTIVE = re.compile(r"^\s*//\s*klineage:\s*(\S*)\s*(.*?)\s*$")
_KEYS = ("grid", "block", "shared", "args", "when", "cooperative")
_MAP_KEYS = ("shape", "box", "swizzle")
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
class TensorMap:
    """What the copy engine (TMA) is told of a buffer; a ``CUtensorMap`` parameter of this name gets it.

    ``shape`` (empty: the buffer's own) and ``box``, which is what one copy brings, are in elements, the fastest extent
    last, as shapes are in a workload. ``swizzle`` is 0, 32, 64 or 128 bytes. What lies outside the shape reads as zero.
    """

    name: str
    buffer: str
    shape: tuple[Tree, ...]
    box: tuple[Tree, ...]
    swizzle: Tree
    line: int


@dataclass(frozen=True)
class Declared:
    """Everything that a file's comments declare. ``problems`` are the lines that could not be read."""

    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...]
    tensor_maps: tuple[TensorMap, ...]
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
    """Read the launch, scratch and tensor_map comments of a file."""
    launches: list[Launch] = []
    scratch: list[Scratch] = []
    maps: list[TensorMap] = []
    problems: list[Problem] = []
    if b"klineage:" not in source:
        return Declared((), (), (), ())
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
            elif word == "tensor_map":
                maps.append(_tensor_map(rest, number))
            elif word != "flags":
                raise NotAnExpression(
                    f"{word!r} is no klineage comment; known are launch, scratch, tensor_map and flags"
                )
        except NotAnExpression as error:
            problems.append(Problem("launch", f"klineage {word}: {error}", number))
    return Declared(tuple(launches), tuple(scratch), tuple(maps), tuple(problems))


def _launch(text: str, line: int) -> Launch:
    name = _NAME.match(text)
    if name is None:
        raise NotAnExpression("name the kernel first: // klineage: launch NAME grid=(...) block=(...)")
    values = keyed(text[name.end() :], _KEYS)
    if "block" not in values or "grid" not in values:
        raise NotAnExpression(f"{name[0]} needs both grid=(...) and block=(...)")
    positional, named = _arguments(values["args"]) if "args" in values else (None, ())
    return Launch(
        name[0],
        line,
        grid=extents(values["grid"], "grid"),
        block=extents(values["block"], "block"),
        shared=parse_expression(values.get("shared", "0")),
        when=parse_expression(values.get("when", "1")),
        cooperative=values.get("cooperative", "false") in ("true", "1"),
        positional=positional,
        named=named,
    )


def _arguments(text: str) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
    positional: list[Tree] = []
    named: list[tuple[str, Tree]] = []
    for item in listed(text):
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
    return Scratch(name, type_, tuple(map(parse_expression, listed(shape))), line)


def _tensor_map(text: str, line: int) -> TensorMap:
    names = re.match(r"([A-Za-z_]\w*)\s+([A-Za-z_]\w*)(?!\s*=)\b", text)
    if names is None:
        raise NotAnExpression("is written // klineage: tensor_map NAME BUFFER box=(EXTENT, ...) swizzle=128")
    values = keyed(text[names.end() :], _MAP_KEYS)
    if "box" not in values:
        raise NotAnExpression(f"{names[1]} needs box=(EXTENT, ...), what one copy brings")
    shape, box = (tuple(map(parse_expression, listed(values.get(key, "")))) for key in ("shape", "box"))
    return TensorMap(names[1], names[2], shape, box, parse_expression(values.get("swizzle", "0")), line)


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
    maps = [m for m in found.tensor_maps if m.name in used]
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
        "scratch": [
            [s.name, s.type, list(s.shape)]
            for s in found.scratch
            if s.name in used | {m.buffer for m in maps}
        ],
        "tensor_maps": [
            {
                "name": m.name,
                "buffer": m.buffer,
                "shape": list(m.shape),
                "box": list(m.box),
                "swizzle": m.swizzle,
                "line": m.line,
            }
            for m in maps
        ],
        "constants": constants(unit, (*kernel.flags, *flags)),
    }
