"""Parsing, loci and byte-exact edits on files of every kind."""

from __future__ import annotations

import random

import pytest
from klineage.surface.lists import add_element, elements, remove_elements
from klineage.surface.tree import Edit, Unit, apply_edits, function_locus, parse, walk

PYTHON = b"""import triton
import triton.language as tl

@triton.jit
def gemm_kernel(x, K, BLOCK: tl.constexpr):
    for k in range(0, K, BLOCK):
        for k in range(4):
            pass
    for k in range(2):
        while True:
            break

helper = 1
def gemm(x):
    gemm_kernel[(1,)](x, 3, BLOCK=16, num_stages=2)
    gemm_kernel[(2,)](x, 3, BLOCK=16)
"""
C = b"""#include <stdint.h>
static float panel[64 * 4] __attribute__((aligned(64)));
static int64_t *micro(int64_t n) {
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < n; ++j)
            panel[i + j] = 0;
    return 0;
}
void gemm(int64_t n) {
    for (; n > 0; n -= 2) { do { micro(n); } while (0); }
    for (int64_t i = 0; i < n; ++i) micro(i);
}
"""


def python(source: bytes) -> Unit:
    return parse("triton", "kernel.py", source)


def test_python_loci_name_functions_loops_and_launches() -> None:
    assert list(python(PYTHON).loci) == [
        "kernel.py::gemm_kernel",
        "kernel.py::gemm_kernel/for[k]",
        "kernel.py::gemm_kernel/for[k]/for[k]",
        "kernel.py::gemm_kernel/for[k#2]",
        "kernel.py::gemm_kernel/for[k#2]/while[]",
        "kernel.py::gemm",
        "kernel.py::gemm/launch[gemm_kernel]",
        "kernel.py::gemm/launch[gemm_kernel#2]",
    ]


def test_c_loci_are_found_under_pragmas_and_attributes() -> None:
    unit = parse("c", "kernel.c", C)
    assert unit.broken_lines() == ()
    assert list(unit.loci) == [
        "kernel.c::micro",
        "kernel.c::micro/for[i]",
        "kernel.c::micro/for[i]/for[j]",
        "kernel.c::gemm",
        "kernel.c::gemm/for[n]",
        "kernel.c::gemm/for[n]/while[]",
        "kernel.c::gemm/for[i]",
    ]
    assert [f.exported for f in unit.functions] == [False, True]
    assert [C[a:b] for a, b in unit.loop_pragmas] == [b"#pragma GCC unroll 4", b"#pragma GCC unroll 2"]
    assert [C[a:b].strip() for a, b in unit.array_alignments] == [b"__attribute__((aligned(64)))"]


def test_what_a_check_must_see_stays_in_the_tree() -> None:
    source = b'#pragma GCC optimize("O0")\n__attribute__((constructor)) void f(void) { /* #pragma omp parallel */ }\n'
    unit = parse("c", "kernel.c", source)
    kinds = {node.type for node in walk(unit.root)}
    assert {"preproc_call", "attribute_specifier"} <= kinds
    assert unit.loop_pragmas == ()


def test_functions_jitted_by_decorator_and_by_call() -> None:
    unit = python(
        b"@triton.jit(noinline=True)\ndef a(): pass\ndef b(): pass\nc = triton.jit(b)\ndef d(): pass\n"
    )
    assert [(f.name, f.jit) for f in unit.functions] == [("a", True), ("b", True), ("d", False)]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf", b"# caf\xe9 \xff\n"])
def test_endings_marks_and_encodings_change_nothing(ending: bytes, lead: bytes) -> None:
    source = (lead + PYTHON).replace(b"\n", ending)
    unit = python(source)
    assert list(unit.loci) == list(python(PYTHON).loci)
    assert unit.broken_lines() == ()
    assert unit.source == source
    function = unit.functions[0].node
    assert (
        unit.text(function).encode("utf-8", "surrogateescape")
        == source[function.start_byte : function.end_byte]
    )
    assert unit.newline(function.start_byte) == ending
    assert unit.line(function.start_byte) == 4 + lead.count(b"\n")


