"""The interpreter against torch, against planted faults, and on files as people write them.

Functions without ``test_`` run in a child process; see ``triton_child.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.triton

HEADER = "import torch\nimport triton\nimport triton.language as tl\n"

ELEMENTWISE = (
    HEADER
    + """
@triton.jit
def kernel(x, y, z, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    b = tl.load(y + at, mask=at < n)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "chain":
        c = a * b + a
    elif OP == "fma":
        c = tl.fma(a, b, a)
    elif OP == "div":
        c = a / b
    elif OP == "constant":
        c = a * 0.3 + 1.7
    elif OP == "neg":
        c = -a
    elif OP == "abs":
        c = tl.abs(a)
    elif OP == "less":
        c = tl.where(a < b, a, b)
    elif OP == "mask":
        c = tl.where((a < b) & (a == a), a, -b)
    elif OP == "cast":
        c = a
    tl.store(z + at, c.to(z.dtype.element_ty), mask=at < n)


def entry(x, y, z, op):
    n = x.numel()
    kernel[(triton.cdiv(n, 16384),)](x, y, z, n, OP=op, BLOCK=16384)
"""
)


def load(folder: str, text: str, entry: str = "entry", **options: Any) -> Any:
    from klineage.worker import triton_load

    path = Path(folder) / "kernel.py"
    path.write_text(text)
    return triton_load.load(str(path), entry, **options)


def same(got: Any, expected: Any, what: str) -> None:
    """Bit for bit, except that every NaN equals every other."""
    import torch

    assert got.dtype == expected.dtype, what
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[got.element_size()]
    equal = got.view(bits) == expected.view(bits)
    if got.is_floating_point():
        equal |= torch.isnan(got) & torch.isnan(expected)
    bad = (~equal).nonzero().flatten()
    assert not len(bad), f"{what}: {len(bad)} differ, first {got[bad[0]]} for {expected[bad[0]]}"


def patterns(count: int, seed: int) -> Any:
    """bfloat16 of random bits: every exponent, subnormals, infinities and NaNs among them."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2**15), 2**15, (count,), generator=generator, dtype=torch.int16).view(
        torch.bfloat16
    )


def fault(call: Any, reason: str) -> Any:
    from klineage.worker.faults import KernelFault

    try:
        call()
    except KernelFault as error:
        assert error.reason == reason, f"{error.reason}: {error}"
        return error
    raise AssertionError(f"no fault, expected {reason}")


def bf16_elementwise(folder: str) -> None:
    import torch

    run = load(folder, ELEMENTWISE)
    x, y = patterns(200_000, 1), patterns(200_000, 2)
    x[:65536] = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.bfloat16)
    expected = {
        "add": x + y,
        "sub": x - y,
        "mul": x * y,
        "chain": x * y + x,
        "fma": (x.float() * y.float() + x.float()).bfloat16(),
        "div": x / y,
        "constant": x * torch.tensor(0.3).bfloat16() + torch.tensor(1.7).bfloat16(),
        "neg": -x,
        "abs": x.abs(),
        "less": torch.where(x < y, x, y),
        "mask": torch.where((x < y) & (x == x), x, -y),
    }
    for op, result in expected.items():
        z = torch.zeros_like(x)
        run({"x": x, "y": y, "z": z, "op": op})
        some = (x != 0) & (y != 0) if op in ("neg", "mask") else slice(None)  # -a was 0 - a before 3.8
        same(z[some], result[some], op)


