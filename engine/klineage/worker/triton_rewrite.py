"""Rewrite the source of interpreted kernels where plain Python would run it otherwise than Triton."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from klineage.worker import triton_counts


def install(interpreter: Any) -> None:
    """Rewrite what plain Python would run otherwise than Triton, and count trips of for loops.

    ``and``, ``or`` and ``not`` work lane by lane in Triton; Python would take a block for true.
    Host code keeps its own ``range``.
    """
    import triton.language as tl

    for module in (tl, tl.core):
        module.range = _counting(module.range)
        module.static_range = _counting(module.static_range)
    helpers: dict[str, Callable[..., Any]] = {
        "range": _counting(range),
        "and": _logical_and,
        "or": _logical_or,
        "not": _logical_not,
    }
    rewrite = interpreter.FunctionRewriter._transform_ast

    def transform(self: Any, source: str) -> Any:
        tree = _KernelRewriter().visit(rewrite(self, source))
        self.fn.__globals__.update({f"__klineage_{name}": helper for name, helper in helpers.items()})
        return ast.fix_missing_locations(tree)

    interpreter.FunctionRewriter._transform_ast = transform


def _counting(original: Callable[..., Any]) -> Callable[..., Any]:
    def count(*args: Any, **kwargs: Any) -> Any:
        trips = original(*args, **kwargs)
        triton_counts.add("iterations", len(trips))
        return trips

    return count


class _KernelRewriter(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == "range":
            return ast.copy_location(ast.Name("__klineage_range", node.ctx), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "and" if isinstance(node.op, ast.And) else "or"
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return self._call(name, [ast.Lambda(nothing, value) for value in node.values], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("not", [node.operand], node) if isinstance(node.op, ast.Not) else node

    @staticmethod
    def _call(name: str, arguments: list[Any], node: ast.expr) -> ast.AST:
        call = ast.Call(ast.Name(f"__klineage_{name}", ast.Load()), arguments, [])
        return ast.copy_location(call, node)


def _logical(method: str, decided: bool, operands: tuple[Callable[[], Any], ...]) -> Any:
    """Combine tensors by ``method``; a plain value that decides the result ends the evaluation, as in Triton."""
    import triton.language as tl

    result = value = None
    for operand in operands:
        value = operand()
        if not isinstance(value, tl.tensor):
            if bool(value) is decided:
                return value
        else:
            result = value if result is None else getattr(result, method)(value)
    return value if result is None else result


def _logical_and(*operands: Callable[[], Any]) -> Any:
    return _logical("logical_and", False, operands)


def _logical_or(*operands: Callable[[], Any]) -> Any:
    return _logical("logical_or", True, operands)


def _logical_not(operand: Any) -> Any:
    import triton.language as tl

    return operand == 0 if isinstance(operand, tl.tensor) else not operand
