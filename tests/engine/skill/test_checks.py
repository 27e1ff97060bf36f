"""The check of a precondition, asked of targets: what it says, and what a hostile card cannot make it do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.gate import Report, StageResult, Trust, Verdict
from klineage.skill.checks import FUNCTIONS, NAMES, check, problem, used_names
from klineage.skill.checks.facts import Facts, Tensor, facts, tensors
from klineage.walk.opening import experts
from klineage.walk.reading import read_kernel
from klineage.worker.problem import load as run
from klineage.workload import load
from klineage.workload import parse as parse_workload


@pytest.fixture(scope="module")
def gemm() -> Facts:
    return _expert("gemm-c", "cpu-x86-64-v3")


def _expert(name: str, platform: str, **more: object) -> Facts:
    expert = next(e for e in experts() if e.id == name)
    workload = load(expert.workload)
    return facts(read_kernel(expert.path, workload), workload, platform, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "state", "why"),
    [
        ("k % 16 == 0", "holds", "at bench, k is 512"),
        ("every_size(k % 16 == 0)", "fails", "at ragged, k is 67"),
        ("every_size(k >= 16)", "holds", "every size checked is small, ragged, bench, paper"),
        ("element in ('fp32', 'fp64')", "holds", "element is fp32"),
        ("element not in ('fp32', 'fp64')", "fails", "element is fp32"),
        ("row_alignment('x') == 2048 and stride('x', 0) == k and shape('y', -1) == n", "holds", "at bench"),
        ("alignment('weight') >= vector_bytes", "holds", "vector_bytes is 32"),
        (
            "satisfies('cpu-x86-64-v3') and not satisfies('cpu-x86-64-v4')",
            "holds",
            "platform is cpu-x86-64-v3",
        ),
        ("has('layout_pack')", "holds", "the kernel has layout_pack"),
        ("not has('nontemporal_store')", "holds", "the kernel has no nontemporal_store"),
        ("constant('KC') * itemsize == 1024", "holds", "KC is 256"),
        ("cdiv(k, constant('KC')) == 2 and min(m, n, 7) == 7", "holds", "k is 512"),
        ("2 ** 10 << 2 == 4096 and divisibility(96) == 32 and k > 0", "holds", "k is 512"),
        ("k > 1000 if vendor == 'nvidia' else k > 100", "holds", "vendor is cpu"),
        ("not is_power_of_two(k)", "fails", "k is 512"),
    ],
)
def test_a_check_says_what_decided_it(gemm: Facts, expression: str, state: str, why: str) -> None:
    answer = check(expression, gemm)
    assert problem(expression) == ""
    assert (answer.state, why in answer.why) == (state, True), answer


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("rows % 4 == 0", "gemm has no dimension rows; it has m, n, k"),
        ("shape('q', 0) > 1", "no buffer 'q'; it has x, weight, y"),
        ("shape('x', 2) > 1", "2 axes"),
        ("k / (m - m) > 1", "divides 512 by zero"),
        ("k % 0 == 1", "divides 512 by zero"),
        ("shared_limit > 1", "shared_limit (bytes of shared memory that a block may have) is not known"),
        ("registers < 128", "gate the kernel first"),
        ("constant('MR') > 4", "'MR' no certain value"),
        ("setting('UNROLL') > 1", "no setting 'UNROLL'"),
        ("has('precision')", "cannot be told from its text"),
        ("has('nonsense')", "knows 'nonsense'"),
        ("satisfies('sm90')", "unknown platform"),
        ("k % 16", "neither yes nor no"),
        ("element > 3", "different kinds"),
        ("element == 16", "different kinds"),
        ("element < 'fp64'", "no number"),
        ("True + k > 1", "no number"),
        ("k ** k > 1", "power on the way is too large"),
        ("(k ** 20) ** 20 > 1", "too large"),
        ("k << 300 > 1", "shift"),
        ("1 << -k > 1", "shift"),
        ("(-k) ** 0.5 > 1", "no real number"),
        ("1e308 * k > 1", "too large"),
        ("divisibility(k - k) == 1", "zero"),
    ],
)
def test_what_a_target_does_not_decide_is_unknown_with_the_reason(
    gemm: Facts, expression: str, why: str
) -> None:
    answer = check(expression, gemm)
    assert answer.state == "unknown"
    assert why in answer.why


_HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0].__subclasses__()",
    "k.real > 0",
    "'x'.format(k) == 'x'",
    "f'{k:>1000000000}' == ''",
    "'%1000000000d' % k == ''",
    "'a' * 10 ** 9 == 'b' and k",
    "open('/etc/passwd')",
    "[x for x in (1, 2)] == k",
    "all(x for x in (1, 2)) and k",
    "{k: 1} == {}",
    "(lambda: k)() > 0",
    "(y := k) > 0",
    "x[0] > k",
    "k if k else yield k",
    "await k",
    "k = 3",
    "k; k",
    "import os",
    "max(*(1, 2)) > k",
    "min(k, m, default=3) > 1",
    "9 ** 9 ** 9 ** 9 > k",
    "1" * 400 + " > k",
    "b'x' == k",
    "1j > k",
    "... == k",
    "None == k",
    "k is 3",
    "~k > 3",
    "k @ m > 3",
    "k in m",
    "(k, m) == (m, k)",
    "k == (1, 2)",
    "k\x00 > 1",
    "ｋ > 1",
    "к > 1",
    "k\u2028> 1",
    "(" * 250 + "k" + ")" * 240,
    "not " * 120 + "k",
    "-" * 490 + "k > 0",
    "k>0" + " and k>0" * 600,
    "1 < " * 100 + "k",
    "",
    "   ",
    "k >",
    "True",
    "1 == 1",
    "unknown_function(k)",
    "has()",
    "k > 0 # and m > 10 ** 6",
    "every_size(" * 30 + "k > 0" + ")" * 30,
    "every_size(every_size(k > 0) or m > 0)",
    "shape('x')",
]


@pytest.mark.parametrize("expression", _HOSTILE)
def test_a_hostile_check_is_refused_in_one_sentence_and_decides_nothing(gemm: Facts, expression: str) -> None:
    said = problem(expression) or check(expression, gemm).why
    assert said and "\n" not in said and len(said) < 400
    assert check(expression, gemm).state == "unknown" or "names no fact" in said


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            ["k", "m", "(", ")", ",", ".", "and", "or", "not", "3", "0", "/", "**", "==", "'x'", "has"]
        )
    ).map(" ".join)
)
def test_no_text_makes_a_check_raise(text: str) -> None:
    assert check(text, _SMALL).state in ("holds", "fails", "unknown")
    if problem(text) == "":
        assert used_names(text)


def test_the_page_on_cards_names_every_fact_and_function() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cards.md").read_text()
    section = page[page.index("## Checks") : page.index("## Probes")]
    assert not [
        name for name in (*NAMES, *FUNCTIONS) if f"`{name}`" not in section and f"`{name}(" not in section
    ]


_TRUTHS = {"a > 0": True, "b > 0": False, "zzz > 0": None}


def _logic() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(sorted(_TRUTHS))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from((" and ", " or ")), inner).map(
                lambda t: f"({t[0]}{t[1]}{t[2]})"
            ),
            inner.map(lambda t: f"(not {t})"),
        ),
        max_leaves=8,
    )


def _kleene(text: str) -> bool | None:
    """The value by exhaustion: known when it is the same whatever the unknown is."""
    seen = set()
    for unknown in (True, False):
        plain = text
        for leaf, value in _TRUTHS.items():
            plain = plain.replace(leaf, str(unknown if value is None else value))
        seen.add(eval(plain))
    return seen.pop() if len(seen) == 1 else None


@given(_logic())
def test_what_holds_or_fails_does_so_whatever_the_unknown_is(text: str) -> None:
    state = check(text, _SMALL).state
    if state != "unknown":
        assert _kleene(text) is (state == "holds")


def test_an_unknown_does_not_hide_what_decides() -> None:
    assert check("zzz > 0 or a > 0", _SMALL).state == "holds"
    assert check("zzz > 0 and b > 0", _SMALL).state == "fails"
    assert check("zzz > 0 or b > 0", _SMALL).state == "unknown"
    assert check("not zzz > 0", _SMALL).state == "unknown"
    assert check("a != 0 and 8 / a > 0", _SMALL).state == "holds"


def test_a_triton_target_gives_its_pinned_configuration_and_the_limits_of_its_platform() -> None:
    target = _expert("gemm-triton", "nvidia-sm120", settings={"num_stages": "4"})
    tiles = "(constant('BLOCK_M') + constant('BLOCK_N')) * constant('BLOCK_K') * itemsize"
    assert check(f"{tiles} * setting('num_stages') <= shared_limit", target).state == "fails"
    assert check(f"{tiles} * 2 <= shared_limit", target).state == "holds"
    assert check("capability >= 80 and satisfies('nvidia-sm90')", target).state == "holds"


def test_shapes_read_from_the_text_are_those_that_the_workload_gives_when_it_runs() -> None:
    names = sorted({expert.workload for expert in experts()})
    assert names
    for name in names:
        workload = load(name)
        for surface, element in workload.element.items():
            problem_ = run(workload.source, str(workload.path), element)
            for dims in workload.sizes.values():
                found = tensors(workload, surface, dims)  # type: ignore[arg-type]
                assert {n: (t.type, t.shape) for n, t in found.items()} == problem_.tensors(dict(dims)), name


def test_shapes_that_only_code_can_tell_are_unknown(gemm: Facts) -> None:
    expert = next(e for e in experts() if e.id == "gemm-c")
    plain = load("gemm")
    source = plain.source.replace(
        b'return {"x": (element', b'import os\n    return {"x": (element if os else element'
    )
    workload = parse_workload(source, name="gemm", path=plain.path)
    target = facts(read_kernel(expert.path, workload), workload, "cpu-x86-64-v3")
    answer = check("shape('x', 0) > 1", target)
    assert answer.state == "unknown"
    assert "cannot be read without running it" in answer.why
    assert check("k == 512", target).state == "holds"


def test_resources_come_from_reports_of_this_kernel_on_this_platform_alone() -> None:
    expert = next(e for e in experts() if e.id == "gemm-triton")
    workload = load("gemm")
    kernel = read_kernel(expert.path, workload)
    compiled = StageResult(
        "compile", Verdict.PASS, "ok", "", numbers={"registers": 40.0, "shared_bytes": 4096.0}
    )
    report = Report(kernel.hash, workload.hash, "nvidia-sm90", "2", Trust.STATIC, (compiled,))
    others = [replace(report, kernel="another"), replace(report, platform="nvidia-sm80")]
    asked = "registers == 40 and shared_bytes <= shared_limit"
    for reports, state in ((others, "unknown"), ([*others, report], "holds")):
        assert check(asked, facts(kernel, workload, "nvidia-sm90", reports=reports)).state == state


_SMALL = Facts(
    surface="c",
    workload="toy",
    platform=_expert("gemm-c", "cpu-x86-64-v3").platform,
    element="fp32",
    main="small",
    sizes={"small": {"a": 1, "b": 0}, "ragged": {"a": 3, "b": 0}},
    tensors={"small": {"x": Tensor("x", "fp32", (1,), 4096)}},
)
