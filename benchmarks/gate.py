"""How fast a gate is: every shipped expert, cold and warm, stage by stage; and how fast a cancel is.

    python benchmarks/gate.py [--repeat 5]

Times are wall clock of this machine in its present mood. Warm is the median of the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from dataclasses import replace
from pathlib import Path

from klineage.executor import LocalExecutor
from klineage.gate import GateEvent, GateRequest, Report, gate
from klineage.kernel import Kernel, Surface
from klineage.resources import shipped
from klineage.surface.dispatch import autotune_configs, entry_of, flags_of
from klineage.workload import load


def expert_request(path: Path) -> GateRequest:
    workload = load(path.parent.parent)
    surface: Surface = "c" if path.suffix == ".c" else "triton"
    source = path.read_bytes()
    entry = entry_of(surface, path.name, source, workload)
    kernel = Kernel(surface, path.name, entry, source, flags=flags_of(surface, source))
    configs = autotune_configs(kernel)
    kernel = replace(kernel, config=configs[0] if configs else ())
    return GateRequest(
        kernel, workload, "nvidia-sm90" if surface == "triton" else "cpu-native", baseline=kernel
    )


def timed(request: GateRequest, executor: LocalExecutor) -> tuple[float, Report]:
    begin = time.perf_counter()
    report = gate(request, fresh=True, executor=executor)
    return time.perf_counter() - begin, report


def cancel_seconds(request: GateRequest, executor: LocalExecutor) -> float:
    """From setting the event, in the middle of correctness, to the report."""
    cancel = threading.Event()
    pressed = [0.0]

    def on_event(event: GateEvent) -> None:
        if event.stage == "correctness" and event.detail and not cancel.is_set():
            pressed[0] = time.perf_counter()
            cancel.set()

    gate(request, on_event, cancel, fresh=True, executor=executor)
    return time.perf_counter() - pressed[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    executor = LocalExecutor()
    names = ("verdict", "first s", "warm s", "static", "compile", "correct", "profile", "cancel")
    print(f"{'expert':<18}" + "".join(f"{name:>9}" for name in names))
    for path in sorted(shipped("experts").glob("*/*/kernel.*")):
        if path.suffix not in (".c", ".py"):
            continue
        request = expert_request(path)
        first, report = timed(request, executor)
        runs = [timed(request, executor) for _ in range(repeat)]
        warm = statistics.median(seconds for seconds, _ in runs)
        stages = [statistics.median(r.stages[i].seconds for _, r in runs) for i in range(4)]
        row = "".join(f"{s:>{w}.3f}" for s, w in zip(stages, (9, 9, 9, 9), strict=True))
        cancelled = cancel_seconds(request, executor)
        name = f"{path.parent.parent.name}-{path.parent.name}"
        print(f"{name:<18}{report.verdict.value:>9}{first:>9.2f}{warm:>9.3f}{row}{cancelled:>9.3f}")
    executor.close()


if __name__ == "__main__":
    main()
