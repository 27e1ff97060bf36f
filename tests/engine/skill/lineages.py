"""Sealed lineages of shipped experts, in a real repository, whose gates were not run: a test says what they showed.

The kernels, the edits and what is stored are real: rules take the expert apart until nothing is left to take out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from klineage.gate import (
    Counts,
    Effect,
    FailingCase,
    Measurement,
    Report,
    StageResult,
    Trust,
    Verdict,
    report_to_json,
)
from klineage.kernel import Kernel
from klineage.lineage import ForwardRecord, Meta, StepRecord, Workspace
from klineage.lineage.model import META_FILE
from klineage.proposer import rules
from klineage.proposer.candidate import Candidate
from klineage.resources import shipped
from klineage.walk import records
from klineage.walk.reading import read_kernel
from klineage.workload import WORKLOAD_FILE, Workload, load

FILE = {"c": "kernel.c", "triton": "kernel.py", "cuda": "kernel.cu"}
CPU, GPU = "cpu-x86-64-v3", "nvidia-sm90"


@dataclass(frozen=True)
class Showed:
    """What a gate showed of a step: a time as after over before, or counts (before, after); neither: too noisy."""

    ratio: float | None = 1.0
    half: float = 0.01  # of the interval, as a part of the ratio
    counts: tuple[Mapping[str, int], Mapping[str, int]] | None = None
    rms: tuple[float, float] = (0.01, 0.01)
    platform: str = ""


def report(kernel: Kernel, baseline: Kernel, workload: Workload, platform: str, showed: Showed) -> Report:
    """A report that says this."""
    counted = showed.counts is not None
    if showed.counts is not None:
        before, after = (Counts("small", dict(values)) for values in showed.counts)
        profile = StageResult(
            "profile", Verdict.PASS, "ok", "counts, not time", counts=after, baseline_counts=before, effect=Effect.MIXED_WORK,
        )  # fmt: skip
    elif showed.ratio is None:
        profile = StageResult("profile", Verdict.NOISY, "noisy", "too noisy for a number")
    else:
        ratio = showed.ratio
        measured = Measurement(
            ratio, "thread_cpu_time", 40, "bench", 1.0, ratio, ratio * (1 - showed.half), ratio * (1 + showed.half), 0.01,
        )  # fmt: skip
        effect = Effect.FASTER if ratio < 0.98 else Effect.SLOWER if ratio > 1.02 else Effect.NEUTRAL
        profile = StageResult("profile", Verdict.PASS, "ok", "timed", measurement=measured, effect=effect)
    numbers = {"rms": showed.rms[1], "baseline_rms": showed.rms[0], "worst": 1e-6, "rtol": 1e-5}
    passed = [StageResult(name, Verdict.PASS, "ok", "fine") for name in ("static", "compile")]
    correct = StageResult("correctness", Verdict.PASS, "ok", "fine", numbers=numbers)
    trust = Trust.INTERPRETED if counted else Trust.MEASURED_CPU
    return Report(
        kernel.hash, workload.hash, showed.platform or platform, "2", trust, (*passed, correct, profile), baseline.hash,
        phase="acceptance", finished="2026-11-29T12:00:00Z",
    )  # fmt: skip


def failed(
    kernel: Kernel, workload: Workload, platform: str, summary: str, verdict: Verdict = Verdict.FAIL
) -> Report:
    """A report of a kernel that computed something else."""
    case = FailingCase("ragged", {"rows": 3}, 7, "y", (0, 1), "nan", 1.0)
    stages = (
        StageResult("static", Verdict.PASS, "ok", "fine"),
        StageResult("correctness", verdict, "mismatch", summary, case=case),
    )
    return Report(kernel.hash, workload.hash, platform, "2", Trust.MEASURED_CPU, stages)


@dataclass
class Lineage:
    """A walk that goes on by rules until it is sealed. ``showed``: by the name of the rule, of its forward step."""

    workspace: Workspace
    id: str
    workload: Workload
    expert: Kernel
    platform: str

    @classmethod
    def open(cls, workspace: Workspace, name: str, surface: str = "c", lineage_id: str = "") -> Lineage:
        workload = load(name)
        kernel = read_kernel(shipped("experts") / name / surface / FILE[surface], workload)
        platform = CPU if surface == "c" else GPU
        made = cls(workspace, lineage_id or f"{name.replace('_', '-')}-{surface}", workload, kernel, platform)
        workspace.new(made.meta(kernel), made.files(kernel))
        return made

    def meta(self, kernel: Kernel) -> Meta:
        return Meta(
            self.id, self.workload.title, kernel.surface, self.platform, self.workload.name, kernel.filename, kernel.entry,
            kernel.config, kernel.flags,
        )  # fmt: skip

    def files(self, kernel: Kernel) -> dict[str, bytes]:
        return {kernel.filename: kernel.source, WORKLOAD_FILE: self.workload.source}

    def reject(
        self, source: bytes, action: str, title: str, why: str = "", gated: Report | None = None
    ) -> None:
        """Keep an attempt on the present state as a rejected one."""
        kernel = replace(self.expert, source=source)
        record = StepRecord(
            title, action=action, locus=f"{kernel.filename}::{kernel.entry}", proposer="person", why=why, kernel=kernel.hash,
            platform=self.platform,
        )  # fmt: skip
        told = report_to_json(replace(gated, kernel=kernel.hash)) if gated is not None else None
        self.workspace.reject(self.id, records.with_gate(record, gated), self.files(kernel), told)

    def seal(self, showed: Mapping[str, Showed] | None = None, by: str = "") -> None:
        """Take everything out that rules can, and seal. ``by``: who is said to have made each step, in place of its rule."""
        told = showed or {}
        kernel = self.expert
        steps: list[tuple[Candidate, Kernel, Kernel]] = []
        while offered := rules.propose(kernel):
            candidate = replace(offered[0], proposer=by) if by else offered[0]
            simpler = candidate.kernel(kernel)
            record = records.of_candidate(candidate, simpler, self.meta(simpler), None, why="")
            self.workspace.accept(self.id, record, self.files(simpler), meta=self.meta(simpler))
            steps.append((offered[0], simpler, kernel))
            kernel = simpler
        commits = [step.commit for step in self.workspace.history(self.id)[1:]]
        forward = [
            self._forward(candidate, simpler, richer, commit, told, by)
            for (candidate, simpler, richer), commit in zip(reversed(steps), reversed(commits), strict=True)
        ]
        self.workspace.seal(self.id, forward)

    def _forward(
        self,
        candidate: Candidate,
        simpler: Kernel,
        richer: Kernel,
        commit: str,
        showed: Mapping[str, Showed],
        by: str,
    ) -> ForwardRecord:
        what = showed.get(candidate.proposer.removeprefix("rules:"), Showed())
        told = report(richer, simpler, self.workload, self.platform, what)
        title = rules.forward_title(candidate.proposer) or candidate.title
        record = StepRecord(
            title, candidate.rationale, candidate.action, candidate.locus, adds=candidate.removes,
            settings=candidate.settings, proposer=by or candidate.proposer, kernel=richer.hash, platform=self.platform,
        )  # fmt: skip
        how = "replayed" if by else "derived"
        return ForwardRecord(
            records.with_gate(record, told),
            self.files(richer),
            how,
            commit,
            report_to_json(told),
            self.meta(richer),
        )


def seal_again(workspace: Workspace, lineage_id: str) -> None:
    """Seal the same walk once more, with another word on how each step was found: other commits of the same kernels."""
    forward = [
        ForwardRecord(
            StepRecord(
                step.subject, step.body, step.action, step.locus, settings=step.settings, proposer=step.proposer,
                kernel=step.kernel, platform=step.platform, adds=step.adds,
            ),
            _without_meta(workspace, step.commit), "derived", step.reverses, workspace.reports(step.commit)[0],
            workspace.meta(step.commit), "found once more",
        )
        for step in workspace.lineage(lineage_id)[1:]
    ]  # fmt: skip
    workspace.seal(lineage_id, forward)


def _without_meta(workspace: Workspace, commit: str) -> dict[str, bytes]:
    return {name: data for name, data in workspace.read(commit).items() if name != META_FILE}


@contextmanager
def made(folder: Path) -> Iterator[Workspace]:
    """A new workspace in a folder."""
    workspace = Workspace.create(folder)
    try:
        yield workspace
    finally:
        workspace.close()
