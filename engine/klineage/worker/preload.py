"""What a server imports once, for all of its children, and how it does that in the least time.

A cold gate waits for this above all: importing torch takes one to three seconds. So what needs no Python goes on beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import os
import platform
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from klineage.worker import device
from klineage.worker.faults import WorkerError

_KEY_MODULES = ("triton.runtime.cache", "triton.compiler.compiler")  # triton_key has moved between versions


def preload(kind: str) -> dict[str, str]:
    """Import what the kind's children will need. Returns versions; a missing package has none.

    This process has one thread again afterwards: it is about to be forked.
    Raises WorkerError("broken_package") when one that is installed cannot be imported; some threads may run then.
    """
    os.environ.setdefault(
        "TORCH_DEVICE_BACKEND_AUTOLOAD", "0"
    )  # else torch looks through every installed package
    beside: list[threading.Thread] = []
    gc.disable()  # nothing of what is imported is garbage, and a collection would look at all of it again and again
    try:
        versions = {"python": platform.python_version(), **_packages(kind, beside)}
        if {"torch", "triton"} <= set(versions):
            _late_modules(kind)
        for thread in beside:
            thread.join()
    finally:
        gc.enable()
    return versions


def _packages(kind: str, beside: list[threading.Thread]) -> dict[str, str]:
    """The packages, triton before torch: it needs none, and its hash is then made while torch is imported."""
    if kind != "native":
        _begin(beside, _open_libraries)
    if kind == "gpu":
        _begin(beside, device.identity)
    versions = version("numpy")
    importlib.import_module("numpy.random")
    if kind == "native":
        return versions
    versions |= version("triton")
    if "triton" in versions and kind != "interpreter":
        _begin(beside, _hash_triton)
    return versions | version("torch")


def version(name: str) -> dict[str, str]:
    """Import a package: its version by its name, or nothing when it is not installed.

    Raises WorkerError("broken_package") when it is, and cannot be imported.
    """
    try:
        return {name: str(getattr(importlib.import_module(name), "__version__", "unknown"))}
    except (Exception, SystemExit) as error:  # a broken package raises anything
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            return {}
        traceback.print_exc()  # in the log, then
        said = (str(error).strip().splitlines() or [""])[0][:300]
        text = f"{name} is installed for {sys.executable} but cannot be imported ({type(error).__name__}: {said}); install it anew"
        raise WorkerError("broken_package", text) from error


def _begin(beside: list[threading.Thread], work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    beside.append(thread)


def _open_libraries() -> None:
    """Let the linker take in torch's libraries, a third of torch's import, while Python reads modules."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return
    folder = Path(found.origin).parent / "lib"
    with contextlib.suppress(OSError):  # torch's own import says what is wrong with them
        ctypes.CDLL(str(folder / "libtorch_global_deps.so"), mode=ctypes.RTLD_GLOBAL)
        whole = folder / "libtorch_cuda.so"
        ctypes.CDLL(str(whole if whole.exists() else folder / "libtorch_cpu.so"))


def _hash_triton() -> None:
    """Every compile asks for this hash over triton's own files; it is kept."""
    for name in _KEY_MODULES:
        key = getattr(importlib.import_module(name), "triton_key", None)
        if key is not None:
            key()


def _late_modules(kind: str) -> None:
    """What every child would otherwise do again: late imports and patches."""
    if kind == "interpreter":
        importlib.import_module("klineage.worker.triton_interpreter").install()
    importlib.import_module("triton.experimental.gluon")
    importlib.import_module("klineage.worker.triton_load")
    if kind == "interpreter":
        return
    importlib.import_module(
        "klineage.worker.triton_compile" if kind == "compiler" else "klineage.worker.triton_gpu"
    )
