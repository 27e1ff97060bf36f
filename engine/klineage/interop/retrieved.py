"""What retrieval says, for programs as JSON objects with stable keys, and for readers as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from klineage.interop.told import best_effect, effect, sentence
from klineage.numbers import plural
from klineage.skill.retrieval import Hit, Retrieved
from klineage.skill.retrieval.paths import Path, PathStep

_LINE = 600  # characters


def retrieved_row(found: Retrieved, ways: tuple[Path, ...]) -> dict[str, Any]:
    """What retrieval says as the JSON object that every verb prints."""
    target = found.target
    return {
        "target": {
            "workload": target.workload or None,
            "surface": target.surface or None,
            "platform": target.platform or None,
            "prior": target.prior,
            "action": target.action or None,
            "kernel": target.kernel.hash if target.kernel else None,
        },
        "hits": [hit_row(hit) for hit in found.hits],
        "near": [hit_row(hit) for hit in found.near],
        "paths": [way_row(way) for way in ways],
        "considered": found.considered,
        "hidden_hypotheses": found.hidden,
    }


def hit_row(hit: Hit) -> dict[str, Any]:
    """One card beside a target."""
    import msgspec

    row = hit.row
    return {
        "id": row.id,
        "intent": row.intent,
        "action": row.action,
        "surface": row.surface,
        "status": row.status,
        "holds": not hit.needs,
        "reasons": [
            {"dimension": m.dimension, "likeness": round(m.likeness, 3), "why": m.why} for m in hit.matches
        ],
        "needs": [{"kind": n.kind, "what": n.what, "why": n.why} for n in hit.needs],
        "checks": [
            {
                "key": c.condition.key,
                "text": c.condition.text,
                "state": c.state,
                "why": c.why,
                "probe": c.condition.outcome,
            }
            for c in hit.checked
        ],
        "caveats": list(hit.caveats),
        "contract": {
            side: msgspec.to_builtins(getattr(row, side)) for side in ("requires", "provides", "conflicts")
        },
        "effects": msgspec.to_builtins(row.effects),
        "risks": list(row.risks),
    }


def way_row(way: Path) -> dict[str, Any]:
    """One way on."""
    return {
        "lineage": way.lineage,
        "there": [step.row.id for step in way.steps if step.state == "there"],
        "steps": [
            {"id": s.row.id, "action": s.row.action, "state": s.state, "needs": list(s.needs)}
            for s in way.left
        ],
        "steps_without_a_card": way.without,
    }


def lines(found: Retrieved, ways: tuple[Path, ...], more: str = "--all") -> Iterator[str]:
    """What retrieval says, as lines for a reader. more: what shows hypotheses too."""
    hidden = ""
    if found.hidden:
        hidden = (
            f"; {found.hidden} hypothes{'is' if found.hidden == 1 else 'es'} not shown, {more} shows them"
        )
    where = sentence(found.target.stands_at)
    yield f"{where}: {len(found.hits)} of {plural(found.considered, 'card')} hold{hidden}"
    for hit in found.hits:
        yield from hit_lines(hit)
    if found.near:
        yield "not yet, or not here:"
    for hit in found.near:
        yield from hit_lines(hit)
    for way in ways:
        yield _way_line(way)


def hit_lines(hit: Hit) -> Iterator[str]:
    """A card with its gain, why it is found, what its checks say and what it needs."""
    yield f"  {hit.row.id}  {sentence(hit.row.intent, 120)}"
    yield from (f"      {sentence(line, _LINE)}" for line in _about(hit))


def _about(hit: Hit) -> Iterator[str]:
    if hit.row.effects:
        yield f"gains {effect(best_effect(hit.row.effects))}"
    for need in hit.needs:
        if need.kind == "conflict":
            yield f"not here: {need.why}"
        elif need.kind != "check":  # which is told below
            yield f"not yet: needs {need.what} ({need.why})"
    if not hit.needs:
        yield from (match.why for match in hit.matches)
    for one in hit.checked:
        probe = "" if one.condition.outcome == "untested" else f"; its probe: {one.condition.outcome}"
        said = f"{one.condition.key} {one.state}: {sentence(one.condition.text, 160)} ({one.why}{probe})"
        yield f"not yet: {said}" if one.state == "fails" else said
    for caveat in hit.caveats:
        if not caveat.startswith("not known: "):  # the check above has said it
            yield caveat


def _way_line(way: Path) -> str:
    have = ", ".join(dict.fromkeys(step.row.action for step in way.steps if step.state == "there"))
    on = " -> ".join(_on(step) for step in way.left)
    gaps = f"; {plural(way.without, 'step')} of it without a card" if way.without else ""
    return sentence(f"the way of {way.lineage}{f', which has {have} too' if have else ''}: {on}{gaps}", _LINE)


def _on(step: PathStep) -> str:
    return f"{step.row.id} (after {' and '.join(step.needs)})" if step.needs else step.row.id
