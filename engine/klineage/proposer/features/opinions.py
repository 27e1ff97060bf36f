"""What a reader, such as a model, says of unknown mechanisms, and whether the lines that they cite say so.

An opinion settles nothing: it is shown beside the question, and a person decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from klineage.kernel import Feature, Kernel
from klineage.proposer.features.finding import State

_SHORTEST = 3  # characters of a quotation that can be found by more than chance


@dataclass(frozen=True)
class Citation:
    """A line of the kernel, from 1, and what it is said to read."""

    line: int
    quote: str


@dataclass(frozen=True)
class Opinion:
    """One reader's answer to one question.

    faults: what is wrong with its citations, a sentence each; empty when every one is in the file.
    """

    feature: Feature
    state: State
    why: str
    by: str
    citations: tuple[Citation, ...]
    faults: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the file says what is cited. Not whether it proves what is concluded from it."""
        return not self.faults


def checked(kernel: Kernel, opinion: Opinion) -> Opinion:
    """The opinion with the faults of its citations, each looked up in the kernel's text."""
    lines = kernel.text.splitlines()
    faults = [fault for citation in opinion.citations if (fault := _fault(lines, citation))]
    if not opinion.citations and opinion.state != "unknown":
        faults.append("it cites no line")
    return replace(opinion, faults=tuple(faults))


def _fault(lines: Sequence[str], citation: Citation) -> str:
    quote = " ".join(citation.quote.split())
    if not 1 <= citation.line <= len(lines):
        return f"there is no line {citation.line}"
    if len(quote) < _SHORTEST:
        return f"what it quotes of line {citation.line} is too short to be looked up"
    if quote not in " ".join(lines[citation.line - 1].split()):
        return f"line {citation.line} does not read {quote[:60]!r}"
    return ""
