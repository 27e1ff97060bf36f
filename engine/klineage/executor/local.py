"""Workers of this machine, started on demand and kept warm."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from klineage.executor.base import Executor
from klineage.executor.parent import Died, Parent
from klineage.platform import Machine, this_machine
from klineage.worker.environment import kept


class LocalExecutor(Executor):
    """``command`` starts a worker when ``--kind KIND`` is added; by default it is this Python's."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, command: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        source = os.environ if environment is None else environment
        self._environment = kept(source)
        self._command = command

    def _launch(self, kind: str, device: str) -> Parent:
        command = self._command or (sys.executable, *_SAFE_PATH, "-m", "klineage.worker")
        chosen = {"CUDA_VISIBLE_DEVICES": device} if device else {}
        try:
            return Parent([*command, "--kind", kind], {**self._environment, **chosen})
        except OSError as error:
            raise Died(f"cannot start: {error}") from error

    def machine(self, cancel: threading.Event | None = None) -> Machine:
        return this_machine()

    def sees_gpu(self) -> bool:
        return bool(_gpus_of_the_driver()) and self._environment.get("CUDA_VISIBLE_DEVICES") != ""

    def _has_only_gpu(self) -> bool:
        """Whether it is known at once that there is no choice; False where ``machine`` must be asked."""
        return len(_gpus_of_the_driver()) == 1

    def _devices(self, cancel: threading.Event | None) -> list[str]:
        visible = self._environment.get("CUDA_VISIBLE_DEVICES")
        if visible is None:
            return [""] if self._has_only_gpu() else super()._devices(cancel)
        return [name.strip() for name in visible.split(",") if name.strip()] or [""]


_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()  # a numpy.py in the current folder is not numpy
_DRIVER = Path("/proc/driver/nvidia/gpus")


def _gpus_of_the_driver() -> list[Path]:
    """A folder for each GPU that NVIDIA's driver has on this Linux; it costs no time, where nvidia-smi may take a second."""
    return list(_DRIVER.iterdir()) if _DRIVER.is_dir() else []
