"""Syntax roles per language, and only for the rows that are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klineage_tui.text.highlight import Highlighter, language_of, split_lines

PYTHON = '''\
@triton.jit
def kernel(x, é: tl.constexpr):  # 你好
    """doc
    more"""
    for k in range(0, 32):
        y = tl.dot(x, "s")
'''
C = """\
#include <immintrin.h>
static inline void f(const float *restrict x, int n) {
  __m512 a = _mm512_loadu_ps(x); /* c */
}
"""
CUDA = """\
template <int N> __global__ void k(float* x) {
  __shared__ float s[N];
  x[threadIdx.x] = 1.0f;
}
"""


def roles(text: str, language: str) -> dict[str, str]:
    """Highlighted text -> role without its prefix."""
    lines, _ = split_lines(text)
    highlighter = Highlighter(lines, language)
    return {
        line[start:end]: role.removeprefix("syntax-")
        for row, line in enumerate(lines)
        for start, end, role in highlighter.spans(row)
    }


def test_python() -> None:
    found = roles(PYTHON, "python")
    assert found["@triton.jit"] == "decorator"
    assert found["def"] == "keyword"
    assert found["kernel"] == "function"
    assert found["tl.constexpr"] == "type"
    assert found["# 你好"] == "comment"
    assert found['    more"""'] == "string"
    assert found["dot"] == "function"
    assert found["32"] == "number"


def test_c() -> None:
    found = roles(C, "c")
    assert found["#include"] == "decorator"
    assert found["__m512"] == "type"
    assert found["_mm512_loadu_ps"] == "builtin"
    assert found["/* c */"] == "comment"


def test_cuda() -> None:
    found = roles(CUDA, "cuda")
    assert found["__global__"] == "decorator"
    assert found["template"] == "keyword"
    assert found["threadIdx"] == "builtin"


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("kernel.py", "python"),
        ("a.b.CU", "cuda"),
        ("k.cc", "cpp"),
        ("k.c", "c"),
        ("notes.txt", ""),
        ("Makefile", ""),
    ],
)
def test_language_of_a_file(name: str, language: str) -> None:
    assert language_of(name) == language


@given(st.text(max_size=300), st.sampled_from(["python", "c", "cuda"]))
@settings(max_examples=60, deadline=None)
def test_any_text_gets_ordered_spans_inside_its_lines(text: str, language: str) -> None:
    lines, _ = split_lines(text)
    highlighter = Highlighter(lines, language)
    for row, line in enumerate(lines):
        end = 0
        for span in highlighter.spans(row):
            assert end <= span.start < span.end <= len(line)
            end = span.end


@pytest.mark.parametrize(
    ("text", "lines", "ends"),
    [
        ("", [], False),
        ("a", ["a"], False),
        ("a\n", ["a"], True),
        ("a\r\nb\n", ["a\r", "b"], True),
        ("\n", [""], True),
    ],
)
def test_lines_of_a_text(text: str, lines: list[str], ends: bool) -> None:
    assert split_lines(text) == (lines, ends)


def test_grammars_load_with_the_first_source_only() -> None:
    program = (
        "import sys\n"
        "import klineage_tui.widgets.diff_view, klineage_tui.screens.history\n"
        "heavy = {'tree_sitter', 'numpy', 'torch', 'triton', 'git', 'anthropic'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
