"""The text of a workload.py that is made from somebody else's problem."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.workload.constants import assigned
from klineage.workload.sizes import Dims, Sizes

_BEGIN = "# ---- the problem, as it was given: "
_END = "# ---- end of the problem ----"
#: What a workload.py defines itself. A problem must not use these names for something else.
OURS = {
    "ELEMENT", "SIZES", "HIDDEN", "OUTPUTS", "MUTATES", "SCALARS", "DISTRIBUTIONS", "AS_DRAWN", "OOB_READ", "ATOMICS",
    "tensors", "inputs", "reference", "cost", "tolerance", "compare", "unsupported",
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A Python file with a problem in it: how messages name it, its text with plain line ends, its syntax tree."""

    path: Path
    text: str
    tree: ast.Module = field(repr=False)

    def error(self, what: str, node: ast.AST | None = None) -> KlineageError:
        line = f":{node.lineno}" if node is not None and hasattr(node, "lineno") else ""
        return KlineageError(f"{self.path}{line}: {what}")

    def function(self, name: str) -> ast.FunctionDef | None:
        found = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
        return found[-1] if found else None

    @property
    def future(self) -> list[ast.ImportFrom]:
        """Its imports from ``__future__``, which must stand at the top of a file."""
        return [n for n in self.tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]

    @property
    def fenced(self) -> str:
        """The text between two lines that say what it is, without its imports from the future."""
        lines = self.text.split("\n")
        for node in self.future:
            lines[node.lineno - 1 : node.end_lineno] = [""] * (
                (node.end_lineno or node.lineno) - node.lineno + 1
            )
        body = "\n".join(lines).strip("\n")
        return f"{_BEGIN}{_plain(self.path.name)} ----\n{body}\n{_END}\n"

    def check_names(self, dims: Iterable[str], inputs: Iterable[str]) -> None:
        """Raise KlineageError when a name would mean two things in the workload."""
        top = {getattr(n, "name", "") for n in self.tree.body} | {n for n, _ in assigned(self.tree.body)}
        for name in sorted(top & OURS):
            raise self.error(f"defines {name}, which a workload.py needs for itself; rename it")
        for name in sorted(set(dims) & set(inputs)):
            raise self.error(f"{name} is both an input and a size; rename one")


def problem(source: bytes, path: Path) -> Problem:
    """Decode and parse. Raises KlineageError when the bytes are no Python file."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        with warnings.catch_warnings():  # of what the file should have written otherwise
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        raise KlineageError(f"{path}:{error.lineno or 1}: not valid Python: {error.msg}") from error
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        raise KlineageError(f"{path}: not a Python file ({error})") from error
    return Problem(path, text, tree)


def head(title: str, notes: Iterable[str], given: Problem) -> str:
    """The docstring, and what the foreign source needs at the top of a file."""
    text = "\n".join([_plain(title) or "A problem without a title", "", *(_plain(n) for n in notes)]).rstrip()
    features = dict.fromkeys(alias.name for node in given.future for alias in node.names)
    future = f"from __future__ import {', '.join(features)}\n\n" if features else ""
    return f'"""{text}\n"""\n\n{future}'


def _plain(text: str) -> str:
    """Text that can stand in a docstring or a comment, on one line."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.replace("\\", "/").replace('"', "'").split())


def constant(name: str, value: Any, comment: str = "") -> str:
    note = f"  # {comment}" if comment else ""
    return f"{name} = {shown(value)}{note}\n"


def shown(value: Any) -> str:
    """A constant as Python, texts in double quotes."""
    if isinstance(value, str):
        return repr(value) if "'" in value or '"' in value else f'"{repr(value)[1:-1]}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)


def sizes(named: Mapping[str, Dims], hidden: Dims | None) -> str:
    lines = "".join(f"    {shown(name)}: {shown(dims)},\n" for name, dims in named.items())
    return f"SIZES = {{\n{lines}}}\n" + (constant("HIDDEN", hidden) if hidden else "")


def first_line(docstring: str | None) -> str:
    lines = (docstring or "").strip().splitlines()
    return lines[0].strip() if lines else ""


def note_on_sizes(found: Sizes) -> tuple[str, ...]:
    """For the docstring: where the sizes come from."""
    if found.derived:
        return (
            "Only the size paper is the problem's own; the others are derived from it (docs/workloads.md).",
        )
    return ("Every size is the problem's own: it has no dimension that could be smaller.",)
