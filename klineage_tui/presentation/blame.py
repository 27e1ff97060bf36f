"""Blame by optimization: which step wrote each line of the expert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from klineage_tui.presentation.walk import mechanism, step_name
from klineage_tui.text.highlight import split_lines

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.lineage import Op, Step
    from klineage.walk import Walk


def writers(
    walk: Walk, steps: Sequence[Step], *, sealed: bool, stop: Callable[[], bool]
) -> tuple[Kernel, Sequence[Step | None]]:
    """The expert, and for each of its lines the step that wrote it. Reads git: call it off the screen.

    On a sealed lineage this is ``git blame``; on a walk that goes on, the step that first took the line
    away or changed it, and None for what is still there. ``stop`` is asked before each step: a long walk
    takes seconds, and what was found until then is returned.
    """
    from klineage.lineage import line_ops

    if sealed:
        return walk.kernel_at(steps[-1].commit), [line.step for line in walk.workspace.blame(walk.id)]
    expert = walk.kernel_at(steps[0].commit)
    ops: list[Sequence[Op]] = []
    for richer, simpler in pairwise(steps):
        if stop():
            break
        ops.append(line_ops(walk.kernel_at(richer.commit).source, walk.kernel_at(simpler.commit).source))
    lines, _ = split_lines(expert.text)
    found = removed_by(ops, len(lines))
    return expert, [None if index is None else steps[index] for index in found]


def removed_by(ops_of_steps: Sequence[Sequence[Op]], lines: int) -> list[int | None]:
    """For each of the expert's ``lines``, the index of the walk's step that first touched it.

    ``ops_of_steps[i]`` are the line operations of step i + 1 on the state before it. None: the line is
    still there at the head, so it belongs to the simplest form reached so far.
    """
    touched: list[int | None] = [None] * lines
    # Where each surviving line of the expert is now: line number in the state -> line of the expert.
    alive = {line: line for line in range(lines)}
    for number, ops in enumerate(ops_of_steps, start=1):
        following: dict[int, int] = {}
        for op in ops:
            if op.tag == "equal":
                for offset in range(op.a1 - op.a0):
                    if op.a0 + offset in alive:
                        following[op.b0 + offset] = alive[op.a0 + offset]
        for line in set(alive.values()) - set(following.values()):
            touched[line] = number
        alive = following
    return touched


def blame_labels(writers: Sequence[Step | None]) -> list[tuple[str, str]]:
    """(text, role) for each line: the step's name and what it is; repeated labels are left blank."""
    labels: list[tuple[str, str]] = []
    previous: Step | None = None
    for index, step in enumerate(writers):
        if index and step is previous:
            labels.append(("│", "lane"))
        elif step is None or (step.decision == "sealed" and step.number == 0):
            labels.append(("base", "muted"))
        else:
            labels.append((f"{step_name(step)} {mechanism(step)}", "accent"))
        previous = step
    return labels
