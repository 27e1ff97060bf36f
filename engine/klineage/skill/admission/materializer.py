"""Who puts a card on a kernel: a rule, the carrier as a patch, a model, a command, or a person.

All of them are given the card alone and the target, and never the kernel that the card was lifted from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.proposer.base import Proposer
from klineage.skill.admission.target import Target, pinned
from klineage.skill.card import Card
from klineage.walk.reading import read_bytes

FORMS = ("rules", "patch", "model", "model:ID", "command:NAME", "replay:FILE", "person")

#: The proposer of a name, as ``proposer_named`` gives it.
Ask = Callable[[str], Proposer]


@dataclass(frozen=True)
class Made:
    """One answer: a kernel, or the sentence that says why there is none.

    by:  who made it, as the verification log has it. how: what was done where, and what the target forced to be otherwise.
    """

    by: str
    kernel: Kernel | None = field(default=None, repr=False)
    how: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Failed:
    """An attempt of this trial that did not hold, which the next one is told about."""

    why: str
    kernel: str = ""  # hash, where there was a kernel


class Materializer(Protocol):
    """``name`` is how it is asked for; each answer says who really made it."""

    @property
    def name(self) -> str: ...

    def answers(self, card: Card, target: Target, failed: Callable[[], tuple[Failed, ...]]) -> Iterator[Made]:
        """Answers, one at a time, best first; ``failed`` is what has been tried when the next one is asked for."""
        ...


def changed(target: Target, source: bytes) -> Kernel:
    """The target's kernel with other bytes, and the flags and configurations that they declare."""
    from klineage.surface.dispatch import flags_of

    kernel = target.kernel
    return pinned(replace(kernel, source=source, flags=flags_of(kernel.surface, source)))


@dataclass(frozen=True)
class Person:
    """A file that a person wrote with the card beside them: one attempt."""

    file: Path
    name: str = "person"

    def answers(self, card: Card, target: Target, failed: Callable[[], tuple[Failed, ...]]) -> Iterator[Made]:
        yield Made(self.name, changed(target, read_bytes(self.file)), f"written by hand in {self.file.name}")


def materializer_named(
    name: str,
    *,
    file: Path | None = None,
    ask: Ask | None = None,
) -> Materializer:
    """The materializer of a name. file: of the person. ask: who knows models and commands.

    Raises KlineageError, with what there is, for a name that is none.
    """
    kind = name.partition(":")[0]
    if name == "rules":
        from klineage.skill.admission.by_rule import ByRule

        return ByRule()
    if name == "patch":
        from klineage.skill.admission.by_patch import ByPatch

        return ByPatch()
    if name == "person" and file is not None:
        return Person(file)
    if name == "person":
        raise KlineageError(
            "a person materializes a card by writing the kernel: name its file (--with person --file FILE)"
        )
    if kind in ("model", "command", "replay") and ask is not None:
        from klineage.skill.admission.by_proposer import ByProposer

        return ByProposer(ask(name))
    raise KlineageError(f"nobody is called {name!r} who could materialize a card; write {', '.join(FORMS)}")
