"""The Triton rules on kernels that are addressed, scheduled and split in other ways than the shipped experts."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.gate import GateRequest, Verdict, gate
from klineage.kernel import Kernel
from klineage.proposer.rules import after, features, propose, why_not

from ...gauntlet.running import QUICK, workers, workload

JURY = Path(__file__).parents[2] / "jury" / "honest" / "triton"
FORMS = {
    JURY / "rows_block_pointers.py": ("rows", ["block-pointers"]),
    JURY / "product_descriptors.py": ("product16", ["tensor-descriptors"]),
    JURY / "mean_tree.py": ("mean", ["split-reduction"]),
    JURY / "product_split_k.py": ("product", ["split-sum", "tensor-core-dot"]),
    Path(__file__).parent / "kernels" / "epilogue_rows.py": ("rows", ["fused-epilogue"]),
    Path(__file__).parent / "kernels" / "persistent_product.py": (
        "product",
        ["warp-specialization", "tile-size", "persistent-programs", "tensor-core-dot"],
    ),
}
HEAD = "import triton\nimport triton.language as tl\n\n@triton.jit\n"


def kernel(source: str | bytes) -> Kernel:
    return Kernel("triton", "kernel.py", "entry", source.encode() if isinstance(source, str) else source)


def reasons(given: Kernel) -> dict[str, str]:
    return {n.rule.name: n.reason for n in why_not(given)}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_taken_out_and_put_back(path, first_walk, check_step) -> None:
    steps = first_walk(kernel(path.read_bytes()))
    assert [c.proposer.removeprefix("rules:") for _, c in steps] == FORMS[path][1]
    for state, candidate in steps:
        exact = check_step(state, candidate, after(state, candidate))
        assert exact or candidate.action == "mma", candidate.proposer  # a product is added in another way


@pytest.mark.triton
@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_its_simplest_form_passes_the_gate(path, first_walk) -> None:
    pytest.importorskip("triton", reason="needs klineage-tui[triton]")
    steps = [s for s in first_walk(kernel(path.read_bytes())) if s[1].action != "mma"]
    request = GateRequest(after(*steps[-1]), workload(FORMS[path][0]), "nvidia-sm90")
    report = gate(request, policy=QUICK, executor=workers())
    assert report.verdict is Verdict.PASS, report.why


STRIDED = (
    HEAD
    + """def k(x, y, n, B: tl.constexpr):
    p = tl.make_block_ptr(base=x, shape=(n,), strides=(1,), offsets=(0,), block_shape=(B,), order=(0,))
    total = tl.zeros((B,), tl.float32)
    for i in range(0, n, B):
        total += tl.load(p, boundary_check=(0,), padding_option="zero")
        p = tl.advance(p, (B,))
    tl.store(y, tl.sum(total))

def entry(x, y, n):
    k[(1,)](x, y, n, B=16)
"""
)


def test_a_block_pointer_that_moves(check_step) -> None:
    given = kernel(STRIDED)
    candidate = next(c for c in propose(given) if c.action == "block_pointer")
    text = candidate.source.decode()
    assert "    p_0 = tl.arange(0, B).to(tl.int64)\n" in text
    assert "tl.load(x + p_0, mask=p_0 < n, other=0)" in text
    assert "        p_0 += B\n" in text
    assert check_step(given, candidate, after(given, candidate))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("offsets=(0,)", "offsets=(-n,)", "the offset -n may be below zero"),
        ('"zero"', '"nan"', 'padding with "nan"'),
        ("total += tl.load(p,", "total += again(p) + tl.load(p,", "p is used in another way than to load"),
        ("p = tl.advance", "q = tl.advance", "p is moved under another name"),
        ("shape=(n,)", "shape=size", "size is not written out"),
    ],
)
def test_a_block_pointer_in_another_form_is_left_alone(old, new, why) -> None:
    assert why in reasons(kernel(STRIDED.replace(old, new)))["block-pointers"]


def persistent(body: str, end: str = "n", launch: str = "k[(4,)](x, n, B=16)") -> str:
    return (
        HEAD
        + f"""def k(x, n, B: tl.constexpr):
    pid = tl.program_id(0)
    last = 0
    for t in range(pid, {end}, tl.num_programs(0)):
{body}

