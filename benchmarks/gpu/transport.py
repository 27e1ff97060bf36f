"""Transport and isolation on a GPU host: every layer, the one-file worker, a host, a batch, a failing device, two apps.

``PYTHONPATH=.:engine python benchmarks/gpu/transport.py --out DIR`` takes about a minute, prints a table last, and
writes it to DIR/transport.txt. One row that fails does not stop the others. Without a GPU it runs all the same, in the
interpreter, which is how it is tested.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from klineage.executor import Executor, Host, HostExecutor, LocalExecutor
from klineage.executor.bundle import worker_source
from klineage.gate import POLICY, GateRequest, Policy, Report, Verdict, gate
from klineage.gate.batch import Item, export, read_results
from klineage.kernel import Kernel
from klineage.workload import load

ROOT = Path(__file__).resolve().parents[2]
KEY = bytes(32)
QUICK = Policy(run_seconds=8.0, most_profile_seconds=1.0)

# Workers whose walls are taken down one by one, to say which of them a driver runs into.
WITHOUT = """
import sys
from klineage.worker import landlock, namespaces, seccomp
for name in sys.argv.pop(1).split(","):
    if name == "files":
        landlock.restrict = lambda *a: False
    elif name == "namespaces":
        namespaces.enter = lambda **_: {"no_network": False, "no_privileges": False, "own_mounts": False}
    elif name == "calls":
        seccomp.install = lambda processes: False
from klineage.worker.__main__ import main
main(sys.argv[1:])
"""

SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift; shift
exec sh -c "$*"
"""

HANG = b"""
    while tl.load(y_ptr) != 12345.0:
        tl.store(y_ptr + 1, 1.0)
"""
WILD = b"""
    tl.store(y_ptr + (1 << 38) + tl.program_id(0), 1.0)
"""
TRITON = b"""import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, bias_ptr, y_ptr, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
%s
    x = tl.load(x_ptr + row * columns + at, mask=mask)
    bias = tl.load(bias_ptr + at, mask=mask)
    tl.store(y_ptr + row * columns + at, alpha * x + bias, mask=mask)


def rows(x, bias, y, rows, columns, alpha):
    rows_kernel[(rows,)](x, bias, y, columns, alpha, BLOCK=triton.next_power_of_2(columns))
"""

Row = tuple[str, str, float, str]
rows: list[Row] = []


def step(name: str, body: Callable[[], str]) -> None:
    """One row of the table."""
    begin = time.monotonic()
    try:
        state, text = "ok", body()
    except AssertionError as problem:
        state, text = "NO", str(problem) or traceback.format_exc(limit=-1).replace("\n", " ")
    except Exception:
        state, text = "NO", traceback.format_exc()[-1500:]
    rows.append((state, name, time.monotonic() - begin, text))
    print(f"{state}  {name}: {text}", flush=True)


def described(report: Report) -> str:
    stages = ", ".join(f"{s.stage} {s.verdict} {s.seconds:.2f} s" for s in report.stages)
    missing = ", ".join(sorted(name for name, held in report.layers.items() if not held)) or "none"
    return f"{report.verdict} ({report.trust}); {stages}; layers missing: {missing}; {report.why}"


def passed(report: Report) -> str:
    assert report.verdict is Verdict.PASS, (
        described(report) + "\n" + "\n".join(s.log[-800:] for s in report.stages)
    )
    return described(report)


def bad(body: bytes) -> Kernel:
    return Kernel("triton", "rows.py", "rows", TRITON.replace(b"%s", body.strip(b"\n")))


