"""What reading alone refuses in a Triton file, and what it must let through."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from klineage.kernel import Kernel
from klineage.resources import shipped
from klineage.surface.triton_static import check, notes
from klineage.workload import load

WORKLOAD = b"""
def tensors(element, m, n):
    return {"x": (element, (m, n)), "y": (element, (m, n))}
"""


@dataclass(frozen=True)
class Names:
    source: bytes = WORKLOAD
    sizes: dict[str, dict[str, int]] = field(default_factory=lambda: {"small": {"m": 4, "n": 4}})
    outputs: tuple[str, ...] = ("y",)
    scalars: dict[str, float] = field(default_factory=lambda: {"eps": 1e-6})


HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


"""
ENTRY = """def scale(x, y, n):
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
"""


def reasons(text: str | bytes, entry: str = "scale", names: Names | None = None) -> list[str]:
    source = text.encode() if isinstance(text, str) else text
    return [p.reason for p in check(Kernel("triton", "kernel.py", entry, source), names or Names())]


def body(*lines: str, head: str = HEAD) -> list[str]:
    """Reasons for an entry with these lines before its launch."""
    indented = "".join(f"    {line}\n" for line in lines)
    return reasons(head + ENTRY.replace("    scale_kernel[", indented + "    scale_kernel["))


@pytest.mark.parametrize("workload", ["gemm", "fmha", "add_rmsnorm"])
def test_shipped_experts_pass(workload: str) -> None:
    source = (shipped("experts") / workload / "triton" / "kernel.py").read_bytes()
    assert check(Kernel("triton", "kernel.py", workload, source), load(workload)) == []


@pytest.mark.parametrize(
    "change", [str.encode, lambda t: b"\xef\xbb\xbf" + t.encode(), lambda t: t.replace("\n", "\r\n").encode()]
)
def test_line_endings_and_marks_do_not_matter(change: object) -> None:
    assert reasons(change(HEAD + ENTRY)) == []  # type: ignore[operator]


def test_host_code_as_people_write_it_passes() -> None:
    text = """from __future__ import annotations
import math
from typing import Optional
import torch
from torch import Tensor
import triton
import triton.language as tl
from triton.language.extra import libdevice

DEVICE = triton.runtime.driver.active.get_active_torch_device()
PROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count
LOG2E: tl.constexpr = tl.constexpr(1.44)


def configs():
    return [triton.Config({"BLOCK": b}, num_warps=w) for b in (64, 128) for w in (4, 8)]


@triton.autotune(configs=configs(), key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = libdevice.tanh(tl.load(x + at, mask=at < n).to(tl.float32))
    tl.store(y + at, tl.exp(v) * LOG2E, mask=at < n)


def _launch(source: Tensor, target: Tensor) -> None:
    grid = lambda META: (triton.cdiv(source.numel(), META["BLOCK"]),)
    kernel[grid](source, target, source.numel())


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        _launch(x, y)
        return y


def scale(x, eps: float = 1e-6, out: Optional[Tensor] = None):
    assert x.is_cuda and x.device == DEVICE, "CUDA tensors only"
    assert x.is_contiguous()
    assert x.dtype in (torch.float16, torch.bfloat16)
    assert x.stride(0) == x.shape[1] and x.shape[-1] % 2 == 0
    m, n = x.shape
    scale = 1.0 / math.sqrt(n) * eps
    flat = x.view(-1, x.shape[-1]).contiguous()
    partial = torch.zeros((m, 2), dtype=torch.float32, device=x.device)
    y = torch.empty((m, n), device=x.device, dtype=x.dtype) if out is None else out
    rows = max(1, min(PROCESSORS, m * n // 64))
    if not x.is_contiguous() or getattr(x, "layout", None) is None:
        raise ValueError(f"bad {x.shape}")
    with torch.cuda.device(x.device.index):
        _launch(flat, y)
    return y.reshape(m, n)


def reference(x):
    return torch.softmax(x @ x.T, dim=-1)


if __name__ == "__main__":
    import matplotlib
    print(torch.randn(3).sum(), open("table"), reference)
"""
    assert check(Kernel("triton", "kernel.py", "scale", text.encode()), Names()) == []


