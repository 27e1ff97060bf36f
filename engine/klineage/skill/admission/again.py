"""A trial made once more from what the verification log says of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from klineage.errors import KlineageError
from klineage.gate import GateEvent
from klineage.lineage import Workspace
from klineage.skill.admission.held_out import Opened, Source
from klineage.skill.admission.materializer import materializer_named
from klineage.skill.admission.target import Target, named
from klineage.skill.admission.trying import Trial, admit
from klineage.skill.card import Card, Verification

#: Who makes the same edit again from the card alone.
REPEATABLE = ("rules", "patch")


def try_again(
    card: Card,
    entry: Verification,
    opened: Opened,
    known: Sequence[Source] = (),
    *,
    platform: str | None = None,
    trusted: bool = False,
    on_event: Callable[[GateEvent], None] | None = None,
    cancel: threading.Event | None = None,
) -> Trial:
    """The trial of an entry of the card's log, on the same target and by the same materializer.

    platform: another one than that of the entry.
    opened:  a workspace in which a lineage can be read (``Library.lineage``), for a target that is a state of one.
    trusted: the code of such a lineage may run, as that of what is shipped.
    Raises KlineageError where a person or a model made the edit, since nobody can make it again for nothing.
    """
    kind = entry.materializer.partition(":")[0]
    if kind not in REPEATABLE:
        raise KlineageError(
            f"{entry.key} of {card.id} was made by {entry.materializer}, and only a rule or a patch makes an edit again; "
            "its report says what its gate found"
        )
    there = replace(entry, platform=platform or entry.platform)
    target = target_of(there, opened, trusted=trusted)
    return admit(card, target, materializer_named(kind), known, anyway=True, on_event=on_event, cancel=cancel)


def target_of(entry: Verification, opened: Opened, *, trusted: bool = False) -> Target:
    """The target that an entry names, for the platform that it was tried on. Raises KlineageError where it is gone."""
    lineage = entry.target.partition(" less ")[0].partition(":")[0]
    is_file = "/" in lineage or "." in lineage
    context: AbstractContextManager[Workspace | None] = nullcontext() if is_file else opened(lineage)
    with context as workspace:
        return named(entry.target, workspace, platform=entry.platform, runs=not trusted)
