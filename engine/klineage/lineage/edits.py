"""Forward edits that are worth keeping: those of a model, a command or a person, which nobody makes again for nothing.

A rule's edit is not here, since the rule makes it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.lineage import refs, store
from klineage.lineage.message import one_line
from klineage.lineage.model import is_plain_name
from klineage.lineage.plumbing import Git

INDEX_FILE = "edits.json"
_SCHEMA = 1
_FIELDS = ("before", "after", "proposer", "file")


@dataclass(frozen=True)
class KeptEdit:
    """A forward edit: the whole file that ``proposer`` made of the simpler kernel, without seeing the richer one.

    before, after: hashes of the simpler kernel and of the one that it should come to.
    """

    before: str
    after: str
    proposer: str
    source: bytes

    @property
    def key(self) -> tuple[str, str]:
        return self.before, self.after


def files_of(edits: Mapping[tuple[str, str], KeptEdit], filename: str) -> dict[str, bytes]:
    """The tree that holds these edits: an index, and the exact bytes of each."""
    rows, files = [], {}
    for edit in edits.values():
        name = f"{edit.before[:16]}-{edit.after[:16]}-{filename}"
        files[name] = edit.source
        rows.append(
            {"before": edit.before, "after": edit.after, "proposer": one_line(edit.proposer), "file": name}
        )
    index = json.dumps({"schema": _SCHEMA, "edits": rows}, indent=1, ensure_ascii=False) + "\n"
    return {INDEX_FILE: index.encode("utf-8", "replace"), **files}


def read(git: Git, lineage_id: str) -> dict[tuple[str, str], KeptEdit]:
    """The kept edits by (simpler kernel, richer kernel). Raises KlineageError when they cannot be read."""
    ref = refs.edits(lineage_id)
    tip = store.head(git, ref)
    if not tip:
        return {}
    files = store.files(git, tip)
    try:
        record = json.loads(files.get(INDEX_FILE, b"null"))
        rows = record["edits"] if isinstance(record, Mapping) and record.get("schema") == _SCHEMA else None
        if not isinstance(rows, list) or not all(_sound(row, files) for row in rows):
            raise ValueError("its index is not one of this version")
    except (ValueError, KeyError, RecursionError) as error:
        raise KlineageError(
            f"the kept forward edits of {lineage_id} cannot be read: {error}; git show {ref}:{INDEX_FILE} shows them, "
            f"git update-ref -d {ref} drops them"
        ) from error
    kept = [KeptEdit(r["before"], r["after"], r["proposer"], files[r["file"]]) for r in rows]
    return {edit.key: edit for edit in kept}


def _sound(row: object, files: Mapping[str, bytes]) -> bool:
    if not isinstance(row, Mapping) or not all(isinstance(row.get(name), str) for name in _FIELDS):
        return False
    return is_plain_name(row["file"]) and row["file"] in files
