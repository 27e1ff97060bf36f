"""The names of a lineage's refs."""

from __future__ import annotations

NOTES = "refs/notes/klineage"
WALKS = "refs/heads/walk/"
LINEAGES = "refs/heads/lineage/"
REJECTED = "refs/klineage/rejected/"
DRAFTS = "refs/klineage/draft/"
OPERATIONS = "refs/klineage/operations/"


def walk(lineage_id: str) -> str:
    return WALKS + lineage_id


def sealed(lineage_id: str) -> str:
    return LINEAGES + lineage_id


def rejected(lineage_id: str) -> str:
    """The folder of the rejected attempts, with its slash."""
    return f"{REJECTED}{lineage_id}/"


def draft(lineage_id: str) -> str:
    return DRAFTS + lineage_id


def operations(lineage_id: str) -> str:
    return OPERATIONS + lineage_id


def belongs(ref: str, lineage_id: str) -> bool:
    """Whether an operation on this lineage may move ``ref`` (bundles are other people's text)."""
    number = ref.removeprefix(rejected(lineage_id))
    attempt = number != ref and number.isascii() and number.isdigit()
    return attempt or ref in (walk(lineage_id), sealed(lineage_id), NOTES)
