"""What retrieval is asked about: a kernel as it stands, or as much of a target as somebody names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klineage.kernel import Feature, Kernel

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.skill.facts import Facts
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
    from klineage.skill.facts import facts

    known = facts(kernel, workload, platform, reports=reports)
    present = tuple(dict.fromkeys(f.feature for f in known.findings if f.state == "present"))
    names = tuple(dict.fromkeys((*(feature.name for feature in present), *prior)))
    whole = Target(workload.name, kernel.surface, platform, names, action, kernel, present, known)
    return whole if not prior else replace(whole, prior=tuple(sorted(names)))
