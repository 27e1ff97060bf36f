"""The workloads of a FlashInfer-Trace definition (JSON lines), and where they and the definition lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.workload.safetensors import read_values
from klineage.workload.trace_definition import Definition, Fields, extent, parsed
from klineage.workload.trace_definition import definition as read_definition

_MOST_BYTES = 4 << 20


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


def find(source: bytes, path: Path) -> tuple[Definition, list[Record]]:
    """A definition and its workloads, from either file. Raises KlineageError naming file and field."""
    if path.suffix.lower() == ".jsonl":
        first = next(_lines(source, path), None)
        if first is None:
            raise KlineageError(f"{path}: has no workload in it")
        name = Fields(first[1], "", f"{path}:{first[0]}").get("definition", str, "the name of a definition")
        other = _beside(path, "workloads", "definitions", Path(name).name, ".json")
        definition = read_definition(_read(other), other)
        return definition, _records(source, path, definition)
    definition = read_definition(source, path)
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


def _lines(source: bytes, path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(source.splitlines(), 1):
        if line.strip():
            yield number, parsed(line, f"{path}:{number}")


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
        name: extent(axes.get(name, int, "a positive whole number"), f"{axes.where}.{name}", where)
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
