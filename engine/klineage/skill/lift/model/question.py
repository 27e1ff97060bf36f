"""What a model is asked about a card: the card, and its evidence with the code of each transition."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from klineage.kernel import Kernel
from klineage.ledger import Usage
from klineage.proposer.model.prompt import HIDDEN_TOKENS, closed_object, fenced, json_lines
from klineage.proposer.question import Question, digest
from klineage.proposer.settings import Settings
from klineage.skill.card import KINDS, Card
from klineage.skill.lift.carrier import settings_of
from klineage.skill.lift.citing import failure_of, keys_of, measured_text
from klineage.skill.lift.groups import Group
from klineage.skill.lift.structural import carried
from klineage.skill.transitions import Rejected, Transition

_LONGEST_DIFF = 12_000  # characters of one transition
_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


_CITATIONS = {"type": "array", "items": closed_object(evidence=_TEXT, quote=_TEXT)}
_KIND = {"type": "string", "enum": list(KINDS)}

#: The form of an answer. What is cited comes before what is claimed of it.
SCHEMA: dict[str, Any] = closed_object(
    preconditions={
        "type": "array",
        "items": closed_object(citations=_CITATIONS, kind=_KIND, text=_TEXT, needs=_TEXTS, check=_TEXT),
    },
    risks={
        "type": "array",
        "items": closed_object(citations=_CITATIONS, text=_TEXT, seen={"type": "boolean"}),
    },
    intent=_TEXT,
    anchor=_TEXT,
    notes=_TEXT,
)


@cache
def instructions() -> str:
    """The text of ``prompt.md``."""
    return Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")


@cache
def version() -> str:
    """12 hex digits over what is constant in what a model is told."""
    return digest([instructions(), SCHEMA])[:12]


def lift_question(card: Card, group: Group, ledger: str, model: str, settings: Settings) -> Question:
    """What is sent: the card as it is, its evidence one entry a line, the change of each transition and of each
    rejected attempt, and the whole kernel that the carrier is of. ``ledger``: what the call is booked on."""
    keys = keys_of(card.evidence)
    rows = [_transition_row(keys[t.commit], t) for t in group.transitions]
    rows += [_rejected_row(keys[r.commit], r) for r in group.rejected]
    shown = carried(group.transitions)
    parts = [
        fenced("card", json.dumps(_card_row(card), ensure_ascii=False, indent=1)),
        fenced("evidence", json_lines(rows)),
        *(fenced(f"change {keys[t.commit]}", _diff(t.before, t.after)) for t in group.transitions),
        *(fenced(f"rejected {keys[r.commit]}", _diff(r.on, r.tried)) for r in group.rejected),
        fenced(f"kernel before, {keys[shown.commit]}", shown.before.text),
    ]
    text = "\n\n".join(parts).encode("utf-8", "replace").decode("utf-8")
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.max_tokens,
        "system": [{"type": "text", "text": instructions(), "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    if settings.effort:
        body["output_config"]["effort"] = settings.effort
    size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return Question(
        proposer=f"model:{model}; prompt {version()}",
        model=model,
        lineage=ledger,
        kernel=shown.after.hash,
        task=digest(["lift", card.id, sorted(keys), model, settings.effort, version()]),
        told=digest([]),
        worst=Usage(input=size + HIDDEN_TOKENS, output=settings.max_tokens),
        body=body,
    )


def _card_row(card: Card) -> dict[str, Any]:
    """What the card says already, without its numbers of effects, which are the gates' alone."""
    return {
        "id": card.id,
        "action": card.action,
        "surface": card.surface,
        "intent": card.intent,
        "anchor": card.anchor.text,
        "requires": [feature.name for feature in card.contract.requires],
        "provides": [feature.name for feature in card.contract.provides],
        "preconditions": [{"kind": one.kind, "text": one.text} for one in card.preconditions],
        "risks": [risk.text for risk in card.risks],
    }


def _transition_row(key: str, transition: Transition) -> dict[str, Any]:
    return {
        "evidence": key,
        "lineage": transition.lineage,
        "workload": transition.workload.title,
        "platform": transition.platform,
        "before": sorted({feature.name for feature in transition.features_before}),
        "adds": sorted({feature.name for feature in transition.added}),
        "settings": dict(settings_of(transition)),
        "measured": [measured_text(report) for report in transition.comparisons],
    }


def _rejected_row(key: str, attempt: Rejected) -> dict[str, Any]:
    return {
        "evidence": key,
        "lineage": attempt.lineage,
        "tried": attempt.step.subject,
        "rejected": failure_of(attempt) or "no reason is given",
    }


def _diff(before: Kernel, after: Kernel) -> str:
    """The change, as a unified difference that is cut where it is endless."""
    lines: Iterable[str] = difflib.unified_diff(
        before.text.splitlines(), after.text.splitlines(), "before", "after", lineterm="", n=6
    )
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST_DIFF else text[:_LONGEST_DIFF] + "\n(cut)"
