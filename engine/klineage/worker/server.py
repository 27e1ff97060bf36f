"""A preloaded parent: it imports, forks and reports. It never runs a kernel, a workload or a torch operation.

One JSON object a line. In: ``{"id", "op", ...}``, ``{"cancel": id}``; the end of input ends everything.
Out: a hello with versions (or ``{"refused", "summary"}``, and the end), then ``{"id", "progress"}`` lines and one
``{"id", "result"}`` a request.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import gc
import importlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from klineage.worker import device, limits, starting
from klineage.worker.correctness import correctness
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.home import open_cache
from klineage.worker.jobs import Context, Result, single, verdict
from klineage.worker.preload import preload
from klineage.worker.process import fault_record
from klineage.worker.spares import Spares
from klineage.worker.watch import Cancelled, Closed, Control

PROTOCOL = 1
MOST_SPARES = 6  # those of two gates
_MIB_FOR_A_SPARE = 10_000  # of the device's memory; a spare takes half of a thousand
_IMPORTS_TORCH = re.compile(rb"^(import|from) torch\b", re.MULTILINE)
_JUDGES = "correctness"  # with two children; its gate will time with a third
_MEASURES = ("time_triton", "time_cuda", "count_gpu")  # jobs that want the device for themselves


def _operations(kind: str) -> dict[str, Callable[[dict[str, Any], Context], Result]]:
    from klineage.worker import oracle

    table: dict[str, Callable[[dict[str, Any], Context], Result]] = {
        "oracle": oracle.self_test,
        "correctness": correctness,
        "layers": _layers,
        "machine": _machine,
    }
    if kind == "native":
        from klineage.worker import c_harness, cuda_jobs, native_jobs, triton_ahead

        table.update(compile_cuda=cuda_jobs.compile_cuda)
        table.update(compile_c=native_jobs.compile_c, time_c=native_jobs.time_c)
        table.update(sanitize_c=c_harness.sanitize_c, count_c=c_harness.count_c)
        table.update(compile_ahead=triton_ahead.compile_ahead)
    else:
        from klineage.worker import cuda_jobs, gpu_tools, triton_jobs

        table.update(
            time_cuda=cuda_jobs.time_cuda,
            compile_triton=triton_jobs.compile_triton,
            count=triton_jobs.count,
            time_triton=triton_jobs.time_triton,
        )
        table.update(sanitize_gpu=gpu_tools.sanitize_gpu, count_gpu=gpu_tools.count_gpu)
        table["device"] = triton_jobs.device
        table["health"] = _health
    return table


def _machine(request: dict[str, Any], context: Context) -> Result:
    """What this machine is: what klineage.platform.detect finds, as data."""
    from klineage.platform import detect

    return verdict("pass", "ok", "", machine=dataclasses.asdict(detect()))


def _health(request: dict[str, Any], context: Context) -> Result:
    """In a process of its own; spares that were open when the device erred are not to be trusted either."""
    if context.spares is not None:
        context.spares.close()
    return single(context, device.health, 60, "while the device was checked")


def _layers(request: dict[str, Any], context: Context) -> Result:
    from klineage.worker import selftest

    return selftest.layers(context)


def _preload_torch(request: dict[str, Any]) -> None:
    """Import torch here, once, when the workload does so itself: each of its children would take a second."""
    workload = request.get("workload")
    if "torch" in sys.modules or not isinstance(workload, dict):
        return
    with contextlib.suppress(ImportError, ValueError):  # the child says what is wrong
        if _IMPORTS_TORCH.search(base64.b64decode(str(workload.get("source", "")))):
            importlib.import_module("torch")
            gc.freeze()


def run_once(request: dict[str, Any], kind: str) -> Result:
    """One request in this process's own server, without a control line. Raises WorkerError where it cannot run."""
    _prepare(kind)
    context = Context(kind, Control(None), None, lambda _: None)
    return _answer(request, context, _operations(kind))


