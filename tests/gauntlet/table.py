"""The gauntlet as the table that docs/gate.md prints."""

from __future__ import annotations

from pathlib import Path

from .cases import Case, cheats, honest

DOCUMENT = Path(__file__).parents[2] / "docs" / "gate.md"
BEGIN, END = "<!-- gauntlet: begin, written by python -m tests.gauntlet --write -->", "<!-- gauntlet: end -->"


def rendered() -> str:
    """One row a file: what it does, its place in the catalogue, and what each surface says."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cheats():
        groups.setdefault((case.language, case.path.stem), []).append(case)
    lines = [
        f"{len(groups)} cheats, {len({c.path for c in honest()})} honest kernels.",
        "",
        "| file | catalogue | what it does | verdict |",
        "|---|---|---|---|",
    ]
    for (language, _), cases in sorted(groups.items()):
        first = cases[0]
        name = f"{language}/{first.path.name}"
        said = str(first.expected)
        for case in cases[1:]:
            if case.expected != first.expected:
                said += f"; on a GPU {case.expected}"
        lines.append(f"| `{name}` | {', '.join(first.catalogue)} | {first.title} | {said} |")
    return "\n".join(lines)


def placed(document: str) -> str:
    """The document with the table between its marks. Raises ValueError when the marks are not there."""
    before, found, rest = document.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise ValueError(f"{DOCUMENT} has no place for the table")
    return f"{before}{BEGIN}\n\n{rendered()}\n\n{END}{after}"
