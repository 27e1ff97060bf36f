"""Declared launches: what the comments say, and what they come to at given dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.gate.request import kernel_job
from klineage.kernel import Kernel
from klineage.surface.cuda_launch import declared
from klineage.surface.expression import NotAnExpression, Tree, names_of, parse_expression
from klineage.worker import cuda_plan
from klineage.worker.cuda_tensor_map import TensorMap
from klineage.worker.faults import KernelFault

VALUES = {"n": 1000, "m": 7, "TILE": 16}
TEXTS = {
    "cdiv(n, 128)": 8,
    "n // 3 + m % 4 * 2": 339,
    "n / 3": 333,
    "(n > 64 and m == 7) or 0": 1,
    "not n": 0,
    "m if n < 64 else -m": -7,
    "min(n, m, 3) + max(1, m)": 10,
    "2 * TILE * sizeof(float)": 128,
    "sizeof(__nv_bfloat16) << 3": 16,
    "0x10u + 4UL": 20,
    "True": 1,
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_has_the_value_that_c_and_python_agree_on(text: str) -> None:
    assert cuda_plan.evaluate(parse_expression(text), VALUES) == TEXTS[text]


@pytest.mark.parametrize(
    "text",
    ["", "n +", "__import__('os')", "n.bit_length()", "[n][0]", "lambda: 1", "open(n)", "f'{n}'", "'a' * 9",
     "cdiv(n)", "n ** 99", "sizeof(struct)", "(n := 3)", "1 < n < 3", "(" * 3000, "n" * 2001, "cdiv(n, b=2)", "~n"],
)  # fmt: skip
def test_nothing_else_is_an_expression(text: str) -> None:
    with pytest.raises(NotAnExpression):
        parse_expression(text)


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        tree = parse_expression(text)
    except NotAnExpression:
        return
    values = dict.fromkeys(names_of(tree), 3)
    try:
        assert isinstance(cuda_plan.evaluate(tree, values), (int, float))
    except KernelFault as fault:
        assert fault.reason == "launch"


@given(st.text(alphabet="(),= abgridlockargsnm0128+*", max_size=80))
def test_any_launch_comment_is_read_or_refused(text: str) -> None:
    found = declared(f"// klineage: launch k {text}\n".encode())
    assert len(found.launches) + len(found.problems) == 1


REFUSED = {
    "launch": "name the kernel first",
    "launch k": "needs both grid=(...) and block=(...)",
    "launch k grid=(1)": "needs both",
    "launch k grid=(1) block=(1) grid=(2)": "grid= stands there twice",
    "launch k grid=(1,2,3,4) block=(1)": "grid has 4 extents",
    "launch k gird=(1) block=(1)": "'gird=(1) block=(1)' is not understood",
    "launch k grid=(1) block=(1) args=(a=b, c)": "stands after named ones",
    "scratch t": "is written // klineage: scratch NAME TYPE (EXTENT, ...)",
    "scratch t float (m)": "unknown type float",
    "tensor_map t": "is written // klineage: tensor_map NAME BUFFER",
    "tensor_map t box=(8, 64)": "is written // klineage: tensor_map NAME BUFFER",
    "tensor_map t x swizzle=128": "t needs box=",
    "tensor_map t x box=(8) fill=0": "'(8) fill=0' is not an expression",
    "lunch k grid=(1) block=(1)": "'lunch' is no klineage comment",
}


@pytest.mark.parametrize("comment", REFUSED)
def test_a_comment_that_cannot_be_read_says_why_and_where(comment: str) -> None:
    (problem,) = declared(f"\n// klineage: {comment}\n".encode()).problems
    assert problem.line == 2
    assert REFUSED[comment] in problem.message


def steps(kernel: Kernel, tensors: cuda_plan.Tensors, dims: dict[str, int]) -> list[cuda_plan.Step]:
    return cuda_plan.plan(kernel_job(kernel), tensors, dims, {"alpha": 1.5})


def gemm(m: int, n: int, k: int) -> tuple[cuda_plan.Tensors, dict[str, int]]:
    tensors = {"x": ("bf16", (m, k)), "weight": ("bf16", (n, k)), "y": ("bf16", (m, n))}
    return tensors, {"m": m, "n": n, "k": k}


def test_two_launches_share_scratch(shipped_kernel: Callable[..., Kernel]) -> None:
    kernel = shipped_kernel("gemm_split", "gemm")
    assert kernel.entry == "split_kernel+join_kernel"
    split, join = steps(kernel, *gemm(100, 50, 64))
    assert (split.grid, split.block, split.shared) == ((4, 7, 4), (16, 16, 1), 2048)
    assert [a.value for a in split.arguments] == ["x", "weight", "partial", 100, 50, 64]
    assert (join.grid, join.threads) == ((20, 1, 1), 256)
    assert [(a.kind, a.size, a.value) for a in join.arguments] == [
        ("pointer", 8, "partial"), ("pointer", 8, "y"), ("integer", 8, 5000),
    ]  # fmt: skip
    assert cuda_plan.scratch(kernel_job(kernel), {"m": 100, "n": 50, "k": 64}) == {
        "partial": ("fp32", (4, 100, 50))
    }


def test_one_of_several_kernels_is_entered_alone(shipped_kernel: Callable[..., Kernel]) -> None:
    kernel = shipped_kernel("gemm_split", "gemm")
    alone = Kernel("cuda", kernel.filename, "join_kernel", kernel.source)
    assert [launch["kernel"] for launch in kernel_job(alone)["launches"]] == ["join_kernel"]


ROWS: dict[str, Any] = {"rows": 8, "columns": 64}
BUFFERS: cuda_plan.Tensors = {"x": ("fp32", (8, 64)), "bias": ("fp32", (64,)), "y": ("fp32", (8, 64))}


def test_a_launch_may_depend_on_the_dimensions(cuda: Callable[..., Kernel]) -> None:
    kernel = cuda(
        launch="grid=(rows) block=(64) when=columns % 64 == 0\n// klineage: launch scale grid=(9) block=(32) when=columns % 64"
    )
    assert [s.grid[0] for s in steps(kernel, BUFFERS, ROWS)] == [8]
    assert [s.grid[0] for s in steps(kernel, BUFFERS, {"rows": 8, "columns": 13})] == [9]
    assert steps(cuda(launch="grid=(1) block=(32) when=columns != 64"), BUFFERS, ROWS) == []


LIMITS = {
    "grid=(rows - 8) block=(32)": ("launch", "grid (0, 1, 1)"),
    "grid=(1, 70000) block=(32)": ("launch", "grid"),
    "grid=(1) block=(64, 32)": ("threads", "2048 threads a block"),
    "grid=(1) block=(32) shared=-1": ("launch", "negative"),
    "grid=(rows / 0) block=(32)": ("launch", "by zero"),
    "grid=(1.5) block=(32)": ("launch", "not a whole number"),
    "grid=(1) block=(32) args=(columns=1 << 40)": ("signature", "does not fit int"),
    "grid=(1) block=(32) args=(x, bias, y, rows * rows * rows * 1 << 62)": ("launch", "too large"),
}


@pytest.mark.parametrize("launch", LIMITS)
def test_what_no_device_can_launch_is_refused_with_the_number(
    launch: str, cuda: Callable[..., Kernel]
) -> None:
    with pytest.raises(KernelFault) as fault:
        steps(cuda(launch=launch), BUFFERS, ROWS)
    reason, words = LIMITS[launch]
    assert fault.value.reason == reason
    assert words in str(fault.value)


def test_a_pointer_of_another_format_is_refused(cuda: Callable[..., Kernel]) -> None:
    halves: cuda_plan.Tensors = {**BUFFERS, "x": ("bf16", (8, 64))}
    with pytest.raises(KernelFault, match="parameter x is float \\*, but x is bf16"):
        steps(cuda(), halves, ROWS)


def test_constants_of_the_file_are_values(cuda: Callable[..., Kernel]) -> None:
    head = "#define A 4\nconstexpr int B = A * 2;\nenum { C = 3 };\nusing index = int;\nconst unsigned D = B + C;\n#define LOOP LOOP\n"
    kernel = cuda(head=head, launch="grid=(D) block=(A * 8) shared=B")
    (step,) = steps(kernel, BUFFERS, ROWS)
    assert (step.grid[0], step.threads, step.shared) == (11, 32, 8)
    with pytest.raises(KernelFault, match="LOOP has no value"):
        steps(cuda(head=head, launch="grid=(LOOP) block=(1)"), BUFFERS, ROWS)
    twice = "#if 1\n#define A 4\n#else\n#define A 8\n#endif\n"
    with pytest.raises(KernelFault, match="A has no value"):
        steps(cuda(head=twice, launch="grid=(A) block=(1)"), BUFFERS, ROWS)


def mapped(more: str, parameter: str = "const __grid_constant__ CUtensorMap x_map") -> Kernel:
    source = f"""// klineage: tensor_map x_map x {more}
