"""What decides a compile must be in the key of Triton's cache, or one compile answers for another.

The key knows a device function's text, its arguments and the plain globals that it reads. It does not know what a
``constexpr_function`` reads beside its arguments, nor the defaults of a device function that another one calls.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator

from klineage.surface.triton_names import Violation

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BUILTINS = frozenset(dir(builtins))


def violations(tree: ast.Module, jitted: Iterable[ast.AST]) -> Iterator[Violation]:
    """Every name that decides a compile, and that the key does not know, with its line."""
    bound, modules = _bindings(tree), _modules(tree)
    fixed = _fixed(tree, bound, modules)
    early = {f.name: f for f in ast.walk(tree) if isinstance(f, Function) and _is_early(f)}
    for function in (*early.values(), *jitted):
        if not isinstance(function, Function):
            continue
        for default in (*function.args.defaults, *(d for d in function.args.kw_defaults if d is not None)):
            if not _plain(default, fixed | modules):
                yield default.lineno, "forbidden", f"a default of {function.name} is no literal{_WHY}"
    known = fixed | modules | set(early) | {name for name in _BUILTINS if not bound[name]}
    for function in early.values():
        yield from _read(function, known, set(early))


_WHY = ": Triton's cache does not know its value; make it an argument, or a literal"


def _read(function: Function, known: set[str], early: set[str]) -> Iterator[Violation]:
    inside = [node for statement in function.body for node in ast.walk(statement)]
    own = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    own |= {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {
        a.arg for n in inside if isinstance(n, ast.arguments) for a in ast.walk(n) if isinstance(a, ast.arg)
    }
    for node in inside:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield node.lineno, "forbidden", f"{function.name} keeps {node.names[0]}{_WHY}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in early:
            yield node.lineno, "forbidden", f"{function.name} reads {node.value.id}.{node.attr}{_WHY}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known | own:
            yield node.lineno, "forbidden", f"{function.name} reads {node.id}{_WHY}"


def _is_early(function: Function) -> bool:
    names = (ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list)
    return any(name.rpartition(".")[2] == "constexpr_function" for name in names)


def _bindings(tree: ast.Module) -> Counter[str]:
    """How often each name is bound where a module-level name may be meant; a ``global`` counts as many times."""
    bound: Counter[str] = Counter()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound[node.name] += 1
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound[node.id] += 1
        pending.extend(ast.iter_child_nodes(node))
    for name in (name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names):
        bound[name] += 2
    return bound


def _modules(tree: ast.Module) -> set[str]:
    """Names that an import at module level binds."""
    imports = (n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}


def _fixed(tree: ast.Module, bound: Counter[str], modules: set[str]) -> set[str]:
    """Names that are bound once, at module level, to what never changes."""
    fixed: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Name) and bound[target.id] == 1 and _plain(value, fixed | modules):
            fixed.add(target.id)
    return fixed


def _plain(node: ast.expr, known: set[str]) -> bool:
    """Whether the value can be read from the text: literals, names of such, what a module holds, tuples of them."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Attribute):
        return _plain(node.value, known)
    if isinstance(node, ast.UnaryOp):
        return _plain(node.operand, known)
    if isinstance(node, ast.BinOp):
        return _plain(node.left, known) and _plain(node.right, known)
    if isinstance(node, ast.Tuple):
        return all(_plain(part, known) for part in node.elts)
    if isinstance(node, ast.Call):
        named = ast.unparse(node.func).rpartition(".")[2] == "constexpr" and not node.keywords
        return named and all(_plain(part, known) for part in node.args)
    return False
