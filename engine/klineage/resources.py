"""Where the shipped experts and library are, in a checkout and in an installed wheel alike."""

from __future__ import annotations

from pathlib import Path

from klineage.errors import KlineageError

_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """The folder of shipped data ``name`` ("experts" or "library").

    Raises KlineageError when the installation lacks it.
    """
    for folder in (_PACKAGE / "_shipped" / name, _PACKAGE.parent.parent / name):
        if folder.is_dir():
            return folder
    raise KlineageError(f"this installation has no {name}/ folder; install klineage-tui again")
