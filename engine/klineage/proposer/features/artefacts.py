"""What the compiled code says of a mechanism that the text leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from klineage.gate import Report
from klineage.kernel import Surface
from klineage.proposer.features.finding import Finding

#: mechanism -> families of instructions that are there if, and only if, it is
_INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "mma": ("HMMA", "IMMA", "QMMA", "DMMA", "BMMA", "HGMMA", "IGMMA", "QGMMA", "UTCHMMA", "UTCQMMA", "OMMA"),
    "async_copy": ("LDGSTS", "UBLKCP"),
    "tensor_descriptor": ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF"),
    "warp_exchange": ("SHFL", "REDUX", "VOTE", "MATCH"),
    "register_redistribution": ("USETMAXREG",),
    "packed_math": ("HFMA2", "HADD2", "HMUL2", "FFMA2"),
}
#: mechanism -> what of a wide access must be in the code
_WIDE = "vectorize"


@dataclass(frozen=True)
class Code:
    """What a compile stage measured. ``families``: how often each instruction stands in the code; ``complete``
    when all of them were counted."""

    registers: int
    spill_bytes: int
    shared_bytes: int
    families: Mapping[str, int]
    wide: int | None  # accesses of global memory of 8 bytes and more a thread; None when not counted

    @property
    def text(self) -> str:
        """One line: registers, spills, shared memory, and the instructions that name a mechanism."""
        telling = {name for group in _INSTRUCTIONS.values() for name in group}
        shown = [f"{name} {count}" for name, count in self.families.items() if name in telling and count]
        parts = [
            f"{self.registers} registers",
            f"{self.spill_bytes} B spilled",
            f"{self.shared_bytes} B shared",
        ]
        return ", ".join([*parts, *shown])


def code_of(report: Report) -> Code | None:
    """The compiled code of a gate report; None where nothing was compiled for a GPU."""
    stage = report.stage("compile")
    if stage is None or "registers" not in stage.numbers:
        return None
    numbers = stage.numbers
    families = {k.removeprefix("sass "): int(v) for k, v in numbers.items() if k.startswith("sass ")}
    wide = numbers.get("wide_accesses")
    return Code(
        int(numbers["registers"]),
        int(numbers.get("spill_bytes", 0)),
        int(numbers.get("shared_bytes", 0)),
        families,
        None if wide is None else int(wide),
    )


def seen_in_code(finding: Finding, surface: Surface, report: Report) -> Finding:
    """An ``unknown`` that the text raised, decided by the instructions where they can decide it."""
    code = code_of(report)
    if code is None or finding.state != "unknown" or not finding.lines:
        return finding
    if finding.name == _WIDE and code.wide is not None:
        count, what = code.wide, "accesses of 8 bytes and more a thread"
    elif finding.name in _INSTRUCTIONS and code.families:
        found = {name: code.families.get(name, 0) for name in _INSTRUCTIONS[finding.name]}
        count = sum(found.values())
        what = ", ".join(name for name, number in found.items() if number) or _INSTRUCTIONS[finding.name][0]
    else:
        return finding
    told = f"{count} {what}" if count else f"no {what}"
    return replace(
        finding,
        state="present" if count else "absent",
        by="code",
        why=f"{finding.cue}: the compiled code has {told}",
    )
