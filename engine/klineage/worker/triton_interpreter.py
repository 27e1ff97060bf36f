"""Run Triton kernels on the CPU as a gate needs it: right, checked and counted.

``install`` changes triton's own interpreter for the whole process, once. Set TRITON_INTERPRET=1
before triton is imported; a process that interprets can never compile.
"""

from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Callable
from typing import Any

from klineage.worker import triton_counts
from klineage.worker.faults import WorkerError

_installed = False


def install() -> None:
    """Give triton's interpreter bfloat16, bounds checks, counts and libdevice. Later calls do nothing.

    Raises WorkerError when triton was imported without TRITON_INTERPRET=1.
    """
    global _installed
    if _installed:
        return
    import numpy as np
    import triton

    if not triton.knobs.runtime.interpret:
        raise WorkerError("not_interpreting", "TRITON_INTERPRET=1 must be set before triton is imported")
    np.seterr(all="ignore")  # a GPU says nothing of overflow either
    from triton.runtime import interpreter

    from klineage.worker.triton_builder import CheckedBuilder

    interpreter.interpreter_builder.__class__ = CheckedBuilder
    _patch_language_once(interpreter)
    _patch_launches(interpreter)
    _patch_reductions(interpreter)
    _patch_source(interpreter)
    _patch_extras(interpreter)
    _installed = True


def reset_counts() -> None:
    """Start counting from zero."""
    triton_counts.reset()


def counts() -> dict[str, int]:
    """What the kernels did since ``reset_counts``: ``triton_counts.NAMES``, plus ``operations``."""
    return triton_counts.read()


def set_program_order(reverse: bool) -> None:
    """Run the programs of a grid backward: a result that changes shows a race between programs."""
    from klineage.worker.triton_builder import CheckedBuilder

    CheckedBuilder.reverse_programs = reverse


class _NoScope:
    def restore(self) -> None:
        """Nothing was patched for this launch: everything is patched for good."""

    def set_attr(self, obj: Any, name: str, value: Any) -> None:
        setattr(obj, name, value)


def _patch_language_once(interpreter: Any) -> None:
    """Patch triton.language for good. Triton does it again at every device-function call, at great cost."""
    import triton.language as tl

    probe = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    interpreter._patch_lang(probe)
    interpreter._patch_lang = lambda fn: _NoScope()


def _patch_launches(interpreter: Any) -> None:
    """Name the buffers of each launch, so that a bad lane can be told by the kernel's own words."""
    import triton.language as tl

    from klineage.worker import triton_memory as memory

    names: dict[int, str] = {}
    run, convert = interpreter.GridExecutor.__call__, interpreter._implicit_cvt

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        triton_counts.add("launches")
        memory.enter_kernel(self.fn.__name__)
        self.constexprs = [n for n in self.arg_names if "constexpr" in _annotation(self.fn, n)]
        self.grid = _as_tuple(self.grid)
        names.clear()
        for name, arg in [*_named(self.arg_names, args), *kwargs.items()]:
            arg = getattr(arg, "base", arg) if type(arg).__name__ == "TensorDescriptor" else arg
            if hasattr(arg, "data_ptr"):
                names.setdefault(arg.data_ptr(), name)
        return run(self, *args, **kwargs)

    def to_handle(arg: Any) -> Any:
        if isinstance(arg, float):  # a number that is no constexpr reaches a kernel as fp32
            return interpreter.interpreter_semantic.full([], arg, tl.float32)
        result = convert(arg)
        if hasattr(arg, "data_ptr") and hasattr(result, "handle"):
            tensor = getattr(arg, "base", arg) if type(arg).__name__ == "TensorWrapper" else arg
            result.handle.origin = memory.buffer_of(tensor, names.get(arg.data_ptr(), "a tensor"))
        return result

    materialize = interpreter.TensorDescHandle.materialize_pointers

    def materialize_pointers(self: Any, offsets: Any) -> Any:
        pointers, masks = materialize(self, offsets)
        pointers.origin = getattr(self.base, "origin", None)
        return pointers, masks

    interpreter.GridExecutor.__call__ = launch
    interpreter._implicit_cvt = to_handle
    interpreter.TensorDescHandle.materialize_pointers = materialize_pointers
    _patch_warmup(interpreter)


def _annotation(function: Any, name: str) -> str:
    """The annotation of a parameter as text: ``"tl.constexpr"`` in quotes says constexpr too."""
    found = function.__annotations__.get(name, "")
    return found if isinstance(found, str) else getattr(found, "__name__", str(found))


def _as_tuple(grid: Any) -> Any:
    """Triton takes a list or one number for a grid as well; its interpreter takes tuples only."""
    if callable(grid):
        return lambda meta: _as_tuple(grid(meta))
    return tuple(grid) if isinstance(grid, (list, tuple)) else (grid,)


