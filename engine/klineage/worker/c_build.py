"""Compile a C kernel into a shared object, once: the result is content-addressed in a cache folder."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from klineage.worker import c_inspect
from klineage.worker.builds import kept
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.home import building
from klineage.worker.process import MEMORY_EXIT

DEFAULT_FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fno-math-errno")
_FIXED = ("-fPIC", "-fno-lto", "-fvisibility=default", "-fdiagnostics-color=never")
_LINK = ("-shared", "-nostartfiles")
_WRAPPED = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign")

# A refused allocation ends the process with a status of its own, so that the verdict says "memory"
# and not "crashed": most kernels do not look at what malloc returned.
_SHIM = f"""
#include <stdlib.h>
#include <unistd.h>
static void *checked(void *p, size_t n) {{ if (!p && n) _exit({MEMORY_EXIT}); return p; }}
void *__real_malloc(size_t); void *__real_calloc(size_t, size_t); void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t); int __real_posix_memalign(void **, size_t, size_t);
#define OWN __attribute__((visibility("hidden")))
OWN void *__wrap_malloc(size_t n) {{ return checked(__real_malloc(n), n); }}
OWN void *__wrap_calloc(size_t a, size_t b) {{ return checked(__real_calloc(a, b), a && b); }}
OWN void *__wrap_realloc(void *p, size_t n) {{ return checked(__real_realloc(p, n), n); }}
OWN void *__wrap_aligned_alloc(size_t a, size_t n) {{ return checked(__real_aligned_alloc(a, n), n); }}
OWN int __wrap_posix_memalign(void **p, size_t a, size_t n) {{
  int status = __real_posix_memalign(p, a, n);
  if (status == 12) _exit({MEMORY_EXIT});
  return status;
}}
"""

_ALLOWED_FLAG = re.compile(
    r"-fopenmp(-simd)?|-march=[\w.+-]+|-mtune=[\w.+-]+|-O[0123s]|-m(no-)?(avx|sse|fma|bmi|f16c|popcnt|lzcnt)[\w.-]*|"
    r"-mprefer-vector-width=\d+|-ffp-contract=(off|on|fast)|-f(no-)?(unroll(-all)?-loops|tree-[\w-]*|vectorize|slp-vectorize|"
    r"prefetch-loop-arrays|strict-aliasing|inline-functions|signed-zeros|trapping-math|math-errno|associative-math|"
    r"reciprocal-math|finite-math-only|rounding-math|unsafe-math-optimizations)|-std=(gnu|c)(99|11|17|2x|23)|-D\w+(=\w*)?"
)


@functools.lru_cache(maxsize=1)
def compiler() -> tuple[str, str]:
    """The C compiler's path and version line: ``$CC``, else gcc, else clang.

    Raises WorkerError("no_compiler") with the way out.
    """
    wanted = os.environ.get("CC")
    for name in (wanted,) if wanted else ("gcc", "clang", "cc"):
        path = shutil.which(name)
        if path:
            text = subprocess.run(
                [path, "--version"], capture_output=True, text=True, timeout=20, check=False
            ).stdout
            return path, (text.splitlines() or ["unknown version"])[0]
    missing = f"CC names {wanted}, which is not there" if wanted else "no C compiler found (gcc, clang)"
    raise WorkerError("no_compiler", f"{missing}; install one, for example: apt install gcc")


def check_flags(flags: tuple[str, ...]) -> None:
    """Raises KernelFault when a declared flag is not one that a kernel may ask for."""
    for flag in flags:
        if flag in ("-ffast-math", "-Ofast"):
            raise KernelFault(
                "flags",
                f"{flag} changes arithmetic for the whole process; declare single -f...-math flags instead",
            )
        if not _ALLOWED_FLAG.fullmatch(flag):
            raise KernelFault("flags", f"a kernel may not declare the compiler flag {flag}")


def command(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The compiler's arguments for a kernel with these declared flags. A later flag wins over a default."""
    return (*DEFAULT_FLAGS, *flags, *_FIXED)


