"""The only thing shown when the terminal cannot hold a place."""

from __future__ import annotations

from textual.widgets import Static

MIN_COLUMNS = 40
MIN_ROWS = 14


class TooSmall(Static):
    """One sentence; the app's CSS shows it, and hides everything else, below the smallest size."""

    def __init__(self) -> None:
        super().__init__(f"Too small: needs {MIN_COLUMNS}x{MIN_ROWS}.", markup=False)
