"""Reports as JSON: for notes in git, and for the cache."""

from __future__ import annotations

from klineage.errors import KlineageError
from klineage.gate.verdict import Report


def report_to_json(report: Report) -> str:
    """The whole report as one line of JSON with sorted keys."""
    import msgspec

    return msgspec.json.encode(report, order="sorted").decode()


def report_from_json(text: str | bytes) -> Report:
    """The inverse of ``report_to_json``. Raises KlineageError for anything else."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise KlineageError(f"not a gate report of this version: {error}") from error
