"""libdevice for the interpreter: the common functions by numpy, in double and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from klineage.worker import triton_counts as counts
from klineage.worker import triton_memory as memory
from klineage.worker.faults import KernelFault, Unsupported


def _each(function: Callable[..., float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[np.float64])


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan if x < 0 else math.copysign(math.inf, x)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):
        return math.inf


def _round(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


_SAME_NAME = (
    *("sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "cbrt", "hypot"),
    *("log", "log2", "log10", "log1p", "floor", "ceil", "trunc", "rint", "nextafter", "copysign"),
)
_INVERSE = ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")
FLOATING: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME_NAME},
    **{name: getattr(np, "arc" + name[1:]) for name in _INVERSE},
    "abs": np.abs,
    "nearbyint": np.rint,
    "round": _round,
    "exp10": lambda x: np.power(10.0, x),
    "pow": np.power,
    "fmod": np.fmod,
    "remainder": _each(math.remainder),
    "fdim": lambda x, y: np.maximum(x - y, 0.0),
    "fma": lambda x, y, z: x * y + z,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "normcdf": lambda x: 0.5 * _each(math.erfc)(-x / math.sqrt(2.0)),
    "tgamma": _each(_gamma),
    "lgamma": _each(_lgamma),
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "saturatef": lambda x: np.clip(x, 0.0, 1.0),
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "fma_rn": lambda x, y, z: x * y + z,
    "rcp_rn": lambda x: 1.0 / x,
    "sqrt_rn": np.sqrt,
    "rsqrt_rn": lambda x: 1.0 / np.sqrt(x),
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanf": np.tan,
    "fast_tanhf": np.tanh,
    "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(10.0, x),
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_log10f": np.log10,
    "fast_powf": np.power,
    "fast_dividef": np.divide,
}
PREDICATES: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinited": np.isfinite,
    "finitef": np.isfinite,
    "signbit": np.signbit,
}
_ROUNDINGS: dict[str, Callable[..., Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
INTEGERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "llrint": ("int64", np.rint),
    "llround": ("int64", _round),
    "ilogb": ("int32", lambda x: np.frexp(x)[1] - 1),
    **{
        f"{source}2{short}_{mode}": (target, function)
        for source in ("float", "double")
        for short, target in (("int", "int32"), ("uint", "uint32"), ("ll", "int64"), ("ull", "uint64"))
        for mode, function in _ROUNDINGS.items()
    },
}
CONVERSIONS = {
    f"{source}2{target}_rn": dtype
    for source in ("int", "uint", "ll", "ull")
    for target, dtype in (("float", "fp32"), ("double", "fp64"))
}
BITCASTS = {
    "int_as_float": "fp32",
    "uint_as_float": "fp32",
    "float_as_int": "int32",
    "float_as_uint": "uint32",
    "longlong_as_double": "fp64",
    "double_as_longlong": "int64",
}


def _wrap(data: Any, dtype: Any, operands: list[Any]) -> Any:
    block = any(o.type.is_block() for o in operands)
    ty = tl.block_type(dtype, list(data.shape)) if block else dtype
    counts.add("elementwise_operations", int(data.size))
    return tl.tensor(interpreter.TensorHandle(data, dtype), ty)


def _operands(name: str, args: tuple[Any, ...]) -> list[Any]:
    """Arguments as tensors of one floating type: fp64 if any is, else fp32, which is all that libdevice has.

    Integers are converted beside a floating argument, as on the GPU; 16-bit floats are refused, as there.
    """
    given = [a for a in args if isinstance(a, tl.tensor)]
    scalar = tl.float64 if any(a.dtype == tl.float64 for a in given) else tl.float32
    beside = len(given) < len(args) or any(a.dtype.is_floating() for a in given)
    semantic = interpreter.interpreter_semantic
    operands = []
    for argument in args:
        if not isinstance(argument, tl.tensor):
            argument = semantic.full([], float(getattr(argument, "value", argument)), scalar)
        elif argument.dtype.is_int() and beside:
            argument = semantic.cast(argument, scalar)
        elif argument.dtype not in (tl.float32, tl.float64):
            function, line = memory.where()
            raise KernelFault(
                "libdevice_type",
                f"line {line}: {function} calls libdevice.{name} on {argument.dtype}; it takes fp32 or fp64",
            )
        operands.append(argument)
    return operands


def _floating(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **_: Any) -> Any:
        operands = _operands(name, args)
        dtype = max((o.dtype for o in operands), key=lambda t: t.primitive_bitwidth)
        result = function(*(o.handle.data.astype(np.float64) for o in operands))
        return _wrap(np.asarray(result).astype(interpreter._get_np_dtype(dtype)), dtype, operands)

    return call


def _integer(name: str, function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    def call(*args: Any, **_: Any) -> Any:
        operands = _operands(name, args)
        return _wrap(
            function(operands[0].handle.data).astype(interpreter._get_np_dtype(dtype)), dtype, operands
        )

    return call


def _conversion(dtype: Any) -> Callable[..., Any]:
    def call(arg: Any, **_: Any) -> Any:
        return interpreter.interpreter_semantic.cast(arg, dtype)

    return call


def _bitcast(name: str, dtype: Any) -> Callable[..., Any]:
    def call(arg: Any, **_: Any) -> Any:
        return _wrap(arg.handle.data.view(interpreter._get_np_dtype(dtype)), dtype, [arg])

    return call


def _missing(name: str) -> Callable[..., Any]:
    def call(*args: Any, **_: Any) -> Any:
        function, line = memory.where()
        raise Unsupported(
            "libdevice", f"line {line}: {function} calls libdevice.{name}, unknown to the interpreter"
        )

    return call


def replacement(name: str) -> Callable[..., Any]:
    """The interpreter's version of a libdevice function; one that raises Unsupported if there is none."""
    if name in FLOATING:
        return _floating(name, FLOATING[name])
    if name in PREDICATES:
        return _integer(name, PREDICATES[name], tl.int32)
    if name in INTEGERS:
        return _integer(name, INTEGERS[name][1], tl.dtype(INTEGERS[name][0]))
    if name in CONVERSIONS:
        return _conversion(tl.dtype(CONVERSIONS[name]))
    if name in BITCASTS:
        return _bitcast(name, tl.dtype(BITCASTS[name]))
    return _missing(name)


def install(module: Any) -> None:
    """Replace every function of a libdevice module (the generic stubs or a backend's)."""
    for name, member in list(vars(module).items()):
        if (
            callable(member)
            and not name.startswith("_")
            and getattr(member, "__module__", "") == module.__name__
        ):
            setattr(module, name, replacement(name))
