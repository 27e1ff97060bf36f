"""Everything that cards are lifted from: the transitions and the rejected attempts of some lineages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.skill.transitions import Rejected, Transition, rejected, sealed_lineages, transitions


@dataclass(frozen=True)
class Source:
    """What is lifted from.

    transitions: ordered by lineage, the simplest state first. pool: every transition of the same lineages, lifted or
    not, whose states say what an edit needs.
    """

    transitions: tuple[Transition, ...]
    rejected: tuple[Rejected, ...] = ()
    pool: tuple[Transition, ...] = ()

    def with_commits(self, workspace: Workspace, commits: Mapping[str, str]) -> Source:
        """And these commits of further lineages (commit to lineage), as far as they are sealed in the workspace."""
        here = {t.lineage for t in self.pool}
        names = [name for name in sealed_lineages(workspace) if name in set(commits.values()) - here]
        more = [t for name in names for t in transitions(workspace, name)]
        tried = [r for name in names for r in rejected(workspace, name)]
        return Source(
            (*(t for t in more if t.commit in commits), *self.transitions),
            (*(r for r in tried if r.commit in commits), *self.rejected),
            (*more, *self.pool),
        )


def source_of(workspace: Workspace, lineages: Sequence[str] = ()) -> Source:
    """The transitions and the rejected attempts of these lineages; of every sealed one here where none is named.

    Raises KlineageError for a lineage that is not sealed, or when there is none at all.
    """
    names = tuple(dict.fromkeys(lineages)) or sealed_lineages(workspace)
    if not names:
        raise KlineageError(
            f"no lineage in {workspace.path} is sealed, so there is nothing to lift; klineage seal ID writes one"
        )
    found = tuple(t for name in names for t in transitions(workspace, name))
    return Source(found, tuple(r for name in names for r in rejected(workspace, name)), found)
