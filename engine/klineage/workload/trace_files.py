"""FlashInfer-Trace files: a definition (JSON) and its workloads (JSON lines), checked field by field."""

from __future__ import annotations

import ast
import json
import keyword
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.workload.safetensors import read_values
from klineage.workload.writing import OURS, Problem, problem

_TYPES = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64",
    "int64": "int64", "int32": "int32", "int8": "int8", "uint8": "uint8", "bool": "uint8",
}  # fmt: skip
_RESERVED = OURS | {"element", "rng", "xp", "itemsize", "data", "answer", "run", "torch", "math", "DATA"}
_LARGEST = 1 << 40
_MOST_BYTES = 4 << 20


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


@dataclass(frozen=True)
class Record:
    """One workload of a definition. axes: all of them. data: inputs that come with values, as nested lists."""

    path: Path
    line: int
    axes: dict[str, int]
    scalars: dict[str, float]
    data: dict[str, Any]

    def error(self, what: str) -> KlineageError:
        return KlineageError(f"{self.path}:{self.line}: {what}")


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
                raise KlineageError(
                    f"{self.path}: {self._name(key)}: {key!r} cannot be a kernel's parameter; rename it"
                )


def find(source: bytes, path: Path) -> tuple[Definition, list[Record]]:
    """A definition and its workloads, from either file. Raises KlineageError naming file and field."""
    if path.suffix.lower() == ".jsonl":
        first = next(_lines(source, path), None)
        if first is None:
            raise KlineageError(f"{path}: has no workload in it")
        name = Fields(first[1], "", f"{path}:{first[0]}").get("definition", str, "the name of a definition")
        other = _beside(path, "workloads", "definitions", Path(name).name, ".json")
        definition = _definition(_read(other), other)
        return definition, _records(source, path, definition)
    definition = _definition(source, path)
    other = _beside(path, "definitions", "workloads", definition.name, ".jsonl")
    return definition, _records(_read(other), other, definition)


def _beside(path: Path, here: str, there: str, name: str, suffix: str) -> Path:
    """The other half: in the folder ``there`` beside the folder ``here``, or beside the file itself."""
    root = _root(path, here)
    looked = [path.with_name(f"{name}{suffix}")]
    if root is not None:
        inside = path.resolve().relative_to(root / here).parent
        looked = [root / there / inside / f"{name}{suffix}", root / there / f"{name}{suffix}", *looked]
    for candidate in looked:
        if candidate.is_file():
            return candidate
    wanted = "no workloads, so its variable axes have no values" if suffix == ".jsonl" else "no definition"
    raise KlineageError(f"{path}: {wanted}; looked for {', '.join(map(str, looked))}")


def _root(path: Path, folder: str) -> Path | None:
    """The data set's folder: the one that holds ``folder``, which holds the file."""
    return next((p.parent for p in path.resolve().parents if p.name == folder), None)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise KlineageError(f"{path} has more than {_MOST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise KlineageError(f"{path} cannot be read: {os.strerror(error.errno or 0)}") from error


def _json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if where.count(":") == 0 else ""
        raise KlineageError(f"{where}{line}: not valid JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise KlineageError(f"{where}: not a JSON file ({type(error).__name__})") from error


def _lines(source: bytes, path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(source.splitlines(), 1):
        if line.strip():
            yield number, _json(line, f"{path}:{number}")


def _definition(source: bytes, path: Path) -> Definition:
    top = Fields(_json(source, str(path)), "", str(path))
    if "workload" in top.value and "reference" not in top.value:
        raise KlineageError(f"{path}: is a trace, not a definition; name the file of its definition")
    name = top.get("name", str, "a text")
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
    return _extent(entry.get("value", int, "a positive whole number"), f"{entry.where}.value", entry.path)


def _extent(value: Any, where: str, path: str) -> int:
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


def _records(source: bytes, path: Path, definition: Definition) -> list[Record]:
    found = [_record(value, path, number, definition) for number, value in _lines(source, path)]
    if not found:
        raise KlineageError(f"{path}: has no workload in it")
    return found


def _record(value: Any, path: Path, line: int, definition: Definition) -> Record:
    where = f"{path}:{line}"
    top = Fields(value, "", where)
    named = top.value.get("definition", definition.name)
    if named != definition.name:
        raise KlineageError(f"{where}: definition is {named!r}, not {definition.name!r}")
    workload = top.inner("workload") if "workload" in top.value else top
    axes, inputs = workload.inner("axes"), workload.inner("inputs")
    values = {
        name: _extent(axes.get(name, int, "a positive whole number"), f"{axes.where}.{name}", where)
        if value is None
        else value
        for name, value in definition.axes.items()
    }
    scalars: dict[str, float] = {}
    data: dict[str, Any] = {}
    for name, tensor in definition.inputs.items():
        entry = inputs.inner(name)
        kind = entry.get("type", str, "random, scalar or safetensors")
        if kind == "scalar" and not tensor.buffer:
            scalars[name] = entry.get("value", (int, float), "a number")
        elif kind == "safetensors" and tensor.buffer:
            data[name] = _values(entry, path, [values[a] for a in tensor.shape])
        elif kind != "random" or not tensor.buffer:
            raise KlineageError(
                f"{where}: {entry.where}.type is {kind!r}, which cannot give {name} its value"
            )
    return Record(path, line, values, scalars, data)


def _values(entry: Fields, path: Path, shape: list[int]) -> Any:
    file = Path(entry.get("path", str, "a path"))
    key = entry.get("tensor_key", str, "a text")
    root = _root(path, "workloads") or path.parent
    try:
        return read_values(root / file, key, shape)
    except KlineageError as error:
        raise KlineageError(f"{entry.path}: {entry.where}: {error}") from error
