"""Asking before code of somebody else's lineages is run here; the answer is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.place import Place


def trusting(place: Place, lineages: Iterable[str], then: Callable[[], None]) -> None:
    """Do ``then``, after a question where code of these lineages is to be run that was not made here."""
    workspace, wanted = place.host.workspace, frozenset(lineages)
    assert workspace is not None

    def foreign() -> list[str]:
        from klineage.walk import trust

        here = {summary.id for summary in workspace.lineages()}
        return sorted(name for name in wanted & here if not trust.is_trusted(workspace, name))

    def answered(yes: bool | None) -> None:
        if yes:
            place.job("trust", remember, lambda _: then())

    def remember() -> None:
        from klineage.walk import trust

        trust.trust_repository(workspace)

    def ask(names: list[str]) -> None:
        if not names:
            then()
            return
        dialog = Confirm(
            "Somebody else's kernels",
            f"{', '.join(names)} came from elsewhere. A gate runs their kernels and their workload.py on this machine: "
            "read them first. Run the code of this repository?",
            "runs it, and remembers the answer",
            dict(place.host.keys_in_force),
            cancel="runs nothing",
        )
        place.ask(dialog, answered)

    place.job("trust", foreign, ask)
