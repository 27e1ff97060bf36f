"""Which function of a file is entered when nobody says so, and what is said where it cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.surface.dispatch import entry_of
from klineage.walk.reading import loose_kernel
from klineage.walk.versions import from_files
from klineage.workload import load

KERNEL = """import triton
import triton.language as tl


@triton.jit
def halve(x, y):
    tl.store(y, tl.load(x) / 2)

"""
LAUNCH = """
def launch(x, y):
    halve[(1,)](x, y)

"""
OTHER = """
def compare(x, y):
    launch(x, y)

"""
METHODS = """
class Halve:
    def forward(self, x, y):
        def grid(_):
            return (1,)

        halve[grid](x, y)
"""
C = """#include <stdint.h>
static void helper(float *y) { *y = 1; }
void rows(float *y, int64_t n) { helper(y); }
uint64_t now(void) { return 1; }
void *thread(void *p) { return p; }
int main(void) { return 0; }
"""


def entry(surface: str, text: str, wanted: str | None = None) -> str:
    return entry_of(surface, "k", text.encode(), load("softmax"), wanted)


def test_the_only_function_that_launches_a_kernel_is_entered() -> None:
    assert entry("triton", KERNEL + LAUNCH + OTHER + METHODS) == "launch"
    assert entry("triton", KERNEL + LAUNCH + OTHER, "compare") == "compare"


def test_methods_and_inner_functions_are_never_offered() -> None:
    with pytest.raises(
        KlineageError, match=r"no function at the top of k launches .* --entry: compare, other$"
    ):
        entry("triton", KERNEL + OTHER + METHODS + OTHER.replace("compare", "other"))
    with pytest.raises(KlineageError, match=r"no function 'forward' to enter; it has launch$"):
        entry("triton", KERNEL + LAUNCH + METHODS, "forward")


def test_a_file_without_kernel_text_is_refused_whatever_it_defines() -> None:
    with pytest.raises(KlineageError, match=r"there is no kernel text to walk"):
        entry("triton", OTHER + OTHER.replace("compare", "other"))


def test_an_entry_in_c_returns_nothing() -> None:
    assert entry("c", C) == "rows"


def test_a_loose_file_is_read_by_its_entry_or_in_the_language_that_is_said(tmp_path: Path) -> None:
    for name in ("k.c", "k.cpp"):
        (tmp_path / name).write_text(C)
    assert loose_kernel(tmp_path / "k.c").entry == "rows"
    assert loose_kernel(tmp_path / "k.cpp", "c").entry == "rows"
    with pytest.raises(
        KlineageError, match=r"cannot tell the language of k\.cpp; say --surface triton, c, cuda$"
    ):
        loose_kernel(tmp_path / "k.cpp")


def test_headers_of_cuda_are_versions_too(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match=r"no file in .* ends in \.py, \.c, \.cu, \.cuh"):
        from_files([tmp_path])
    for number in (1, 2, 10):
        (tmp_path / f"{number}.cuh").write_text(f"__global__ void k{number}() {{}}")
    assert [version.name for version in from_files([tmp_path])] == ["1.cuh", "2.cuh", "10.cuh"]
