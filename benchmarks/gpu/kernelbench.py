"""KernelBench's evaluator, as its users run it, beside ``klineage gate``, on the same kernels and machine.

    PYTHONPATH=.:engine python benchmarks/gpu/kernelbench.py --kernelbench CHECKOUT --out DIR

Carry: this repository's ``benchmarks``, ``engine``, ``experts``, ``tests/gauntlet`` and ``tests/jury``; a CHECKOUT of
ScalingIntelligence/KernelBench at 423217d, of which only ``src/kernelbench`` is used; and, where they are missing, on
PYTHONPATH, ``pip install --target FOLDER --no-deps tree-sitter==0.25.2 tree-sitter-python==0.25.0 msgspec platformdirs``
(with ``--python-version 3.12 --only-binary=:all:`` for that Python). Needed there: Python 3.11 or newer, numpy, torch,
triton. Packages that KernelBench imports but does not use here (clients of language models) get empty stand-ins where
they are missing, which makes its start faster than its users see. Allow 15 s a candidate; ``--seconds`` says after how
many no further one begins (default 240).

Every candidate goes to KernelBench in a fresh process with the defaults of its ``scripts/run_and_check.py``: its static
check of the source, then ``eval_kernel_against_ref`` with 5 trials of correctness and 100 of performance, by events; the
two further timings of the reference that the script makes are left out. A result that it flags as too fast to be true
counts as refused. The same candidate then goes to a warm klineage gate, which has seen another kernel before.
Prints a table last, and writes it with every answer to DIR.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GAUNTLET = ROOT / "tests" / "gauntlet"
SECONDS = 240.0  # no further candidate begins after this
LONGEST = 90.0  # one candidate in KernelBench
WARM_UP = "tests/jury/honest/triton/rows_plain.py", "rows"
TRIALS = {"num_correct_trials": 5, "num_perf_trials": 100}

#: (kernel file, workload, honest). Those that tell most come first.
CASES: tuple[tuple[str, str, bool], ...] = (
    ("experts/gemm/triton/kernel.py", "experts/gemm", True),
    ("tests/gauntlet/cheats/triton/vendor_ops.py", "product", False),
    ("tests/gauntlet/cheats/triton/uninitialised.py", "rows", False),
    ("tests/gauntlet/cheats/triton/mean_is_zero.py", "mean", False),
    ("tests/gauntlet/cheats/triton/cached_by_shape.py", "rows", False),
    ("tests/gauntlet/cheats/triton/other_stream.py", "product", False),
    ("tests/gauntlet/cheats/triton/norm_is_one.py", "normalize", False),
    ("tests/gauntlet/cheats/triton/fallback.py", "product", False),
    ("tests/gauntlet/cheats/triton/zeros.py", "rows", False),
    ("tests/jury/honest/triton/normalize_bf16.py", "normalize", True),
    ("tests/jury/honest/triton/rows_persistent.py", "rows", True),
)

_PROBLEM = """import importlib.util
import torch
import torch.nn as nn

_spec = importlib.util.spec_from_file_location("workload", {path!r})
workload = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(workload)
DIMS, DTYPE = {dims!r}, torch.{dtype}
SCALARS = dict(getattr(workload, "SCALARS", {{}}))


class Rng:
    normal = staticmethod(torch.randn)
    uniform = staticmethod(torch.rand)
    integers = staticmethod(lambda low, high, *shape: torch.randint(low, high, shape))
    array = staticmethod(torch.as_tensor)


NAMES = [name for name in workload.tensors("", **DIMS) if name not in workload.OUTPUTS]


def get_inputs():
    drawn = workload.inputs(Rng(), **DIMS)
    return [drawn[name] for name in NAMES]


def get_init_inputs():
    return []
"""

_REFERENCE = """

class Model(nn.Module):
    def forward(self, *inputs):
        import inspect
        offered = {**SCALARS, **DIMS, **dict(zip(NAMES, inputs)), "xp": torch}
        wanted = inspect.signature(workload.reference).parameters
        return workload.reference(**{n: offered[n] for n in wanted})[workload.OUTPUTS[0]].to(inputs[0].dtype)
"""

_SOLUTION = """

import inspect as _inspect


class ModelNew(nn.Module):
    def forward(self, *inputs):
        tensors = workload.tensors("", **DIMS)
        wanted = _inspect.signature({entry}).parameters
        offered = {{**SCALARS, **DIMS, **dict(zip(NAMES, inputs))}}
        for name in workload.OUTPUTS:
            if name in wanted:
                offered[name] = torch.empty(tensors[name][1], dtype=inputs[0].dtype, device=inputs[0].device)
        returned = {entry}(**{{n: offered[n] for n in wanted}})
        if returned is None:
            return offered[workload.OUTPUTS[0]]
        return returned[0] if isinstance(returned, (tuple, list)) else returned