def bf16_casts(folder: str) -> None:
    import torch

    run = load(folder, ELEMENTWISE)

    def cast(x: Any, dtype: Any) -> None:
        z = torch.zeros(x.shape, dtype=dtype)
        run({"x": x, "y": x, "z": z, "op": "cast"})
        same(z, x.to(dtype), f"{x.dtype} to {dtype}")

    generator = torch.Generator().manual_seed(5)
    words = torch.randint(-(2**31), 2**31, (300_000,), generator=generator, dtype=torch.int64).to(torch.int32)
    words[:65536] = (torch.arange(65536, dtype=torch.int64) * 65536 + 0x8000).to(torch.int32)  # halfway cases
    words[65536:131072] = words[:65536] - 1
    words[131072:196608] = words[:65536] + 1
    single = words.view(torch.float32)
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.bfloat16)
    cast(single, torch.bfloat16)
    cast(single.double() * 1.0000001, torch.bfloat16)
    cast(every, torch.float32)
    cast(every.float().half(), torch.bfloat16)
    cast(every, torch.float16)
    cast(words, torch.bfloat16)
    cast((words % 256).to(torch.uint8), torch.bfloat16)
    cast(every[every.abs() < 1e9], torch.int32)


def bf16_rounding_toward_zero(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(tl.bfloat16, fp_downcast_rounding="rtz"))


def entry(x, y):
    kernel[(1,)](x, y, BLOCK=1024)
"""
    )
    x = torch.randn(1024, generator=torch.Generator().manual_seed(1))
    y = torch.empty(1024, dtype=torch.bfloat16)
    load(folder, text)({"x": x, "y": y})
    same(y, (x.view(torch.int32) & -65536).view(torch.float32).bfloat16(), "rtz")


DOT = (
    HEADER
    + """
@triton.jit
def kernel(x, y, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x + m[:, None] * K + k[None, :])
    b = tl.load(y + k[:, None] * N + n[None, :])
    c = tl.dot(a, b, input_precision=PRECISION)
    tl.store(z + m[:, None] * N + n[None, :], c.to(z.dtype.element_ty))


def entry(x, y, z, precision=None):
    kernel[(1,)](x, y, z, x.shape[0], y.shape[1], x.shape[1], precision)
"""
)


def dots(folder: str) -> None:
    import torch

    run = load(folder, DOT)
    generator = torch.Generator().manual_seed(3)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for out in (torch.float32, dtype):
            x = torch.randint(-8, 9, (64, 128), generator=generator).to(dtype)  # sums are exact in fp32
            y = torch.randint(-8, 9, (128, 32), generator=generator).to(dtype)
            z = torch.zeros(64, 32, dtype=out)
            run({"x": x, "y": y, "z": z})
            same(z.flatten(), (x.float() @ y.float()).to(out).flatten(), f"dot {dtype} {out}")
        x = torch.randn(64, 128, generator=generator).to(dtype)
        y = torch.randn(128, 32, generator=generator).to(dtype)
        z = torch.zeros(64, 32)
        run({"x": x, "y": y, "z": z, "precision": "ieee"})
        exact = x.double() @ y.double()
        worst = float((z - exact).abs().max())
        assert worst < 1e-4, f"{dtype}: {worst}"
    run({"x": x, "y": y, "z": z})  # fp32 by default: tensor cores read tf32
    short = [(t.view(torch.int32) & ~0x1FFF).view(torch.float32).double() for t in (x, y)]
    assert float((z - short[0] @ short[1]).abs().max()) < 1e-4
    assert 1e-3 < float((z - exact).abs().max()) < 0.2


def reductions(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
@triton.jit
def product(a, b):
    return a * b


@triton.jit
def later_maximum(a, i, b, j):
    return tl.where(a > b, a, b), tl.where(a > b, i, j)


@triton.jit
def kernel(x, sums, tops, running, products, where, N: tl.constexpr, M: tl.constexpr):
    n = tl.arange(0, N)
    m = tl.arange(0, M)
    a = tl.load(x + n[:, None] * M + m[None, :])
    tl.store(sums + n, tl.sum(a, 1))
    tl.store(tops + n, tl.max(a, 1))
    tl.store(running + n[:, None] * M + m[None, :], tl.cumsum(a, 1))
    tl.store(products + n, tl.reduce(a, 1, product))
    index = tl.broadcast_to(m[None, :], (N, M))
    _, last = tl.reduce((a, index), 1, later_maximum)
    tl.store(where + n, last)
    total = tl.reduce(a, None, product)
    tl.store(products + N, total)


def entry(x, sums, tops, running, products, where):
    kernel[(1,)](x, sums, tops, running, products, where, x.shape[0], x.shape[1])
"""
    )
    choices = torch.tensor([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])  # their products are exact in bfloat16
    x = choices[torch.randint(0, 6, (8, 16), generator=torch.Generator().manual_seed(4))].bfloat16()
    outs = {name: torch.zeros(8, dtype=torch.float32) for name in ("sums", "tops")}
    outs["products"] = torch.zeros(9)
    outs["where"] = torch.zeros(8, dtype=torch.int32)
    outs["running"] = torch.zeros(8, 16)
    load(folder, text)({"x": x, **outs})
    assert torch.equal(outs["sums"], x.float().sum(1))
    assert torch.equal(outs["tops"], x.float().amax(1))
    assert torch.equal(outs["running"], x.float().cumsum(1))
    assert torch.equal(outs["products"][:8], x.float().prod(1))
    assert outs["products"][8] == x.double().prod().float()
    last = 15 - x.float().flip(1).argmax(1)
    assert torch.equal(outs["where"], last.int())


