"""Where a rule's forward edit fits on a kernel that it has never seen, and with which settings.

A step's settings are those of one instance: names of its loops and arrays, its tile sizes. On another kernel the numbers are
carried over, the names are found anew, and what the kernel forces to be otherwise is said in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from klineage.kernel import Kernel, Surface
from klineage.proposer.rules.fitting import c, triton
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.surface.tree import parse_kernel

__all__ = ["Fit", "fits"]

_OWN: dict[Surface, Mapping[str, Callable[[Kernel, Settings], Iterator[Fit]]]] = {
    "c": c.FITS,
    "triton": triton.FITS,
    "cuda": {},
}


def fits(rule: str, kernel: Kernel, settings: Mapping[str, str]) -> Iterator[Fit]:
    """The ways to put a mechanism on a kernel, the closest to the recorded settings first.

    rule: its name, ``prefetch`` or ``rules:prefetch``. settings: of the instance that it was seen on. Whether a way works is
    known when the edit is made (``rules.derive``): it may not apply.
    """
    name = rule.removeprefix("rules:")
    own = _OWN[kernel.surface].get(name)
    plain = {key: value for key, value in settings.items() if not key.startswith("comment.")}
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    why = (
        ()
        if own is None
        else ("its settings are those of its source, for nothing in this kernel names others",)
    )
    for fit in (*(own(kernel, plain) if own is not None else ()), *_as_they_are(kernel, plain, why)):
        key = (fit.locus, tuple(sorted(fit.settings.items())))
        if key not in seen:
            seen.add(key)
            yield fit


def _as_they_are(kernel: Kernel, settings: Settings, why: tuple[str, ...]) -> Iterator[Fit]:
    """The recorded settings at every function, then at every loop."""
    unit = parse_kernel(kernel)
    functions = {function.locus for function in unit.functions}
    for locus in sorted(unit.loci, key=lambda place: place not in functions):
        yield Fit(locus, dict(settings), why)
