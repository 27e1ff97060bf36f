"""The worker as one file: complete, the same wherever it is made, and written for Python 3.9."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import klineage
import pytest
from klineage.executor import LocalExecutor
from klineage.executor.bundle import WORKER, _modules, program, program_hash, worker_source
from klineage.gate.batch import _PARTS

MODULES = sorted(_modules(_PARTS))
NEWER = {  # names that Python 3.9 does not have
    "tomllib": {"*"}, "enum": {"StrEnum"}, "datetime": {"UTC"}, "itertools": {"pairwise", "batched"},
    "typing": {"Self", "override", "assert_never", "TypeAlias", "ParamSpec", "Concatenate", "TypeGuard", "Never"},
    "contextlib": {"chdir", "aclosing"}, "types": {"NoneType", "UnionType", "EllipsisType"}, "dataclasses": {"KW_ONLY"},
}  # fmt: skip
TYPES = {"int", "str", "float", "bool", "bytes", "dict", "list", "tuple", "set", "Path", "Any", "Callable"}


def _annotations(tree: ast.AST) -> set[ast.AST]:
    """Every node inside an annotation: none of them is evaluated."""
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            everything = [
                *node.args.posonlyargs,
                *node.args.args,
                *node.args.kwonlyargs,
                node.args.vararg,
                node.args.kwarg,
            ]
            roots += [node.returns, *(a.annotation for a in everything if a is not None)]
    return {inner for root in roots if root is not None for inner in ast.walk(root)}


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    return isinstance(node, ast.Name) and node.id in TYPES


def newer(source: str) -> Iterator[str]:
    """What in a module needs more than Python 3.9, as far as its text shows."""
    tree = ast.parse(source, feature_version=(3, 9))
    quiet = _annotations(tree)
    if quiet and "from __future__ import annotations" not in source:
        yield "annotations are evaluated"
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and node not in quiet:
            if _is_type(node.left) or _is_type(node.right):
                yield f"line {node.lineno}: X | Y of types is evaluated"
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            given = {k.arg for k in node.keywords}
            if name == "zip" and "strict" in given:
                yield f"line {node.lineno}: zip(strict=)"
            if name == "dataclass" and given & {"slots", "kw_only", "match_args", "weakref_slot"}:
                yield f"line {node.lineno}: dataclass({', '.join(sorted(str(g) for g in given))})"
            if name in ("bit_count", "hardlink_to", "removeprefix_all"):
                yield f"line {node.lineno}: {name}()"
        elif isinstance(node, ast.ImportFrom) and node.module in NEWER:
            for alias in node.names:
                if alias.name in NEWER[node.module] or "*" in NEWER[node.module]:
                    yield f"line {node.lineno}: {node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from (
                f"line {node.lineno}: {a.name}" for a in node.names if "*" in NEWER.get(a.name, set())
            )


@pytest.mark.parametrize(
    ("name", "source"), [(name, source) for name, (_, source) in MODULES], ids=[m[0] for m in MODULES]
)
def test_a_module_that_travels_needs_no_more_than_python_3_9(name: str, source: str) -> None:
    assert list(newer(source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "list(zip(a, b, strict=True))", "T = int | None", "match x:\n  case 1: pass", "import tomllib",
        "from enum import StrEnum", "@dataclass(slots=True)\nclass A: pass", "def f(x: int | None): ...",
    ],
)  # fmt: skip
def test_the_lint_sees_what_is_newer(source: str) -> None:
    try:
        found = list(newer(source))
    except SyntaxError:
        found = ["syntax"]
    assert found


def _imported(tree: ast.AST) -> Iterator[str]:
    """Every module of klineage that a module imports, at its top or later; a name taken from a package counts too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            module = node.module or ""
            inside = [f"{module}.{alias.name}" for alias in node.names]
            names = [module, *(name for name in inside if _is_module(name))]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "klineage")


def _is_module(name: str) -> bool:
    place = Path(klineage.__file__).parent.joinpath(*name.split(".")[1:])
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


#: What a batch does before it leaves, and puts into its jobs: the text of a kernel, checked and read.
BEFORE = {"klineage.gate.run", "klineage.gate.request"}


@pytest.mark.parametrize("parts", [WORKER, _PARTS], ids=["the worker", "a batch"])
def test_all_that_a_travelling_module_imports_travels_with_it(parts: tuple[str, ...]) -> None:
    modules = dict(_modules(parts))
    left: list[tuple[str, str]] = []
    for name, (_, source) in modules.items():
        left += [(name, needed) for needed in _imported(ast.parse(source)) if needed not in modules]
    read_before = [pair for pair in left if pair[1].startswith("klineage.surface.") and pair[0] in BEFORE]
    assert [pair for pair in left if pair not in read_before] == []


def test_the_gate_of_a_batch_can_be_imported_without_klineage(tmp_path: Path) -> None:
    program_file = tmp_path / "program.py"
    names = [name for name, _ in MODULES if name.split(".")[1:2] in (["gate"], ["executor"], ["workload"])]
    imports = "".join(f"import {name}\n" for name in names)
    program_file.write_text(f"{program(_PARTS)}\n{imports}print(klineage.gate.__file__)\n")
    done = subprocess.run(
        [sys.executable, "-S", "-c", _ISOLATED, str(program_file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "<klineage>/klineage/gate.py\n", done.stderr


def _pythons() -> list[str]:
    """Every other Python 3.9 to 3.13 of this machine, and this one."""
    found = [sys.executable]
    for minor in range(9, 14):
        candidates = [
            shutil.which(f"python3.{minor}"),
            *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"),
        ]
        for path in candidates:
            if (
                path
                and subprocess.run([str(path), "-c", ""], capture_output=True, check=False).returncode == 0
            ):
                found.append(str(path))
                break
    return found


def test_every_python_here_compiles_the_program(tmp_path: Path) -> None:
    file = tmp_path / "worker.py"
    file.write_text(worker_source())
    check = (
        "import sys; runpy = __import__('runpy'); g = runpy.run_path(sys.argv[1]); print(len(g['MODULES']))\n"
    )
    check += "for name in g['MODULES']: compile(g['MODULES'][name][1], name, 'exec', dont_inherit=True)"
    for python in _pythons():
        done = subprocess.run([python, "-c", check, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (python, done.stderr)


def test_the_program_is_the_worker(tmp_path: Path) -> None:
    file = tmp_path / "worker.py"
    file.write_text(worker_source())
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(empty)}  # without PYTHONPATH: nothing but the file
    workers = LocalExecutor(environment, command=(sys.executable, "-S", "-c", _ISOLATED, str(file)))
    try:
        answer = workers.submit("native", {"op": "layers"})
        assert answer["verdict"] == "pass", answer
        parent = workers._slots["native"][0].parent
        assert parent is not None
        assert parent.hello["source"] == program_hash()
    finally:
        workers.close()
    assert list(empty.iterdir()) == []


# Numpy, but no klineage: site-packages without its editable installations.
_ISOLATED = f"""
import runpy, sys
sys.path.append({next(p for p in sys.path if p.endswith("site-packages"))!r})
program = sys.argv.pop(1)
sys.argv[0] = program
runpy.run_path(program, run_name="__main__")
"""


def test_the_program_is_the_same_every_time() -> None:
    other = subprocess.run(
        [sys.executable, "-c", "from klineage.executor.bundle import worker_source; print(worker_source(), end='')"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert other.stdout == worker_source()
