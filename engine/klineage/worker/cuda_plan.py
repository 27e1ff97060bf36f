"""What a CUDA entry launches for given dimensions: the declared expressions, evaluated and checked.

A request carries launches as data (see the surface's ``launch_job``): trees are numbers, names, or
``[operator, operand, ...]``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from klineage.worker import cuda_tensor_map
from klineage.worker.cuda_tensor_map import TensorMap
from klineage.worker.faults import KernelFault

Tensors = dict[str, tuple[str, tuple[int, ...]]]

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "cdiv": lambda a, b: -(-a // b),
}  # fmt: skip
_LARGEST = 1 << 62
_INTEGERS = {  # bytes, signed
    "char": (1, True), "signed char": (1, True), "unsigned char": (1, False), "bool": (1, False),
    "short": (2, True), "unsigned short": (2, False), "int": (4, True), "unsigned": (4, False), "unsigned int": (4, False),
    "signed": (4, True), "signed int": (4, True),
    "long": (8, True), "long int": (8, True), "long long": (8, True), "long long int": (8, True),
    "unsigned long": (8, False), "unsigned long int": (8, False), "unsigned long long": (8, False),
    "unsigned long long int": (8, False), "size_t": (8, False), "ptrdiff_t": (8, True),
    **{f"int{8 * n}_t": (n, True) for n in (1, 2, 4, 8)}, **{f"uint{8 * n}_t": (n, False) for n in (1, 2, 4, 8)},
}  # fmt: skip
_REALS = {"float": 4, "double": 8}
# Only what is certainly another number format is refused: a buffer may be read as vectors or as raw words.
_FORMATS = {
    "double": "fp64", "float": "fp32", "half": "fp16", "__half": "fp16", "half2": "fp16", "__half2": "fp16",
    "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "__nv_bfloat162": "bf16", "nv_bfloat162": "bf16",
}  # fmt: skip
_GRID = (2**31 - 1, 65535, 65535)
_BLOCK = (1024, 1024, 64)


@dataclass(frozen=True)
class Argument:
    """One kernel argument: the address of a buffer, a map of it, or a number.

    ``kind`` is "pointer", "tensor_map", "float" or "integer".
    """

    kind: str
    size: int
    value: str | int | float | TensorMap
    signed: bool = True


@dataclass(frozen=True)
class Step:
    """One launch, ready but for the addresses."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cooperative: bool
    arguments: tuple[Argument, ...]

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def programs(self) -> int:
        return math.prod(self.grid)


def evaluate(tree: Any, values: Mapping[str, Any]) -> Any:
    """The number that a tree stands for. Raises KernelFault("launch") for what has none."""
    if isinstance(tree, (int, float)):
        return tree
    if isinstance(tree, str):
        if tree not in values:
            raise KernelFault("launch", f"{tree} has no value in a launch")
        return values[tree]
    name, operands = tree[0], tree[1:]
    if name == "if":
        return evaluate(operands[1 if evaluate(operands[0], values) else 2], values)
    if name in ("and", "or"):
        results = (bool(evaluate(o, values)) for o in operands)
        return int(all(results) if name == "and" else any(results))
    numbers = [evaluate(o, values) for o in operands]
    result = _apply(name, numbers)
    if not math.isfinite(result) or abs(result) > _LARGEST:
        raise KernelFault("launch", f"a launch computes {name} of {numbers}, which is too large")
    return int(result) if isinstance(result, bool) else result


def _apply(name: str, numbers: list[Any]) -> Any:
    if name in ("min", "max"):
        return (min if name == "min" else max)(numbers)
    if name in ("//", "%", "cdiv") and numbers[1] == 0:
        raise KernelFault("launch", f"a launch divides {numbers[0]} by zero")
    if name in ("<<", ">>"):
        if not all(isinstance(n, int) for n in numbers) or not 0 <= numbers[1] <= 62:
            raise KernelFault("launch", f"a launch shifts {numbers[0]} by {numbers[1]}")
        return numbers[0] << numbers[1] if name == "<<" else numbers[0] >> numbers[1]
    return _OPERATORS[name](*numbers)


class _Constants(dict[str, Any]):
    """Dimensions and scalars, and the file's constants, each computed when it is asked for."""

    def __init__(self, known: Mapping[str, Any], trees: Mapping[str, Any]) -> None:
        super().__init__({name: tree for name, tree in trees.items() if isinstance(tree, (int, float))})
        self.update(known)
        self.trees, self.pending = trees, set[str]()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (name in self.trees and name not in self.pending)

    def __missing__(self, name: str) -> Any:
        self.pending.add(name)  # one that is defined by itself has no value
        self[name] = evaluate(self.trees[name], self)
        self.pending.discard(name)
        return self[name]