def test_a_broken_file_says_where_and_keeps_its_functions() -> None:
    unit = python(PYTHON.replace(b"helper = 1\n", b"helper = = (\n"))
    assert unit.broken_lines()
    assert unit.broken_lines()[0] >= 13
    assert "gemm_kernel" in [f.name for f in unit.functions]


@pytest.mark.parametrize("surface", ["triton", "c"])
@pytest.mark.parametrize(
    "source", [b"", b"\n", b"\0\1\2\xff" * 500, b"x" * 10_000, b"(" * 2_000, b"for " * 500]
)
def test_odd_files_parse_to_something(surface: str, source: bytes) -> None:
    unit = parse(surface, "kernel", source)  # type: ignore[arg-type]
    assert unit.functions == ()
    assert unit.loci == {}


def test_five_thousand_lines() -> None:
    body = b"".join(b"    x%d = x + %d\n" % (i, i) for i in range(5_000))
    unit = python(b"def f(x):\n" + body)
    assert unit.functions[0].node.end_byte >= len(unit.source) - 1


def test_a_function_locus_survives_slashes_in_the_file_name() -> None:
    assert function_locus("a/b.py::f/for[k]/for[j]") == "a/b.py::f"


def test_random_edits_keep_every_other_byte() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        source = rng.randbytes(rng.randrange(1, 200))
        cuts = sorted(rng.sample(range(len(source) + 1), min(len(source) + 1, 2 * rng.randrange(1, 5))))
        spans = list(zip(cuts[::2], cuts[1::2], strict=False))
        edits = [Edit(a, b, rng.randbytes(rng.randrange(4))) for a, b in spans]
        expected, position = b"", 0
        for edit in edits:
            expected += source[position : edit.start] + edit.text
            position = edit.end
        rng.shuffle(edits)
        assert apply_edits(source, edits) == expected + source[position:], f"seed {seed}"


@pytest.mark.parametrize("edits", [[Edit(0, 3), Edit(2, 4)], [Edit(1, 9)], [Edit(3, 2)]])
def test_impossible_edits_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="overlaps another or leaves the source"):
        apply_edits(b"abcde", edits)


LISTS = [
    (b"f(a, b, c)", "b", b"f(a, c)"),
    (b"f(a, b, c)", "a", b"f(b, c)"),
    (b"f(a, b, c)", "c", b"f(a, b)"),
    (b"f(a)", "a", b"f()"),
    (b"f(\n    a,\n    b,  # why\n    c,\n)", "b", b"f(\n    a,\n    c,\n)"),
    (b"f(\r\n    a,\r\n    b\r\n)", "b", b"f(\r\n    a,\r\n)"),
    (b"f(\n    a, b,\n    c,\n)", "b", b"f(\n    a,\n    c,\n)"),
]


@pytest.mark.parametrize(("source", "gone", "expected"), LISTS)
def test_removing_an_element_keeps_the_layout(source: bytes, gone: str, expected: bytes) -> None:
    unit = python(source)
    arguments = next(n for n in walk(unit.root) if n.type == "argument_list")
    node = next(e for e in elements(arguments) if unit.text(e) == gone)
    assert apply_edits(source, remove_elements(unit, arguments, [node])) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"f()", b"f(z=1)"),
        (b"f(a)", b"f(a, z=1)"),
        (b"f(\n    a,\n    b,\n)", b"f(\n    a,\n    b,\n    z=1,\n)"),
        (b"f(\r\n\ta,\r\n\tb\r\n)", b"f(\r\n\ta,\r\n\tb,\r\n\tz=1\r\n)"),
        (b"f(\n    a, b,\n    c=2, d=3,\n)", b"f(\n    a, b,\n    c=2, d=3, z=1,\n)"),
    ],
)
def test_adding_an_element_follows_the_layout(source: bytes, expected: bytes) -> None:
    unit = python(source)
    arguments = next(n for n in walk(unit.root) if n.type == "argument_list")
    assert apply_edits(source, [add_element(unit, arguments, "z=1")]) == expected
