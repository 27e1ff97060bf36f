"""How the tests run klineage and plain git."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KLINEAGE = [sys.executable, "-m", "klineage_tui.cli"]


def git(repository: Path, *words: str) -> str:
    """Plain git, as a user would look at what klineage wrote."""
    return subprocess.run(
        ["git", "-C", str(repository), *words], capture_output=True, text=True, check=True, timeout=300
    ).stdout
