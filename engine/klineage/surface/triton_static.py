"""The static stage for Triton files: what can be refused by reading, before any of it runs."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from klineage.kernel import Kernel
from klineage.surface import triton_constants, triton_host_policy
from klineage.surface.problem import Problem

Function = ast.FunctionDef | ast.AsyncFunctionDef


class WorkloadNames(Protocol):
    """The part of a workload that the static stage reads."""

    @property
    def source(self) -> bytes: ...
    @property
    def sizes(self) -> Mapping[str, Mapping[str, int]]: ...
    @property
    def outputs(self) -> Sequence[str]: ...
    @property
    def scalars(self) -> Mapping[str, Any]: ...


def check(kernel: Kernel, workload: WorkloadNames) -> list[Problem]:
    """Everything that refuses a Triton kernel, in order of lines; [] when it may be compiled.

    Reasons: encoding, empty, syntax, no_kernel, no_entry, unknown_parameter, no_output, import, forbidden,
    host_compute.
    """
    tree = _parse(kernel.source)
    if isinstance(tree, Problem):
        return [tree]
    try:
        return sorted(_problems(tree, kernel, workload), key=lambda p: p.line)
    except RecursionError:
        return [Problem("syntax", "an expression is nested too deeply to be read")]


def _problems(tree: ast.Module, kernel: Kernel, workload: WorkloadNames) -> Iterator[Problem]:
    jitted = jit_functions(tree)
    if not jitted:
        message = f"{kernel.filename} has no @triton.jit function: there is no kernel text to walk"
        yield Problem("no_kernel", message)
    hosts = {f.name: f for f in tree.body if isinstance(f, Function) and f.name not in jitted}
    entry = hosts.get(kernel.entry)
    if entry is None:
        yield _no_entry(kernel, jitted, hosts)
    else:
        yield from _check_entry(entry, workload)
    buffers = tensor_names(workload)
    found = triton_host_policy.violations(tree, kernel.entry, jitted, buffers)
    for line, reason, message in (*found, *triton_constants.violations(tree, jitted.values())):
        yield Problem(reason, message, line)


def _parse(source: bytes) -> ast.Module | Problem:
    if not source.strip():
        return Problem("empty", "the file is empty")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        source.decode(encoding)
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        return Problem("encoding", f"not {error.encoding}: save the file as UTF-8", line)
    except (SyntaxError, LookupError) as error:
        return Problem("encoding", f"the file's encoding cannot be read ({error}): save it as UTF-8", 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        return Problem("syntax", f"not valid Python: {error.msg}", error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return Problem("syntax", f"not Python source: {error or type(error).__name__}")


def jit_functions(tree: ast.Module) -> dict[str, Function]:
    """Device functions by name: decorated with ``triton.jit``, or passed to it (``f = triton.jit(g)``)."""
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, Function)}
    found = {name: f for name, f in functions.items() if any(map(_is_jit, f.decorator_list))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_jit(node.func) and node.args:
            for name in (n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)):
                if name in functions:
                    found[name] = functions[name]
    return found


def _is_jit(node: ast.expr) -> bool:
    """``jit`` or ``triton.jit``, with or without options in parentheses."""
    target = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(target) in ("triton.jit", "jit", "triton.runtime.jit.jit")


def _no_entry(kernel: Kernel, jitted: Mapping[str, Function], hosts: Mapping[str, Function]) -> Problem:
    if kernel.entry in jitted:
        message = f"{kernel.entry} is a device function; the entry is the host function that launches it"
        return Problem("no_entry", message, jitted[kernel.entry].lineno)
    choices = f"it has {', '.join(hosts)}" if hosts else "it has no host function"
    return Problem("no_entry", f"{kernel.filename} has no function {kernel.entry!r}; {choices}")


def _check_entry(entry: Function, workload: WorkloadNames) -> Iterator[Problem]:
    arguments = entry.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[: len(positional) - len(arguments.defaults)]
    required += [a for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    known = known_names(workload)
    if known is not None:
        for argument in required:
            if argument.arg not in known:
                message = f"the entry takes {argument.arg!r}; the workload has {', '.join(sorted(known))}"
                yield Problem("unknown_parameter", message, argument.lineno)
    names = {a.arg for a in (*positional, *arguments.kwonlyargs)}
    missing = [name for name in workload.outputs if name not in names]
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in _own_nodes(entry))
    if missing and not returns:
        message = f"the entry neither takes nor returns the output {', '.join(missing)}"
        yield Problem("no_output", message, entry.lineno)


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Nodes of a function's body, those of functions inside it aside."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))


def known_names(workload: WorkloadNames) -> set[str] | None:
    """Every name that an entry may take: buffers, dimensions, scalars. None when reading cannot tell.

    Buffers are read from the literal keys in ``tensors``; a workload may build them in other ways.
    """
    tensors = tensor_names(workload)
    if not tensors:
        return None
    dimensions = {name for size in workload.sizes.values() for name in size}
    return tensors | dimensions | set(workload.scalars)


def tensor_names(workload: WorkloadNames) -> set[str]:
    """Names of the workload's buffers; empty when ``tensors`` has no literal keys."""
    try:
        tree = ast.parse(workload.source)
    except (SyntaxError, ValueError):
        return set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "tensors":
            keys = (k for d in ast.walk(node) if isinstance(d, ast.Dict) for k in d.keys)
            names = {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
            return names | set(workload.outputs) if names else set()
    return set()


def notes(kernel: Kernel) -> list[Problem]:
    """What no interpreter will be able to judge, though nothing refuses it: inline_asm."""
    tree = _parse(kernel.source)
    if isinstance(tree, Problem):
        return []
    return [
        Problem("inline_asm", f"{name} has inline assembly: only a GPU can judge it", node.lineno)
        for name, function in jit_functions(tree).items()
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "inline_asm_elementwise"
    ]