COPY = (
    HEADER
    + """
@triton.jit
def copy_kernel(source_ptr, target_ptr, n, BLOCK: "tl.constexpr"):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source_ptr + at, mask=at < n)
    tl.store(target_ptr + at, value, mask=at < n)


def entry(x, y, n):
    copy_kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)
"""
)


def out_of_bounds(folder: str) -> None:
    import torch

    run = load(folder, COPY)
    x, y = torch.arange(100.0), torch.zeros(100)
    run({"x": x, "y": y, "n": 100})
    assert torch.equal(x, y)
    error = fault(lambda: run({"x": x, "y": torch.zeros(200), "n": 101}), "out_of_bounds")
    assert error.details == {
        "line": 8,
        "program": [1, 0, 0],
        "lane": [36],
        "lanes": 1,
        "pointer": "source_ptr",
        "offset": 100,
        "extent": 100,
    }, error.details
    assert "line 8: load in copy_kernel" in str(error) and "past the end of source_ptr" in str(error), error
    error = fault(lambda: run({"x": torch.zeros(200), "y": y, "n": 128}), "out_of_bounds")
    assert error.details["line"] == 9 and error.details["pointer"] == "target_ptr", error.details
    assert error.details["lanes"] == 28
    assert "store" in str(error)
    empty = torch.zeros(0)  # addresses around zero wrap
    fault(lambda: run({"x": x, "y": empty, "n": 1}), "out_of_bounds")
    whole = torch.zeros(300)  # a view's bounds are its own, not its storage's
    fault(lambda: run({"x": whole[100:200], "y": torch.zeros(300), "n": 101}), "out_of_bounds")
    run({"x": whole[100:201], "y": torch.zeros(300), "n": 101})


def out_of_bounds_elsewhere(folder: str) -> None:
    import torch
    import triton

    text = (
        HEADER
        + """
@triton.jit
def blocks(x, y, n, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    a = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    if SAFE:
        value = tl.load(a, boundary_check=(0,))
    else:
        value = tl.load(a)
    tl.store(y + tl.arange(0, BLOCK), value)


@triton.jit
def adds(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(x + at - 4, 1.0)


@triton.jit
def chosen(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pointers = tl.where(at % 2 == 0, x + at, y + at)
    tl.store(pointers, 1.0)


@triton.jit
def described(x, y, n, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, (n,), (1,), (BLOCK,))
    tl.store(y + tl.arange(0, BLOCK), a.load([0]))


def entry(x, y, what, n):
    if what.startswith("block"):
        blocks[(1,)](x, y, n, 64, what == "blocks")
    elif what == "described":
        described[(1,)](x, y, n, 64)
    else:
        (adds if what == "adds" else chosen)[(1,)](x, y, 64)
"""
    )
    run = load(folder, text)
    x, y = torch.ones(60), torch.zeros(64)
    if triton.__version__ < "3.9":
        run({"x": x, "y": y, "what": "blocks", "n": 60})
        assert y.sum() == 60
        fault(lambda: run({"x": x, "y": y, "what": "block", "n": 60}), "out_of_bounds")
    else:
        error = fault(lambda: run({"x": x, "y": y, "what": "block", "n": 60}), "triton_version")
        assert "line 7: block pointers are gone" in str(error), error
    run({"x": x, "y": y, "what": "described", "n": 60})
    assert y.sum() == 60
    fault(lambda: run({"x": x, "y": y, "what": "described", "n": 64}), "out_of_bounds")
    error = fault(lambda: run({"x": x, "y": y, "what": "adds", "n": 0}), "out_of_bounds")
    assert "before the start of x: element -4" in str(error), error
    run({"x": torch.ones(64), "y": y, "what": "chosen", "n": 0})
    fault(lambda: run({"x": x, "y": y[:32].clone(), "what": "chosen", "n": 0}), "out_of_bounds")


