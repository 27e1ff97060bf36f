"""The last ablation of a lineage, kept in its repository, so that it can be looked at again without a gate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from klineage.errors import KlineageError
from klineage.lineage import Workspace, refs
from klineage.skill.ablation.measuring import Ablation

_SCHEMA = 1


@dataclass(frozen=True)
class Kept:
    """An ablation, and of what.

    sealed: the last commit of the sealed lineage that was measured.
    when:   ``2026-11-29T12:00:00Z``.
    """

    ablation: Ablation
    sealed: str
    when: str
    schema: int = _SCHEMA


def keep(workspace: Workspace, ablation: Ablation) -> Kept:
    """Keep an ablation in place of the one before; its gate reports are kept with it."""
    import msgspec

    when = datetime.fromtimestamp(workspace.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = Kept(ablation, workspace.sealed_at(ablation.lineage), when)
    workspace.keep_ablation(ablation.lineage, msgspec.json.format(msgspec.json.encode(kept), indent=1))
    return kept


def kept(workspace: Workspace, lineage_id: str) -> Kept | None:
    """The ablation of a lineage as it is sealed now, if one was kept. Raises KlineageError when it cannot be read."""
    import msgspec

    data = workspace.ablation(lineage_id)
    if not data:
        return None
    ref = refs.ablation(lineage_id)
    try:
        found = msgspec.json.decode(data, type=Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise KlineageError(
            f"what {lineage_id} was found to be worth cannot be read: {error}; git update-ref -d {ref} drops it"
        ) from error
    if found.schema != _SCHEMA or found.ablation.lineage != lineage_id:
        raise KlineageError(
            f"{ref} is not an ablation of {lineage_id} in this version; git update-ref -d {ref} drops it"
        )
    return found if found.sealed == workspace.sealed_at(lineage_id) else None