def _cpu() -> str:
    """What -march=native depends on, so that a cache on a shared disk is not served to another CPU."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return " ".join(os.uname())
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")


def build(source: bytes, filename: str, flags: tuple[str, ...], cache: Path) -> dict[str, Any]:
    """Compile and link; returns ``{"library": path, "sha256", "log", "cached"}``.

    Raises KernelFault("compile", first error line, log=...) or KernelFault("symbols", ...).
    """
    check_flags(flags)
    path, version = compiler()
    key = hashlib.sha256(
        repr((source, filename, command(flags), _LINK, _SHIM, version, _cpu(), c_inspect.VERSION)).encode()
    ).hexdigest()
    record, library = kept(
        cache / key[:2] / key,
        "kernel.so",
        cache,
        lambda scratch: _compile(path, source, filename, flags, scratch, cache),
    )
    return {**record, "library": str(library)}


def _compile(
    compiler_path: str, source: bytes, filename: str, flags: tuple[str, ...], scratch: Path, cache: Path
) -> dict[str, Any]:
    name = Path(filename).name
    (scratch / name).write_bytes(source)
    expanded = _run([compiler_path, *command(flags), "-E", name], scratch)
    if expanded.returncode != 0:
        raise KernelFault("compile", _first_error(expanded.stderr, name), log=expanded.stderr[:65536])
    c_inspect.check_source(source, expanded.stdout, name)
    (scratch / "alone").mkdir()
    (scratch / "alone" / name).write_bytes(c_inspect.headers_alone(source, expanded.stdout, name))
    alone = _run([compiler_path, *command(flags), "-E", name], scratch / "alone")
    c_inspect.check_headers(expanded.stdout, name, alone.stdout)
    wraps = [f"-Wl,--wrap={symbol}" for symbol in _WRAPPED]
    arguments = [
        *command(flags),
        *_LINK,
        *wraps,
        name,
        str(_shim(compiler_path, cache)),
        "-lm",
        "-o",
        "kernel.so",
    ]
    done = _run([compiler_path, *arguments], scratch)
    log = done.stderr[:65536]
    if done.returncode != 0:
        raise KernelFault("compile", _first_error(log, name), log=log)
    c_inspect.check_object(lambda tool: _binutils(tool, scratch), flags)
    library = (scratch / "kernel.so").read_bytes()
    return {
        "sha256": hashlib.sha256(library).hexdigest(),
        "bytes": len(library),
        "log": log,
        "compiler": compiler()[1],
        "command": " ".join(command(flags)),
    }


def _shim(compiler_path: str, cache: Path) -> Path:
    key = hashlib.sha256((_SHIM + compiler()[1]).encode()).hexdigest()[:16]
    target = cache / f"shim-{key}.o"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=building(cache), prefix="build-") as scratch:
            (Path(scratch) / "shim.c").write_text(_SHIM, encoding="utf-8")
            done = _run([compiler_path, "-O2", "-fPIC", "-c", "shim.c", "-o", "shim.o"], Path(scratch))
            made = Path(scratch) / "shim.o"
            if done.returncode != 0 or not made.exists():
                said = done.stderr[:400] or "it wrote nothing; is it a C compiler?"
                raise WorkerError("no_compiler", f"{compiler_path} cannot compile a ten-line file: {said}")
            made.replace(target)
    return target


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}  # messages in one language, and without typographic quotes
    try:
        return subprocess.run(
            arguments,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise WorkerError(
            "no_compiler", f"{arguments[0]} is not installed; install gcc and binutils"
        ) from None


def _first_error(log: str, name: str) -> str:
    for line in log.splitlines():
        if "error:" in line or "undefined reference" in line:
            return line.strip()
    return (log.strip().splitlines() or [f"{name} does not compile"])[0]


def _binutils(arguments: list[str], folder: Path) -> str:
    done = _run(arguments, folder)
    if done.returncode != 0:
        text = f"{arguments[0]} could not read the compiled kernel: {done.stderr.strip()}; install binutils"
        raise WorkerError("no_binutils", text)
    return done.stdout
