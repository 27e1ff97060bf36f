"""A FlashInfer-Trace definition (JSON), checked field by field."""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.workload.writing import OURS, Problem, problem

_TYPES = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64",
    "int64": "int64", "int32": "int32", "int8": "int8", "uint8": "uint8", "bool": "uint8",
}  # fmt: skip
_RESERVED = OURS | {"element", "rng", "xp", "itemsize", "data", "answer", "run", "torch", "math", "DATA"}
_LARGEST = 1 << 40


@dataclass(frozen=True)
class Tensor:
    """One input or output. type: as a workload names it. shape: names of axes. buffer: False for a plain number."""

    type: str
    shape: tuple[str, ...]
    buffer: bool = True
    boolean: bool = False


@dataclass(frozen=True)
class Definition:
    """What is computed. axes: every axis, with its value when it is constant, else None."""

    path: Path
    name: str
    description: str
    axes: dict[str, int | None]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    constraints: tuple[str, ...]
    code: Problem = field(repr=False)

    @property
    def variable(self) -> tuple[str, ...]:
        return tuple(name for name, value in self.axes.items() if value is None)

    @property
    def buffers(self) -> dict[str, Tensor]:
        """The inputs that are tensors."""
        return {name: tensor for name, tensor in self.inputs.items() if tensor.buffer}


class Fields:
    """One JSON object, read field by field; what is wrong is said with the name of the field."""

    def __init__(self, value: Any, where: str, path: str) -> None:
        self.where, self.path = where, path
        if not isinstance(value, dict):
            raise self.error("must be an object")
        self.value: dict[str, Any] = value

    def error(self, what: str) -> KlineageError:
        return KlineageError(f"{self.path}: {self.where or 'the file'} {what}")

    def _name(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def get(self, key: str, kind: type | tuple[type, ...], what: str) -> Any:
        if key not in self.value:
            raise KlineageError(f"{self.path}: {self._name(key)} is missing")
        found = self.value[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
            raise KlineageError(f"{self.path}: {self._name(key)} must be {what}")
        return found

    def inner(self, key: str) -> Fields:
        return Fields(self.get(key, dict, "an object"), self._name(key), self.path)

    def each(self) -> Iterator[tuple[str, Fields]]:
        for key, value in self.value.items():
            yield key, Fields(value, self._name(key), self.path)

    def names(self) -> None:
        """Raise when a key cannot be the name of a parameter of a kernel."""
        for key in self.value:
            if not key.isidentifier() or keyword.iskeyword(key) or key in _RESERVED:
                raise self.error(f"has {key!r}, which cannot be a kernel's parameter; rename it")


def parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if where.count(":") == 0 else ""
        raise KlineageError(f"{where}{line}: not valid JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise KlineageError(f"{where}: not a JSON file ({type(error).__name__})") from error


def definition(source: bytes, path: Path) -> Definition:
    top = Fields(parsed(source, str(path)), "", str(path))
    if "workload" in top.value and "reference" not in top.value:
        raise KlineageError(f"{path}: is a trace, not a definition; name the file of its definition")
    name = top.get("name", str, "a text")
    if not name.strip(" .") or not name.isprintable() or "/" in name:
        raise top.error(f"has the name {name!r}, which no file can have")
    axes = top.inner("axes")
    axes.names()
    known = {key: _axis(entry) for key, entry in axes.each()}
    inputs, outputs = (_tensors(top.inner(key), known) for key in ("inputs", "outputs"))
    for both in sorted(set(inputs) & set(outputs) | (set(inputs) | set(outputs)) & set(known)):
        raise KlineageError(f"{path}: {both} names two things among axes, inputs and outputs; rename one")
    if not outputs:
        raise KlineageError(f"{path}: outputs names no tensor")
    if not known:
        raise KlineageError(f"{path}: axes names no axis")
    constraints = top.value.get("constraints") or []
    code = _code(top, inputs)
    return Definition(
        path,
        name,
        str(top.value.get("description") or ""),
        known,
        inputs,
        outputs,
        _constraints(top, constraints),
        code,
    )


def _axis(entry: Fields) -> int | None:
    kind = entry.get("type", str, "const or var")
    if kind == "var":
        return None
    if kind != "const":
        raise KlineageError(f"{entry.path}: {entry.where}.type is {kind!r}, not const or var")
    return extent(entry.get("value", int, "a positive whole number"), f"{entry.where}.value", entry.path)


def extent(value: Any, where: str, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < _LARGEST:
        raise KlineageError(f"{path}: {where} is {value!r}, not a positive whole number")
    return value


def _tensors(entries: Fields, axes: dict[str, int | None]) -> dict[str, Tensor]:
    entries.names()
    found = {}
    for name, entry in entries.each():
        dtype = entry.get("dtype", str, "a text")
        if dtype not in _TYPES:
            raise KlineageError(
                f"{entry.path}: {entry.where}.dtype is {dtype!r}; a buffer can be {', '.join(_TYPES)}"
            )
        shape = entry.get("shape", (list, type(None)), "a list of axes, or null")
        for axis in shape or ():
            if axis not in axes:
                raise KlineageError(f"{entry.path}: {entry.where}.shape names {axis!r}, which is no axis")
        number = shape is None and entries.where == "inputs"
        found[name] = Tensor(_TYPES[dtype], tuple(shape or ()), not number, dtype == "bool")
    return found


def _constraints(top: Fields, found: Any) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise KlineageError(f"{top.path}: constraints must be a list of texts")
    for number, text in enumerate(found):
        try:
            ast.parse(text, mode="eval")
        except (SyntaxError, TypeError, ValueError) as error:
            raise KlineageError(
                f"{top.path}: constraints[{number}] is not a Python expression: {text!r}"
            ) from error
    return tuple(" ".join(text.split()) for text in found)


def _code(top: Fields, inputs: dict[str, Tensor]) -> Problem:
    text = top.get("reference", str, "a Python program")
    code = problem(text.encode("utf-8", "replace"), Path(f"{top.path}: reference"))
    run = code.function("run")
    if run is None:
        raise KlineageError(f"{top.path}: reference has no function run()")
    names = [a.arg for a in (*run.args.posonlyargs, *run.args.args)]
    if not run.args.vararg and not len(names) - len(run.args.defaults) <= len(inputs) <= len(names):
        raise KlineageError(
            f"{top.path}: reference: run() takes {', '.join(names)}; inputs are {', '.join(inputs)}"
        )
    code.check_names((), ())
    return code
