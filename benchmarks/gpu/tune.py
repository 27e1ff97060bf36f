"""Every configuration in a small table, and alternative kernels, beside the expert and its fastest reference.

    PYTHONPATH=.:engine python benchmarks/gpu/tune.py --workload gemm --out DIR [--file OTHER.py] [--only NAME] [--seconds 60]

Candidates are the expert as it is written, the expert with the settings of TABLE, what benchmarks/gpu/variants/WORKLOAD has,
and what --file names, each with the settings that its own text lists (a line "# tune: BLOCK_M=128 num_warps=8" each; in CUDA
"// tune: STAGES=3", a constant of the file).
Each is checked once against the workload's reference, then timed in one contest with the expert and the fastest reference:
the ratios are within that contest, so candidates can be compared across them. What is done is in DIR/WORKLOAD.tune.jsonl
and is not run again. No candidate begins after --seconds. Prints the table last, best first, and writes it to DIR.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from klineage.resources import shipped

VARIANTS = Path(__file__).parent / "variants"
Settings = dict[str, int]
Row = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A kernel file with some settings written over those of its launch."""

    path: Path
    settings: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str:
        """Equal for equal text and settings: what was measured once is not measured again."""
        return hashlib.sha256(self.path.read_bytes() + repr(self.settings).encode()).hexdigest()[:16]


def grid(**values: tuple[int, ...]) -> list[Settings]:
    """Every combination of the values."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def renamed(kernel: str, settings: list[Settings]) -> list[Settings]:
    """The settings for the launch of one kernel of several."""
    return [{f"{kernel}.{name}": value for name, value in found.items()} for found in settings]


TABLE: dict[str, list[Settings]] = {
    "gemm": [
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP_M": g, "num_warps": 8, "num_stages": s}
        for (m, n), g, s in product(((256, 128), (128, 256)), (8, 16), (3, 4))
    ],
    "conv2d": [
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_C": 64, "num_warps": w, "num_stages": s}
        for m, n, w, stages in (
            (64, 128, 4, (2, 3, 4)),
            (64, 128, 8, (2, 3)),
            (64, 64, 4, (3, 4)),
            (32, 128, 4, (3, 4)),
            (128, 64, 4, (3, 4)),
            (128, 128, 4, (3,)),
            (128, 128, 8, (2, 3, 4)),
            (256, 64, 8, (3, 4)),
            (256, 128, 8, (3, 4)),
        )
        for s in stages
    ],
    "fmha": [
        *grid(BLOCK_M=(128,), BLOCK_N=(64, 128), num_warps=(8,), num_stages=(2, 3)),
        *grid(BLOCK_M=(128,), BLOCK_N=(128,), num_warps=(4,), num_stages=(2,)),
        *grid(BLOCK_M=(64,), BLOCK_N=(64, 128), num_warps=(4,), num_stages=(2, 3)),
    ],
    "topk": grid(num_warps=(4, 8, 16, 32)),
    "gdn": [
        *renamed("gdn_forward_kernel", grid(num_stages=(2,))),
        *renamed("gdn_kkt_kernel", grid(num_warps=(8,))),
        *renamed("gdn_cumsum_kernel", grid(num_warps=(1, 4))),
    ],
    "gdn_cumsum": grid(BLOCK_H=(8, 16), num_warps=(1, 2, 4)),
    "gdn_kkt": [*grid(num_warps=(4, 8)), *grid(num_warps=(4,), maxnreg=(128, 168))],
    "gdn_forward": grid(num_warps=(4,), num_stages=(2, 3)),
    "add_rmsnorm": grid(num_warps=(8, 16, 32)),
}


def declared(source: str) -> list[Settings]:
    """The settings that a kernel's own text lists, one a line."""
    lines = re.findall(r"^(?:#|//) tune: *(.*)$", source, re.MULTILINE)
    return [{n: int(v) for n, v in re.findall(r"([\w.]+)=(\d+)", line)} for line in lines]


def candidates(workload: str, files: list[Path]) -> Iterator[Candidate]:
    """The expert and its settings, then every other file and the settings that it lists."""
    expert = shipped("experts") / workload / "triton" / "kernel.py"
    for settings in ({}, *TABLE.get(workload, [])):
        yield Candidate(expert, tuple(settings.items()))
    for path in [
        *sorted((VARIANTS / workload).glob("*.py")),
        *sorted((VARIANTS / workload).glob("*.cu")),
        *files,
    ]:
        for settings in declared(path.read_text(encoding="utf-8")) or [{}]:
            yield Candidate(path, tuple(settings.items()))


