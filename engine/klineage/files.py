"""Files that are written whole or not at all: whoever reads one finds what was there before, or all that is new."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(file: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file, and its folder where that is missing. Raises OSError; nothing is left behind then."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".part-")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
        part.chmod(mode)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