"""


_SILENT = ("not run", "no answer", "broke")  # what is no verdict, and counts for nobody


@dataclass
class Row:
    """What both said of one kernel."""

    name: str
    honest: bool
    theirs: str = "not run"
    their_seconds: float = 0.0
    ours: str = "not run"
    our_seconds: float = 0.0
    answers: dict[str, Any] = field(default_factory=dict)

    @property
    def theirs_right(self) -> bool:
        return self.theirs.startswith("correct") == self.honest

    @property
    def complete(self) -> bool:
        """Whether both gave a verdict."""
        return not self.theirs.startswith(_SILENT) and not self.ours.startswith(_SILENT)

    @property
    def ours_right(self) -> bool:
        return self.ours.startswith("pass" if self.honest else ("fail", "timeout"))


def pair(kernel: Path, entry: str, workload: Any, element: str) -> tuple[str, str]:
    """A klineage kernel and its workload as KernelBench's two files."""
    dtype = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}[element]
    size = "paper" if "paper" in workload.sizes else "bench"
    head = _PROBLEM.format(path=str(workload.path), dims=dict(workload.sizes[size]), dtype=dtype)
    source = kernel.read_text(encoding="utf-8")
    return head + _REFERENCE, source + "\n" + head + _SOLUTION.format(entry=entry)


def stand_ins(folder: Path) -> list[str]:
    """Empty modules for packages that KernelBench imports and that are missing here. Returns their names."""
    texts = {
        "requests": "", "tomli": "from tomllib import *\n", "tqdm": "def tqdm(x, **k):\n    return x\n",
        "dotenv": "def load_dotenv(*a, **k): pass\n", "openai": "class OpenAI: pass\n",
        "litellm": "def completion(*a, **k): pass\n",
        "pydantic": (
            "class BaseModel:\n    def __init__(self, **k):\n"
            "        names = type(self).__annotations__\n"
            "        for n in names:\n"
            "            v = getattr(type(self), n, None)\n"
            "            setattr(self, n, k.get(n, dict(v) if isinstance(v, dict) else v))\n"
        ),
    }  # fmt: skip
    missing = [name for name in texts if importlib.util.find_spec(name) is None]
    folder.mkdir(parents=True, exist_ok=True)
    for name in missing:
        (folder / f"{name}.py").write_text(texts[name], encoding="utf-8")
    return missing


def evaluate(reference: str, solution: str, element: str) -> None:
    """Body of the fresh process: KernelBench's evaluator, its answer as the last line of stdout."""
    from kernelbench import eval as theirs  # type: ignore[import-not-found]
    from kernelbench.kernel_static_checker import validate_kernel_static  # type: ignore[import-not-found]

    text = Path(solution).read_text(encoding="utf-8")
    valid, errors, _ = validate_kernel_static(text, backend="triton", precision=element)
    if not valid:
        print("\n" + json.dumps({"refused": errors}), flush=True)
        return
    result = theirs.eval_kernel_against_ref(
        Path(reference).read_text(encoding="utf-8"),
        text,
        measure_performance=True,
        backend="triton",
        precision=theirs.get_torch_dtype_from_string(element),
        **TRIALS,
    )
    names = ("compiled", "correctness", "runtime", "ref_runtime", "metadata")
    print("\n" + json.dumps({name: getattr(result, name, None) for name in names}, default=str), flush=True)