def done(log: Path) -> dict[str, Row]:
    """What earlier runs measured, by key; a line that was cut off is not there."""
    found = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[row["key"]] = row
    return found


def run(
    workload: str, files: list[Path], log: Path, seconds: float, rounds: int, only: str = ""
) -> tuple[list[Row], int]:
    """Measure what is left of the candidates whose file's name has ``only`` in it.

    Returns all rows of those candidates, and how many are still to be measured.
    """
    from benchmarks import contest

    begin, known, left = time.monotonic(), done(log), 0
    expert, *_ = every = list(candidates(workload, files))
    wanted = [c for c in every if only in c.path.name]
    missing = [c for c in wanted if c.key not in known]
    if missing:
        where = contest.arena(shipped("experts") / workload, "triton")
        baseline = contest.triton_expert(expert.path, workload, where)
        baseline.name = "as written"
        vendor = _fastest(contest.vendors(workload, where))
    for candidate in missing:
        if time.monotonic() - begin > seconds:
            left += 1
            continue
        settings = dict(candidate.settings)
        if candidate.path.suffix == ".cu":
            entrant = contest.cuda_expert(candidate.path, workload, where, settings)
        else:
            entrant = contest.triton_expert(candidate.path, workload, where, settings)
        row: Row = {"key": candidate.key, "name": entrant.name, "problem": entrant.problem, "ms": []}
        if entrant.call is not None:
            entrant.name = "candidate"
            taken, row["timer"] = contest.timed([entrant, baseline, *([vendor] if vendor else [])], rounds)
            row |= {"ms": taken["candidate"], "expert_ms": taken.get("as written", [])}
            row |= {"vendor": vendor.name, "vendor_ms": taken[vendor.name]} if vendor else {}
        known[candidate.key] = row
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row["name"], row["problem"] or f"{statistics.median(row['ms']):.4f} ms", flush=True)
    return [known[c.key] for c in wanted if c.key in known], left


def _fastest(vendors: list[Any]) -> Any:
    """The reference with the smallest median, or None when none runs."""
    from benchmarks import contest

    running = [v for v in vendors if v.call is not None]
    taken, _ = contest.timed(running, 5)
    return min(running, key=lambda v: statistics.median(taken[v.name]), default=None)


def _ratio(row: Row, against: str) -> float | None:
    theirs = row.get(against)
    if not row["ms"] or not theirs:
        return None
    return float(statistics.median(a / b for a, b in zip(theirs, row["ms"], strict=True)))


def table(rows: list[Row]) -> str:
    """Best first, by the ratio to the expert as it is written; what failed comes last, with the reason."""
    vendor = next((r["vendor"] for r in rows if r.get("vendor")), "no reference")
    lines = [f"{'ms':>9} {'of expert':>9} {'of vendor':>9}  candidate (vendor: {vendor})"]
    for row in sorted(rows, key=lambda r: -(_ratio(r, "expert_ms") or 0)):
        if not row["ms"]:
            lines.append(f"{'-':>9} {'':>9} {'':>9}  {row['name']}: {row['problem']}")
            continue
        shown = [f"{r:.3f}x" if r else "" for r in (_ratio(row, "expert_ms"), _ratio(row, "vendor_ms"))]
        lines.append(f"{statistics.median(row['ms']):>9.4f} {shown[0]:>9} {shown[1]:>9}  {row['name']}")
    return "\n".join(lines)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", required=True, choices=sorted(TABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--file", type=Path, action="append", default=[], help="another kernel; may be repeated"
    )
    parser.add_argument("--only", default="", help="only files with this in their name")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=15)
    return parser.parse_args(given)


def main() -> None:
    from benchmarks import contest

    told = arguments()
    told.out.mkdir(parents=True, exist_ok=True)
    log = told.out / f"{told.workload}.tune.jsonl"
    rows, left = run(told.workload, told.file, log, told.seconds, told.rounds, told.only)
    rest = f"\n{left} not measured yet: run it again" if left else ""
    text = f"benchmarks/gpu/tune.py --workload {told.workload}; {contest.machine()}\n\n{table(rows)}{rest}"
    (told.out / f"{told.workload}.tune.txt").write_text(text + "\n", encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
