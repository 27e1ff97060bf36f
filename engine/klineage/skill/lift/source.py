"""Everything that cards are lifted from: the transitions and the rejected attempts of some lineages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.skill.transitions import Rejected, Transition, rejected, sealed_lineages, transitions


@dataclass(frozen=True)
class Source:
    """What is lifted from. ``transitions`` are ordered by lineage, the simplest state first."""

    transitions: tuple[Transition, ...]
    rejected: tuple[Rejected, ...] = ()


def source_of(workspace: Workspace, lineages: Sequence[str] = ()) -> Source:
    """The transitions and the rejected attempts of these lineages; of every sealed one here where none is named.

    Raises KlineageError for a lineage that is not sealed, or when there is none at all.
    """
    names = tuple(dict.fromkeys(lineages)) or sealed_lineages(workspace)
    if not names:
        raise KlineageError(
            f"no lineage in {workspace.path} is sealed, so there is nothing to lift; klineage seal ID writes one"
        )
    return Source(
        tuple(found for name in names for found in transitions(workspace, name)),
        tuple(found for name in names for found in rejected(workspace, name)),
    )
