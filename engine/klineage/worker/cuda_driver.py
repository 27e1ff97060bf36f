"""The CUDA driver through ctypes: load a cubin, and launch its kernels.

Works on the device's primary context, the one that torch uses too, and on the default stream.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from klineage.worker import cuda_tensor_map
from klineage.worker.cuda_plan import Argument, Step
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.gpu_errors import BY_KERNEL

_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@functools.lru_cache(maxsize=1)
def driver() -> Any:
    """libcuda, initialised. Raises WorkerError("no_gpu") where there is no driver or no device."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise WorkerError("no_gpu", f"there is no NVIDIA driver here: {error}") from error
    if library.cuInit(0) != 0:
        raise WorkerError("no_gpu", "the NVIDIA driver finds no usable GPU")
    return library


def start(ordinal: int = 0) -> None:
    """Make the primary context of a device current in this thread."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _check(driver().cuDeviceGet(ctypes.byref(device), ordinal), "find the device")
    _check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "open the device")
    _check(driver().cuCtxSetCurrent(context), "use the device")


def describe(status: int) -> str:
    """``CUDA_ERROR_ILLEGAL_ADDRESS (700)``."""
    text = ctypes.c_char_p()
    driver().cuGetErrorName(status, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode()} ({status})"


def _check(status: int, doing: str) -> None:
    if status != 0:
        raise WorkerError("cuda", f"the driver could not {doing}: {describe(status)}")


def _check_kernel(status: int, kernel: str, doing: str) -> None:
    if status in BY_KERNEL:
        reason, what, _ = BY_KERNEL[status]
        raise KernelFault(reason, f"{kernel} {what} ({describe(status)})")
    if status == 2:
        raise KernelFault("memory", f"{kernel} needs more memory than the device has free")
    _check(status, doing)


class Module:
    """A loaded cubin. Its kernels are found by name."""

    def __init__(self, cubin: bytes, name: str) -> None:
        self._module, self._functions = ctypes.c_void_p(), dict[str, ctypes.c_void_p]()
        status = driver().cuModuleLoadData(ctypes.byref(self._module), cubin)
        if status == 209:
            raise WorkerError("platform", f"{name} was compiled for another GPU than the one here")
        _check(status, f"load the compiled {name}")

    def _function(self, step: Step) -> ctypes.c_void_p:
        if step.kernel not in self._functions:
            function = ctypes.c_void_p()
            status = driver().cuModuleGetFunction(ctypes.byref(function), self._module, step.kernel.encode())
            if status == 500:
                raise KernelFault("entry", f"the compiled file has no kernel {step.kernel}")
            _check(status, f"find {step.kernel}")
            self._functions[step.kernel] = function
        function = self._functions[step.kernel]
        if step.shared:  # beside static shared memory, a little may already be beyond the default limit
            status = driver().cuFuncSetAttribute(function, _DYNAMIC_SHARED, step.shared)
            if status != 0:
                text = f"{step.kernel} asks for {step.shared} bytes of shared memory a block, which this GPU refuses"
                raise KernelFault("shared_memory", f"{text} ({describe(status)})")
        return function

    def launcher(self, step: Step, addresses: dict[str, int]) -> Launcher:
        """The step with the addresses of its buffers, ready to be launched many times."""
        return Launcher(self._function(step), step, [_value(a, addresses) for a in step.arguments])


class Launcher:
    """One launch with everything bound. Calling it queues it on the default stream."""

    def __init__(self, function: ctypes.c_void_p, step: Step, values: list[Any]) -> None:
        self.name = step.kernel
        self._values = values  # the driver reads them at each launch
        self._pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(v) for v in values))
        sizes = [ctypes.c_uint(n) for n in (*step.grid, *step.block, step.shared)]
        self._arguments = (function, *sizes, None, self._pointers)
        self._cooperative = step.cooperative

    def __call__(self) -> None:
        if self._cooperative:
            status = driver().cuLaunchCooperativeKernel(*self._arguments)
        else:
            status = driver().cuLaunchKernel(*self._arguments, None)
        if status != 0:
            _check_kernel(status, self.name, f"launch {self.name}")


def synchronize(kernel: str) -> None:
    """Wait for everything that was queued. Raises KernelFault for what went wrong on the device."""
    _check_kernel(driver().cuCtxSynchronize(), kernel, "wait for the device")


def _value(argument: Argument, addresses: dict[str, int]) -> Any:
    value: Any = argument.value
    if argument.kind == "tensor_map":
        return cuda_tensor_map.encoded(value, addresses[value.buffer], driver())
    if argument.kind == "pointer":
        return ctypes.c_uint64(addresses[value])
    if argument.kind == "float":
        return (ctypes.c_float if argument.size == 4 else ctypes.c_double)(value)
    signed = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}
    unsigned = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
    return (signed if argument.signed else unsigned)[argument.size](value)
