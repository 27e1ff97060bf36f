"""One GPU, one job: a lock that every klineage process of this machine takes; its opening, and a check of it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from klineage.worker.faults import WorkerError
from klineage.worker.home import root
from klineage.worker.process import Channel
from klineage.worker.watch import Control

_TICK = 0.05


@functools.lru_cache(maxsize=1)
def identity() -> str:
    """A name for the device that this process uses, the same in every process."""
    visible = _visible()
    listed = _listed()
    if not visible.isdigit() or int(visible) >= len(listed):
        return visible
    return listed[int(visible)][0]


def memory_mib() -> int:
    """The memory of that device in MiB; 0 where nvidia-smi does not say."""
    return next((mib for uuid, mib in _listed() if uuid == identity()), 0)


def _visible() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"


@functools.lru_cache(maxsize=1)
def _listed() -> tuple[tuple[str, int], ...]:
    """UUID and MiB of every GPU, as nvidia-smi lists them: the driver itself must not be touched here."""
    command = ["nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
    try:
        lines = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return ()
    fields = [line.partition(",") for line in lines if line.strip()]
    return tuple((uuid.strip(), int(mib) if mib.strip().isdigit() else 0) for uuid, _, mib in fields)


def lock_path(device: str) -> Path:
    return root() / f"klineage-device-{re.sub(r'[^A-Za-z0-9-]', '_', device)}.lock"


def _open(path: Path) -> int:
    """A lock file is shared by every user of the machine, and holds nothing."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    mask = os.umask(0)
    try:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o444)
    finally:
        os.umask(mask)


@contextlib.contextmanager
def reserved(
    device: str,
    control: Control,
    job: object,
    progress: Callable[[dict[str, Any]], None],
    shared: bool = False,
) -> Iterator[None]:
    """Hold the device for the block, alone or with others who share it.

    Raises Cancelled or Closed, as the control says, while it waits.
    """
    with contextlib.ExitStack() as stack:
        door, lock = (_opened(device, part, stack) for part in ("-door", ""))
        _wait_for(door, fcntl.LOCK_EX, control, job, progress)  # so that those who share keep nobody out
        _wait_for(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, control, job, progress)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


def _opened(device: str, part: str, stack: contextlib.ExitStack) -> int:
    path = lock_path(device + part)
    try:
        descriptor = _open(path)
    except OSError as error:
        raise WorkerError("device_lock", f"cannot lock the device: {path}: {error.strerror}") from error
    stack.callback(os.close, descriptor)
    return descriptor


def _wait_for(
    descriptor: int, how: int, control: Control, job: object, progress: Callable[[dict[str, Any]], None]
) -> None:
    told = 0.0
    while not _locked(descriptor, how):
        if time.monotonic() - told > 1:
            progress({"waiting": True, "detail": "waiting for the device, which another gate uses"})
            told = time.monotonic()
        control.poll(job)
        time.sleep(_TICK)


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_share(device: str) -> Callable[[], None] | None:
    """Share the device if nobody holds or awaits it alone. Returns how to give it back."""
    with contextlib.ExitStack() as stack:
        try:
            door, lock = (_opened(device, part, stack) for part in ("-door", ""))
        except WorkerError:
            return None  # the next job says why
        if not _locked(door, fcntl.LOCK_SH) or not _locked(lock, fcntl.LOCK_SH):
            return None
        kept = stack.pop_all()
        fcntl.flock(door, fcntl.LOCK_UN)
        return kept.close


def open_torch(called: Callable[[], bool]) -> None:
    """Make the context of the GPU, and load what every case uses: what takes long in a fresh process.

    called: whether a job waits already; it needs one or the other of these, which it then sees to itself.
    """
    import torch

    from klineage.worker import launches, on_device

    if not torch.cuda.is_available():
        return
    torch.set_num_threads(1)
    torch.zeros(1, device="cuda")
    for step in (launches.open_profiler, functools.partial(on_device.rehearse, "cuda")):
        if called():
            return
        step()


def health(channel: Channel) -> None:
    """Body of a child: a tiny kernel with a known answer. Raises WorkerError("device")."""
    import torch

    try:
        found = int((torch.arange(4096, device="cuda", dtype=torch.int64) * 3 + 1).sum().item())
    except Exception as error:
        words = str(error).strip().split("\n", 1)[0]
        raise WorkerError("device", f"the device does not work: {words}") from error
    wanted = 3 * (4095 * 4096 // 2) + 4096
    if found != wanted:
        raise WorkerError("device", f"the device computes wrongly: a sum is {found}, not {wanted}")
    channel.send(result={"verdict": "pass", "reason": "ok", "summary": ""})
