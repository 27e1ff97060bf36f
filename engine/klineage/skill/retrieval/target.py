"""What retrieval is asked about: a kernel as it stands, or as much of a target as somebody names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from klineage.kernel import Feature, Kernel
from klineage.platform import parse
from klineage.proposer.vocabulary import checked

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.skill.checks.facts import Facts
    from klineage.workload import Workload


@dataclass(frozen=True)
class Target:
    """Where a card is wanted. What is empty or None is not asked about.

    prior:    the mechanisms that are there already; () is a kernel that has none.
    features: the same with their places, known where there is a kernel.
    facts:    for checks; None where they cannot be evaluated.
    action:   only cards of this word of the action vocabulary.
    """

    workload: str = ""
    surface: str = ""
    platform: str = ""
    prior: tuple[str, ...] | None = None
    action: str = ""
    kernel: Kernel | None = None
    features: tuple[Feature, ...] = ()
    facts: Facts | None = None

    @property
    def stands_at(self) -> str:
        """``gemm, c, cpu-x86-64-v4, with restrict and simd``."""
        named = [part for part in (self.workload, self.surface, self.platform) if part]
        if self.prior is not None:
            named.append(f"with {_listed(self.prior)}" if self.prior else "with no optimization yet")
        return ", ".join(named) or "any kernel"


def _listed(words: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def named_target(
    workload: str = "",
    surface: str = "",
    platform: str = "",
    prior: Iterable[str] | None = None,
    action: str = "",
) -> Target:
    """As much of a target as somebody names, without a kernel.

    workload: a name, also one that is not shipped, or the path of one. Raises KlineageError for a path, a surface, a
    platform or an action that there is not.
    """
    from klineage.walk.reading import surface_of

    language = surface_of("", surface) if surface else ""
    if platform:
        parse(platform)
    known = None if prior is None else tuple(dict.fromkeys(prior))
    return Target(_name(workload), language, platform, known, checked_action(action))


def is_path(workload: str) -> bool:
    """Whether a workload was given as a path, and not by its name."""
    return bool(workload) and (PurePath(workload).name != workload or workload.endswith(".py"))


def _name(workload: str) -> str:
    from klineage.workload import load

    return load(workload).name if is_path(workload) else workload


def checked_action(action: str) -> str:
    """The action in its normal form, or none. Raises KlineageError, with the nearest word, for a probable slip."""
    return checked(action) if action else ""


def target_of(
    kernel: Kernel,
    workload: Workload,
    platform: str,
    *,
    reports: Iterable[Report] = (),
    prior: Iterable[str] = (),
    action: str = "",
) -> Target:
    """A kernel with its mechanisms and facts. prior: further mechanisms that a person knows to be there.

    Raises KlineageError for an unknown platform, or a workload that has no element type for the kernel's language.
    """
    from klineage.skill.checks.facts import facts

    known = facts(kernel, workload, platform, reports=reports)
    present = tuple(dict.fromkeys(f.feature for f in known.findings if f.state == "present"))
    names = tuple(dict.fromkeys((*(feature.name for feature in present), *prior)))
    return Target(
        workload.name, kernel.surface, platform, names, checked_action(action), kernel, present, known
    )
