"""Asking a model whether unknown mechanisms are in a kernel, and reading its answer with its citations looked up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.ledger import Usage
from klineage.proposer.answer import Unusable
from klineage.proposer.base import OnProposerEvent
from klineage.proposer.calls import PaidCalls
from klineage.proposer.features import STATES, Finding, described
from klineage.proposer.features.opinions import Citation, Opinion, checked
from klineage.proposer.model.prompt import HIDDEN_TOKENS, closed_object, fenced, json_lines, prompt
from klineage.proposer.question import Outcome, Question, digest
from klineage.proposer.settings import Settings

_TEXT: dict[str, Any] = {"type": "string"}


SCHEMA: dict[str, Any] = closed_object(
    answers={
        "type": "array",
        "items": closed_object(
            mechanism=_TEXT,
            place=_TEXT,
            why=_TEXT,
            state={"type": "string", "enum": list(STATES)},
            citations={"type": "array", "items": closed_object(line={"type": "integer"}, quote=_TEXT)},
        ),
    }
)


@dataclass(frozen=True)
class ModelAuditor:
    """Asks a model about what no detector can tell. An answer that was paid for is offered again, not paid again."""

    model: str
    lineage: str
    settings: Settings
    calls: PaidCalls

    @property
    def name(self) -> str:
        return f"model:{self.model}"

    def opinions(
        self,
        kernel: Kernel,
        asked: Sequence[Finding],
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> tuple[Opinion, ...]:
        """What the model says of these findings, in one call; what it leaves out has no opinion.

        Raises KlineageError for an answer of no use, a spending limit, or a call that failed.
        """
        if not asked:
            return ()
        question = audit_question(kernel, asked, self.lineage, self.model, self.settings)
        replies = self.calls.earlier(question, on_event, cancel)
        reply = next(iter(replies), None) or self.calls.ask(question, on_event, cancel)
        if reply.outcome.status != "answered":
            self.calls.done(reply)
            raise KlineageError(
                f"{self.name} gave no answer: {reply.outcome.problem or reply.outcome.status}"
            )
        try:
            return tuple(read_opinions(kernel, asked, reply.outcome, self.name))
        except Unusable as unusable:
            self.calls.done(reply)
            raise KlineageError(f"{self.name}: {unusable}") from unusable


def audit_question(
    kernel: Kernel, asked: Sequence[Finding], lineage: str, model: str, settings: Settings
) -> Question:
    """What is sent: the kernel with its line numbers, and a question a line."""
    numbered = "\n".join(f"{n:>4} | {line}" for n, line in enumerate(kernel.text.splitlines(), start=1))
    rows = [
        {
            "mechanism": finding.name,
            "place": finding.locus,
            "meaning": described(kernel.surface, finding.name),
            "raised by": finding.why if finding.lines else "",
        }
        for finding in asked
    ]
    text = "\n\n".join([fenced(f"kernel {kernel.surface}", numbered), fenced("questions", json_lines(rows))])
    plain = text.encode("utf-8", "replace").decode("utf-8")
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.max_tokens,
        "system": [{"type": "text", "text": prompt("audit"), "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": plain}]}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    if settings.effort:
        body["output_config"]["effort"] = settings.effort
    size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    version = digest([prompt("audit"), SCHEMA])[:12]
    return Question(
        proposer=f"model:{model}; prompt {version}",
        model=model,
        lineage=lineage,
        kernel=kernel.hash,
        task=digest(["audit", kernel.hash, rows, model, settings.effort, version]),
        told=digest([]),
        worst=Usage(input=size + HIDDEN_TOKENS, output=settings.max_tokens),
        body=body,
    )


def read_opinions(kernel: Kernel, asked: Sequence[Finding], outcome: Outcome, by: str) -> Iterator[Opinion]:
    """The answers that were asked for, each once, with its citations looked up. Raises Unusable."""
    if outcome.stop not in ("end_turn", "stop_sequence", ""):
        raise Unusable(
            f"its answer ends with {outcome.stop}; ask about fewer mechanisms, or raise max_tokens"
        )
    try:
        record = json.loads(outcome.text)
    except (ValueError, RecursionError) as error:
        raise Unusable("its answer is not valid JSON") from error
    rows = record.get("answers") if isinstance(record, dict) else None
    if not isinstance(rows, list) or not all(_sound(row) for row in rows):
        raise Unusable("its answer has not the form that was asked for")
    left = {(finding.name, finding.locus): finding for finding in asked}
    for row in rows:
        finding = left.pop((row["mechanism"], row["place"]), None)
        if finding is None:
            continue  # nobody asked, or it was answered before
        citations = tuple(Citation(c["line"], c["quote"]) for c in row["citations"])
        why = " ".join(row["why"].split())[:400]
        feature = Feature(finding.locus, finding.name)
        yield checked(kernel, Opinion(feature, row["state"], why, by, citations))


def _sound(row: object) -> bool:
    if not isinstance(row, Mapping) or not all(
        isinstance(row.get(n), str) for n in ("mechanism", "place", "why")
    ):
        return False
    citations = row.get("citations")
    if row.get("state") not in STATES or not isinstance(citations, list):
        return False
    return all(
        isinstance(c, Mapping) and type(c.get("line")) is int and isinstance(c.get("quote"), str)
        for c in citations
    )
