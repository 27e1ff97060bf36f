"""Reductions and scans of interpreted kernels: counted, right on bfloat16, and a row at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klineage.worker import triton_counts


def install(interpreter: Any) -> None:
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
            return _map_fp32(
                result, lambda t: self.to_tensor(_plain(t, encode(t.handle.data)), tl.bfloat16), tl
            )

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


def _plain(tensor: Any, data: Any) -> Any:
    """The one number of a scalar, whose data is an array of one; other data as it is."""
    return data if tensor.type.is_block() else data[0]


def _map_fp32(result: Any, function: Callable[[Any], Any], tl: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)([_map_fp32(item, function, tl) for item in result])
    return function(result) if result.dtype == tl.float32 else result
