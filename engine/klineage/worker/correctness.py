"""A correctness job: its cases shared among lanes, and what the lanes find put together again."""

from __future__ import annotations

from typing import Any

from klineage.worker.jobs import Context, Result, verdict
from klineage.worker.lane import Lane
from klineage.worker.process import end
from klineage.worker.runners import cpus
from klineage.worker.watch import watch

MOST_LANES = 8


def correctness(request: dict[str, Any], context: Context) -> Result:
    """Run every case and judge it. Of several failures, that of the first case counts.

    The interpreter takes one processor a lane, so there it gets as many lanes as that pays for; anywhere else
    the kernel may want the machine for itself.
    """
    most = min(cpus(), MOST_LANES) if context.kind == "interpreter" else 1
    lanes = [Lane(request, context, numbers) for numbers in shares(request["cases"], most)]
    try:
        for lane in lanes:
            lane.start()
        _follow(lanes, context)
        return _together(lanes)
    finally:
        end([child for lane in lanes for child in lane.children])


def shares(cases: list[dict[str, Any]], most: int) -> list[list[int]]:
    """The places of the cases, dealt out in turn to at most ``most`` lanes.

    What belongs together stays together: a variant needs the case before it that is kept.
    """
    groups: list[list[int]] = []
    for number, case in enumerate(cases):
        if case["variant"] and groups:
            groups[-1].append(number)
        else:
            groups.append([number])
    count = min(most, len(groups))
    return [[number for group in groups[lane::count] for number in group] for lane in range(count)]


def _follow(lanes: list[Lane], context: Context) -> None:
    """Hear the children until nothing that they could still say would change the result."""
    owners = {id(child): lane for lane in lanes for child in lane.children}
    children = [child for lane in lanes for child in lane.children]
    deadline = [min(lane.deadline for lane in lanes)]
    for child, message in watch(children, deadline, context.control, context.job):
        if child is None:
            min(_running(lanes), key=lambda lane: lane.deadline).expire()
            return
        owners[id(child)].hear(child, message)
        if _settled(lanes):
            return
        deadline[0] = min(lane.deadline for lane in _running(lanes))
    raise AssertionError("all children ended without a verdict")


def _running(lanes: list[Lane]) -> list[Lane]:
    return [lane for lane in lanes if lane.result is None]


def _settled(lanes: list[Lane]) -> bool:
    """Whether every lane has ended, or is past the first case that failed."""
    failed = [lane.at for lane in lanes if lane.result and lane.result["verdict"] != "pass"]
    return all(lane.at > min(failed, default=lane.at) for lane in _running(lanes))


def _together(lanes: list[Lane]) -> Result:
    ended = [lane for lane in lanes if lane.result is not None]
    failed = [lane for lane in ended if lane.result and lane.result["verdict"] != "pass"]
    told = min(failed, key=lambda lane: lane.at) if failed else lanes[0]
    result: Result = {
        "layers": _layers(lanes),
        "counts": {size: counts for lane in reversed(lanes) for size, counts in lane.state.counts.items()},
        "kernels": {size: seen for lane in reversed(lanes) for size, seen in lane.state.kernels.items()},
        "artifact": told.state.artifact,
        "unordered": told.state.unordered,
        "log": told.log,
    }
    if failed:
        assert told.result is not None
        return {**result, **told.result}
    worst = max(lanes, key=lambda lane: lane.state.worst / lane.state.rtol if lane.state.rtol else -1.0)
    return {
        **result,
        **verdict("pass", "ok", "", worst=worst.state.worst, rtol=worst.state.rtol),
        "rms": max(lane.state.rms for lane in lanes),
        "skipped": sum(lane.state.skipped for lane in lanes),
    }


def _layers(lanes: list[Lane]) -> dict[str, bool]:
    """A layer held when it held in every candidate that came so far."""
    found: dict[str, bool] = {}
    for lane in lanes:
        for name, held in lane.state.layers.items():
            found[name] = found.get(name, True) and held
    return found
