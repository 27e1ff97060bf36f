"""TASK.md: what a command is asked to do, in words for an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klineage.proposer.base import Goal, Task
from klineage.proposer.vocabulary import ACTIONS

_TRIED = 20

_BACKWARD = """\
# Simplify this kernel by one step

`{kernel}` is an optimized {surface} kernel for {platform}. `workload.py` says what it must compute; both are
here to be read. Take exactly one optimization mechanism out of the kernel: the result must compute the same,
keep its entry point `{entry}` and its signature, and be simpler. It may be slower.

- One mechanism, not two. Take out what stands on others before what they stand on.
- Change nothing else: no renaming, no reformatting, no new mechanism in place of the old one.
- A parameter that is made smaller is no simplification, unless the mechanism goes with it.
- Keep every byte that need not change, line endings too.
"""

_FORWARD = """\
# Add one optimization to this kernel

`{kernel}` is a {surface} kernel for {platform}. `workload.py` says what it must compute; both are here to be
read. Add exactly the mechanism below, at the place it names: the result must compute the same, keep its entry
point `{entry}` and its signature, and be about as fast as the mechanism makes it.

- action: {action}
- locus: {locus}
- title of the step that took it out: {title}
- why it helps: {rationale}
- features that must be there afterwards: {adds}
- settings that it had: {settings}

Change nothing else: no other mechanism, no renaming, no reformatting.
"""

_ANSWER = """\

# Your answer

Write two files and nothing else; whatever you change elsewhere is ignored. Both must be there before you end.

1. `{kernel_out}`: the whole new kernel.
2. `{answer_out}`: one JSON object with

   - `action`: what {verb}, one of the words below, or a word of your own where none fits;
   - `locus`: where, one of the places below;
   - `title`: the step in the imperative, at most 60 characters;
   - `rationale`: why this is one mechanism, and what it was for, in a few sentences;
   - `settings`: the numbers that it was configured with, e.g. `{{"num_stages": "4"}}`; `{{}}` if there are none;
   - `removes`: optional, a list of features, where the step {verb} more than `action` at `locus` says.

Do not run the kernel: it is checked after you have ended.
"""

_NOTHING = """\

Where no mechanism is left to take out, write no kernel, and `{"nothing": "why"}` to the second file.
"""


def task_text(task: Task, kernel_out: str, answer_out: str, faults: Sequence[str] = ()) -> str:
    """The whole of TASK.md.

    ``kernel_out`` and ``answer_out``: where the answer goes, as the agent sees it; ``faults``: what was wrong
    with its answers to this task before.
    """
    kernel = task.kernel
    verb = "removes" if task.goal is None else "adds"
    what = {
        "kernel": kernel.filename,
        "surface": kernel.surface,
        "platform": task.platform,
        "entry": kernel.entry,
    }
    head = _BACKWARD.format(**what) if task.goal is None else _FORWARD.format(**what, **_goal(task.goal))
    parts = [head, _ANSWER.format(kernel_out=kernel_out, answer_out=answer_out, verb=verb)]
    if task.goal is None:
        parts.append(_NOTHING)
    if faults:
        parts.append("\n# Why your earlier answers to this task could not be used\n\n" + _list(faults))
    if task.hint.strip():
        parts.append("\n# What a person says\n\n" + _quoted(task.hint) + "\n")
    if task.features:
        parts.append("\n# What is seen in the kernel\n\n" + _list(map(str, task.features)))
    if task.tried:
        tried = [f"{t.title} ({t.action} at {t.locus}): {t.why}" for t in task.tried[-_TRIED:]]
        parts.append(
            "\n# What was tried on this kernel and turned down; do not offer it again\n\n" + _list(tried)
        )
    parts.append("\n# Places\n\n" + _list(_places(task)))
    parts.append("\n# Words for actions\n\n" + _list(f"{word}: {means}" for word, means in ACTIONS.items()))
    return "".join(parts)


def _goal(goal: Goal) -> dict[str, str]:
    return {
        "action": _line(goal.action),
        "locus": _line(goal.locus),
        "title": _line(goal.title),
        "rationale": _line(goal.rationale) or "not recorded",
        "adds": ", ".join(map(str, goal.adds)) or "none that a detector names",
        "settings": _line(", ".join(f"{k}={v}" for k, v in goal.settings.items())) or "none",
    }


def _places(task: Task) -> list[str]:
    from klineage.surface.tree import parse_kernel

    return list(parse_kernel(task.kernel).loci)


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {_line(line)}\n" for line in lines)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines())


def _line(text: str) -> str:
    return " ".join(text.split())
