"""How often the GPU's profile is wrong, and what it finds: A/A runs and plants of real work, in one process.

    PYTHONPATH=.:engine python benchmarks/gpu/calibration.py --out DIR [--seconds 55]

The planted kernels run the same loop for 0.5, 1, 2 and 5 % more iterations. The table is given for a floor of 2 % and one of 1 %,
from the same rounds, by events for a long kernel and by CUPTI for a short one. Prints the table last.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

PLANTS = (0, 5, 10, 20, 50)  # thousandths
ROUNDS = 50
SETS = 4
SHAPES = {"long": (1 << 22, 1000), "short": (1 << 18, 1000)}  # elements, iterations

_KERNEL = """import triton
import triton.language as tl


@triton.jit(do_not_specialize=["iterations"])
def polynomial_kernel(x, y, iterations, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at) * 0.5
    p = v
    for _ in range(iterations):
        p = p * v + 0.5
    tl.store(y + at, p)


def polynomial(x, y, n, iterations):
    polynomial_kernel[(n // 1024,)](x, y, iterations + iterations * {plant} // 1000, BLOCK=1024)
"""


def entries(folder: Path) -> dict[int, Any]:
    from klineage.worker.triton_load import load

    found = {}
    for plant in (-1, *PLANTS):  # -1 is the baseline: an equal kernel in another file
        path = folder / f"plant_{plant if plant >= 0 else 'none'}.py"
        path.write_text(_KERNEL.format(plant=max(plant, 0)), encoding="utf-8")
        found[plant] = load(str(path), "polynomial", {}, "gpu")
    return found


def buffer_sets(n: int, iterations: int) -> list[dict[str, object]]:
    import torch

    made: list[dict[str, object]] = []
    for _ in range(SETS):
        x = torch.rand(n, device="cuda")
        made.append({"x": x, "y": torch.empty_like(x), "n": n, "iterations": iterations})
    return made


def calibrate(seconds: float, out: Path) -> str:
    from klineage.worker import effect, gpu_state, native_jobs, triton_gpu

    with tempfile.TemporaryDirectory() as folder:
        kernels = entries(Path(folder))
        lines = [
            f"{'kernel':<7}{'planted':>8}{'runs':>6}{'floor 2 %':>30}{'floor 1 %':>30}{'measured':>10}{'±':>8}  timer"
        ]
        records = []
        for shape, (n, iterations) in SHAPES.items():
            sets = buffer_sets(n, iterations)
            answers: dict[int, list[dict[str, Any]]] = {plant: [] for plant in PLANTS}
            end = time.perf_counter() + seconds / len(SHAPES)
            while time.perf_counter() < end:
                for plant in random.sample((*PLANTS, 0), len(PLANTS) + 1):  # A/A twice as often
                    raw = triton_gpu.measure(kernels[plant], kernels[-1], sets, ROUNDS)
                    answers[plant].append(raw)
            for plant in PLANTS:
                lines.append(_line(shape, plant, answers[plant], native_jobs.settle, effect.GPU_FLOOR))
                records += [{"shape": shape, "plant": plant, **raw} for raw in answers[plant]]
            told = answers[0][-1].get("clocks") or {}
            lines.append(
                f"        {told.get('sm_mhz', '?')} MHz at the end; {gpu_state.changed(told) or 'steady'}"
            )
    (out / "calibration.json").write_text(json.dumps(records), encoding="utf-8")
    return "\n".join(lines)


def _line(shape: str, plant: int, raws: list[dict[str, Any]], settle: Any, floor: float) -> str:
    told = []
    for least in (floor, floor / 2):
        words = Counter(str(settle(raw, least).get("effect", "noisy")) for raw in raws)
        told.append(" ".join(f"{word} {count}" for word, count in words.most_common()))
    settled = [answer for raw in raws if "ratio" in (answer := settle(raw, floor))]
    ratio = statistics.median(a["ratio"] for a in settled) if settled else float("nan")
    width = statistics.median(a["high"] / a["ratio"] - 1 for a in settled) if settled else float("nan")
    timers = ", ".join(sorted({raw["timer"] for raw in raws}))
    note = next((raw["timer_note"] for raw in raws if raw.get("timer_note")), "")
    name = f"{plant / 10:.1f} %" if plant else "A/A"
    return (
        f"{shape:<7}{name:>8}{len(raws):>6}{told[0]:>30}{told[1]:>30}{ratio:>9.4f}x{width:>8.2%}"
        f"  {timers} {note}".rstrip()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=55.0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        text = calibrate(arguments.seconds, arguments.out)
    except Exception:
        text = traceback.format_exc()
    (arguments.out / "calibration.txt").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
