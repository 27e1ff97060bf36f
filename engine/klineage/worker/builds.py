"""Builds that are kept: a file and its record in a folder named by all that they were made of, each made once."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from klineage.worker.home import building, keeping, no_room

_RECORD = "record.json"


def kept(
    folder: Path, file: str, cache: Path, make: Callable[[Path], dict[str, Any]]
) -> tuple[dict[str, Any], Path]:
    """The record of a build, with ``cached`` in it, and its file, from ``folder`` in ``cache`` or made now.

    make: builds ``file`` in the empty folder that it gets, and returns the record; its ``sha256`` is that of the file.
    Raises what ``make`` raises, and WorkerError("cache") when there is no room.
    """
    found = _found(folder, file)
    if found is not None:
        return found, folder / file
    try:
        with tempfile.TemporaryDirectory(dir=building(cache), prefix="build-") as name:
            scratch = Path(name)
            record = make(scratch)
            (scratch / _RECORD).write_text(json.dumps(record), encoding="utf-8")
            with keeping(cache):
                found = _found(folder, file)
                if found is not None:  # another klineage was faster, and may be using it
                    return found, folder / file
                folder.mkdir(parents=True, exist_ok=True)
                (scratch / file).replace(folder / file)
                (scratch / _RECORD).replace(folder / _RECORD)
    except OSError as error:
        raise no_room(cache, error) from error
    return {**record, "cached": False}, folder / file


def _found(folder: Path, file: str) -> dict[str, Any] | None:
    """A finished entry. A damaged one is a miss, and is built again."""
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        intact = hashlib.sha256((folder / file).read_bytes()).hexdigest() == record["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {**record, "cached": True} if intact else None
