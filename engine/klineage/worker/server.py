"""A preloaded parent: it imports, forks and reports. It never runs a kernel, a workload or a torch operation.

One JSON object a line. In: ``{"id", "op", ...}``, ``{"cancel": id}``; the end of input ends everything.
Out: a hello with versions, then ``{"id", "progress"}`` lines and one ``{"id", "result"}`` a request.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import select
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from klineage.worker import limits
from klineage.worker.faults import KernelFault
from klineage.worker.jobs import Context, Correctness, Result, verdict
from klineage.worker.process import fault_record
from klineage.worker.watch import Cancelled, Closed, Control

PROTOCOL = 1
KINDS = ("native", "interpreter", "compiler", "gpu")


def _preload(kind: str) -> dict[str, str]:
    """Import what the kind's children will need. Returns versions; a missing package has none."""
    versions = {"python": platform.python_version()}
    wanted = ("numpy",) if kind == "native" else ("numpy", "torch", "triton")
    for name in wanted:
        try:
            versions[name] = str(getattr(importlib.import_module(name), "__version__", "unknown"))
        except ImportError:
            continue
    importlib.import_module("numpy.random")
    if {"torch", "triton"} <= set(versions):
        _preload_triton(kind)
    return versions


def _preload_triton(kind: str) -> None:
    """What every child would otherwise do again: late imports, patches, and hashing triton itself."""
    if kind == "interpreter":
        importlib.import_module("klineage.worker.triton_interpreter").install()
    importlib.import_module("triton.experimental.gluon")
    importlib.import_module("klineage.worker.triton_load")
    if kind == "interpreter":
        return
    importlib.import_module(
        "klineage.worker.triton_compile" if kind == "compiler" else "klineage.worker.triton_gpu"
    )
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):  # it has moved between versions
        key = getattr(importlib.import_module(name), "triton_key", None)
        if key is not None:
            key()


def _operations(kind: str) -> dict[str, Callable[[dict[str, Any], Context], Result]]:
    table: dict[str, Callable[[dict[str, Any], Context], Result]] = {
        "correctness": lambda request, context: Correctness(request, context).run(),
        "layers": _layers,
    }
    if kind == "native":
        from klineage.worker import native_jobs

        table.update(compile_c=native_jobs.compile_c, time_c=native_jobs.time_c)
    else:
        from klineage.worker import triton_jobs

        table.update(
            compile_triton=triton_jobs.compile_triton,
            count=triton_jobs.count,
            time_triton=triton_jobs.time_triton,
        )
        table["device"] = triton_jobs.device
    return table


def _layers(request: dict[str, Any], context: Context) -> Result:
    from klineage.worker import selftest

    return selftest.layers(context)


def run_once(request: dict[str, Any], kind: str) -> Result:
    """One request in this process's own server, without a control line."""
    _prepare(kind)
    context = Context(kind, Control(None), None, lambda _: None)
    return _answer(request, context, _operations(kind))


def _answer(request: dict[str, Any], context: Context, operations: dict[str, Any]) -> Result:
    begin = time.monotonic()
    operation = operations.get(str(request.get("op")))
    if operation is None:
        return verdict("error", "protocol", f"a {context.kind} worker does not know {request.get('op')!r}")
    scratch = ""
    try:
        scratch = tempfile.mkdtemp(prefix="klineage-")
        os.environ["KLINEAGE_SCRATCH"] = scratch
        os.chdir(scratch)
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


def _prepare(kind: str) -> dict[str, str]:
    if kind == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    limits.adopt_orphans()
    limits.prepare()
    versions = _preload(kind)
    gc.freeze()  # a collection in a child would copy every page that it shares with this process
    return versions


def serve(kind: str) -> None:
    """Answer requests until stdin ends."""
    # The protocol gets descriptors of its own: a stray print of an imported package must not reach it.
    reader, writer = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    control = Control(reader)

    def emit(**message: Any) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(writer, data) :]

    emit(hello=PROTOCOL, kind=kind, pid=os.getpid(), versions=_prepare(kind))
    operations = _operations(kind)
    try:
        while True:
            while not control.waiting:
                select.select([reader], [], [])
                control.pump()
            request = control.waiting.pop(0)
            job = request.get("id")
            context = Context(kind, control, job, lambda p, job=job: emit(id=job, progress=p))  # type: ignore[misc]
            emit(id=job, result=_answer(request, context, operations))
    except (Closed, BrokenPipeError):
        sys.exit(0)