def entry(x, n):
    {launch}
"""
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (persistent("        last += tl.load(x + t)\n        tl.store(x + t, last)"), "last is carried"),
        (
            persistent("        if t > 3:\n            break\n        tl.store(x + t, 1.0)"),
            "leaves a tile early",
        ),
        (persistent("        tl.store(x + t, 1.0)\n    tl.store(x, 2.0)"), "more follows the loop"),
        (persistent("        tl.store(x + t, 1.0)", end="tl.load(x)"), "cannot be computed by the host"),
        (persistent("        tl.store(x + t, 1.0)", launch="k[(4, 2)](x, n, B=16)"), "several dimensions"),
        (persistent("        tl.store(x + t, 1.0)", launch="k[g](*a)"), "the host does not know n"),
    ],
)
def test_programs_that_must_stay(text, why) -> None:
    assert why in reasons(kernel(text))["persistent-programs"]


def test_a_constant_that_only_counts_programs_goes_with_the_loop() -> None:
    given = kernel((JURY / "rows_persistent.py").read_bytes())
    while candidates := propose(given):
        given = after(given, candidates[0])
    assert "PROGRAMS" not in given.text
    assert "persistent[(rows,)]" in given.text
    assert features(given) == []


STATIC = (
    HEAD
    + """def k(x, N: tl.constexpr):
    for i in tl.static_range(N):
        tl.store(x + i, USE)

def entry(x):
    k[(1,)](x, N=4)
"""
)


def test_a_loop_that_is_written_out(check_step) -> None:
    given = kernel(STATIC.replace("USE", "1.0 * i"))
    candidate = next(c for c in propose(given) if c.action == "unroll")
    assert "    for i in range(N):\n" in candidate.source.decode()
    assert check_step(given, candidate, after(given, candidate))
    for use in ("tl.sum(tl.zeros((i + 1,), tl.float32))", "(1.0, 2.0, 3.0, 4.0)[i]"):
        told = reasons(kernel(STATIC.replace("USE", use)))["loop-unroll"]
        assert told == "line 7 needs i when the kernel is compiled"


def test_block_pointers_and_descriptors_hide_no_tile_and_no_pipeline() -> None:
    found = [(f.name, f.locus.partition("::")[2]) for f in features(kernel(HEAD + DESCRIBED))]
    assert ("pipeline", "k/for[at]") in found
    pointers = HEAD + POINTED
    assert "tiling" in {f.name for f in features(kernel(pointers))}
    assert "block-pointers" in [c.proposer.removeprefix("rules:") for c in propose(kernel(pointers))]


DESCRIBED = """def k(x, y, n, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, (n,), (1,), (B,))
    total = tl.zeros((B,), tl.float32)
    for at in range(0, n, B):
        total += d.load([at])
    tl.store(y + tl.arange(0, B), total)


def entry(x, y, n):
    k[(1,)](x, y, n, B=64, num_stages=3)
"""
POINTED = """def k(x, y, n, m, B: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,))
    q = tl.make_block_ptr(y, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,))
    tl.store(q, tl.load(p, boundary_check=(0,)), boundary_check=(0,))


def entry(x, y, n, m):
    k[(triton.cdiv(n, 1024),)](x, y, n, m, B=1024)
