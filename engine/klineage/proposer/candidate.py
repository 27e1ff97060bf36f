"""A proposed simplification, whoever proposes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from klineage.kernel import Feature, Kernel


@dataclass(frozen=True)
class Candidate:
    """One backward step that might be taken from a kernel.

    ``source`` is the whole new file. ``settings`` are the instance's own numbers that the removed
    mechanism was configured with (``num_stages=4``): an example configuration, never a precondition.
    """

    action: str
    locus: str
    title: str  # imperative, at most 60 characters: "Remove software pipelining"
    rationale: str
    source: bytes = field(repr=False)
    removes: tuple[Feature, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    preconditions: tuple[str, ...] = ()
    config: tuple[tuple[str, int], ...] | None = None  # None: the pinned configuration is unchanged
    proposer: str = "rules"  # "rules:<rule name>", "person", "person, from rules:<rule name>", "model:<id>"

    def kernel(self, head: Kernel) -> Kernel:
        """The kernel that taking this step from ``head`` makes; its flags are those that its source declares."""
        from klineage.surface.dispatch import flags_of

        config = head.config if self.config is None else self.config
        return replace(head, source=self.source, config=config, flags=flags_of(head.surface, self.source))

    @property
    def by_hand(self) -> bool:
        """Whether a person wrote these bytes, from scratch or over a proposal."""
        return self.proposer.startswith("person")
