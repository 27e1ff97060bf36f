"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.files import write_whole


def test_a_file_is_replaced_and_its_folder_made(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.json"
    write_whole(file, b"one")
    write_whole(file, b"two", 0o644)
    assert file.read_bytes() == b"two"
    assert file.stat().st_mode & 0o777 == 0o644
    assert list(file.parent.iterdir()) == [file]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(OSError):
        write_whole(folder, b"one")
    assert list(tmp_path.iterdir()) == [folder]
