"""Where the person was: the last lineage and place of each workspace, the chosen theme and diff layout."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from klineage.errors import KlineageError


@dataclass
class Session:
    """What is remembered between runs. ``save`` replaces the file at once or not at all."""

    path: Path
    theme: str = ""
    layout: str = ""
    lineages: dict[str, str] = field(default_factory=dict)  # workspace path -> lineage id
    places: dict[str, str] = field(default_factory=dict)  # workspace path -> where the person was

    def save(self) -> None:
        """Write the file atomically. Raises KlineageError when the folder cannot be written."""
        record = {name: value for name, value in vars(self).items() if name != "path"}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self.path.parent, prefix=".session-", delete=False
            ) as file:
                json.dump(record, file, indent=1)
            os.replace(file.name, self.path)  # noqa: PTH105 - the atomic form of it
        except OSError as problem:
            raise KlineageError(f"{self.path}: cannot remember where you were: {problem}") from problem


def session_file() -> Path:
    from platformdirs import user_state_path

    return user_state_path("klineage") / "session.json"


def load_session(path: Path | None = None) -> tuple[Session, str]:
    """The remembered session, and a sentence when the file could not be used (an empty session then)."""
    path = path or session_file()
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Session(path), ""
    except (OSError, ValueError) as problem:
        return Session(path), f"{path}: cannot be read, starting afresh: {problem}"
    if not _is_session(record):
        return Session(path), f"{path}: not a session of this version, starting afresh"
    return Session(path, **record), ""


def _is_session(record: object) -> bool:
    if not isinstance(record, dict) or set(record) - {"theme", "layout", "lineages", "places"}:
        return False
    texts = [record.get("theme", ""), record.get("layout", "")]
    for name in ("lineages", "places"):
        table = record.get(name, {})
        if not isinstance(table, dict):
            return False
        texts += [*table, *table.values()]
    return all(isinstance(text, str) for text in texts)
