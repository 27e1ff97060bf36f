"""What the compiled code says of a mechanism that the text leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from klineage.gate import Report
from klineage.gate.counts import MECHANISMS, TELLING
from klineage.proposer.features.finding import Finding


@dataclass(frozen=True)
class Code:
    """What a compile stage found. ``families``: how often instructions stand in the code, all that tell of a mechanism
    among them; empty where nothing was disassembled. ``wide``: accesses of global memory of 8 bytes and more a thread."""

    registers: int
    spill_bytes: int
    shared_bytes: int
    families: Mapping[str, int]
    wide: int

    @property
    def text(self) -> str:
        """One line: registers, spills, shared memory, and the instructions that name a mechanism."""
        shown = [f"{name} {count}" for name, count in self.families.items() if name in TELLING and count]
        wide = [f"{self.wide} wide accesses"] if self.families else []
        parts = [
            f"{self.registers} registers",
            f"{self.spill_bytes} B spilled",
            f"{self.shared_bytes} B shared",
        ]
        return ", ".join([*parts, *wide, *shown])


def code_of(report: Report) -> Code | None:
    """The compiled code of a gate report; None where nothing was compiled for a GPU."""
    stage = report.stage("compile")
    if stage is None or "registers" not in stage.numbers:
        return None
    numbers = stage.numbers
    counted = "wide_accesses" in numbers  # an older report may lack the rare instructions
    families = {k.removeprefix("sass "): int(v) for k, v in numbers.items() if k.startswith("sass ")}
    registers, spilled, shared = (
        int(numbers.get(n, 0)) for n in ("registers", "spill_bytes", "shared_bytes")
    )
    wide = int(numbers.get("wide_accesses", 0))
    return Code(registers, spilled, shared, families if counted else {}, wide)


def seen_in_code(finding: Finding, report: Report) -> Finding:
    """An ``unknown`` that the text raised, decided by the instructions where they can decide it."""
    code = code_of(report)
    if code is None or not code.families or finding.state != "unknown" or not finding.lines:
        return finding
    if finding.name == "vectorize":
        count, what = code.wide, "accesses of 8 bytes and more a thread"
    elif finding.name in MECHANISMS:
        found = {name: code.families.get(name, 0) for name in MECHANISMS[finding.name]}
        count = sum(found.values())
        what = ", ".join(name for name, number in found.items() if number) or MECHANISMS[finding.name][0]
    else:
        return finding
    told = f"{count} {what}" if count else f"no {what}"
    return replace(
        finding,
        state="present" if count else "absent",
        by="code",
        why=f"{finding.cue}: the compiled code has {told}",
    )
