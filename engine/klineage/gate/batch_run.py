"""What a batch file does on the machine that it was carried to: gate its jobs, and print one result a line."""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.executor.local import LocalExecutor
from klineage.gate import prepared
from klineage.gate.request import GateEvent, GateRequest
from klineage.gate.run import gate
from klineage.gate.verdict import StageResult, Verdict
from klineage.kernel import Kernel
from klineage.workload import parse


def main(jobs: Sequence[str], program: str, file: str) -> int:
    """Gate every job of the batch in ``file``. Results go to stdout as they come, what happens to stderr."""
    parser = argparse.ArgumentParser(
        description="Gate kernels on this machine: python3 FILE > RESULTS. Carry RESULTS back to: klineage gate-batch import RESULTS"
    )
    parser.add_argument("--list", action="store_true", help="say what is in here, and run nothing")
    parser.add_argument("--only", metavar="N", type=int, help="gate only the job with this number")
    arguments = parser.parse_args()
    listed = list(enumerate((json.loads(text) for text in jobs), 1))
    if arguments.list:
        for number, job in listed:
            print(
                f"{number:>3}  {job['label']}  for {job['bound']['platform']}, kernel {job['bound']['kernel'][:12]}"
            )
        return 0
    chosen = [(n, job) for n, job in listed if arguments.only in (None, n)]
    with tempfile.TemporaryDirectory(prefix="klineage-batch-") as folder:
        os.environ["KLINEAGE_CACHE"] = folder
        workers = LocalExecutor(command=(sys.executable, str(Path(file).resolve())))
        try:
            results = [_run(job, f"{number} of {len(listed)}", workers, program) for number, job in chosen]
        finally:
            workers.close()
    return 0 if all(results) else 1


def _run(job: dict[str, Any], place: str, workers: LocalExecutor, program: str) -> bool:
    """Gate one job and print its result. Whether it was gated, whatever the verdict."""
    _say(f"[{place}] {job['label']}")
    head = {
        "klineage-batch": 1,
        "label": job["label"],
        "bound": job["bound"],
        "token": job["token"],
        "program": program,
    }
    try:
        request = _request(job)
    except (KlineageError, LookupError, ValueError, TypeError, AttributeError) as error:
        print(json.dumps({**head, "refused": str(error)}), flush=True)
        _say(f"    not gated: {error}")
        return False
    try:
        found = gate(request, _progress, fresh=True, keep=False, executor=workers)
    except Exception as defect:  # the jobs after it are not its fault
        traceback.print_exc()
        print(
            json.dumps({**head, "refused": f"a defect of klineage: {type(defect).__name__}: {defect}"}),
            flush=True,
        )
        return False
    report = json.loads(json.dumps(_plain(asdict(found)), allow_nan=False))
    from klineage.gate.batch import seal

    print(
        json.dumps({**head, "report": report, "seal": seal(job["token"], report)}, sort_keys=True), flush=True
    )
    _say(f"    {found.verdict.upper()}  {found.why}")
    return True


def _request(job: dict[str, Any]) -> GateRequest:
    """The gate that a job asks for. Raises KlineageError when it is not what the job is bound to."""
    bound, carried = job["bound"], job["workload"]
    workload = parse(base64.b64decode(carried["source"]), name=carried["name"], path=Path(carried["path"]))
    kernels = [_kernel(told) for told in job["kernels"]]
    baseline = kernels[1] if len(kernels) > 1 else None
    found = (kernels[0].hash, baseline.hash if baseline else None, workload.hash)
    if found != (bound["kernel"], bound["baseline"], bound["workload"]):
        raise KlineageError("its kernel or workload was edited after the export; export the batch again")
    return GateRequest(kernels[0], workload, bound["platform"], baseline, phase=bound["phase"])


def _kernel(told: dict[str, Any]) -> Kernel:
    kernel = Kernel(
        told["surface"],
        told["filename"],
        told["entry"],
        base64.b64decode(told["source"]),
        tuple((str(name), value) for name, value in told["config"]),
        tuple(told["flags"]),
    )
    static = StageResult(**{**told["static"], "verdict": Verdict(told["static"]["verdict"])})
    prepared.put(kernel.hash, prepared.Prepared(static, told["job"]))
    return kernel


def _plain(value: Any) -> Any:
    """JSON as the report format has it: words as text, and no number that JSON lacks."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return str(value) if isinstance(value, str) else value


def _progress(event: GateEvent) -> None:
    if event.state == "done" and event.result is not None:
        _say(f"    {event.stage:<12} {event.result.verdict.upper():<12} {event.result.summary}")


def _say(text: str) -> None:
    """A line for the person who waits; text of kernels and compilers is made visible."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    print(shown, file=sys.stderr, flush=True)