def _named(names: list[str], args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return [(names[i], arg) for i, arg in enumerate(args) if i < len(names)]


class _Warm:
    """What ``kernel.warmup`` returns here: typical resources, and launchable."""

    n_regs, n_spills = 32, 0
    metadata = types.SimpleNamespace(shared=1024, num_warps=4, num_stages=2)

    def __init__(self, function: Any) -> None:
        self.function = function

    def _init_handles(self) -> None:
        """No device code to load."""

    def __getitem__(self, grid: Any) -> Any:
        return self.function[grid]


def _patch_warmup(interpreter: Any) -> None:
    run = interpreter.InterpretedFunction.run

    def run_or_warm(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return _Warm(self) if warmup else run(self, *args, grid=grid, warmup=False, **kwargs)

    interpreter.InterpretedFunction.run = run_or_warm


def _patch_reductions(interpreter: Any) -> None:
    """Count reductions and scans, and run the built-in ones on bfloat16 in fp32."""
    import triton.language as tl

    from klineage.worker.triton_bf16 import decode, encode

    def counted(cls: Any) -> None:
        apply = cls.apply_impl

        def apply_impl(self: Any, operands: Any) -> Any:
            triton_counts.add("reductions")
            triton_counts.add("reduction_operations", int(operands[0].handle.data.size))
            return apply(self, operands)

        cls.apply_impl = apply_impl

    def in_fp32(cls: Any, name: str) -> None:
        method = getattr(cls, name)

        def wide(self: Any, operand: Any, *args: Any, **kwargs: Any) -> Any:
            operand = operand[0] if isinstance(operand, tuple) else operand
            if operand.dtype != tl.bfloat16:
                return method(self, operand, *args, **kwargs)
            single = self.to_tensor(decode(operand.handle.data), tl.float32)
            result = method(self, single, *args, **kwargs)
            return _map_fp32(result, lambda t: self.to_tensor(encode(t.handle.data), tl.bfloat16), tl)

        setattr(cls, name, wide)

    interpreter.ReduceOps.generic_reduce = _reduce_by_rows
    for cls in (interpreter.ReduceOps, interpreter.ScanOps):
        counted(cls)
    for cls, name in (
        (interpreter.ReduceOps, "sum"),
        (interpreter.ReduceOps, "min_max"),
        (interpreter.ScanOps, "cumsum"),
        (interpreter.ScanOps, "cumprod"),
    ):
        in_fp32(cls, name)


def _reduce_by_rows(self: Any, operands: Any) -> Any:
    """Any combining function along an axis, all other axes at once, in the order of the elements.

    Triton's own goes element by element, a thousand times slower.
    """
    import numpy as np

    shape, whole = operands[0].handle.data.shape, self.axis is None
    operands, axis = self.unravel(operands, self.axis)
    rows = [np.moveaxis(t.handle.data, axis, 0) for t in operands]

    def at(index: int) -> list[Any]:
        return [self.to_tensor(rows[i][index], t.dtype) for i, t in enumerate(operands)]

    total = at(0)
    for index in range(1, rows[0].shape[0]):
        combined = self.combine_fn.fn(*total, *at(index))
        total = list(combined) if isinstance(combined, tuple) else [combined]
    results = []
    for i, operand in enumerate(operands):
        data = total[i].handle.data.reshape(rows[i].shape[1:])
        if self.keep_dims:
            data = data.reshape((1,) * len(shape)) if whole else np.expand_dims(data, axis)
        results.append(self.to_tensor(data if data.shape else data[()], operand.dtype))
    return results


def _map_fp32(result: Any, function: Callable[[Any], Any], tl: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)([_map_fp32(item, function, tl) for item in result])
    return function(result) if result.dtype == tl.float32 else result


def _patch_source(interpreter: Any) -> None:
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


def _patch_extras(interpreter: Any) -> None:
    """libdevice by numpy; other device extensions reach the builder, which says that they need a GPU."""
    import triton.language as tl

    from klineage.worker import triton_libdevice

    for name in ("libdevice", "cuda.libdevice", "hip.libdevice"):
        triton_libdevice.install(importlib.import_module(f"triton.language.extra.{name}"))
    cuda = importlib.import_module("triton.language.extra.cuda")
    for name, member in list(vars(cuda).items()):
        if tl.core.is_builtin(member):
            setattr(cuda, name, _with_semantic(member, interpreter.interpreter_semantic))
    for name in ("gdc_wait", "gdc_launch_dependents"):  # order between launches: here they run one by one
        if hasattr(cuda, name):
            setattr(cuda, name, lambda **_: None)


def _with_semantic(member: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_semantic", None)
        return member(*args, _semantic=semantic, **kwargs)

    return call
