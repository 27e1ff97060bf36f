"""Names of platforms and their order: what runs on one runs on those above it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from klineage.errors import KlineageError

CPU_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
_PATTERN = re.compile(
    r"nvidia-sm(?P<sm>\d{2,3})(?P<suffix>[af]?)|amd-gfx(?P<gfx>[0-9a-f]{3,4})|cpu-(?P<cpu>.+)"
)


@dataclass(frozen=True)
class Platform:
    """One hardware target, e.g. ``nvidia-sm90``, ``amd-gfx942``, ``cpu-x86-64-v3``.

    vendor: "nvidia", "amd" or "cpu". architecture: "sm90", "gfx942", "x86-64-v3", "aarch64".
    specific: an ``a`` or ``f`` variant (sm90a), whose code runs on that architecture only.
    """

    vendor: str
    architecture: str
    specific: bool = False

    def __str__(self) -> str:
        return f"{self.vendor}-{self.architecture}{'a' if self.specific else ''}"

    @property
    def is_gpu(self) -> bool:
        return self.vendor != "cpu"

    @property
    def capability(self) -> int:
        """90 for nvidia-sm90; 0 for what is not NVIDIA."""
        return int(self.architecture[2:]) if self.vendor == "nvidia" else 0

    def satisfies(self, needed: Platform) -> bool:
        """Whether what needs ``needed`` can run here: nvidia-sm90 satisfies nvidia-sm80.

        sm90 and sm90a name the same hardware, so each satisfies the other. AMD architectures are not ordered.
        Of CPUs, each x86-64 level includes those below it.
        """
        if self.vendor != needed.vendor:
            return False
        if self.vendor == "nvidia":
            if needed.specific:
                return self.capability == needed.capability
            return self.capability >= needed.capability
        if self.architecture in CPU_LEVELS and needed.architecture in CPU_LEVELS:
            return CPU_LEVELS.index(self.architecture) >= CPU_LEVELS.index(needed.architecture)
        return self.architecture == needed.architecture


def parse(name: str) -> Platform:
    """The platform of that name. Raises KlineageError that lists the forms when there is none."""
    match = _PATTERN.fullmatch(name.strip().lower())
    if match and match["sm"]:
        return Platform("nvidia", f"sm{match['sm']}", match["suffix"] != "")
    if match and match["gfx"]:
        return Platform("amd", f"gfx{match['gfx']}")
    if match and (match["cpu"] in CPU_LEVELS or match["cpu"] in ("aarch64", "native")):
        return Platform("cpu", match["cpu"])
    raise KlineageError(
        f"unknown platform {name!r}; write it as nvidia-sm90, amd-gfx942, cpu-x86-64-v3 or cpu-aarch64"
    )


def satisfies(available: str, needed: str) -> bool:
    """``parse(available).satisfies(parse(needed))``."""
    return parse(available).satisfies(parse(needed))
