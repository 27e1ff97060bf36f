"""Whose code a gate may run: lineages made here, and those of others that a person has said yes to.

Trust is a file of this user, not of the repository, so that nobody can send it along: one for each lineage,
named by the place of the repository and the lineage's first commit. Deleting a file takes it back. A lineage that came
under another name than its commits have may be a later version of one that is trusted: it is asked for by that name.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import Workspace


class Untrusted(KlineageError):
    """A gate was asked to run code that came from somebody else, and nobody has agreed to that yet."""


def folder() -> Path:
    """Where this user's trust is kept."""
    import platformdirs

    return platformdirs.user_state_path("klineage") / "trusted"


def is_trusted(workspace: Workspace, lineage_id: str) -> bool:
    """Whether the code of a lineage may run: it was opened here, or a person has said so."""
    return _record(workspace, lineage_id).is_file()


def require(workspace: Workspace, lineage_id: str) -> None:
    """Raises Untrusted, with the way out, unless the code of the lineage may run."""
    if not is_trusted(workspace, lineage_id):
        raise Untrusted(
            f"{lineage_id} in {workspace.path} was not made here, and a gate runs its code: read its kernel and its "
            f"workload.py (klineage show {lineage_id} 0 --source -w {shlex.quote(str(workspace.path))}), then add "
            "--trust; the answer is remembered"
        )


def trust(workspace: Workspace, lineage_id: str) -> None:
    """Remember that the code of a lineage may run. Raises KlineageError when that cannot be written."""
    record = _record(workspace, lineage_id)
    try:
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record.write_text(f"{lineage_id} in {workspace.git.place}\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise KlineageError(
            f"cannot remember in {record.parent} that {lineage_id} may be run: {error.strerror}; "
            "set XDG_STATE_HOME to a folder that can be written"
        ) from error


def trust_repository(workspace: Workspace) -> None:
    """``trust`` for every lineage that is in the repository now; what arrives later is asked for again."""
    for summary in workspace.lineages():
        if not summary.problem:
            trust(workspace, summary.id)


def _record(workspace: Workspace, lineage_id: str) -> Path:
    root = workspace.root(lineage_id)
    name = f"{workspace.git.place.resolve()}\0{root}"
    if workspace.step(root).id != lineage_id:
        name += f"\0{lineage_id}"
    return folder() / hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
