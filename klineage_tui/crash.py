"""What is left of a defect: one line on the terminal, and a log file without local variables or keys."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def log_exception(problem: BaseException, folder: Path | None = None) -> str:
    """Write the traceback to a new file and return its path as text.

    Values of environment variables that look like secrets are struck out. When the folder cannot be
    written, the text says so instead: there is nothing else left to do.
    """
    text = without_secrets("".join(traceback.format_exception(problem)))
    try:
        if folder is None:
            from platformdirs import user_log_path

            folder = user_log_path("klineage")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as second:
        return f"no file ({second.strerror})"
    return str(path)


def without_secrets(text: str) -> str:
    """``text`` with the values of secret environment variables replaced by their names."""
    for name, value in os.environ.items():
        if len(value) >= 8 and any(word in name.upper() for word in _SECRETS):
            text = text.replace(value, f"<{name}>")
    return text
