"""What host code of a GPU kernel expects to find: a device, a driver, CUDA tensors.

On a machine without them, host code runs unedited: its tensors live on the CPU (or nowhere, for the
compiler) while it reads ``cuda:0``. Fresh memory is poisoned so that a kernel cannot pass by leaving it.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from klineage.worker.faults import Unsupported, WorkerError

_PROCESSORS = {80: 108, 86: 84, 89: 128, 90: 132, 100: 148, 120: 170}
_SHARED = {
    80: 166912,
    86: 101376,
    89: 101376,
    90: 232448,
    100: 232448,
    120: 101376,
}  # bytes a block can opt into

# What host code is told: a name that says where it really runs would be a way to behave otherwise there.
_DEVICE_NAMES = {
    80: "NVIDIA A100-SXM4-80GB",
    86: "NVIDIA RTX A6000",
    89: "NVIDIA L40S",
    90: "NVIDIA H100 80GB HBM3",
    100: "NVIDIA B200",
    120: "NVIDIA GeForce RTX 5090",
}


def capability(target: str) -> int:
    """90 for "nvidia-sm90" or "nvidia-sm90a". Raises WorkerError for anything but an NVIDIA target."""
    digits = target[len("nvidia-sm") :].rstrip("af") if target.startswith("nvidia-sm") else ""
    if not digits.isdigit():
        raise WorkerError(
            "target", f"cannot compile Triton for {target!r}; give a platform such as nvidia-sm90"
        )
    return int(digits)


class FakeDriver:
    """A Triton driver for a device that is not here: it answers questions and launches nothing."""

    def __init__(self, target: str) -> None:
        self.capability = capability(target)
        self.utils = types.SimpleNamespace(
            get_device_properties=self._properties,
            load_binary=lambda *_: (0, 0, 32, 0, 1024),
            unload_module=lambda *_: None,
            cuOccupancyMaxActiveClusters=lambda *_: 16,
        )
        self.launcher_cls = lambda *_: lambda *_: None
        self.binary_ext = "cubin"

    def _properties(self, device: int) -> dict[str, int]:
        return {
            "max_shared_mem": _SHARED.get(self.capability, 101376),
            "max_num_regs": 65536,
            "multiprocessor_count": _PROCESSORS.get(self.capability, 132),
            "warpSize": 32,
            "sm_clock_rate": 1_700_000,
            "mem_clock_rate": 2_600_000,
            "mem_bus_width": 5120,
        }

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device."""

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return self.capability // 10, self.capability % 10

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Any:
        def refuse(*_: Any, **__: Any) -> Any:
            raise Unsupported("benchmark", "the file measures kernels while it is loaded, which needs a GPU")

        return refuse

    def get_empty_cache_for_benchmark(self) -> Any:
        return self.get_benchmarker()()

    def clear_cache(self, cache: Any) -> None:
        """There is no cache."""

    def assemble_tensormap_to_arg(self, *_: Any) -> Any:
        return None


