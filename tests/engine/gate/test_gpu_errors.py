"""Whose fault a CUDA error is, whatever torch calls it and wherever it comes up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from klineage.worker.faults import KernelFault
from klineage.worker.gpu_errors import BY_KERNEL, blamed


class AcceleratorError(RuntimeError):
    """As torch 2.11 raises it."""

    def __init__(self, words: str, error_code: int | None = None) -> None:
        super().__init__(f"CUDA error: {words}\nCUDA kernel errors might be asynchronously reported")
        if error_code is not None:
            self.error_code = error_code


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("an illegal memory access was encountered", "illegal_access"),
        ("misaligned address", "illegal_access"),
        ("unspecified launch failure", "crashed"),
        ("an illegal instruction was encountered", "crashed"),
        ("device-side assert triggered", "assert"),
        ("the launch timed out and was terminated", "timeout"),
    ],
)
def test_an_error_of_the_device_is_the_kernels_fault(words: str, reason: str) -> None:
    with pytest.raises(KernelFault, match=r"entry .* CUDA error 7") as caught, blamed("entry"):
        raise AcceleratorError(words)
    assert caught.value.reason == reason


@pytest.mark.parametrize("number", sorted(BY_KERNEL))
def test_the_number_decides_before_the_words(number: int) -> None:
    with pytest.raises(KernelFault) as caught, blamed("entry"):
        raise AcceleratorError("words of another version", number)
    assert caught.value.reason == BY_KERNEL[number][0]


@contextmanager
def profiler() -> Iterator[None]:
    """Its end waits for the device, and so hears of the error again."""
    try:
        yield
    finally:
        raise AcceleratorError("unspecified launch failure")


def test_the_first_fault_is_not_covered_up_by_a_later_one() -> None:
    with pytest.raises(KernelFault, match="first") as caught, blamed("entry"), profiler():
        raise KernelFault("illegal_access", "first")
    assert caught.value.reason == "illegal_access"


@pytest.mark.parametrize("error", [AcceleratorError("out of memory"), ValueError("misaligned address")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, blamed("entry"):
        raise error
    assert caught.value is error