// klineage: launch mapped grid=(1) block=(32)
extern "C" __global__ void mapped({parameter}, float *y) {{}}
"""
    return Kernel("cuda", "kernel.cu", "mapped", source.encode())


def test_a_tensor_map_is_planned_with_its_launch() -> None:
    (step,) = steps(mapped("box=(rows, 32) swizzle=128"), BUFFERS, ROWS)
    found = step.arguments[0].value
    assert isinstance(found, TensorMap)
    assert (step.arguments[0].kind, step.arguments[0].size) == ("tensor_map", 128)
    assert found == TensorMap("x", "fp32", (8, 64), (8, 32), 128)
    assert found.strides == (256,)
    (step,) = steps(mapped("shape=(2, 4, columns) box=(1, 4, 64)"), BUFFERS, ROWS)
    assert step.arguments[0].value == TensorMap("x", "fp32", (2, 4, 64), (1, 4, 64), 0)


WRONG_MAPS = {
    "box=(8)": "the same one to five extents",
    "shape=(9, 64) box=(1, 4)": "shape (9, 64) does not fit the 512 elements of x",
    "shape=(8, 0) box=(1, 4)": "does not fit",
    "box=(257, 4)": "between 1 and 256",
    "box=(8, 3)": "rows of 12 bytes, which are no multiple of 16",
    "shape=(8, 13) box=(8, 4)": "52 bytes from row to row",
    "box=(8, 4) swizzle=16": "swizzle=16 is not 0, 32, 64 or 128",
    "box=(8, 64) swizzle=128": "rows of 256 bytes, more than swizzle=128",
    "box=(8, 4.5)": "not a whole number",
}


@pytest.mark.parametrize("declaration", WRONG_MAPS)
def test_what_the_copy_engine_cannot_do_is_refused(declaration: str) -> None:
    with pytest.raises(KernelFault) as fault:
        steps(mapped(declaration), BUFFERS, ROWS)
    assert fault.value.reason == "launch"
    assert "kernel.cu:2: mapped: x_map: " in str(fault.value)
    assert WRONG_MAPS[declaration] in str(fault.value)


def test_a_map_that_nobody_declared_is_no_argument() -> None:
    kernel = mapped("box=(8, 4)", "const __grid_constant__ CUtensorMap other")
    with pytest.raises(KernelFault, match="parameter other is a CUtensorMap, and other is none") as fault:
        steps(kernel, BUFFERS, ROWS)
    assert fault.value.reason == "signature"


def test_trees_are_json(shipped_kernel: Callable[..., Kernel]) -> None:
    import json

    job = kernel_job(shipped_kernel("gemm_split", "gemm"))
    assert json.loads(json.dumps(job)) == job
    tree: Tree = ["cdiv", "n", 16]
    assert job["launches"][0]["grid"][0] == tree
