"""The titles of the History place: what is compared with what, and what that meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klineage_tui.presentation.history import change_of
from klineage_tui.presentation.walk import mechanism, step_name
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.lineage import Step
    from klineage.walk import WalkState

Parts = list[tuple[str, str]]


def name_of(step: Step) -> str:
    """A state in a title: ``expert``, ``3``, ``K0``, ``rejected l2_raster``."""
    if step.decision == "rejected":
        return f"rejected {mechanism(step)}"
    if step.decision != "sealed" and step.number == 0:
        return "expert"
    return step_name(step)


def history_heading(state: WalkState | None, old: Step | None, new: Step) -> tuple[Parts, str]:
    """The first row: the lineage, and the step from ``old`` to ``new`` in words."""
    title = sanitize(state.meta.title) if state is not None else ""
    parts = [("History  ", ""), (title, "bold")]
    if old is None:
        return parts, name_of(new)
    if old.commit == new.parent and new.decision != "rejected":
        verb = "adds" if new.decision == "sealed" else "removes"
        change = change_of(new)
        return parts, f"{name_of(old)} → {name_of(new)}  {verb} {mechanism(new)}" + (
            f"  {change}" if change else ""
        )
    return parts, f"{name_of(old)} → {name_of(new)}"


def comparison_title(
    old: Step | None, new: Step, kernel: Kernel, changed: tuple[int, int], layout: str
) -> tuple[Parts, str]:
    """The title of the code pane: file and states at the left; lines, layout at the right."""
    states = name_of(new) if old is None else f"{name_of(old)} → {name_of(new)}"
    left = [(sanitize(kernel.filename), "$foreground"), (f"  {states}", "")]
    if old is None:
        return left, sanitize("  ".join(f"{key}={value}" for key, value in kernel.config))
    return left, f"+{changed[0]} -{changed[1]}  {layout}"