def scratch(kernel: dict[str, Any], dims: Mapping[str, int]) -> Tensors:
    """The scratch buffers of an entry: name to (type, shape)."""
    values = _Constants(dims, kernel["constants"])
    found: Tensors = {}
    for name, type_, shape in kernel["scratch"]:
        extents = tuple(_whole(evaluate(tree, values), f"an extent of {name}") for tree in shape)
        if any(extent < 1 for extent in extents):
            raise KernelFault(
                "launch", f"scratch {name} has the shape {extents}; every extent must be positive"
            )
        found[name] = (type_, extents)
    return found


def plan(
    kernel: dict[str, Any], tensors: Tensors, dims: Mapping[str, int], scalars: Mapping[str, float]
) -> list[Step]:
    """Every launch of the entry at these dimensions, in order; none where every ``when=`` is false.

    Raises KernelFault("launch") for sizes that no device takes, ("signature") for arguments that do not fit.
    """
    values = _Constants({**scalars, **dims}, kernel["constants"])
    buffers = {**tensors, **scratch(kernel, dims)}
    maps = {declared["name"]: declared for declared in kernel["tensor_maps"]}
    steps = []
    for launch in kernel["launches"]:
        if evaluate(launch["when"], values):
            with_place = f"{kernel['filename']}:{launch['line']}: {launch['kernel']}"
            steps.append(_step(launch, buffers, maps, values, with_place))
    return steps


def _step(
    launch: dict[str, Any],
    buffers: Tensors,
    maps: Mapping[str, dict[str, Any]],
    values: Mapping[str, Any],
    place: str,
) -> Step:
    grid = tuple(_whole(evaluate(tree, values), f"{place}: grid") for tree in launch["grid"])
    block = tuple(_whole(evaluate(tree, values), f"{place}: block") for tree in launch["block"])
    shared = _whole(evaluate(launch["shared"], values), f"{place}: shared")
    for what, extents, most in (("grid", grid, _GRID), ("block", block, _BLOCK)):
        if any(not 1 <= extent <= limit for extent, limit in zip(extents, most)):  # noqa: B905 - Python 3.9
            raise KernelFault("launch", f"{place}: {what} {extents} is not between 1 and {most}")
    if math.prod(block) > 1024:
        raise KernelFault(
            "threads", f"{place}: {math.prod(block)} threads a block; at most 1024 can be launched"
        )
    if shared < 0:
        raise KernelFault("launch", f"{place}: shared={shared} is negative")
    arguments = tuple(
        _mapped(tree, parameter, maps, buffers, values, place)
        if parameter[1] == "CUtensorMap"
        else _argument(tree, parameter, buffers, values, place)
        for tree, parameter in zip(launch["arguments"], launch["parameters"])  # noqa: B905 - Python 3.9
    )
    return Step(launch["kernel"], grid, block, shared, bool(launch["cooperative"]), arguments)  # type: ignore[arg-type]


def _mapped(
    tree: Any,
    parameter: list[Any],
    maps: Mapping[str, dict[str, Any]],
    buffers: Tensors,
    values: Mapping[str, Any],
    place: str,
) -> Argument:
    declared = maps.get(tree) if isinstance(tree, str) else None
    if declared is None or declared["buffer"] not in buffers:
        raise KernelFault(
            "signature", f"{place}: parameter {parameter[0]} is a CUtensorMap, and {tree} is none"
        )

    def whole(extent: Any, what: str) -> int:
        return _whole(evaluate(extent, values), what)

    type_, shape = buffers[declared["buffer"]]
    found = cuda_tensor_map.planned(declared, type_, shape, whole, f"{place}: {declared['name']}")
    return Argument("tensor_map", cuda_tensor_map.BYTES, found)


def _argument(
    tree: Any, parameter: list[Any], buffers: Tensors, values: Mapping[str, Any], place: str
) -> Argument:
    name, type_, _ = parameter
    base = type_.rstrip("* ").strip()
    if type_.endswith("*"):
        if not isinstance(tree, str) or tree not in buffers:
            raise KernelFault("signature", f"{place}: parameter {name} is a pointer, and {tree} is no buffer")
        element = buffers[tree][0]
        if _FORMATS.get(base, element) != element:
            raise KernelFault("signature", f"{place}: parameter {name} is {type_}, but {tree} is {element}")
        return Argument("pointer", 8, tree)
    value = evaluate(tree, values)
    if base in _REALS:
        return Argument("float", _REALS[base], float(value))
    if base not in _INTEGERS:
        raise KernelFault("signature", f"{place}: parameter {name} is {type_}, which cannot be passed")
    size, signed = _INTEGERS[base]
    number = _whole(value, f"{place}: {name}")
    low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)
    if not low <= number <= high:
        raise KernelFault("signature", f"{place}: {name}={number} does not fit {type_}")
    return Argument("integer", size, number, signed)


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int):
        raise KernelFault("launch", f"{what} is {value}, not a whole number")
    return value