class _Anything:
    """Stands for streams, events and device contexts."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __enter__(self) -> _Anything:
        return self

    def __exit__(self, *_: Any) -> None: ...
    def synchronize(self, *_: Any) -> None: ...
    def record(self, *_: Any) -> None: ...
    def wait_stream(self, *_: Any) -> None: ...
    def wait_event(self, *_: Any) -> None: ...
    def query(self) -> bool:
        return True


def _nothing(*_: Any, **__: Any) -> None:
    """Synchronizing, initialising and the like: there is nothing to do."""


def _cuda_functions(target: str) -> dict[str, Any]:
    major, minor = divmod(capability(target), 10)
    shared = _SHARED.get(capability(target), 101376)
    properties = types.SimpleNamespace(
        name=_DEVICE_NAMES.get(capability(target), "NVIDIA GPU"),
        major=major,
        minor=minor,
        total_memory=80 << 30,
        multi_processor_count=_PROCESSORS.get(capability(target), 132),
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared + 1024,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        L2_cache_size=50 << 20,
        warp_size=32,
        gcnArchName="",
    )
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_, **__: True,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_name": lambda *_: properties.name,
        "get_device_capability": lambda *_: (major, minor),
        "get_device_properties": lambda *_: properties,
        "memory_allocated": lambda *_: 0,
        "max_memory_allocated": lambda *_: 0,
        **dict.fromkeys(("init", "_lazy_init", "synchronize", "set_device", "empty_cache"), _nothing),
        "reset_peak_memory_stats": _nothing,
        "current_stream": _Anything,
        "default_stream": _Anything,
        **dict.fromkeys(("Stream", "Event", "device", "device_of", "stream", "_DeviceGuard"), _Anything),
    }


@contextlib.contextmanager
def pretend_gpu(target: str, device: str) -> Iterator[None]:
    """Inside, host code sees one CUDA device; what it puts there lands on ``device`` ("cpu" or "meta")."""
    import torch

    functions = _cuda_functions(target)
    saved = {name: getattr(torch.cuda, name) for name in functions}
    for name, function in functions.items():
        setattr(torch.cuda, name, function)
    drive(target)
    try:
        with _device_mode(device):
            yield
    finally:
        for name, function in saved.items():
            setattr(torch.cuda, name, function)


def drive(target: str) -> None:
    """From now on Triton finds a device of this platform, which launches nothing."""
    from triton.runtime import driver

    driver.set_active(FakeDriver(target))


def _device_mode(device: str) -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    cuda = torch.device("cuda", 0)
    answers: dict[Any, Any] = {
        torch.Tensor.device.__get__: cuda,
        torch.Tensor.is_cuda.__get__: True,
        torch.Tensor.is_cpu.__get__: False,
        torch.Tensor.is_meta.__get__: False,
        torch.Tensor.get_device: 0,
    }
    unchanged = {torch.Tensor.cuda, torch.Tensor.pin_memory}

    class DeviceMode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if func in answers:
                return answers[func]
            if func in unchanged:
                return args[0]
            if func is torch.Tensor.to:
                args = tuple(device if _is_cuda(a, cuda) else a for a in args)
            if "device" in kwargs and _is_cuda(kwargs["device"], cuda):
                kwargs["device"] = device
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
            return func(*args, **kwargs)

    return DeviceMode()


def _is_cuda(value: Any, cuda: Any) -> bool:
    if isinstance(value, str):
        return value.split(":")[0] == "cuda"
    if isinstance(value, int) and not isinstance(value, bool):
        return True
    return type(value) is type(cuda) and value.type == "cuda"


def poisoned() -> Any:
    """A context in which memory that torch leaves uninitialised holds NaN, or 0xA5 bytes for integers."""
    import torch
    from torch.overrides import TorchFunctionMode

    fresh = {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }

    class PoisonMode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if func in fresh and result.numel():
                poison(result)
            return result

    return PoisonMode()


_second = [False]


@contextlib.contextmanager
def other_poison() -> Iterator[None]:
    """Inside, fresh memory holds the second poison: what depends on poison then differs."""
    _second[0] = True
    try:
        yield
    finally:
        _second[0] = False


def poison(tensor: Any) -> None:
    """Fill ``tensor`` with the poison of the gate's own buffers; 0x7F or 0xA5 where a type has none there."""
    import torch

    from klineage.worker import buffers

    names = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
    size = tensor.element_size()
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    with torch._C.DisableTorchFunction():  # this is no operation of the kernel's file
        if tensor.dtype is torch.bool:
            tensor.fill_(True)
        elif tensor.dtype.is_complex:
            tensor.fill_(float("nan"))
        elif tensor.dtype in names:
            pattern = buffers.poison(names[tensor.dtype], _second[0])
            tensor.view(bits[size]).fill_(int.from_bytes(pattern, "little", signed=True))
        else:
            byte = 0x7F if tensor.dtype.is_floating_point else buffers.poison("uint8", _second[0])[0]
            pattern = bytes([byte]) * size
            tensor.view(bits[size]).fill_(int.from_bytes(pattern, "little", signed=True))
