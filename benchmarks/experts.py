"""How fast the shipped experts are, against the vendors' libraries, on the same inputs, call beside call.

    PYTHONPATH=.:engine python benchmarks/experts.py --out DIR [--only gemm,topk] [--slow] [--targets] [--rounds 30]

On a machine with a GPU: the experts in Triton and CUDA at the paper size, against what benchmarks/references.py lists and
can be imported. Without one, or with --cpu: the experts in C at the bench size against torch on one thread (experts_c.py,
which has more options). Every contender's answer is checked once, by the workload's tolerance. Device time: from the start
of a call's first kernel to the end of its last, after the cache was flushed; the median over the rounds, and the range. The
ratio is the median over the rounds of reference / expert: above 1 the expert is faster. The floor is the larger of the
workload's bytes and operations, at what a copy and a matrix product reach in the same run.

A workload that is done is in DIR/WORKLOAD.json, and is not run again: an interrupted run goes on where it stopped. Prints
the table last, and writes it to DIR/experts.txt, and all of it to DIR/experts.json.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

from klineage.resources import shipped

Row = dict[str, Any]
_KERNELS = {"triton": "triton/kernel.py", "cuda": "cuda/kernel.cu"}
_COMPETENT = "triton/reference.py"  # what a target workload has in an expert's place
_NO_EXPERTS = ("kernel.py", "reference.py", "naive.py")  # beside them: further forms of the expert


def measured(folder: Path, rounds: int, slow: bool, limits: dict[str, float]) -> list[Row]:
    """One row a contender of this workload; the Triton expert first."""
    from benchmarks import contest

    kernels = {surface: folder / name for surface, name in _KERNELS.items() if (folder / name).is_file()}
    where = contest.arena(folder, next(iter(kernels), "triton"))
    contenders = []
    if "triton" in kernels or not kernels:
        path = kernels.get("triton", folder / _COMPETENT)
        contenders.append(contest.triton_expert(path, folder.name, where))
        contenders[0].name = "expert in Triton" if kernels else "competent kernel in Triton"
    for path in sorted(p for p in (folder / "triton").glob("*.py") if p.name not in _NO_EXPERTS):
        contenders.append(contest.triton_expert(path, folder.name, where))
        contenders[-1].name = f"expert in Triton, {path.stem}"
    if "cuda" in kernels:
        contenders.append(contest.cuda_expert(kernels["cuda"], folder.name, where))
    contenders += contest.vendors(folder.name, where, slow)
    taken, timer = contest.timed(contenders, rounds)
    floor = contest.floor_ms(where.problem.cost(where.dims), limits)
    return [
        {
            "workload": folder.name, "dims": where.dims, "contender": c.name, "ms": taken.get(c.name, []),
            "timer": timer, "floor_ms": floor, "problem": c.problem, "note": c.note, "checked": c.checked,
        }
        for c in contenders
    ]  # fmt: skip


def is_expert(row: Row) -> bool:
    return str(row["contender"]).startswith(("expert", "competent"))


def fastest_expert(rows: list[Row]) -> Row | None:
    """The expert of one workload with the smallest median, among those that ran."""
    ran = [r for r in rows if r["ms"] and is_expert(r)]
    return min(ran, key=lambda r: statistics.median(r["ms"]), default=None)


def fastest_vendor(rows: list[Row]) -> Row | None:
    """The reference of one workload with the smallest median, among those that ran."""
    ran = [r for r in rows if r["ms"] and not is_expert(r)]
    return min(ran, key=lambda r: statistics.median(r["ms"]), default=None)


def ratio(theirs: list[float], ours: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


def table(rows: list[Row]) -> str:
    """The rows by workload, the ratio of each expert to every reference, and the geometric mean to the fastest."""
    lines = [
        f"{'workload':<12} {'contender':<30} {'ms':>9}  {'range':<17} {'x floor':>7}  {'of ours':>9}  remarks"
    ]
    best = []
    for name in dict.fromkeys(str(r["workload"]) for r in rows):
        mine = [r for r in rows if r["workload"] == name]
        expert = fastest_expert(mine)
        vendor = fastest_vendor(mine)
        if expert and vendor:
            best.append((name, ratio(vendor["ms"], expert["ms"]), vendor["contender"]))
        lines += [_line(r, expert) for r in mine]
    lines += ["", "fastest reference / expert:"]
    lines += [f"  {name:<12} {value:.3f}x  ({against})" for name, value, against in best]
    if best:
        mean = math.exp(statistics.fmean(math.log(value) for _, value, _ in best))
        lines.append(f"  geometric mean of {len(best)}: {mean:.3f}x")
    return "\n".join(lines)


def _line(row: Row, expert: Row | None) -> str:
    remarks = "; ".join(filter(None, [row["problem"], row["note"], "" if row["checked"] else "not checked"]))
    if not row["ms"]:
        return f"{row['workload']:<12} {row['contender']:<30} {'-':>9}  {'':<17} {'':>7}  {'':>9}  {remarks}"
    middle = statistics.median(row["ms"])
    spread = f"{min(row['ms']):.4f} - {max(row['ms']):.4f}"
    against = f"{ratio(row['ms'], expert['ms']):.3f}x" if expert else ""
    return (
        f"{row['workload']:<12} {row['contender']:<30} {middle:>9.4f}  {spread:<17} {middle / row['floor_ms']:>7.2f}"
        f"  {against:>9}  {remarks}"
    )


def on_gpu(arguments: argparse.Namespace, wanted: set[str] | None) -> None:
    from benchmarks import contest

    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    ceilings = out / "ceilings.json"
    if not ceilings.is_file():
        ceilings.write_text(json.dumps(contest.ceilings()), encoding="utf-8")
    limits = json.loads(ceilings.read_text(encoding="utf-8"))
    rows: list[Row] = []
    for folder in sorted(path.parent for path in shipped("experts").glob("*/workload.py")):
        wanted_files = [*_KERNELS.values(), *([_COMPETENT] if arguments.targets else [])]
        runs = any((folder / kernel).is_file() for kernel in wanted_files)
        if not runs or (wanted is not None and folder.name not in wanted):
            continue
        done = out / f"{folder.name}.json"
        if not done.is_file():
            begin = time.perf_counter()
            found = measured(folder, arguments.rounds, arguments.slow, limits)
            done.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(f"{folder.name}: {time.perf_counter() - begin:.1f} s", flush=True)
        rows += json.loads(done.read_text(encoding="utf-8"))
    gigabytes, teraflops = limits["bytes_per_second"] / 1e9, limits["operations_per_second"] / 1e12
    text = (
        f"benchmarks/experts.py, {arguments.rounds} rounds; {contest.machine()}\n"
        f"a copy moves {gigabytes:.0f} GB/s (read and written), a product of 8192 cubed in bf16 {teraflops:.0f} TFLOP/s\n\n"
        f"{table(rows)}"
    )
    (out / "experts.txt").write_text(text + "\n", encoding="utf-8")
    report = {"machine": contest.machine(), "ceilings": limits, "rows": rows}
    (out / "experts.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print("\n" + text)


def on_cpu(arguments: argparse.Namespace, wanted: set[str] | None) -> None:
    import tempfile

    import torch

    from benchmarks import experts_c

    experts_c.on_one_thread()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for path in sorted(shipped("experts").glob("*/c/kernel.c")):
            if wanted is None or path.parents[1].name in wanted:
                rows += experts_c.measured(path, arguments.rounds, False, Path(cache))
    text = (
        f"experts in C at bench, {arguments.rounds} rounds; {experts_c.machine()}\n\n{experts_c.table(rows)}"
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "experts-c.txt").write_text(text + "\n", encoding="utf-8")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--only", metavar="W,W", help="these workloads only")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--slow", action="store_true", help="also references that take minutes to build")
    parser.add_argument(
        "--targets", action="store_true", help="also the competent kernels of target workloads"
    )
    parser.add_argument("--cpu", action="store_true", help="the experts in C, whatever GPU is here")
    arguments = parser.parse_args()
    wanted = set(arguments.only.split(",")) if arguments.only else None
    unknown = (wanted or set()) - {path.parent.name for path in shipped("experts").glob("*/workload.py")}
    if unknown:
        parser.error(f"no shipped workload {', '.join(sorted(unknown))}")

    import torch

    if torch.cuda.is_available() and not arguments.cpu:
        on_gpu(arguments, wanted)
    else:
        on_cpu(arguments, wanted)


if __name__ == "__main__":
    main()
