"""A repository for the length of a block, where nobody else's settings and refs are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from klineage.lineage.plumbing import Git


@contextmanager
def scratch_repository(hash_length: int, borrow: Path | None = None) -> Iterator[Git]:
    """A bare repository that lasts for a block, with the objects of ``borrow`` if given."""
    with tempfile.TemporaryDirectory(prefix="klineage-") as name:
        folder = Path(name)
        kind = "sha1" if hash_length == 40 else "sha256"
        Git(None, folder).run("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", name)
        if borrow is not None:
            (folder / "objects" / "info").mkdir(exist_ok=True)
            (folder / "objects" / "info" / "alternates").write_text(f"{borrow}\n")
        git = Git(folder)
        try:
            yield git
        finally:
            git.close()
