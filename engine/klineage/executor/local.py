"""Workers of this machine, started on demand and kept warm."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Mapping, Sequence

from klineage.executor.base import Executor
from klineage.executor.parent import Died, Parent
from klineage.platform import Machine, detect

# What a worker may see of the environment: never a key or a token.
KEPT = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "CC", "LD_LIBRARY_PATH", "PYTHONPATH",
    "VIRTUAL_ENV", "XDG_CACHE_HOME", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "KLINEAGE_CUDA_COMPILER",
    "TRITON_HOME", "TRITON_CACHE_DIR", "TRITON_PTXAS_PATH", "TRITON_DEFAULT_FP_FUSION",
)  # fmt: skip


class LocalExecutor(Executor):
    """``command`` starts a worker when ``--kind KIND`` is added; by default it is this Python's."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, command: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in KEPT if name in source}
        self._command = command

    def _launch(self, kind: str, device: str) -> Parent:
        command = self._command or (sys.executable, *_SAFE_PATH, "-m", "klineage.worker")
        chosen = {"CUDA_VISIBLE_DEVICES": device} if device else {}
        try:
            return Parent([*command, "--kind", kind], {**self._environment, **chosen})
        except OSError as error:
            raise Died(f"cannot start: {error}") from error

    def machine(self, cancel: threading.Event | None = None) -> Machine:
        return _detected()

    def _devices(self, cancel: threading.Event | None) -> list[str]:
        visible = self._environment.get("CUDA_VISIBLE_DEVICES")
        if visible is None:
            return super()._devices(cancel)
        return [name.strip() for name in visible.split(",") if name.strip()] or [""]


_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()  # a numpy.py in the current folder is not numpy


@functools.lru_cache(maxsize=1)
def _detected() -> Machine:
    return detect()
