"""Exact quantities of a kernel's work, and what differs between two kernels. Counts never speak of time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from klineage.gate.verdict import Counts, Effect, StageResult, Verdict

WORK = ("bytes", "operations", "instructions")
RESOURCES = ("spill_bytes", "shared_bytes", "registers")
_MOST = 12  # kinds of instructions that are told

#: Instructions that stand in the code for one mechanism only, however rare they are. HFMA2 and HADD2 are not among
#: them: the compiler also moves and converts with them.
MECHANISMS: dict[str, tuple[str, ...]] = {
    "mma": (
        "HMMA", "IMMA", "QMMA", "DMMA", "BMMA", "OMMA", "HGMMA", "IGMMA", "QGMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA",
    ),
    "async_copy": ("LDGSTS", "UBLKCP"),
    "tensor_descriptor": ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF"),
    "warp_exchange": ("SHFL", "REDUX", "VOTE", "MATCH"),
    "register_redistribution": ("USETMAXREG",),
}  # fmt: skip
TELLING = frozenset(name for names in MECHANISMS.values() for name in names)


def compiled_counts(kernels: list[dict[str, Any]]) -> dict[str, int]:
    """Instructions of all launched kernels together; of each resource the largest."""
    return {
        "instructions": sum(k["instructions"]["total"] for k in kernels),
        "kernels": len(kernels),
        **{name: max(int(k[name]) for k in kernels) for name in (*RESOURCES, "num_warps", "num_stages")},
    }


def opcodes(kernels: list[dict[str, Any]]) -> dict[str, float]:
    """How often the most frequent instructions, and those that tell of a mechanism, stand in the code of all kernels:
    ``{"sass LDG": 22.0}``; and ``wide_accesses``. Without a disassembler nothing is known, and nothing returned."""
    found: Counter[str] = Counter()
    for kernel in kernels:
        found.update({name: n for name, n in kernel["instructions"].items() if name != "total"})
    if not found or not all("wide_accesses" in kernel for kernel in kernels):
        return {}
    shown = {name for name, _ in found.most_common(_MOST)} | {name for name in found if name in TELLING}
    counts = {f"sass {name}": float(found[name]) for name in found if name in shown}
    return {**counts, "wide_accesses": float(sum(kernel["wide_accesses"] for kernel in kernels))}


def _work(counts: dict[str, int]) -> dict[str, int]:
    """The counts with ``bytes`` where traffic was counted: a compiler alone knows none."""
    return {**counts, "bytes": total_bytes(counts)} if "bytes_loaded" in counts else dict(counts)


def total_bytes(counts: dict[str, int]) -> int:
    return counts["bytes_loaded"] + counts["bytes_stored"]


def side_by_side(own: Counts, other: Counts) -> StageResult:
    """The profile of a kernel that was counted beside its baseline."""
    effect, text = compare(own.values, other.values)
    return StageResult(
        "profile",
        Verdict.PASS,
        "ok",
        f"counts, not time: {text}",
        effect=effect,
        counts=own,
        baseline_counts=other,
    )


def compare(own: dict[str, int], other: dict[str, int]) -> tuple[Effect, str]:
    """What differs between two kernels' counts. Work decides; resources only where the work is equal."""
    left, right = _work(own), _work(other)
    work = [name for name in WORK if name in left and name in right]
    effect = _direction([(left[n], right[n]) for n in work])
    if effect is Effect.SAME_WORK:
        effect = _direction([(left[n], right[n]) for n in RESOURCES])
    parts = [
        f"{name} {left[name] / right[name]:.2f}x" if right[name] else f"{name} {left[name]:,}"
        for name in work
    ]
    if left["programs"] != right["programs"]:
        parts.append(f"programs {right['programs']:,} -> {left['programs']:,}")
    for name, label in (
        ("shared_bytes", "shared"),
        ("registers", "registers"),
        ("spill_bytes", "spilled"),
        ("num_stages", "stages"),
    ):
        if left.get(name) != right.get(name):
            shown = (
                (amount(right[name]), amount(left[name]))
                if name.endswith("bytes")
                else (right[name], left[name])
            )
            parts.append(f"{label} {shown[0]} -> {shown[1]}")
    return effect, ", ".join(parts)


def _direction(pairs: list[tuple[int, int]]) -> Effect:
    more, less = any(a > b for a, b in pairs), any(a < b for a, b in pairs)
    if more and less:
        return Effect.MIXED_WORK
    if more:
        return Effect.MORE_WORK
    return Effect.LESS_WORK if less else Effect.SAME_WORK


def amount(size: int) -> str:
    """A size for people: ``96 KiB``."""
    return f"{size / 1024:.4g} KiB" if size >= 1024 else f"{size} B"
