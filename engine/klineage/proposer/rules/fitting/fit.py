"""One way to put a mechanism on a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Settings = Mapping[str, str]


@dataclass(frozen=True)
class Fit:
    """A place on a kernel, and the settings for it.

    adapted: what is otherwise than on the instance and why, one sentence each; empty where everything was carried over.
    """

    locus: str
    settings: dict[str, str] = field(default_factory=dict)
    adapted: tuple[str, ...] = ()


def free(name: str, taken: set[str]) -> str:
    """The name, or one like it that is not taken."""
    while name in taken:
        name += "_"
    return name
