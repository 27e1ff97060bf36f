"""One lineage being walked: what state it is in, and the decisions that a person can take on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.gate import GateEvent, GateRequest, Report, gate, report_from_json, report_to_json
from klineage.kernel import Kernel
from klineage.lineage import Draft, Meta, Moved, Settlement, Step, Workspace, line_ops, take_hunks
from klineage.proposer.base import Attempt, OnProposerEvent, Proposer, Task
from klineage.proposer.candidate import Candidate
from klineage.walk import accepting, asking, forward, naming, records, settling, trust
from klineage.walk.deriving import Derivation
from klineage.walk.putting_back import Ask
from klineage.walk.snapshot import kernel_from, workload_from
from klineage.walk.state import WalkState
from klineage.workload import WORKLOAD_FILE, Workload

if TYPE_CHECKING:
    from klineage.proposer.features import Finding

OnEvent = Callable[[GateEvent], None]


class Walk:
    """The decisions on one lineage. Every method is synchronous and may be called from any thread.

    Nothing is cached between calls but immutable objects: git is the memory, so that two processes
    may look at one lineage. A decision taken on an outdated head raises KlineageError.
    """

    def __init__(self, workspace: Workspace, lineage_id: str) -> None:
        self.workspace = workspace
        self.id = lineage_id
        self._deciding = threading.Lock()
        self._kernels: dict[str, Kernel] = {}
        self._workload: Workload | None = None

    # -- reading ------------------------------------------------------------------------------

    def state(self) -> WalkState:
        """What the walk looks like now. Raises KlineageError when there is no such lineage."""
        steps = tuple(self.workspace.history(self.id))
        kernel = self.kernel_at(steps[-1].commit)
        return WalkState(
            meta=replace(self.workspace.meta(steps[-1].commit), id=self.id),
            steps=steps,
            rejected=tuple(self.workspace.rejected(self.id)),
            kernel=kernel,
            sealed=self.workspace.sealed(self.id),
            can_undo=self.workspace.undoable(self.id),
            can_redo=self.workspace.redoable(self.id),
            settled=self.workspace.settled(self.id),
        )

    def kernel_at(self, commit: str) -> Kernel:
        """The kernel of any state: a step of the walk or of the sealed lineage, or a rejected attempt."""
        if commit not in self._kernels:
            files = self.workspace.read(commit)
            self._kernels[commit] = kernel_from(self.workspace.meta(commit), files, commit)
        return self._kernels[commit]

    def reports(self, commit: str) -> tuple[Report, ...]:
        """The gate reports noted on a state, oldest first.

        Raises KlineageError, with the way out, for a note that this version cannot read.
        """
        try:
            return tuple(report_from_json(text) for text in self.workspace.reports(commit))
        except KlineageError as error:
            raise KlineageError(
                f"the note on {commit[:12]} in {self.workspace.path} holds something else ({error}); git notes "
                f"--ref=klineage show {commit[:12]} shows it, git notes --ref=klineage remove {commit[:12]} drops it"
            ) from error

    def findings(self, commit: str | None = None) -> tuple[Finding, ...]:
        """Every mechanism of a state (by default the head): present, absent or unknown, and what shows it."""
        from klineage.proposer.features import audit

        state = self.state()
        at = commit or state.head.commit
        numbers = [i for i, step in enumerate(state.steps) if step.commit == at]
        steps = state.steps[: numbers[0] + 1] if numbers else state.steps[:1]
        words = settling.words_at(state.settled, steps)
        return audit(self.kernel_at(at), words, self.report_of(at))

    def report_of(self, commit: str) -> Report | None:
        """The latest report on exactly this state's bytes."""
        wanted = self.kernel_at(commit).hash
        own = [report for report in self.reports(commit) if report.kernel == wanted]
        return own[-1] if own else None

    def claim_problem(
        self, candidate: Candidate, report: Report | None = None, *, edited: bool = False
    ) -> str:
        """Why the candidate may not be accepted for what it claims to remove, in one sentence; empty when it may.

        ``report`` is of its gate: what the text leaves open, the compiled code may decide.
        """
        state = self.state()
        return settling.claim_problem(
            state.kernel,
            state.kernel_of(candidate),
            candidate,
            state.words,
            by_hand=edited,
            head_report=self.report_of(state.head.commit),
            report=report,
        )

    def forward(self) -> tuple[Step, ...]:
        """The sealed lineage, naive first; empty while the walk is not sealed."""
        return tuple(self.workspace.lineage(self.id))

    @property
    def workload(self) -> Workload:
        """The workload that this lineage carries with it, never the one that happens to be on disk now."""
        if self._workload is None:
            root = self.workspace.history(self.id)[0].commit
            self._workload = workload_from(self.workspace.meta(root), self.workspace.read(root), root)
        return self._workload

    # -- trusting -----------------------------------------------------------------------------

    def trusted(self) -> bool:
        """Whether its code may run: it was opened on this machine, or a person has said so."""
        return trust.is_trusted(self.workspace, self.id)

    def trust(self) -> None:
        """Say, for good, that the code of this repository's lineages may run."""
        trust.trust_repository(self.workspace)

    # -- proposing and gating -----------------------------------------------------------------

    def candidates(self, state: WalkState | None = None) -> tuple[Candidate, ...]:
        """Simplifications of the head that rules propose, those rejected here before coming last."""
        from klineage.proposer import rules

        state = state or self.state()
        return tuple(sorted(rules.propose(state.kernel), key=lambda c: state.rejection_of(c) is not None))

    def task(self, hint: str = "") -> Task:
        """What a proposer is told of the present state."""
        return asking.task(self, self.state(), hint)

    def ask(
        self,
        proposer: Proposer,
        hint: str = "",
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Generator[Attempt, None, None]:
        """A proposer's answers to the present state, one at a time, each checked before it is offered.

        A person decides on what is offered; an answer that cannot be gated has a ``problem``, and is recorded as a
        rejected attempt where its bytes are evidence.
        """
        return asking.ask(self, proposer, hint, on_event, cancel)

    def edited(
        self,
        source: bytes,
        *,
        title: str = "",
        base: Candidate | None = None,
        action: str = "",
        removes: Sequence[str] | None = None,
        new_word: bool = False,
    ) -> Candidate:
        """A person's own simplification of the head, or their edit of a proposal; see ``naming.by_person``.

        Raises KlineageError when the bytes are those of the head, since that is no step, or when the name
        that is given says what the edit does not do.
        """
        state = self.state()
        return naming.by_person(
            state.kernel,
            source,
            base,
            title=title,
            action=action,
            removes=removes,
            new_word=new_word,
            words=state.words,
        )

    def part(self, candidate: Candidate, hunks: Collection[int]) -> Candidate:
        """A proposal of which only some changes are taken, numbered from 1 as in its diff.

        It is a person's from then on, unless every change is taken. Raises KlineageError for none, or for a
        number that there is no change of.
        """
        head = self.kernel_at(self.workspace.history(self.id)[-1].commit)
        ops = line_ops(head.source, candidate.source)
        source = take_hunks(head.source, candidate.source, ops, hunks)
        if source == candidate.source:
            return candidate
        if source == head.source:
            raise KlineageError("no change is chosen, so there is nothing to take; choose at least one")
        return self.edited(source, base=candidate)

    def gate(
        self,
        candidate: Candidate,
        on_event: OnEvent | None = None,
        cancel: threading.Event | None = None,
        *,
        fresh: bool = False,
    ) -> Report:
        """Judge a candidate against the head. Blocks; progress arrives through ``on_event``.

        Raises Untrusted when the lineage came from elsewhere and nobody has agreed to run it.
        """
        trust.require(self.workspace, self.id)
        state = self.state()
        kernel = state.kernel_of(candidate)
        request = GateRequest(kernel, self.workload, state.meta.platform, baseline=state.kernel)
        return gate(request, on_event, cancel, fresh=fresh)

    def gate_commit(
        self, commit: str, on_event: OnEvent | None = None, cancel: threading.Event | None = None
    ) -> Report:
        """Judge a recorded state by itself and note the report on it. Raises Untrusted, like ``gate``."""
        trust.require(self.workspace, self.id)
        platform = self.workspace.meta(commit).platform
        report = gate(GateRequest(self.kernel_at(commit), self.workload, platform), on_event, cancel)
        self.workspace.add_report(commit, report_to_json(report), self.id)
        return report

    # -- deciding -----------------------------------------------------------------------------

    def accept(self, candidate: Candidate, report: Report, *, why: str = "", edited: bool = False) -> Step:
        """Make a gated candidate the new head.

        Raises KlineageError when the report is of other bytes, or did not pass; Moved when it was taken on another
        state; FalseClaim when the step does not remove exactly what it claims.
        """
        with self._deciding:
            state = self.state()
            kernel = state.kernel_of(candidate)
            accepting.check_evidence(report, kernel, state)
            by_hand = edited or candidate.by_hand
            if problem := self.claim_problem(candidate, report, edited=by_hand):
                if self.state().head.commit != state.head.commit:
                    raise Moved
                raise settling.FalseClaim(problem)
            return self.workspace.accept(
                self.id,
                records.of_candidate(candidate, kernel, state.meta, report, why=why, edited=by_hand),
                self._files(kernel),
                report_to_json(report),
                expected_head=state.head.commit,
                meta=_meta_of(state.meta, kernel),
            )

    def reject(self, candidate: Candidate, report: Report | None, *, why: str, on: str = "") -> Step:
        """Keep an attempt as evidence, on the state it was tried on. ``why`` may not be empty.

        A report of other bytes is left out, since it is no evidence about these. Raises Moved when the head is not
        the commit ``on``, where that is given.
        """
        if not why.strip():
            raise KlineageError("a rejection needs a reason: say in a few words what was wrong")
        with self._deciding:
            state = self.state()
            if on and on != state.head.commit:
                raise Moved(f"{self.id} has gone on meanwhile; this was no attempt on its present state")
            kernel = state.kernel_of(candidate)
            own = report if report is not None and report.kernel == kernel.hash else None
            return self.workspace.reject(
                self.id,
                records.of_candidate(candidate, kernel, state.meta, own, why=why),
                self._files(kernel),
                report_to_json(own) if own else None,
                on=state.head.commit,
                meta=_meta_of(state.meta, kernel),
            )

    def settle(self, wanted: str, state: str, why: str, *, commit: str | None = None) -> Settlement:
        """Say of an unknown mechanism (``name``, or ``locus / name``) that it is "present" or "absent", and why.

        commit: the state that is meant; by default the head. Raises KlineageError when the detectors know the
        answer, when several places have the name, or without a reason.
        """
        if state not in ("present", "absent"):
            raise KlineageError(f"a mechanism is present or absent, not {state!r}")
        if not why.strip():
            raise KlineageError(
                "settling a mechanism needs a reason: say in a few words how you know (--why)"
            )
        with self._deciding:
            now = self.state()
            at = commit or now.head.commit
            kernel = self.kernel_at(at)
            feature, cue = settling.question(self.findings(at), wanted, kernel)
            said = Settlement(feature, state, why, cue=cue, at=at)
            return self.workspace.settle(self.id, said, expected_head=now.head.commit)

    def undo(self) -> str:
        """Take the last decision back; returns what it was. Raises KlineageError when there is none."""
        with self._deciding:
            return self.workspace.undo(self.id)

    def redo(self) -> str:
        """Take the last undone decision again; returns what it was."""
        with self._deciding:
            return self.workspace.redo(self.id)

    def derivations(
        self,
        step: Step | None = None,
        *,
        ask: Ask | None = None,
        only: Proposer | None = None,
        source: bytes | None = None,
        renew: bool = False,
        on_progress: Callable[[str], None] | None = None,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> tuple[Derivation, ...]:
        """How each accepted step (or one) would be sealed: derived, by whom, or replayed, and why.

        See ``forward.derivations``. Raises Untrusted, like ``gate``.
        """
        trust.require(self.workspace, self.id)
        return forward.derivations(
            self,
            step,
            ask=ask,
            only=only,
            source=source,
            renew=renew,
            on_progress=on_progress,
            on_event=on_event,
            cancel=cancel,
        )

    def seal(
        self,
        on_event: Callable[[str], None] | None = None,
        cancel: threading.Event | None = None,
        ask: Ask | None = None,
    ) -> tuple[Step, ...]:
        """Write the forward lineage, naive first, each transition derived and gated again.

        ``ask`` says who may be asked for edits that no rule makes. Raises Untrusted, like ``gate``.
        """
        trust.require(self.workspace, self.id)
        with self._deciding:
            return forward.seal(self, on_event, cancel, ask)

    # -- drafts -------------------------------------------------------------------------------

    def save_draft(self, source: bytes, title: str) -> None:
        """Keep unfinished text; it is on disk when this returns."""
        head = self.workspace.head(self.id)
        self.workspace.save_draft(self.id, self.workspace.meta(head.commit).filename, source, title)

    def draft(self) -> Draft | None:
        """The unfinished text of this lineage, if any."""
        return self.workspace.load_draft(self.id)

    def clear_draft(self) -> None:
        self.workspace.clear_draft(self.id)

    def _files(self, kernel: Kernel) -> dict[str, bytes]:
        return {kernel.filename: kernel.source, WORKLOAD_FILE: self.workload.source}


def _meta_of(meta: Meta, kernel: Kernel) -> Meta:
    return replace(meta, config=kernel.config, flags=kernel.flags)
