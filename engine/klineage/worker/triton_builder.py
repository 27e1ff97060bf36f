"""Triton's interpreter with right bfloat16, checked memory and exact counts.

Import only where TRITON_INTERPRET=1 was set before triton was imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from klineage.worker import triton_counts as counts
from klineage.worker import triton_fp8
from klineage.worker import triton_memory as memory
from klineage.worker import triton_races as races
from klineage.worker.faults import Unsupported
from klineage.worker.triton_bf16 import decode, encode, truncate

Handle = interpreter.TensorHandle
_DOT_TYPES = (np.dtype(np.float16), np.dtype(np.float32))
_SAME_MEMORY = (
    "create_splat",
    "create_unsplat",
    "create_broadcast",
    "create_expand_dims",
    "create_reshape",
    "create_trans",
    "create_bitcast",
)


def is_bf16(handle: Any) -> bool:
    """Whether ``handle`` holds bfloat16 patterns (a comparison's handle keeps the type of its operands)."""
    return bool(handle.dtype.scalar == tl.bfloat16 and handle.data.dtype == np.uint16)


def fp8(dtype: Any) -> triton_fp8.Format | None:
    """The 8-bit float that a type is, if it is one of NVIDIA's."""
    return triton_fp8.FORMATS.get(dtype.scalar.name)


def values(handle: Any) -> Any:
    """The numbers of ``handle``: fp32 for bfloat16 and 8-bit floats, the data itself otherwise."""
    if is_bf16(handle):
        return decode(handle.data)
    format_ = fp8(handle.dtype) if handle.data.dtype == np.uint8 else None
    return triton_fp8.decode(handle.data, format_) if format_ else handle.data


def tf32(single: Any) -> Any:
    """fp32 values as tensor cores read them unless a dot asks for more: the lower 13 bits of 23 are dropped."""
    return (single.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _bf16_handle(result: Any) -> Any:
    if result.dtype == np.bool_:
        return Handle(result, tl.int1)
    return Handle(encode(result), tl.bfloat16)


def _itemsize(pointers: Any) -> int:
    return int(max(1, pointers.get_element_ty().primitive_bitwidth // 8))


def _changes(pointers: Any, value: Any, mask: Any) -> Any:
    """Which lanes of a store would change what is in memory."""
    wanted = np.broadcast_to(value.data, pointers.data.shape)
    on = (
        np.ones(wanted.shape, np.bool_)
        if mask is None
        else np.broadcast_to(mask.data, wanted.shape).astype(np.bool_)
    )
    there = interpreter._interpreter.load(pointers.data, on, np.ascontiguousarray(wanted), wanted.dtype)
    return (there != wanted) & ~((there != there) & (wanted != wanted))


class CheckedBuilder(interpreter.InterpreterBuilder):  # type: ignore[misc]
    """The class that ``install`` gives to triton's one builder object."""

    reverse_programs = False
    grid_idx = (0, 0, 0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("create_"):
            function, line = memory.where()
            raise Unsupported(
                "not_interpretable", f"line {line}: {function} uses {name[7:]}, which the interpreter lacks"
            )
        raise AttributeError(name)

    # programs

    def set_grid_idx(self, x: int, y: int, z: int) -> None:
        counts.add("programs")
        if self.reverse_programs:
            x, y, z = self.grid_dim[0] - 1 - x, self.grid_dim[1] - 1 - y, self.grid_dim[2] - 1 - z
        super().set_grid_idx(x, y, z)

    @property
    def program(self) -> int:
        """The number of the program that runs."""
        x, y, z = self.grid_idx
        return int(x + self.grid_dim[0] * (y + self.grid_dim[1] * z))

    # arithmetic

    def get_bf16(self, value: float) -> Any:
        return Handle(encode(np.array([value])), tl.bfloat16)

    def _count(self, operand: Any, result: Any) -> Any:
        floating = operand.dtype.scalar.is_floating()
        counts.add("elementwise_operations" if floating else "integer_operations", int(result.data.size))
        return result

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[..., Any]) -> Any:
        if is_bf16(lhs) or is_bf16(rhs):
            return self._count(lhs, _bf16_handle(op(values(lhs), values(rhs))))
        return self._count(lhs, super().binary_op(lhs, rhs, op))

    def unary_op(self, arg: Any, op: Callable[..., Any]) -> Any:
        if is_bf16(arg):
            return self._count(arg, _bf16_handle(op(values(arg))))
        return self._count(arg, super().unary_op(arg, op))

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Callable[..., Any]) -> Any:
        if op is not np.where and is_bf16(other):
            return self._count(other, _bf16_handle(op(values(lhs), values(rhs), values(other))))
        return self._count(other, super().ternary_op(lhs, rhs, other, op))

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        if is_bf16(z):
            return self._count(z, _bf16_handle(values(x) * values(y) + values(z)))
        if z.data.dtype.kind != "f":
            return self._count(z, super().create_fma(x, y, z))
        fused = x.data.astype(np.float64) * y.data + z.data  # the product of two fp32 is exact
        return self._count(z, Handle(fused.astype(z.data.dtype), z.dtype.scalar))

    def create_rsqrt(self, arg: Any) -> Any:
        return self._count(arg, super().create_rsqrt(arg))

    def create_erf(self, arg: Any) -> Any:
        return self._count(arg, super().create_erf(arg))

    # casts

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        counts.add("casts", int(src.data.size))
        if dst_type.scalar == tl.bfloat16:
            return Handle(encode(values(src)), tl.bfloat16)
        if is_bf16(src):
            return Handle(values(src).astype(interpreter._get_np_dtype(dst_type)), dst_type.scalar)
        return super().cast_impl(src, dst_type)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        toward_zero = rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ
        source, target = values(src), fp8(dst_type)
        if target is not None and source.dtype.kind == "f":
            data = triton_fp8.encode(source, target, toward_zero)
        elif dst_type.scalar == tl.bfloat16 and source.dtype.kind == "f":
            data = (truncate if toward_zero else encode)(source)
        elif fp8(src.dtype) is not None and source is not src.data:
            data = source.astype(interpreter._get_np_dtype(dst_type))
        else:
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        counts.add("casts", int(src.data.size))
        return Handle(data, dst_type.scalar)

    # dots

    def create_dot(self, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        counts.add("dots")
        counts.add("dot_operations", 2 * int(a.data.size) * int(b.data.shape[-1]))
        if not all(values(operand).dtype in _DOT_TYPES for operand in (a, b)):
            return super().create_dot(a, b, d, *rest)
        left, right = values(a).astype(np.float32), values(b).astype(np.float32)
        if a.data.dtype == np.float32 and rest and rest[0] == interpreter._ir.INPUT_PRECISION.TF32:
            left, right = tf32(left), tf32(right)
        product = np.matmul(left, right)
        total = product + values(d)
        if is_bf16(d):
            return Handle(encode(total), tl.bfloat16)
        return Handle(total.astype(d.data.dtype), d.dtype.scalar)

    # memory

    def create_addptr(self, ptr: Any, offset: Any) -> Any:
        counts.add("integer_operations", int(max(ptr.data.size, offset.data.size)))
        result = super().create_addptr(ptr, offset)
        result.origin = getattr(ptr, "origin", None)
        return result

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        counts.add("loads")
        size = _itemsize(ptrs)
        counts.add("bytes_loaded", size * memory.check("load", ptrs, mask, size, self.grid_idx))
        races.loaded(ptrs, mask, self.program)
        return super().create_masked_load(ptrs, mask, other, *args, **kwargs)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *args: Any, **kwargs: Any) -> Any:
        counts.add("stores")
        size = _itemsize(ptrs)
        counts.add("bytes_stored", size * memory.check("store", ptrs, mask, size, self.grid_idx))
        races.stored(ptrs, mask, lambda: _changes(ptrs, value, mask), self.program)
        return super().create_masked_store(ptrs, value, mask, *args, **kwargs)

    def create_descriptor_load(self, desc: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        loaded = super().create_descriptor_load(desc, indices, *args, **kwargs)
        if is_bf16(loaded) and desc.padding == interpreter._ir.PADDING_OPTION.PAD_NAN:
            _, inside = desc.materialize_pointers(indices)
            loaded.data = np.where(inside, loaded.data, encode(np.float32(np.nan)))
        return loaded

    def _atomic(self, ptr: Any, mask: Any) -> int:
        counts.add("atomics")
        size = _itemsize(ptr)
        active = memory.check("atomic", ptr, mask, size, self.grid_idx)
        races.atomic(ptr, mask, self.program)
        counts.add("bytes_loaded", size * active)
        counts.add("bytes_stored", size * active)
        return active

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, *rest: Any) -> Any:
        self._atomic(ptr, None)
        return super().create_atomic_cas(ptr, cmp, val, *rest)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        self._atomic(ptr, mask)
        if is_bf16(val):
            return self._bf16_atomic_add(ptr, val, mask)
        return super().create_atomic_rmw(rmwOp, ptr, val, mask, *rest)

    def _bf16_atomic_add(self, ptr: Any, val: Any, mask: Any) -> Any:
        """Lane by lane, because two lanes may name one address. Triton allows no other bfloat16 atomic."""
        shape = ptr.data.shape
        addresses, added = ptr.data.reshape(-1), val.data.reshape(-1)
        on = np.ones(1, dtype=bool)
        before = np.zeros(addresses.size, dtype=np.uint16)
        for lane in np.flatnonzero(mask.data.reshape(-1)):
            where, one = addresses[lane : lane + 1], slice(lane, lane + 1)
            old = interpreter._interpreter.load(where, on, before[one].copy(), np.dtype(np.uint16))
            interpreter._interpreter.store(where, encode(decode(old) + decode(added[one])), on)
            before[lane] = old[0]
        return Handle(before.reshape(shape), tl.bfloat16)

    # what no interpreter can run

    def create_inline_asm(self, *args: Any, **kwargs: Any) -> Any:
        function, line = memory.where()
        raise Unsupported(
            "inline_asm", f"line {line}: {function} has inline assembly, which only a GPU can run"
        )

    def create_extern_elementwise(self, lib: Any, path: Any, symbol: str, *rest: Any) -> Any:
        function, line = memory.where()
        raise Unsupported("libdevice", f"line {line}: {function} calls {symbol}, unknown to the interpreter")


def _keep_origin(name: str) -> None:
    """Reshaping a block of pointers does not change which buffer they point into."""
    original = getattr(interpreter.InterpreterBuilder, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        for arg in args:
            if hasattr(arg, "origin"):
                result.origin = arg.origin
        return result

    setattr(CheckedBuilder, name, method)


for _name in _SAME_MEMORY:
    if hasattr(interpreter.InterpreterBuilder, _name):
        _keep_origin(_name)