@pytest.mark.parametrize(
    ("source", "reason", "line"),
    [
        (b"", "empty", 0),
        (b" \n\t\n", "empty", 0),
        (b"x = 1\ny = '\xff'\n", "encoding", 2),
        (b"# -*- coding: klingon -*-\nx = 1\n", "encoding", 1),
        (b"x = 1\ndef f(:\n", "syntax", 2),
        (b"x = 1\0\n", "syntax", None),
        (b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe", "encoding", 1),
        (b"(" * 5000, "syntax", None),
        (b"x = " + b"-" * 200_000 + b"1\n", "syntax", None),
    ],
)
def test_what_is_not_python(source: bytes, reason: str, line: int | None) -> None:
    (problem,) = check(Kernel("triton", "kernel.py", "scale", source), Names())
    assert problem.reason == reason
    assert line is None or problem.line == line


def test_no_kernel_and_no_entry() -> None:
    assert reasons("def scale(x, y):\n    pass\n") == ["no_kernel"]
    assert reasons(HEAD + ENTRY, "other") == ["no_entry"]
    assert reasons(HEAD + ENTRY, "scale_kernel") == ["no_entry"]
    applied = HEAD.replace("@triton.jit\n", "") + "kernel = triton.jit(scale_kernel)\n\n\n" + ENTRY
    assert reasons(applied) == []
    assert reasons(HEAD.replace("@triton.jit", "@triton.jit(debug=True)") + ENTRY) == []


def test_parameters_are_those_of_the_workload() -> None:
    text = HEAD + ENTRY.replace("n):", "rows, eps, m):")
    (problem,) = check(Kernel("triton", "kernel.py", "scale", text.encode()), Names())
    assert (problem.reason, problem.line) == ("unknown_parameter", 12)
    assert "'rows'" in problem.message and "eps, m, n, x, y" in problem.message
    assert reasons(HEAD + ENTRY.replace("n):", "rows=4):")) == []
    computed = Names(source=b"def tensors(element, m, n):\n    return build(element, m, n)\n")
    assert reasons(text, names=computed) == []


def test_an_entry_writes_or_returns_its_outputs() -> None:
    assert reasons(HEAD + ENTRY.replace("x, y, n", "x").replace("(x, y,", "(x, x,")) == ["no_output"]
    returning = ENTRY.replace("x, y, n", "x").replace("    scale", "    y = torch.empty_like(x)\n    scale")
    assert reasons(HEAD + returning + "    return y\n") == []
    inner = "    def helper():\n        return 3\n"
    assert reasons(HEAD + returning + inner) == ["no_output"]


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import numpy as np",
        "from torch.nn import functional as F",
        "import torch.nn.functional as F",
        "from . import other",
        "import triton.compiler",
        "from triton.backends import nvidia",
        "import ctypes, math",
    ],
)
def test_imports_outside_the_list(line: str) -> None:
    assert "import" in reasons(f"{line}\n{HEAD}{ENTRY}")
    assert "import" in body(line)


@pytest.mark.parametrize(
    "line",
    [
        "exec('1')",
        "eval('1')",
        "open('f')",
        "__import__('os')",
        "getattr(x, 'a' + 'b')",
        "globals()",
        "n.__class__",
        "setattr(x, 'a', 1)",
        "(lambda: 0).__globals__",
    ],
)
def test_constructs_that_no_kernel_needs(line: str) -> None:
    assert body(line) == ["forbidden"]
    assert body(line, head=HEAD.replace("    at =", f"    {line}\n    at =")) != []


@pytest.mark.parametrize(
    "line",
    [
        "y.copy_(torch.matmul(x, x))",
        "z = x @ x",
        "z = x + 1",
        "x *= 2",
        "z = -x",
        "y[0] = 1",
        "z = torch.relu(x)",
        "z = x.sum()",
        "z = x.to(torch.float32)",
        "z = x.float()",
        "torch.compile(scale)",
        "z = torch.ops.aten.mm(x, x)",
        "s = torch.cuda.Stream()",
        "z = torch.empty_like(x).add(x)",
        "z = x.contiguous() * 3",
        "z = x.view(-1).softmax(0)",
        "f = torch.nn.functional.softmax",
        "z = torch.empty(3).normal_()",
    ],
)
def test_host_arithmetic_on_tensors(line: str) -> None:
    assert "host_compute" in body(line)


