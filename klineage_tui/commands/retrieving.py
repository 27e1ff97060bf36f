"""retrieve: which cards hold for a kernel, why, and what the near ones need first."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError

from klineage_tui.commands.common import Run, add_json, plural, print_json, say
from klineage_tui.commands.libraries import add_libraries, add_target, opened_libraries, target_from

if TYPE_CHECKING:
    from klineage.skill.paths import Path as Way
    from klineage.skill.retrieval import Hit, Retrieved


def retrieve_command(parser: argparse.ArgumentParser) -> Run:
    add_target(parser)
    add_libraries(parser)
    parser.add_argument(
        "-k", type=int, default=5, metavar="N", help="the best N of each dimension, united (default: 5)"
    )
    parser.add_argument(
        "--near", type=int, default=5, metavar="N", help="tell N cards that do not hold yet (default: 5)"
    )
    parser.add_argument(
        "--all", action="store_true", help="also hypotheses, which no trial has admitted; marked"
    )
    parser.add_argument("--why", metavar="CARD", help="instead: why this one card is found or not")
    add_json(parser)
    return _retrieve


def _retrieve(arguments: argparse.Namespace) -> int:
    from klineage.skill.index_file import open_indexes
    from klineage.skill.paths import order_of, paths
    from klineage.skill.retrieval import explain, retrieve

    if arguments.k < 1 or arguments.near < 0:
        raise KlineageError("-k must be at least 1, and --near at least 0")
    target = target_from(arguments)
    with opened_libraries(arguments) as libraries:
        opened = open_indexes(libraries)
        if arguments.why:
            hit = explain(opened.index, target, arguments.why)
            if hit is None:
                raise KlineageError(
                    f"there is no card {arguments.why!r} here; klineage card list shows what there is"
                )
            print_json(hit_row(hit)) if arguments.json else _say_hit(hit)
            return 0
        found = retrieve(opened.index, target, k=arguments.k, near=arguments.near, hypotheses=arguments.all)
        ways = paths(opened.index, target, order_of(*libraries), hypotheses=arguments.all)
    if arguments.json:
        print_json({**retrieved_row(found, ways), "problems": opened.problems})
    else:
        _say(found, ways, opened.problems)
    return 0


def retrieved_row(found: Retrieved, ways: tuple[Way, ...]) -> dict[str, Any]:
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
        "effects": msgspec.to_builtins(row.effects),
        "risks": list(row.risks),
    }


def way_row(way: Way) -> dict[str, Any]:
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


def _say(found: Retrieved, ways: tuple[Way, ...], problems: Any) -> None:
    for line in lines(found, ways):
        say(line)
    for problem in problems.values():
        say(f"left out: {problem}")


def lines(found: Retrieved, ways: tuple[Way, ...]) -> Iterator[str]:
    """What retrieval says, as lines for a person."""
    hidden = (
        f"; {found.hidden} hypothes{'is' if found.hidden == 1 else 'es'} not shown, --all shows them"
        if found.hidden
        else ""
    )
    yield f"{found.target.stands_at}: {len(found.hits)} of {plural(found.considered, 'card')} hold{hidden}"
    for hit in found.hits:
        yield from hit_lines(hit)
    if found.near:
        yield "beside these, for another day:"
    for hit in found.near:
        yield from hit_lines(hit)
    for way in ways:
        have = ", ".join(step.row.action for step in way.steps if step.state == "there")
        on = " -> ".join(f"{s.row.id}{f' (after {_listed(s.needs)})' if s.needs else ''}" for s in way.left)
        gaps = f"; {plural(way.without, 'step')} of it without a card" if way.without else ""
        yield f"the way of {way.lineage}{f', which has {have} too' if have else ''}: {on}{gaps}"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names)


def _say_hit(hit: Hit) -> None:
    for line in hit_lines(hit):
        say(line)


def hit_lines(hit: Hit) -> Iterator[str]:
    """A card with its gain, why it is found, what its checks say and what it needs."""
    from klineage.interop.told import effect, sentence

    yield f"  {hit.row.id}  {sentence(hit.row.intent, 120)}"
    if hit.row.effects:
        yield f"      gains {effect(hit.row.effects[0])}"
    for need in hit.needs:
        yield (
            f"      not here: {need.why}"
            if need.kind == "conflict"
            else f"      not yet: needs {need.what} ({need.why})"
        )
    if not hit.needs:
        for match in hit.matches:
            yield f"      {match.why}"
    for one in hit.checked:
        probe = "" if one.condition.outcome == "untested" else f"; breaking it: {one.condition.outcome}"
        yield f"      {one.condition.key} {one.state}: {sentence(one.condition.text, 160)} ({one.why}{probe})"
    for caveat in hit.caveats:
        if not caveat.startswith("not known: "):  # the check above has said it
            yield f"      {caveat}"


COMMANDS = {"retrieve": retrieve_command}
