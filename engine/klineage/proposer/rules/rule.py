"""What a rule is: one mechanism, how to see it, take it out, and put it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel, Surface
from klineage.surface.tree import Edit

Config = tuple[tuple[str, int], ...]


class NotApplicable(KlineageError):
    """The rule cannot make its edit in this kernel; ``reason`` says what is missing or in the way."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Site:
    """One place where a rule sees its mechanism.

    settings: the instance's own numbers, enough (with the locus) for ``apply`` to put the mechanism back.
    """

    locus: str
    removes: tuple[Feature, ...]
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rewrite:
    """Edits to the kernel's source, and the new pinned configuration where it changes."""

    edits: tuple[Edit, ...]
    config: Config | None = None


@dataclass(frozen=True)
class Known:
    """How a precondition of a rule can be asked of a target, and how it can be broken to see whether it matters.

    check:    an expression over facts of the target (``klineage.skill.checks``); empty where no fact decides it.
    change:   what a probe breaks: ``size``, ``stride``, ``misalign`` ... (``klineage.skill.probe``); empty where nothing is
              known that would break it and nothing else.
    settings: of the change. What is left out is chosen from the check. Values that belong to an instance are told as a
              change of its own (``x4``), and ``code`` names the mechanism whose instructions show the effect.
    """

    check: str = ""
    change: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """A mechanism of one surface.

    title:  what the backward step does, in the imperative; adds: the same of the forward step.
    at:     the place that it acts at, in words of the field.
    detect: every site in a kernel, whether or not it can be removed just now.
    remove: the edits that take one site's mechanism out. Raises NotApplicable.
    apply:  the forward edits, from a kernel without the mechanism. Raises NotApplicable.
    known:  how preconditions can be asked and broken, by their kind (``Layout``), where that is honestly possible.
    after:  names of features that stand on this one: while the same function has any of them, the rule
            proposes nothing ("dependents before prerequisites").
    """

    name: str
    action: str
    surface: Surface
    title: str
    adds: str
    rationale: str
    preconditions: tuple[str, ...]
    detect: Callable[[Kernel], tuple[Site, ...]]
    remove: Callable[[Kernel, Site], Rewrite]
    apply: Callable[[Kernel, str, Mapping[str, str]], tuple[Edit, ...]]
    after: tuple[str, ...] = ()
    at: str = ""
    known: Mapping[str, Known] = field(default_factory=dict)

    def known_of(self, precondition: str) -> Known:
        """What is known of one of the rule's preconditions; nothing for any other sentence."""
        return (
            self.known.get(precondition.partition(":")[0], Known())
            if precondition in self.preconditions
            else Known()
        )


def setting(settings: Mapping[str, str], name: str) -> str:
    """The value of a setting. Raises NotApplicable when the step did not record it."""
    if name not in settings:
        raise NotApplicable(f"the step records no setting {name!r}")
    return settings[name]