"""


def test_a_split_sum_whose_place_is_made_for_a_part_is_left_alone() -> None:
    source = (JURY / "product_split_k.py").read_text()
    bound = "(i[:, None] < m) & (j[None, :] < n)"
    moved = source.replace(f"mask={bound})", "mask=live)").replace(
        "    part =", f"    live = {bound}\n    part ="
    )
    assert moved != source
    assert "made among what only a part needs" in reasons(kernel(moved))["split-sum"]


def test_a_descriptor_of_the_host_is_left_alone() -> None:
    text = "from triton.tools.tensor_descriptor import TensorDescriptor\n" + HEAD
    text += "def k(d, y, B: tl.constexpr):\n    tl.store(y + tl.arange(0, B), d.load([0]))\n\n"
    text += "def entry(x, y):\n    k[(1,)](TensorDescriptor.from_tensor(x, [16]), y, B=16)\n"
    assert "made by the host" in reasons(kernel(text))["tensor-descriptors"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("    y.zero_()\n", "", "does not set y to zero"),
        ("part, mask", "part * 2, mask", "has other arguments"),
        ("triton.cdiv(k, 32))", "triton.cdiv(k, 32), *())", "not written as three extents"),
    ],
)
def test_a_split_sum_in_another_form_is_left_alone(old, new, why) -> None:
    source = (JURY / "product_split_k.py").read_text()
    assert why in reasons(kernel(source.replace(old, new)))["split-sum"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "        total +=",
            "        alpha += part\n        total +=",
        ),  # two values are carried out of the loop
        ("result.to(", "shift.to("),  # what is stored is not made of the sum
        ("    tl.store(at,", "    tl.store(x, alpha)\n    tl.store(at,"),  # two stores
        ("at = y + i[:, None]", "at = y + total + i[:, None]"),  # where it goes depends on it
    ],
)
def test_an_epilogue_in_another_form_is_none(old, new) -> None:
    source = (Path(__file__).parent / "kernels" / "epilogue_rows.py").read_text()
    assert "fusion" in {f.name for f in features(kernel(source))}
    assert old in source
    assert "fusion" not in {f.name for f in features(kernel(source.replace(old, new)))}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("+ piece, tl.sum", "+ 2 * piece, tl.sum", "not stored at a place that ends in + piece"),
        (
            "pieces = -(-columns // 64)",
            "pieces = 1 + 0\n    pieces = -(-columns // 64)",
            "does not count pieces once",
        ),
        ("parts[rows, pieces]", "parts[rows, -(-columns // 64)]", "has no name in the grid"),
        ("at < columns, other=0.0)))", "at < columns - 1, other=0.0)))", "up to one bound"),
        ("    finish[rows,]", "    other[rows, pieces](x)\n    finish[rows,]", "needs as many still"),
    ],
)
def test_a_reduction_in_stages_of_another_form_is_left_alone(old, new, why) -> None:
    source = (JURY / "mean_tree.py").read_text()
    assert old in source
    assert why in reasons(kernel(source.replace(old, new, 1)))["split-reduction"]


EVEN = (
    HEAD
    + """def k(x, y, n, EVEN: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        v = tl.load(x + at)
    else:
        v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, v, mask=at < n)


def entry(x, y, n):
    config = {"B": 64}
    k[(triton.cdiv(n, 64),)](GIVEN)
"""
)


def test_a_parameter_goes_from_a_launch_with_what_it_gets_and_nothing_else() -> None:
    given = kernel(EVEN.replace("GIVEN", "x, y, n, EVEN=n % 64 == 0, **config"))
    (candidate,) = (c for c in propose(given) if c.proposer == "rules:even-masks")
    assert "(x, y, n, **config)" in after(given, candidate).text


def test_a_launch_that_unpacks_its_arguments_keeps_its_parameters() -> None:
    """Where ``EVEN=`` comes from is nowhere in the text, so it cannot be taken out of the launch."""
    for launched in ("x, y, *more, EVEN=n % 64 == 0, B=64", "*more, B=64", "x, *more, n % 64 == 0, B=64"):
        given = kernel(EVEN.replace("GIVEN", launched))
        offered = [c for c in propose(given) if c.proposer == "rules:even-masks"]
        if "EVEN=" in launched:
            assert "x, y, *more, B=64)" in after(given, offered[0]).text
        else:
            assert offered == []
