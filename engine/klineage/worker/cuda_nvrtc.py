"""Compile CUDA C++ to a cubin with NVRTC, which needs neither nvcc nor a driver."""

from __future__ import annotations

import ctypes

from klineage.worker.cuda_tools import Compiler
from klineage.worker.faults import WorkerError

# NVRTC brings no C headers; these are what kernels use of them.
_STDINT = """
typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef signed long long int64_t; typedef unsigned long long uint64_t;
typedef signed long long intptr_t; typedef unsigned long long uintptr_t;
"""
_FLOAT = """
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623157e+308
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
"""
_LIMITS = "#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 - 1)\n#define UINT_MAX 4294967295u\n"
_HEADERS = {
    "stdint.h": _STDINT, "cstdint": _STDINT, "float.h": _FLOAT, "cfloat": _FLOAT, "math.h": _FLOAT, "cmath": _FLOAT,
    "limits.h": _LIMITS, "climits": _LIMITS, "stddef.h": "", "cstddef": "", "stdbool.h": "", "cuda_runtime.h": "",
    "cuda.h": "", "device_launch_parameters.h": "", "assert.h": "", "cassert": "",
}  # fmt: skip


def compile_source(
    compiler: Compiler, source: bytes, name: str, options: tuple[str, ...]
) -> tuple[bytes | None, str]:
    """The cubin, or None where the source does not compile, and what the compiler said."""
    library = ctypes.CDLL(compiler.path)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    texts = [_text(t) for t in _HEADERS.values()]
    names = [_text(n) for n in _HEADERS]
    listed = ctypes.c_char_p * len(names)
    _check(
        library,
        library.nvrtcCreateProgram(
            ctypes.byref(program), source, _text(name), len(names), listed(*texts), listed(*names)
        ),
    )
    try:
        every = [*options, *(f"--include-path={folder}" for folder in compiler.include)]
        status = library.nvrtcCompileProgram(
            program, len(every), (ctypes.c_char_p * len(every))(*map(_text, every))
        )
        log = _read(library, program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")
        if status != 0:
            return None, log or library.nvrtcGetErrorString(status).decode()
        return _read(library, program, "CUBIN"), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != 0:
        raise WorkerError("nvrtc", f"NVRTC failed: {library.nvrtcGetErrorString(status).decode()}")
