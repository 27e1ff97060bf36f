"""Which libraries somebody has: that of the workspace they are in, and the one that is shipped."""

from __future__ import annotations

from pathlib import Path

from klineage.errors import KlineageError
from klineage.resources import shipped
from klineage.skill.library_folder import is_library


def library_places(workspace: Path | None, default: Path) -> tuple[Path, ...]:
    """Where ``Library.open`` finds cards, the person's own first.

    workspace: the one that was named, or None for ``default``, which need not be one. The shipped library is left out
    where an installation has none. Raises KlineageError when nothing is left.
    """
    found = [workspace] if workspace is not None else [default] if (default / ".git").exists() else []
    try:
        if is_library(shipped("library")):
            found.append(shipped("library"))
    except KlineageError:
        if not found:
            raise
    if not found:
        raise KlineageError(
            "there are no cards here; name a workspace with -w DIR, or a library with --library PATH"
        )
    return tuple(found)
