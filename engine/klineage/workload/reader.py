"""Read a workload.py by its syntax tree: constants and which functions there are. Nothing is executed."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.resources import shipped

WORKLOAD_FILE = "workload.py"
TYPES = ("fp64", "fp32", "fp16", "bf16", "int64", "int32", "int8", "uint8")
DISTRIBUTIONS = ("normal", "ties", "large", "offset", "tiny")
_NEEDED_SIZES = ("small", "ragged")
_NEEDED_FUNCTIONS = ("tensors", "inputs", "reference", "cost")
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Workload:
    """What must be computed, as its file declares it.

    element: surface to element type. sizes: name to dimensions (name to extent). hidden: the size that
    no proposer sees. ``path`` is how messages name the file. distributions: those of the inputs.
    """

    name: str
    path: Path
    source: bytes = field(repr=False)
    title: str
    element: dict[str, str]
    sizes: dict[str, dict[str, int]]
    hidden: dict[str, int] | None
    outputs: tuple[str, ...]
    mutates: tuple[str, ...] = ()
    scalars: dict[str, float] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)  # bytes that buffers begin behind a page's boundary
    distributions: tuple[str, ...] = DISTRIBUTIONS

    @cached_property
    def hash(self) -> str:
        """64 hex digits over the source bytes."""
        return hashlib.sha256(self.source).hexdigest()

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self.sizes["small"])


def load(where: str | Path) -> Workload:
    """A workload by the name of a shipped one, or by the path of its folder or file.

    A KernelBench problem, a FlashInfer-Trace file or a problem file of KLineage's authors is turned into one.

    Raises KlineageError, naming the file, when there is none or it is not in the format.
    """
    path = _find(where)
    try:
        if path.stat().st_size > _LARGEST:
            raise KlineageError(f"{path} has more than {_LARGEST:,} bytes; a workload is a short Python file")
        source = path.read_bytes()
    except OSError as error:
        raise KlineageError(f"{path} cannot be read: {error.strerror}") from error
    if path.name != WORKLOAD_FILE:  # a problem in another project's format, perhaps
        from klineage.workload.foreign import converted

        found = converted(source, path)
        if found is not None:
            return parse(found.source, name=found.name, path=path)
    return parse(source, name=path.resolve().parent.name, path=path)


def _find(where: str | Path) -> Path:
    path = Path(where)
    if path.is_dir():
        path = path / WORKLOAD_FILE
        if path.is_file():
            return path
        raise KlineageError(f"{path.parent} has no {WORKLOAD_FILE}; docs/workloads.md says what to put there")
    if path.is_file():
        return path
    bare = isinstance(where, str) and path.name == where
    if bare and (shipped("experts") / where / WORKLOAD_FILE).is_file():
        return shipped("experts") / where / WORKLOAD_FILE
    names = ", ".join(sorted(p.parent.name for p in shipped("experts").glob(f"*/{WORKLOAD_FILE}")))
    raise KlineageError(
        f"no workload {str(where)!r}; give the path of a {WORKLOAD_FILE}, or a shipped one: {names}"
    )


def parse(source: bytes, *, name: str, path: Path) -> Workload:
    """Read the bytes of a workload file. Raises KlineageError with ``path`` and what is wrong."""
    try:
        tree = ast.parse(source, filename=str(path))
    except SyntaxError as error:
        raise KlineageError(f"{path}:{error.lineno or 1}: not valid Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise KlineageError(f"{path}: not a Python file ({error})") from error
    reader = _Reader(path, tree)
    for function in _NEEDED_FUNCTIONS:
        reader.function(function)
    title = (ast.get_docstring(tree) or "").strip().splitlines()
    if not title:
        raise KlineageError(
            f"{path}: has no docstring; begin the file with one line that says what is computed"
        )
    sizes = reader.sizes()
    reader.check_allowances()
    return Workload(
        name=name,
        path=path,
        source=source,
        title=title[0].strip(),
        element=reader.elements(),
        sizes=sizes,
        hidden=reader.hidden(tuple(sizes["small"])),
        outputs=reader.names("OUTPUTS", needed=True),
        mutates=reader.names("MUTATES", needed=False),
        scalars=reader.scalars(),
        distributions=reader.distributions(),
        offsets=reader.offsets(),
    )


class _Reader:
    """The top level of one file."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self._functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self._values: dict[str, ast.expr] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign):
                self._values.update({t.id: node.value for t in node.targets if isinstance(t, ast.Name)})
            elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
                self._values[node.target.id] = node.value

    def error(self, what: str) -> KlineageError:
        return KlineageError(f"{self.path}: {what}; docs/workloads.md has the format")

    def function(self, name: str) -> ast.FunctionDef:
        if name not in self._functions:
            raise self.error(f"has no function {name}()")
        return self._functions[name]

    def value(self, name: str) -> Any:
        if name not in self._values:
            return None
        try:
            return ast.literal_eval(self._values[name])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise self.error(
                f"{name} must be written out as constants (1048576, not 1 << 20): it is read without running the file"
            ) from None

    def elements(self) -> dict[str, str]:
        found = self.value("ELEMENT")
        if not isinstance(found, dict) or not found:
            raise self.error('has no ELEMENT, such as {"triton": "bf16", "c": "fp32"}')
        for surface, type_ in found.items():
            if type_ not in TYPES:
                raise self.error(
                    f"ELEMENT gives {surface} the unknown type {type_!r} (one of {', '.join(TYPES)})"
                )
        return {str(surface): str(type_) for surface, type_ in found.items()}

    def _dims(self, what: str, found: Any) -> dict[str, int]:
        if not isinstance(found, dict) or not found:
            raise self.error(f"{what} must map dimension names to integers")
        for name, extent in found.items():
            whole = isinstance(extent, int) and not isinstance(extent, bool)
            if not isinstance(name, str) or not name.isidentifier() or not whole or extent < 1:
                raise self.error(
                    f"{what} has {name!r}: {extent!r}; a dimension is a name and a positive integer"
                )
        return dict(found)

    def sizes(self) -> dict[str, dict[str, int]]:
        found = self.value("SIZES")
        if not isinstance(found, dict):
            raise self.error("has no SIZES, a dict of named sizes")
        for name in _NEEDED_SIZES:
            if name not in found:
                raise self.error(f"SIZES has no {name!r}, which every gate checks")
        sizes = {str(name): self._dims(f"size {name!r}", dims) for name, dims in found.items()}
        for name, dims in sizes.items():
            if set(dims) != set(sizes["small"]):
                raise self.error(f"size {name!r} has other dimensions than 'small'")
        return sizes

    def hidden(self, dims: tuple[str, ...]) -> dict[str, int] | None:
        found = self.value("HIDDEN")
        if found is None:
            return None
        hidden = self._dims("HIDDEN", found)
        if set(hidden) != set(dims):
            raise self.error("HIDDEN has other dimensions than the size 'small'")
        return hidden

    def names(self, constant: str, *, needed: bool) -> tuple[str, ...]:
        found = self.value(constant)
        if found is None and not needed:
            return ()
        if (
            not isinstance(found, (tuple, list))
            or (needed and not found)
            or not all(isinstance(n, str) for n in found)
        ):
            raise self.error(f'{constant} must be a tuple of buffer names, such as ("y",)')
        return tuple(found)

    def distributions(self) -> tuple[str, ...]:
        found = self.names("DISTRIBUTIONS", needed=False)
        unknown = [name for name in found if name not in DISTRIBUTIONS]
        if unknown:
            raise self.error(
                f"DISTRIBUTIONS names {', '.join(unknown)}; there are {', '.join(DISTRIBUTIONS)}"
            )
        return found or DISTRIBUTIONS

    def check_allowances(self) -> None:
        """AS_DRAWN, OOB_READ and ATOMICS are used by workers only; their form is checked here."""
        self.names("AS_DRAWN", needed=False)
        for constant, kind, wanted in (("OOB_READ", int, "a number of bytes"), ("ATOMICS", bool, "True")):
            value = self.value(constant)
            if value is not None and (type(value) is not kind or value < 0):
                raise self.error(f"{constant} must be {wanted}")

    def offsets(self) -> dict[str, int]:
        found = self.value("OFFSETS")
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(type(v) is int and 0 <= v < 4096 for v in found.values()):
            raise self.error("OFFSETS must map buffers to numbers of bytes, each below 4096")
        return {str(name): value for name, value in found.items()}

    def scalars(self) -> dict[str, float]:
        found = self.value("SCALARS")
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(
            isinstance(v, (int, float)) and not isinstance(v, bool) for v in found.values()
        ):
            raise self.error("SCALARS must map names to numbers")
        return {str(name): value for name, value in found.items()}
