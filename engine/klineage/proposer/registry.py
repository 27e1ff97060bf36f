"""Proposers by their names: ``rules``, ``model[:id]``, ``command[:preset]``, ``replay:FILE``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.ledger import Ledger, Limit
from klineage.proposer.base import Proposer
from klineage.proposer.by_rules import RulesProposer
from klineage.proposer.settings import Settings, check_model

if TYPE_CHECKING:
    from klineage.proposer.model.audit import ModelAuditor
    from klineage.proposer.model.proposer import ModelProposer

FORMS = ("rules", "model", "model:ID", "command:NAME", "replay:FILE")


@dataclass(frozen=True)
class Context:
    """Where a proposer works, and what it may spend.

    git_dir: of the workspace. limits: checked before each call against its worst case.
    fresh:   ask anew, also where an answer that was paid for has not been decided on.
    record:  a file that every question and its answer are added to.
    """

    git_dir: Path
    lineage: str
    settings: Settings = field(default_factory=Settings)
    limits: tuple[Limit, ...] = ()
    fresh: bool = False
    record: Path | None = None


def proposer_named(name: str, context: Context) -> Proposer:
    """The proposer of a name, also as a step records it (``model:<id>; prompt <hash>``).

    Raises KlineageError, with what there is, for one that is not known.
    """
    proposer = _named(name if name.startswith("replay:") else name.partition(";")[0].strip(), context)
    if context.record is None:
        return proposer
    from klineage.proposer import calls
    from klineage.proposer.recording import RecordedProposer, Recording

    return RecordedProposer(proposer, Recording(context.record), partial(calls.raw, context.git_dir))


def _named(name: str, context: Context) -> Proposer:
    kind, _, rest = name.partition(":")
    if name == "rules":
        return RulesProposer()
    if kind == "model":
        return _model(rest, context)
    if kind == "command":
        return _command(rest, context)
    if kind == "replay" and rest:
        from klineage.proposer.recording import ReplayProposer

        return ReplayProposer(Path(rest))
    raise KlineageError(f"there is no proposer {name!r}; write {', '.join(FORMS)}")


def auditor_named(name: str, context: Context) -> ModelAuditor:
    """Who is asked about mechanisms that no detector can tell: ``model[:ID]``. Raises KlineageError for anything else."""
    from klineage.proposer.model.audit import ModelAuditor

    kind, _, rest = name.partition(":")
    if kind != "model":
        raise KlineageError(f"{name!r} cannot be asked about features; write model or model:ID")
    proposer = _model(rest, context)
    return ModelAuditor(proposer.model, context.lineage, context.settings, proposer.calls)


def _model(name: str, context: Context) -> ModelProposer:
    from klineage.proposer.calls import PaidCalls
    from klineage.proposer.model.proposer import CHILD, ModelProposer

    settings = context.settings
    client = {"base_url": settings.base_url, "timeout": settings.timeout, "retries": settings.retries}
    calls = PaidCalls(context.git_dir, CHILD, client, context.limits, context.fresh)
    return ModelProposer(check_model(name or settings.model), context.lineage, settings, calls)


def _command(name: str, context: Context) -> Proposer:
    from klineage.proposer.command import CommandProposer, agent_named

    settings = context.settings
    agent = agent_named(name, settings.commands)
    ledger = Ledger.of(context.git_dir)
    return CommandProposer(agent, settings.command_timeout, ledger, context.lineage, context.limits)