def atomics(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(y + at % 4, tl.load(x + at), mask=at < 60)


def entry(x, y):
    kernel[(1,)](x, y, 64)
"""
    )
    run = load(folder, text)
    for dtype in (torch.float32, torch.bfloat16):
        x, y = torch.arange(64).to(dtype), torch.zeros(4, dtype=dtype)
        run({"x": x, "y": y})
        expected = torch.zeros(4, dtype=dtype)
        for lane in range(60):
            expected[lane % 4] += x[lane]
        same(y, expected, f"atomic {dtype}")


def counted(folder: str) -> None:
    import torch
    from klineage.worker import triton_interpreter

    text = (
        HEADER
        + """
@triton.jit
def kernel(x, y, z, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    acc = tl.zeros((M, N), tl.float32)
    for i in range(0, K, BLOCK):
        a = tl.load(x + m[:, None] * K + (i + k)[None, :], mask=(i + k)[None, :] < K, other=0.0)
        b = tl.load(y + (i + k)[:, None] * N + n[None, :], mask=(i + k)[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    top = tl.max(acc, 1)
    tl.store(z + m, top * 2.0)


def entry(x, y, z):
    kernel[(2,)](x, y, z, x.shape[1], 16, 32, 64)
"""
    )
    run = load(folder, text)
    values = {"x": torch.ones(16, 100).bfloat16(), "y": torch.ones(100, 32).bfloat16(), "z": torch.zeros(16)}
    seen = []
    for _ in range(2):
        triton_interpreter.reset_counts()
        run(values)
        seen.append(triton_interpreter.counts())
    assert seen[0] == seen[1]
    counts = seen[0]
    expected = {
        "launches": 1,
        "programs": 2,
        "iterations": 2 * 2,
        "loads": 2 * 2 * 2,
        "stores": 2,
        "bytes_loaded": 2 * (16 * 100 + 100 * 32) * 2,
        "bytes_stored": 2 * 16 * 4,
        "masked_lanes": 2 * (16 + 32) * 28,
        "dots": 4,
        "dot_operations": 4 * 2 * 16 * 32 * 64,
        "elementwise_operations": 2 * 16,
        "reductions": 2,
        "reduction_operations": 2 * 16 * 32,
    }
    assert expected.items() <= counts.items(), counts
    # rows of x: 16 runs a tile; y is contiguous throughout; z is one run
    assert counts["contiguous_runs"] == 2 * (2 * 16 + 64 + 36 + 1), counts["contiguous_runs"]


def libdevice(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.libdevice import tanh


@triton.jit
def kernel(x, y, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=1.0)
    if OP == "tanh":
        b = tanh(a)
    elif OP == "erf":
        b = libdevice.erf(a)
    elif OP == "pow":
        b = cuda_libdevice.pow(tl.abs(a), 1.5)
    elif OP == "power of two":
        b = cuda_libdevice.pow(2.0, (at % 8).to(tl.int16))
    elif OP == "round":
        b = libdevice.llrint(a * 3).to(tl.float32) + libdevice.float2int_rz(a)
    elif OP == "isnan":
        b = tl.where(libdevice.isnan(a) != 0, 7.0, a)
    elif OP == "rsqrt":
        b = libdevice.rsqrt(tl.abs(a))
    elif OP == "bits":
        b = libdevice.int_as_float(libdevice.float_as_int(a) + 1)
    elif OP == "rare":
        b = libdevice.cyl_bessel_i0(a)
    elif OP == "asm":
        b = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1)
    elif OP == "half":
        b = libdevice.exp(a.to(tl.float16)).to(tl.float32)
    tl.store(y + at, b, mask=at < n)


def entry(x, y, op):
    kernel[(1,)](x, y, x.numel(), OP=op, BLOCK=1024)
"""
    )
    from klineage.worker.faults import Unsupported

    run = load(folder, text)
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    x[0] = float("nan")
    expected = {
        "tanh": torch.tanh(x),
        "erf": torch.erf(x),
        "pow": x.abs().pow(1.5),
        "power of two": 2.0 ** (torch.arange(1000) % 8),
        "round": (x.nan_to_num(1.0) * 3).round() + x.nan_to_num(1.0).trunc(),
        "isnan": torch.where(x.isnan(), 7.0, x),
        "rsqrt": x.abs().rsqrt(),
        "bits": (x.view(torch.int32) + 1).view(torch.float32),
    }
    for op, result in expected.items():
        x[0] = 1.0 if op == "round" else float("nan")
        y = torch.zeros(1000)
        run({"x": x, "y": y, "op": op})
        assert torch.allclose(y, result, rtol=3e-7, atol=0, equal_nan=True), op
    error = fault(lambda: run({"x": x, "y": x.clone(), "op": "rare"}), "libdevice")
    assert isinstance(error, Unsupported) and "cyl_bessel_i0" in str(error) and "line 31" in str(error), error
    error = fault(lambda: run({"x": x, "y": x.clone(), "op": "asm"}), "inline_asm")
    assert isinstance(error, Unsupported) and "line 33" in str(error), error
    fault(lambda: run({"x": x, "y": x.clone(), "op": "half"}), "libdevice_type")


AUTOTUNED = (
    "from __future__ import annotations\n"
    + HEADER
    + """
@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 32}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK": 64}, num_warps=8),
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, named, **kwargs: configs},
)
@triton.heuristics({"TWICE": lambda args: args["BLOCK"] * 2})
@triton.jit
def kernel(y, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.zeros((BLOCK,), tl.int32) + BLOCK * 1000 + TWICE, mask=at < n)


def entry(y):
    n = y.numel()
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, n)
"""
)


def autotune(folder: str) -> None:
    import torch

    def block(config: dict[str, int] | None) -> int:
        run = load(folder, AUTOTUNED, config=config)
        y = torch.zeros(100, dtype=torch.int32)
        run({"y": y})
        assert y.unique().numel() == 1
        value = int(y[0])
        assert value % 1000 == 2 * (value // 1000)
        return value // 1000

    text = AUTOTUNED + "\n\nentry(torch.zeros(40, dtype=torch.int32, device='cuda'))\n"
    load(folder, text)  # a file that launches while it loads measures nothing either
    assert block(None) == 32
    assert block({}) == 32
    assert block({"BLOCK": 64}) == 64
    assert block({"num_warps": 8}) == 64
    assert block({"BLOCK": 16, "num_stages": 5}) == 16  # an edited configuration that the file does not list
    assert block({"OTHER": 7}) == 32
    run = load(folder, AUTOTUNED, config={"BLOCK": 16, "num_warps": 8, "num_stages": 5})
    assert run.pinned == {"kernel": {"BLOCK": 16, "num_warps": 8, "num_stages": 5}}, run.pinned
    assert [c["BLOCK"] for c in run.configurations["kernel"]] == [32, 64]


def an_ordinary_gpu_file(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
DEVICE = triton.runtime.driver.active.get_active_torch_device()
PROPERTIES = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
PROCESSORS = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
IS_HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9
TABLE = torch.arange(4).cuda()
assert triton.runtime.driver.active.get_current_target().backend == "cuda"


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def entry(x):
    assert x.is_cuda and x.is_contiguous() and x.device == DEVICE and x.device.type == "cuda"
    assert IS_HOPPER and PROCESSORS == PROPERTIES["multiprocessor_count"] and TABLE.is_cuda
    y = torch.empty_like(x)
    scratch = torch.zeros(4, dtype=torch.float16).to("cuda")
    other = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    assert scratch.dtype == torch.float16 and other.get_device() == 0
    kernel.warmup(x, y, x.numel(), BLOCK=64, grid=(1,))._init_handles()
    with torch.cuda.device(x.device):
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), BLOCK=64, num_warps=2)
    torch.cuda.synchronize()
    return y


if __name__ == "__main__":
    raise SystemExit("benchmarks")
"""
    )
    x = torch.arange(100.0)
    before = torch.cuda.is_available()
    (y,) = load(folder, text)({"x": x, "unused": 3})
    assert torch.equal(y, x * 2)
    assert torch.cuda.is_available() is before and x.device.type == "cpu"


def fresh_memory_is_poisoned(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
@triton.jit
def kernel(y):
    tl.store(y, 1.0)


def entry(x):
    y = torch.empty(4, dtype=torch.float16, device="cuda")
    kernel[(1,)](y)
    return y, torch.empty_like(x), x.new_empty(2), torch.empty(2, dtype=torch.bool), torch.zeros(2)
"""
    )
    y, like, new, truth, zeros = load(folder, text)({"x": torch.zeros(3, dtype=torch.int16)})
    assert y[0] == 1 and y[1:].isnan().all()
    pattern = int.from_bytes(b"\xa5\xa5", "little", signed=True)
    assert (like == pattern).all() and (new == pattern).all() and truth.all() and not zeros.any()


def files_that_do_not_load(folder: str) -> None:
    def refused(text: str, reason: str, *words: str, entry: str = "entry") -> None:
        error = fault(lambda: load(folder, text, entry), reason)
        for word in words:
            assert word in str(error), error

    refused("x = 1\nraise RuntimeError('no table')\n", "import_failed", "line 2", "RuntimeError: no table")
    refused("import sys\n\nsys.exit(3)\n", "import_failed", "line 3", "SystemExit")
    refused("import no_such_module\n", "import_failed", "line 1", "no_such_module")
    refused("def entry(:\n", "syntax", "line 1")
    refused("a = 1\0\n", "syntax")
    refused("def other():\n    pass\n", "no_entry", "entry is missing", "other")
    refused(COPY, "no_entry", "copy_kernel is not a plain function", entry="copy_kernel")
    run = load(folder, COPY)
    assert run.parameters == ("x", "y", "n") and run.required == ("x", "y", "n")
    error = fault(lambda: run({"x": 1, "y": 2, "rows": 3}), "unknown_parameter")
    assert "takes n" in str(error) and "rows" in str(error)


def files_that_raise(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 4)
    tl.device_assert(tl.load(x) > 5, "small")
    tl.store(x, undefined_name)


def entry(x, block):
    assert block, "block must be given"
    kernel[(1,)](x, block)
"""
    )
    run = load(folder, text)
    x = torch.zeros(1)
    error = fault(lambda: run({"x": x, "block": 0}), "entry_raised")
    assert "line 13: AssertionError: block must be given" in str(error), error
    error = fault(lambda: run({"x": x, "block": 2}), "kernel_raised")
    assert "line 7" in str(error), error
    error = fault(lambda: run({"x": x + 6, "block": 8}), "kernel_raised")
    assert "line 9" in str(error) and "undefined_name" in str(error), error


def what_python_runs_otherwise(folder: str) -> None:
    import torch

    text = (
        HEADER
        + """
@triton.jit
def kernel(x, y, n, rows, third, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = i < rows and j < n
    if FLAG and n > 0:
        tl.store(x + i * BLOCK + j, 1, mask=inside)
    if FLAG is None or rows < 0:
        tl.store(x, 100)
    tl.store(y + 16, ((third.to(tl.float32) * 3.0 - 1.0) * 1e9).to(tl.int32))
    edge = (i == 0 or j == 0) and not (i == j)
    tl.store(y + i * BLOCK + j, edge.to(tl.int32))


def entry(x, y, grid):
    kernel[grid](x, y, 3, 2, 1 / 3, FLAG=True, BLOCK=4)
"""
    )
    run = load(folder, text)
    for grid in ([1], (1,), lambda meta: [1, 1]):
        x, edge = torch.zeros(4, 4, dtype=torch.int32), torch.zeros(17, dtype=torch.int32)
        run({"x": x, "y": edge, "grid": grid})
        y = edge[:16].view(4, 4)
        assert edge[16] == 0, edge[16]
        assert x.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [0] * 4, [0] * 4], x
        assert y.tolist() == [[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], y


def program_order(folder: str) -> None:
    import torch
    from klineage.worker import triton_interpreter

    text = (
        HEADER
        + """
@triton.jit
def kernel(y):
    tl.atomic_xchg(y, tl.program_id(0))


def entry(y):
    kernel[(5,)](y)
"""
    )
    run = load(folder, text)
    y = torch.zeros(1, dtype=torch.int32)
    run({"y": y})
    assert y.item() == 4
    triton_interpreter.set_program_order(reverse=True)
    run({"y": y})
    assert y.item() == 0
    triton_interpreter.set_program_order(reverse=False)


def races(folder: str) -> None:
    import torch
    from klineage.worker.faults import KernelFault

    def reason(body: str, y: torch.Tensor) -> str:
        text = f"{HEADER}\n\n@triton.jit\ndef kernel(y):\n    me = tl.program_id(0)\n    {body}\n"
        try:
            load(folder, text + "\n\ndef entry(y):\n    kernel[(3,)](y)\n")({"y": y})
        except KernelFault as fault:
            assert fault.reason == "race", fault
            return str(fault)
        return ""

    def zeros() -> torch.Tensor:
        return torch.zeros(4, dtype=torch.int32)

    assert "program 1 of kernel overwrites byte 0 of y, which program 0" in reason("tl.store(y, me)", zeros())
    assert "program 1 of kernel reads byte 0 of y" in reason("tl.store(y + me, tl.load(y) + 1)", zeros())
    assert "overwrites byte 4" in reason("tl.store(y + 2 - me, tl.load(y + 1 + 0 * me) + me + 1)", zeros())
    initialised = "tl.store(y, 5, mask=me == 0)\n    tl.atomic_add(y, 1, mask=me == 1)"
    assert "updates byte 0" in reason(initialised, zeros())
    assert reason("tl.store(y, 7)", zeros()) == ""  # the same value, however often
    assert reason("tl.store(y + me, tl.load(y + 3) + me)", zeros()) == ""
    assert (
        reason("tl.atomic_add(y, 1)\n    tl.store(y + 1, tl.load(y + 1) + 1)", zeros()) == ""
    )  # they took turns


CASES = (
    bf16_elementwise,
    bf16_casts,
    bf16_rounding_toward_zero,
    dots,
    reductions,
    races,
    out_of_bounds,
    out_of_bounds_elsewhere,
    atomics,
    counted,
    libdevice,
    autotune,
    an_ordinary_gpu_file,
    fresh_memory_is_poisoned,
    files_that_do_not_load,
    files_that_raise,
    what_python_runs_otherwise,
    program_order,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_interpreter(case: Any, interpreted: Any, tmp_path: Path) -> None:
    interpreted(case, tmp_path)


def refuses_to_start(folder: str) -> None:
    fault(lambda: load(folder, COPY), "not_interpreting")


def test_interpreting_needs_the_environment_variable(compiled: Any, tmp_path: Path) -> None:
    compiled(refuses_to_start, tmp_path)