class Bench:
    """What the rows share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers = LocalExecutor()
        gpu = self.workers.machine().gpu
        self.platform = gpu.platform if gpu else "nvidia-sm90"
        self.gpu = gpu is not None
        gemm = load("gemm")
        source = ROOT / "experts/gemm/triton/kernel.py"
        from klineage.walk.reading import read_kernel

        self.request = GateRequest(read_kernel(source, gemm), gemm, self.platform)
        self.rows = load(ROOT / "tests/engine/gate")

    def gate(
        self, workers: Executor | None = None, request: GateRequest | None = None, policy: Policy = POLICY
    ) -> Report:
        return gate(
            request or self.request, fresh=True, keep=False, executor=workers or self.workers, policy=policy
        )

    def small(self, kernel: Kernel) -> GateRequest:
        return GateRequest(kernel, self.rows, self.platform)

    # -- rows ----------------------------------------------------------------------------------

    def layers(self) -> str:
        held = self.workers.submit("native", {"op": "layers"})["layers"]
        return ", ".join(f"{name}={'yes' if value else 'NO'}" for name, value in held.items())

    def which_wall(self) -> str:
        """Only where the confined gate failed: gate with fewer walls."""
        found = []
        for walls in ("files", "namespaces", "calls", "files,namespaces,calls"):
            workers = LocalExecutor(command=(sys.executable, "-c", WITHOUT, walls))
            try:
                found.append(f"without {walls}: {self.gate(workers).verdict}")
            finally:
                workers.close()
        return "; ".join(found)

    def one_file(self) -> str:
        program = self.folder / "worker.py"
        program.write_text(worker_source())
        workers = LocalExecutor(
            {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}, (sys.executable, str(program))
        )
        try:
            return passed(self.gate(workers))
        finally:
            workers.close()

    def over_ssh(self) -> str:
        program = self.folder / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(SSH)
        program.chmod(0o755)
        os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
        workers = HostExecutor(Host("me@gpu", sys.executable))
        try:
            return passed(self.gate(workers))
        finally:
            workers.close()

    def batch(self) -> str:
        file = self.folder / "batch.py"
        file.write_text(export([Item("gemm", self.request)], KEY))
        environment = {name: os.environ[name] for name in ("PATH", "HOME")}
        done = subprocess.run(
            [sys.executable, str(file)], capture_output=True, env=environment, timeout=120, check=False
        )
        results, refused = read_results(done.stdout, "results", KEY)
        assert len(results) == 1 and not refused, f"{refused} {done.stderr.decode()[-1500:]}"
        return passed(results[0].report)

    def device_error(self) -> str:
        report = self.gate(request=self.small(bad(WILD)), policy=QUICK)
        assert report.verdict is Verdict.FAIL, described(report)
        after = passed(self.gate(request=self.small(bad(b"")), policy=QUICK))
        return f"{report.why[:160]} -> next: {after[:80]}"

    def hang(self) -> str:
        report = self.gate(request=self.small(bad(HANG)), policy=QUICK)
        assert report.verdict in (Verdict.TIMEOUT, Verdict.FAIL), described(report)
        after = passed(self.gate(request=self.small(bad(b"")), policy=QUICK))
        return f"{report.verdict}: {report.why[:160]} -> next: {after[:80]}"

    def two_apps(self) -> str:
        """Two executors are two apps: their jobs take turns on the device."""
        other = LocalExecutor()
        reports: list[Report] = []
        request = self.small(bad(b""))
        try:
            jobs = [
                threading.Thread(target=lambda w=w: reports.append(self.gate(w, request, QUICK)))
                for w in (self.workers, other)
            ]
            for job in jobs:
                job.start()
            for job in jobs:
                job.join(90)
        finally:
            other.close()
        assert len(reports) == 2, "a gate did not end"
        return " | ".join(passed(report)[:120] for report in reports)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path())
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="transport-") as name:
        os.environ["KLINEAGE_CACHE"] = str(Path(name) / "cache")
        bench = Bench(Path(name))
        step("layers of a confined child", bench.layers)
        step("gemm, cold", lambda: passed(bench.gate()))
        if rows[-1][0] == "NO":
            step("which wall it ran into", bench.which_wall)
        step("gemm, warm", lambda: passed(bench.gate()))
        step("gemm by the one-file worker", bench.one_file)
        step("gemm on a host over ssh's pipes", bench.over_ssh)
        step("gemm by a batch file", bench.batch)
        step("a wild store, then a good kernel", bench.device_error)
        if bench.gpu:  # the interpreter's loop is the same, and slow
            step("a kernel that hangs, then a good one", bench.hang)
        step("two apps on one device", bench.two_apps)
        machine = bench.workers.machine()
        versions = bench.workers.versions("native")
        bench.workers.close()
    left = [p.name for p in Path(tempfile.gettempdir()).glob("klineage-server-*")]
    head = (
        f"transport: {time.strftime('%Y-%m-%d', time.gmtime())}, {machine.gpu.name if machine.gpu else 'no GPU'}, "
        f"{platform.platform()}, Python {versions.get('python')}, {machine.packages}; server folders now: {len(left)}"
    )
    table = "\n".join(
        [head, "", *(f"{state:<3} {seconds:6.1f} s  {name}: {text}" for state, name, seconds, text in rows)]
    )
    print("\n" + table)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "transport.txt").write_text(table + "\n", encoding="utf-8")
    return 1 if any(row[0] == "NO" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