def theirs(row: Row, reference: str, solution: str, element: str, checkout: Path, out: Path) -> None:
    """Run KernelBench on one candidate."""
    folder = out / "kernelbench" / row.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(reference, encoding="utf-8")
    (folder / "model_new.py").write_text(solution, encoding="utf-8")
    paths = [str(checkout / "src"), str(out / "stand-ins"), os.environ.get("PYTHONPATH", "")]
    command = [
        sys.executable,
        "-P",  # else this file, by its name, would hide the package
        __file__,
        "--one",
        str(folder / "model.py"),
        str(folder / "model_new.py"),
        element,
    ]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths), "TRITON_CACHE_DIR": str(folder / "triton")}
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        row.theirs = f"no answer within {LONGEST:g} s"
        return
    finally:
        row.their_seconds = time.perf_counter() - begin
    (folder / "log.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        row.theirs = f"no answer (exit {done.returncode}: {said[:60]})"
        return
    row.answers["kernelbench"] = answer
    row.theirs = their_words(answer)


def their_words(answer: dict[str, Any]) -> str:
    """What KernelBench's answer says to its user, in short."""
    if answer.get("refused"):
        return "refused by its static check"
    if not answer["compiled"]:
        return "does not compile"
    if not answer["correctness"]:
        return "wrong"
    if answer["runtime"] <= 0:
        return "correct, not timed"
    ratio = answer["ref_runtime"] / answer["runtime"]
    if (answer["metadata"] or {}).get("excessive_speedup"):
        return f"flagged: {ratio:.1f}x its reference"
    return f"correct, {ratio:.2f}x its reference"


def ours(row: Row, request: Any, executor: Any) -> None:
    """Gate the candidate; the workers are warm, the bytes are new to them."""
    from klineage.gate import Verdict, gate, report_to_json

    begin = time.perf_counter()
    report = gate(request, fresh=True, executor=executor)
    row.our_seconds = time.perf_counter() - begin
    row.answers["klineage"] = json.loads(report_to_json(report))
    decided = next((s for s in report.stages if s.verdict is not Verdict.PASS), report.stages[-1])
    bad = decided.verdict not in (Verdict.PASS, Verdict.NOISY)
    row.ours = f"{decided.verdict} {decided.stage} {decided.reason}" if bad else f"pass, {report.trust}"


def request_of(name: str, where: str, honest: bool, platform: str) -> Any:
    """A gate of one candidate; an honest one is timed against itself."""
    from klineage.gate import GateRequest
    from klineage.walk.reading import read_kernel
    from klineage.workload import load

    path = ROOT / name
    workload = load(ROOT / where if "/" in where else GAUNTLET / "workloads" / where)
    entry = None if path.stem == "kernel" else "entry"
    kernel = read_kernel(path, workload, surface="triton", entry=entry)
    return GateRequest(kernel, workload, platform, baseline=kernel if honest else None)


def run(checkout: Path | None, out: Path, seconds: float) -> list[Row]:
    from klineage.executor import LocalExecutor
    from klineage.gate import gate
    from klineage.platform import detect

    missing = stand_ins(out / "stand-ins")
    print("stand-ins for KernelBench's imports:", ", ".join(missing) or "none", flush=True)
    gpu = detect().gpu
    platform = gpu.platform if gpu else "nvidia-sm90"
    executor = LocalExecutor()
    begin, rows = time.perf_counter(), []
    try:
        warm = gate(request_of(*WARM_UP, True, platform), fresh=True, executor=executor)
        print(f"warm after {time.perf_counter() - begin:.1f} s: {warm.verdict}, {warm.why}", flush=True)
        for name, where, honest in CASES:
            path = ROOT / name
            if time.perf_counter() - begin > seconds:
                break
            expert = path.stem == "kernel"
            row = Row(path.parts[-3] if expert else path.stem, honest)
            rows.append(row)
            try:
                request = request_of(name, where, honest, platform)
                ours(row, request, executor)
                if checkout is not None:
                    element = request.workload.element["triton"]
                    files = pair(path, request.kernel.entry, request.workload, element)
                    theirs(row, *files, element, checkout, out)
            except Exception as error:
                traceback.print_exc()
                if row.ours == "not run":
                    row.ours = f"broke: {error}"[:42]
                else:
                    row.theirs = f"broke: {error}"[:34]
            print(
                f"{row.name}: {row.theirs} ({row.their_seconds:.1f} s) | {row.ours} ({row.our_seconds:.1f} s)",
                flush=True,
            )
    finally:
        executor.close()
    return rows


def table(rows: list[Row]) -> str:
    """The comparison as text, the sums last."""
    lines = [f"{'kernel':<18} {'is':<7} {'KernelBench':<36} {'s':>6}   {'klineage':<44} {'s':>6}"]
    for row in rows:
        silent = not row.complete
        marks = ["" if right or silent else " !" for right in (row.theirs_right, row.ours_right)]
        lines.append(
            f"{row.name:<18} {'honest' if row.honest else 'cheat':<7} {row.theirs + marks[0]:<36} {row.their_seconds:>6.1f}"
            f"   {row.ours + marks[1]:<44} {row.our_seconds:>6.1f}"
        )
    both = [row for row in rows if row.complete]
    judged = both or [row for row in rows if not row.ours.startswith(_SILENT)]
    cheats, honest = [r for r in judged if not r.honest], [r for r in judged if r.honest]
    for label, right, seconds in (
        ("KernelBench", lambda r: r.theirs_right, lambda r: r.their_seconds),
        ("klineage", lambda r: r.ours_right, lambda r: r.our_seconds),
    ):
        if not both and label == "KernelBench":
            continue
        times = sorted(seconds(r) for r in judged)
        middle = times[len(times) // 2] if times else 0.0
        lines.append(
            f"{label}: {sum(map(right, cheats))} of {len(cheats)} cheats refused, "
            f"{sum(map(right, honest))} of {len(honest)} honest kernels accepted, median {middle:.1f} s a candidate"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, help="a checkout; without it only klineage runs")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="no further candidate begins after these"
    )
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "MODEL_NEW", "TYPE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        evaluate(*arguments.one)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkout = arguments.kernelbench.resolve() if arguments.kernelbench else None
    if checkout is not None and not (checkout / "src" / "kernelbench" / "eval.py").is_file():
        parser.error(f"{checkout} is no checkout of KernelBench: it has no src/kernelbench/eval.py")
    rows = run(checkout, arguments.out.resolve(), arguments.seconds)
    answers = {row.name: row.answers for row in rows}
    (arguments.out / "answers.json").write_text(json.dumps(answers, indent=1, default=str), encoding="utf-8")
    text = table(rows)
    (arguments.out / "table.txt").write_text(text + "\n", encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
