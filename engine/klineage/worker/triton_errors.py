"""Turn what a Triton kernel file raises into faults that name its own lines."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from klineage.worker.faults import KernelFault, Unsupported
from klineage.worker.gpu_errors import BY_KERNEL, number_of

_REMOVED = re.compile(r"Block pointers have been removed|has no attribute '(make_block_ptr|advance)'")


@contextlib.contextmanager
def translated(path: str, reason: str) -> Iterator[None]:
    """Turn whatever the kernel file raises into a KernelFault that names its line."""
    try:
        yield
    except KernelFault:
        raise
    except GeneratorExit:
        raise
    except BaseException as error:
        chain = list(_causes(error))
        fault = next((e for e in chain if isinstance(e, KernelFault)), None)
        if fault is not None:
            raise fault from None
        raise _fault(chain, path, reason) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _fault(chain: list[BaseException], path: str, reason: str) -> KernelFault:
    root = chain[-1]
    line = next((n for n in (_line(e, path) for e in reversed(chain)) if n), 0)
    if any(_REMOVED.search(str(e)) for e in chain):
        version = sys.modules["triton"].__version__
        message = f"line {line}: block pointers are gone from Triton {version}; version 3.8 has them"
        return Unsupported("triton_version", message, line=line)
    kind, number = type(root).__name__, number_of(root)
    names = {type(e).__name__ for e in chain}
    if "CompilationError" in names or "CompileTimeAssertionFailure" in names:
        return _compile_fault(chain, path)
    if "OutOfResources" in names:
        reason = "out_of_resources"
    elif "InterpreterError" in names:
        reason = "kernel_raised"
    elif number is not None:
        reason = BY_KERNEL[number][0]
    words = str(root).split("\n", 1)[0] if str(root).startswith("CUDA error") else str(root)
    text = " ".join(words.split())[:400]
    place = f"line {line}: " if line else ""
    return KernelFault(reason, f"{place}{kind}: {text}" if text else f"{place}{kind}", line=line)


def _compile_fault(chain: list[BaseException], path: str) -> KernelFault:
    """The innermost error of Triton's front end; its line counts from the function's ``def``."""
    error = next(e for e in reversed(chain) if hasattr(e, "node"))
    line = int(getattr(getattr(error, "node", None), "lineno", 0) or 0)
    source = getattr(error, "src", None)
    start = _definition_line(path, source) if isinstance(source, str) else 0
    if start:
        line += start - 1
    root = chain[-1]
    message = getattr(error, "error_message", None) if root is error else f"{type(root).__name__}: {root}"
    first = next((text.strip() for text in str(message or error).splitlines() if text.strip()), "")
    return KernelFault("compile_error", f"line {line}: {first[:400]}", line=line)


def _definition_line(path: str, source: str) -> int:
    """Where in the file the text of a jit function starts; 0 when it is not of this file."""
    first = source.split("\n", 1)[0].strip()
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return next((number for number, text in enumerate(lines, 1) if first and text.strip() == first), 0)


def _line(error: BaseException, path: str) -> int:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
