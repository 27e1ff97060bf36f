"""The plain git commands for what is on screen: the memory is git, and needs no klineage to be read."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.lineage import Step


def git_commands(
    folder: str, lineage: str, filename: str, old: Step | None, new: Step
) -> list[tuple[str, str]]:
    """(what it shows, command) pairs for comparing ``old`` (None: nothing) with ``new``."""
    branch = f"{'lineage' if new.direction == 'forward' else 'walk'}/{lineage}"
    file = shlex.quote(filename)
    short = new.commit[:12]
    pairs = [("go to the workspace", f"cd {shlex.quote(folder)}")]
    if old is not None:
        pairs.append(
            ("this comparison", f"git diff --histogram {old.commit[:12]} {short} -- {file}"),
        )
    pairs += [
        ("this step", f"git show {short}"),
        ("the kernel as it was", f"git show {short}:{file}"),
        ("its facts", f"git log -1 --format=%B {short} | git interpret-trailers --parse"),
    ]
    if new.gate:  # git calls a commit without a note an error
        pairs.append(("its full gate reports", f"git notes --ref=klineage show {short}"))
    pairs.append(("the lineage as a course", f"git log -p --reverse {branch}"))
    if new.decision == "sealed":
        pairs.append(("which optimization wrote each line", f"git blame -s {branch} -- {file}"))
    pairs.append(("rejected attempts", f"git for-each-ref refs/klineage/rejected/{lineage}"))
    return pairs


def git_lines(pairs: list[tuple[str, str]]) -> list[Line]:
    """One command a line with its purpose as a shell comment, so that a copied line runs as it is."""
    longest = max((len(command) for _, command in pairs), default=0)
    pad = min(longest, 60)
    return [
        compose(sanitize(command).ljust(pad), (f"  # {what}", "syntax-comment")) for what, command in pairs
    ]
