"""What each optimization of a lineage is worth, as rows of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from klineage_tui.presentation.spending import table

if TYPE_CHECKING:
    from klineage.skill.ablation import Ablation, Worth
    from klineage.skill.trial import Gain


def lines(found: Ablation) -> list[str]:
    """The matrix, how its numbers are known, what stands on what, and why a cell has no number."""
    from klineage.skill.ablation import matrix, trusts

    shown = table(matrix(found), frozenset({1, 2, 3}))
    shown += [
        "",
        f"{found.workload} on {found.platform}; {'; '.join(trusts(found.rows)) or 'nothing was measured'}",
    ]
    shown += [f"{row.name}: {row.why}" for row in found.rows if row.why]
    for row in found.rows:
        for place, worth in (("first", row.first), ("in order", row.in_order), ("last", row.last)):
            if worth.problem and worth.problem not in row.why:
                shown.append(f"{row.name}, {place}: {worth.problem}")
    return shown


def ablation_row(found: Ablation) -> dict[str, Any]:
    """The same as the JSON object that is printed of it."""
    from klineage.skill.ablation import offers

    return {
        "lineage": found.lineage,
        "workload": found.workload,
        "platform": found.platform,
        "optimizations": [
            {
                "number": row.number,
                "action": row.action,
                "rule": row.rule or None,
                "commit": row.commit,
                "adds": [str(feature) for feature in row.adds],
                "first": worth_row(row.first),
                "in_order": worth_row(row.in_order),
                "last": worth_row(row.last),
                "prefixes": [worth_row(worth) for worth in row.prefixes],
                "needs": list(row.needs),
                "why": row.why,
            }
            for row in found.rows
        ],
        "offers": [
            {
                "number": offer.number,
                "action": offer.action,
                "requires": [{"name": f.name, "where": f.where} for f in offer.requires],
                "prior_actions": list(offer.prior_actions),
                "why": offer.why,
            }
            for offer in offers(found)
        ],
    }


def worth_row(worth: Worth) -> dict[str, Any]:
    """One cell: ``shown`` is what may be claimed of it, ``measured`` everything that was found."""
    return {
        "state": worth.state,
        "shown": gain_row(worth.gain) if worth.gain is not None else None,
        "measured": [gain_row(gain) for gain in worth.measured],
        "problem": worth.problem or None,
    }


def gain_row(gain: Gain) -> dict[str, Any]:
    """A gain as a JSON object."""
    return {
        "quantity": gain.quantity,
        "gain": gain.gain,
        "low": gain.low,
        "high": gain.high,
        "noise": gain.noise,
        "before": gain.before,
        "after": gain.after,
        "trust": gain.trust,
        "size": gain.size,
        "timer": gain.timer or None,
    }
