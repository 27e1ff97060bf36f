"""The names of a lineage's refs."""

from __future__ import annotations

NOTES = "refs/notes/klineage"
WALKS = "refs/heads/walk/"
LINEAGES = "refs/heads/lineage/"
REJECTED = "refs/klineage/rejected/"
DRAFTS = "refs/klineage/draft/"
OPERATIONS = "refs/klineage/operations/"
SETTLED = "refs/klineage/settled/"
EDITS = "refs/klineage/edits/"
ABLATIONS = "refs/klineage/ablation/"
LIBRARY = "refs/heads/library"


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


def settled(lineage_id: str) -> str:
    """What persons said of mechanisms."""
    return SETTLED + lineage_id


def edits(lineage_id: str) -> str:
    """Forward edits that no rule makes again for nothing: a model's, a command's, a person's."""
    return EDITS + lineage_id


def ablation(lineage_id: str) -> str:
    """What its optimizations were last found to be worth alone. It is found again by measuring, so no bundle has it."""
    return ABLATIONS + lineage_id


def belongs(ref: str, lineage_id: str) -> bool:
    """Whether an operation on this lineage may move ``ref`` (bundles are other people's text)."""
    number = ref.removeprefix(rejected(lineage_id))
    attempt = number != ref and number.isascii() and number.isdigit()
    own = (walk(lineage_id), sealed(lineage_id), settled(lineage_id), edits(lineage_id), NOTES)
    return attempt or ref in own
