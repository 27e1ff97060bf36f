"""What persons said of mechanisms that no detector could tell, kept with the lineage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.kernel import Feature
from klineage.lineage import refs, store
from klineage.lineage.message import one_line
from klineage.lineage.plumbing import Git

SETTLED_FILE = "settled.json"
_SCHEMA = 1
_FIELDS = ("locus", "name", "state", "why", "who", "cue", "at")


@dataclass(frozen=True)
class Settlement:
    """One person's word on one mechanism.

    state: "present" or "absent".
    cue:   what the question rested on; the word holds while that stays the same.
    at:    the commit of the state that it was said on.
    """

    feature: Feature
    state: str
    why: str
    who: str = ""
    cue: str = ""
    at: str = ""


def with_one(known: Sequence[Settlement], said: Settlement) -> tuple[Settlement, ...]:
    """The settlements with one more, in place of an earlier word on the same question."""
    kept = [s for s in known if (s.feature, s.cue) != (said.feature, said.cue)]
    return (*kept, said)


def to_json(settlements: Sequence[Settlement]) -> bytes:
    """The bytes of ``settled.json``: stable order, readable as a diff."""
    rows = [
        {
            "locus": s.feature.locus, "name": s.feature.name, "state": s.state, "why": one_line(s.why),
            "who": one_line(s.who), "cue": one_line(s.cue), "at": s.at,
        }
        for s in settlements
    ]  # fmt: skip
    return (json.dumps({"schema": _SCHEMA, "settled": rows}, indent=1, ensure_ascii=False) + "\n").encode(
        "utf-8", "replace"
    )


def from_json(data: bytes) -> tuple[Settlement, ...]:
    """The inverse of ``to_json``. Raises ValueError with the reason when ``data`` is not one."""
    record = json.loads(data)
    if not isinstance(record, Mapping) or record.get("schema") != _SCHEMA:
        raise ValueError(f"it is not of schema {_SCHEMA}")
    rows = record.get("settled")
    if not isinstance(rows, list) or not all(_sound(row) for row in rows):
        raise ValueError("a row is missing a field, or has one that is no text")
    return tuple(
        Settlement(Feature(r["locus"], r["name"]), r["state"], r["why"], r["who"], r["cue"], r["at"])
        for r in rows
    )


def _sound(row: object) -> bool:
    if not isinstance(row, Mapping) or not all(isinstance(row.get(name), str) for name in _FIELDS):
        return False
    return row["state"] in ("present", "absent") and " / " not in row["name"]


def read(git: Git, lineage_id: str) -> tuple[Settlement, ...]:
    """What is settled in a lineage, oldest first. Raises KlineageError when the record cannot be read."""
    tip = store.head(git, refs.settled(lineage_id))
    if not tip:
        return ()
    try:
        return from_json(store.files(git, tip).get(SETTLED_FILE, b"null"))
    except (ValueError, RecursionError) as error:
        raise KlineageError(
            f"what was settled in {lineage_id} cannot be read: {error}; git show {refs.settled(lineage_id)}:{SETTLED_FILE} "
            f"shows it, git update-ref -d {refs.settled(lineage_id)} drops it"
        ) from error