def _answer(request: dict[str, Any], context: Context, operations: dict[str, Any]) -> Result:
    begin = time.monotonic()
    operation = operations.get(str(request.get("op")))
    if operation is None:
        return verdict("error", "protocol", f"the {context.kind} worker does not know {request.get('op')!r}")
    scratch = ""
    try:
        scratch = tempfile.mkdtemp(prefix="klineage-")
        os.environ["KLINEAGE_SCRATCH"] = scratch
        os.chdir(scratch)
        if request.get("cache") == "":  # what is built is kept as long as this server
            request = {**request, "cache": str(Path(tempfile.gettempdir()) / "built")}
        _preload_torch(request)
        with _reserved(context, request), open_cache(request.get("cache")):
            result: Result = operation(request, context)
    except KernelFault as fault:
        result = fault_record(fault)
    except Cancelled:
        result = verdict("cancelled", "cancelled", "cancelled")
    except OSError as error:
        result = verdict(
            "error", "system", f"the machine refused: {error}; free disk space or processes, and gate again"
        )
    except Closed:
        raise
    except Exception as error:  # a request that is not one, say: the server outlives it, and says what it was
        log = traceback.format_exc()
        result = verdict(
            "error", "worker", f"the worker failed with {type(error).__name__}: {error}", log=log
        )
    finally:
        os.chdir("/")
        shutil.rmtree(scratch, ignore_errors=True)
    return {**result, "seconds": time.monotonic() - begin}


@contextlib.contextmanager
def _reserved(context: Context, request: dict[str, Any]) -> Iterator[None]:
    """A GPU is for one job at a time, whoever asks; jobs that measure nothing may share it where they are told to."""
    measures, spares = request.get("op") in _MEASURES, context.spares
    if spares is not None:
        if measures:
            spares.settle(lambda: context.control.poll(context.job))
        spares.give_way()
    shared = not measures and bool((request.get("limits") or {}).get("share_device"))
    device_ = (
        device.reserved(device.identity(), context.control, context.job, context.progress, shared)
        if context.kind == "gpu"
        else contextlib.nullcontext()
    )
    try:
        with device_:
            if spares is not None and request.get("op") == _JUDGES:
                spares.stock()
            yield
    finally:
        if spares is not None:
            spares.keep()


def spares_of(kind: str, versions: dict[str, str]) -> Spares | None:
    """Waiting children, for the kind whose children take long to start."""
    if kind != "gpu" or "torch" not in versions:
        return None
    most = min(MOST_SPARES, device.memory_mib() // _MIB_FOR_A_SPARE)
    return Spares(most, device.open_torch, lambda: device.try_share(device.identity()))


def _prepare(kind: str) -> dict[str, str]:
    if kind == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"
    limits.adopt_orphans()
    limits.prepare()
    versions = preload(kind)
    gc.freeze()  # a collection in a child would copy every page that it shares with this process
    return versions


def serve(kind: str, source: str = "", idle_seconds: float | None = None) -> None:
    """Answer requests until stdin ends, or nothing was asked for ``idle_seconds``. ``source``: this program's hash."""
    # The protocol gets descriptors of its own: a stray print of an imported package must not reach it.
    reader, writer = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    control = Control(reader)

    def emit(**message: Any) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(writer, data) :]

    home, spares = "", None
    try:
        home = starting.begin()
        versions = _prepare(kind)
        starting.end()
        emit(hello=PROTOCOL, kind=kind, pid=os.getpid(), versions=versions, home=home, source=source)
        spares = spares_of(kind, versions)
        _serve(kind, control, emit, idle_seconds, spares)
    except WorkerError as refusal:
        emit(refused=refusal.reason, summary=str(refusal))
    except (Closed, BrokenPipeError, SystemExit):
        pass
    finally:
        if spares is not None:
            spares.close()
        os.chdir("/")
        shutil.rmtree(home, ignore_errors=True)


def _serve(
    kind: str,
    control: Control,
    emit: Callable[..., None],
    idle_seconds: float | None,
    spares: Spares | None,
) -> None:
    operations = _operations(kind)
    while _asked(control, idle_seconds, spares):
        request = control.waiting.pop(0)
        job = request.get("id")
        context = Context(kind, control, job, lambda p, job=job: emit(id=job, progress=p), spares)  # type: ignore[misc]
        emit(id=job, result=_answer(request, context, operations))
        if spares is not None:
            spares.rested()


def _asked(control: Control, idle_seconds: float | None, spares: Spares | None) -> bool:
    """Wait for a request, and look after the spares. Whether one came within ``idle_seconds``."""
    begin = time.monotonic()
    while not control.waiting:
        left = None if idle_seconds is None else begin + idle_seconds - time.monotonic()
        look = spares.tend() if spares is not None else None
        if control.wait(min((s for s in (left, look) if s is not None), default=None)):
            control.pump()
        elif left is not None and left <= 0:
            return False
    return True
