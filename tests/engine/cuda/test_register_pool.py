"""Roles that trade registers (``setmaxnreg``) must fit what the launch was given: a warpgroup that asks for more waits for ever.

A launch gets 65,536 registers a block at most, in steps of eight a thread; what one role gives back is all that another can take.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KERNELS = [
    path
    for path in sorted([*ROOT.glob("experts/**/*.cu"), *ROOT.glob("benchmarks/gpu/variants/**/*.cu")])
    if "setmaxnreg" in path.read_text(encoding="utf-8")
]
REGISTERS, WARPGROUP = 65536, 128
ROLES = re.compile(
    r"if \(threadIdx\.x < (?P<first>\d+)\) \{\s*"
    r'asm volatile\("setmaxnreg\.dec\.sync\.aligned\.u32 (?P<given>\d+);"\);.*?'
    r"\} else \{\s*"
    r'asm volatile\("setmaxnreg\.inc\.sync\.aligned\.u32 (?P<taken>\d+);"\);',
    re.DOTALL,
)


def misfit(source: str) -> str:
    """Why the roles of a kernel in two roles, the first of which gives registers back, do not fit; empty when they do."""
    constants = dict(re.findall(r"constexpr int (\w+) = (\d+);", source))
    promised = re.findall(r"__launch_bounds__\((\w+), 1\)", source)
    roles = ROLES.search(source)
    if roles is None or len(promised) != 1 or len(re.findall(r'"setmaxnreg\.', source)) != 2:
        return "it is not written as two roles under __launch_bounds__(THREADS, 1)"
    threads, first = int(constants.get(promised[0], promised[0])), int(roles["first"])
    at_launch = REGISTERS // threads // 8 * 8
    given, taken = int(roles["given"]), int(roles["taken"])
    if threads % WARPGROUP or first % WARPGROUP:
        return "a role is no whole number of warpgroups"
    if given % 8 or taken % 8 or not 24 <= given <= at_launch <= taken <= 256:
        return f"{given} and {taken} are not steps of eight around the {at_launch} of the launch"
    wanted = given * first + taken * (threads - first)
    if wanted > at_launch * threads:
        return f"the roles want {wanted} registers, and the launch has {at_launch * threads}"
    return ""


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_registers_of_all_roles_fit_the_launch(path: Path) -> None:
    assert misfit(path.read_text(encoding="utf-8")) == ""


@pytest.mark.parametrize(
    ("roles", "fit"), [((32, 240), False), ((24, 240), True), ((40, 232), True), ((40, 240), False)]
)
def test_more_than_the_launch_has_does_not_fit(roles: tuple[int, int], fit: bool) -> None:
    """Three warpgroups start with 168 registers a thread: 24 + 2 * 240 are those, and 32 + 2 * 240 are eight too many."""
    source = (ROOT / "experts/fmha/cuda/kernel.cu").read_text(encoding="utf-8")
    for word, count in zip(("dec", "inc"), roles, strict=True):
        source = re.sub(rf"(setmaxnreg\.{word}\.sync\.aligned\.u32) \d+", rf"\1 {count}", source)
    assert (misfit(source) == "") is fit
