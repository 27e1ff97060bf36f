"""The carrier of a card: the change of one instance as code before and after, and that instance's own numbers apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from klineage.kernel import Surface
from klineage.lineage import Op, line_ops
from klineage.lineage.lines import split_lines
from klineage.skill.anchors.making import acted
from klineage.skill.card import Carrier
from klineage.skill.transitions import Transition

_AROUND = 2  # unchanged lines that show where a change stands
_NUMBER = r"-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?)"
_DEFINED = re.compile(rf"^\s*#\s*define\s+(\w+)\s+({_NUMBER})\s*(?:$|/)", re.MULTILINE)
_SET = re.compile(rf"\b([A-Za-z_]\w*)\s*(?::\s*tl\.constexpr\s*)?=\s*({_NUMBER})\b(?!\s*[-+*/%.\w(])")
_REMARKS = "comment."
_NOTHING = (b"", b"}", b")")
_MOST_SHOWN = 60  # lines of code that a change of macros acts on


def gap(surface: Surface) -> str:
    """The line that stands between two changes of a carrier: a remark, so that the code stays code."""
    return "# ..." if surface == "triton" else "// ..."


def carrier_of(transition: Transition, evidence: tuple[str, ...] = ()) -> Carrier:
    """The change of one transition: each run of changed lines with the lines around it, ``gap`` between runs.

    Where only macros and types change, the code that they act on follows, the same on both sides. ``settings`` are the
    numbers of this instance: those that its step recorded, and what the changed lines set to a number. They are an
    example and never a precondition.
    """
    old, new = split_lines(transition.before.source), split_lines(transition.after.source)
    pieces = list(_pieces(line_ops(transition.before.source, transition.after.source), old))
    before = [_text(old[a0:a1]) for a0, a1, _, _ in pieces]
    after = [_text(new[b0:b1]) for _, _, b0, b1 in pieces]
    place = _acted_on(transition)
    more = [place] if place else []
    mark = f"{gap(transition.surface)}\n"
    return Carrier(mark.join(before + more), mark.join(after + more), settings_of(transition), evidence)


def _acted_on(transition: Transition) -> str:
    """The function that a change of macros and types acts on, where nothing in a function changes; else nothing."""
    act = acted(transition)
    unit = act.unit
    inside = any(f.node.start_byte <= c.start <= f.node.end_byte for f in unit.functions for c in act.changes)
    place = act.place
    if inside or place is None:
        return ""
    function = unit.function_at(place.locus)
    if function is None:
        return ""
    start, end = unit.lines_of(function.node)
    lines = split_lines(unit.source[start:end])
    if len(lines) > _MOST_SHOWN:
        first = unit.line(place.start) - unit.line(start)
        lines = lines[first : first + place.last_line - place.line + 1][:_MOST_SHOWN]
    return _text(lines)


def settings_of(transition: Transition) -> Mapping[str, str]:
    """The instance's own numbers, without the remarks that a rule keeps to restore them."""
    recorded = {k: v for k, v in transition.step.settings.items() if not k.startswith(_REMARKS)}
    return recorded or _set_to_numbers(transition)


def _set_to_numbers(transition: Transition) -> dict[str, str]:
    """What the lines that came set to a number: macros, constants, options of a launch."""
    lines = split_lines(transition.after.source)
    came = "".join(
        _text(lines[op.b0 : op.b1])
        for op in line_ops(transition.before.source, transition.after.source)
        if op.tag in ("insert", "replace")
    )
    return dict(_DEFINED.findall(came)) | dict(_SET.findall(came))


def _pieces(ops: Sequence[Op], old: Sequence[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """(a0, a1, b0, b1) of each run of changes with the lines around it; runs whose surroundings meet are one."""
    run: tuple[int, int, int, int] | None = None
    for op in ops:
        if op.tag == "equal":
            continue
        if run is not None and op.a0 - run[1] <= 2 * _AROUND:
            run = (run[0], op.a1, run[2], op.b1)
            continue
        if run is not None:
            yield _with_lines_around(run, old)
        run = (op.a0, op.a1, op.b0, op.b1)
    if run is not None:
        yield _with_lines_around(run, old)


def _with_lines_around(run: tuple[int, int, int, int], old: Sequence[bytes]) -> tuple[int, int, int, int]:
    """Up to two lines before and after, which neither begin nor end with what shows nothing."""
    before, after = min(_AROUND, run[0]), min(_AROUND, len(old) - run[1])
    while before and old[run[0] - before].strip() in _NOTHING:
        before -= 1
    while after and old[run[1] + after - 1].strip() in _NOTHING:
        after -= 1
    return run[0] - before, run[1] + after, run[2] - before, run[3] + after


def _text(lines: Sequence[bytes]) -> str:
    return "".join(line.rstrip(b"\r\n").decode("utf-8", "replace") + "\n" for line in lines)