def test_computation_hidden_in_a_helper_is_found_and_an_unused_one_is_not() -> None:
    helper = "def helper(a):\n    return a.shape, a.exp()\n\n\n"
    assert reasons(HEAD + helper + ENTRY) == []
    assert reasons(HEAD + helper + ENTRY.replace("    scale", "    helper(x)\n    scale")) == ["host_compute"]
    assert reasons(HEAD + helper + "helper(None)\n" + ENTRY) == ["host_compute"]
    assert reasons(HEAD + "from torch import matmul\n" + ENTRY) == ["host_compute"]


EARLY = HEAD.replace("* 2, mask", "* factor(), mask")


@pytest.mark.parametrize(
    ("state", "function", "refused"),
    [
        ("STATE = [1]\n", "def factor():\n    return STATE[0]\n", True),
        ("", "def factor(state=[1]):\n    return state[0]\n", True),
        ("", "def factor():\n    return factor.state\n", True),
        ("", "def factor():\n    global SEEN\n    return SEEN\n", True),
        ("A = 1\nA = 2\n", "def factor():\n    return A\n", True),
        ("len = max\n", "def factor():\n    return len(3, 4)\n", True),
        ("A = 1\n", "def factor():\n    b = A + len((1, 2))\n    return triton.cdiv(b, 2)\n", False),
        (
            "A: tl.constexpr = tl.constexpr(4)\n",
            "def factor(b=A, c=-1):\n    return max(a for a in (b, c))\n",
            False,
        ),
    ],
)
def test_what_decides_a_compile_is_in_the_cache_s_key(state: str, function: str, refused: bool) -> None:
    text = EARLY.replace("@triton.jit", f"{state}\n@triton.constexpr_function\n{function}\n\n@triton.jit", 1)
    assert set(reasons(text + ENTRY)) == ({"forbidden"} if refused else set())


@pytest.mark.parametrize(
    ("default", "refused"), [("64", False), ("tl.float32", False), ("[64][0]", True), ("N", True)]
)
def test_a_default_of_a_device_function_is_read_from_the_text(default: str, refused: bool) -> None:
    text = "N = 64 if __name__ else 0\n" + HEAD.replace(
        "BLOCK: tl.constexpr)", f"BLOCK: tl.constexpr = {default})"
    )
    text = text.replace("N = 64 if __name__ else 0\nimport torch", "import torch\nN = 64 if len('a') else 0")
    assert ("forbidden" in reasons(text + ENTRY)) is refused


def test_inline_assembly_is_noted_but_not_refused() -> None:
    text = (
        HEAD.replace("    at =", "    tl.inline_asm_elementwise('x', '', [], tl.int32, True, 1)\n    at =")
        + ENTRY
    )
    kernel = Kernel("triton", "kernel.py", "scale", text.encode())
    assert check(kernel, Names()) == []
    (note,) = notes(kernel)
    assert (note.reason, note.line) == ("inline_asm", 8)
    assert notes(Kernel("triton", "kernel.py", "scale", b"def (")) == []


def test_problems_come_in_the_order_of_lines() -> None:
    text = "import os\n" + HEAD + ENTRY.replace("    scale", "    z = x @ x\n    eval('1')\n    scale")
    problems = check(Kernel("triton", "kernel.py", "scale", text.encode()), Names())
    assert [p.line for p in problems] == [1, 14, 15]


def test_an_endless_expression_is_refused_and_does_not_end_the_process() -> None:
    chain = " + ".join(["x"] * 20_000)
    found = check(Kernel("triton", "kernel.py", "scale", (HEAD + ENTRY + f"z = {chain}\n").encode()), Names())
    assert [p.reason for p in found] == ["syntax"]
