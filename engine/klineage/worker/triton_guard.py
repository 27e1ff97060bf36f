"""What host code really does with tensors while it runs: it may allocate, look and launch, and no more.

Reading a file can be fooled; torch itself cannot. Every call into torch while a kernel file's host code
runs is checked here, by whatever name the file reached it. Triton's own code, which copies tensors about
when it interprets a launch, is trusted.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from klineage.worker.faults import KernelFault


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALLOWED = _words(
    """
    __dir__ device arange tensor __getitem__ __hash__ __iter__ __len__ as_strided broadcast_shapes chunk contiguous cuda
    data_ptr dense_dim detach diagonal dim element_size empty empty_like empty_permuted empty_strided expand expand_as fill_
    flatten full full_like get_device has_names is_complex is_contiguous is_floating_point is_inference is_neg is_conj
    is_pinned is_same_size is_signed movedim moveaxis narrow ndimension nelement new_empty new_empty_strided new_full new_ones
    new_zeros numel ones ones_like permute pin_memory requires_grad_ reshape select size split squeeze storage_offset
    stride swapaxes swapdims t tensor_split to transpose unbind unflatten unfold unsqueeze view view_as zero_ zeros zeros_like
    """
)
_CONSTANTS = _words("fill_ full full_like new_full")  # may take a number, and no tensor
_NO_PROPERTY = _words("data grad real imag H __cuda_array_interface__ volatile")

_trusted = [0]
_path = [""]


@contextlib.contextmanager
def trusted() -> Iterator[None]:
    """Inside, it is not the kernel's file that uses torch."""
    _trusted[0] += 1
    try:
        yield
    finally:
        _trusted[0] -= 1


def distrusted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the kernel's file that trusted code calls, a grid for example."""

    def call(*args: Any, **kwargs: Any) -> Any:
        before, _trusted[0] = _trusted[0], 0
        try:
            return function(*args, **kwargs)
        finally:
            _trusted[0] = before

    return call


def _refuse(what: str) -> None:
    frame, line = sys._getframe(1), 0
    while frame is not None and not line:
        if frame.f_code.co_filename == _path[0]:
            line = frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    place = f"line {line}: " if line else ""
    raise KernelFault(
        "host_compute", f"{place}{what} on the host; arithmetic on tensors belongs in the kernel", line=line
    )


def _check(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    import torch

    name = str(getattr(function, "__name__", function))
    if name in ("__get__", "__set__", "__delete__"):
        owner = str(getattr(getattr(function, "__self__", None), "__name__", ""))
        if name != "__get__" or owner in _NO_PROPERTY:
            _refuse(f"uses {owner} of a tensor")
        return
    if name not in _ALLOWED:
        _refuse(f"computes with {name}")
    rest = (*args[1:], *kwargs.values())
    tensors = [
        v
        for part in rest
        for v in (part if isinstance(part, tuple) else (part,))
        if isinstance(v, torch.Tensor)
    ]
    if name == "__getitem__" and tensors:
        _refuse("gathers by a tensor of indices")
    if name in _CONSTANTS and tensors:
        _refuse(f"copies a number out of a tensor with {name}")
    if name == "to" and any(isinstance(v, torch.dtype) for v in rest) and not _keeps_type(args, rest):
        _refuse("converts a tensor")


def _keeps_type(args: tuple[Any, ...], rest: tuple[Any, ...]) -> bool:
    import torch

    return all(not isinstance(v, torch.dtype) or v is args[0].dtype for v in rest)


@functools.lru_cache(maxsize=1)
def _mode() -> Any:
    from torch.overrides import TorchFunctionMode

    class Calls(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not _trusted[0]:
                _check(func, args, kwargs or {})
            return func(*args, **(kwargs or {}))

    return Calls()


@contextlib.contextmanager
def watching(path: str) -> Iterator[None]:
    """Inside, what the file at ``path`` does with tensors is checked; a few microseconds to enter and leave.

    Raises KernelFault("host_compute") with the line when it computes.
    """
    _path[0], _trusted[0] = path, 0
    with _mode():
        yield
