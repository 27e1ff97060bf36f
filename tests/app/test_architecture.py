"""The page on how the code is laid out names the packages that there are, and no others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_names_every_package_and_no_other() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("```")[1]
    packages = {
        file.parent.name
        for top in ("engine/klineage", "klineage_tui")
        for file in (ROOT / top).rglob("__init__.py")
    }
    data = {"experts", "themes", "library"}
    assert set(re.findall(r"\b(\w+)/(?!\w)", tree)) == packages | data
