"""Which libraries somebody has: that of the workspace they are in, and the one that is shipped."""

from __future__ import annotations

from pathlib import Path

from klineage.errors import KlineageError
from klineage.resources import shipped
from klineage.skill.library.folder import is_library


def library_places(workspace: Path | None, default: Path) -> tuple[Path, ...]:
    """Where ``Library.open`` finds cards, the person's own first; empty where there are none.

    workspace: the one that was named, or None for ``default``, which need not be one. The shipped library is left out
    where an installation has none.
    """
    found = [workspace] if workspace is not None else [default] if (default / ".git").exists() else []
    try:
        if is_library(shipped("library")):
            found.append(shipped("library"))
    except KlineageError:
        return tuple(found)  # a checkout without the folder: the person's own cards are all that there is
    return tuple(found)
