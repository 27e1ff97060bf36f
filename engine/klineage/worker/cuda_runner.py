"""A CUDA kernel in this process: its cubin loaded through the driver, its declared launches run on buffers."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from klineage.worker import buffers, cuda_driver, cuda_plan, on_device
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.problem import Problem

Slots = tuple[buffers.Slot, ...]


def packed(cubin: bytes) -> str:
    """A cubin as it travels in a request."""
    return base64.b64encode(zlib.compress(cubin)).decode()


class CudaRunner:
    """The entry of a request. Nothing but its own kernels runs, since nobody but this class launches."""

    def __init__(self, kernel: dict[str, Any], problem: Problem) -> None:
        cubin = zlib.decompress(base64.b64decode(kernel["cubin"]))
        self.artifact = hashlib.sha256(cubin).hexdigest()
        if self.artifact != kernel["sha256"]:
            raise WorkerError("artifact", f"{kernel['filename']} is not what was compiled; gate again")
        self.kernel, self.problem = kernel, problem
        self.kernel_names = tuple(dict.fromkeys(launch["kernel"] for launch in kernel["launches"]))
        self._room: tuple[Any, Slots] | None = None
        self._held: list[object] = []
        cuda_driver.start()
        self.module = cuda_driver.Module(cubin, kernel["filename"])

    def run(self, region: np.ndarray[Any, Any], slots: Slots, dims: dict[str, int]) -> dict[str, int]:
        """Run once on a copy of the region, which is then brought back."""
        import torch

        memory = torch.from_numpy(region).cuda()
        counts = self.run_on(memory, slots, dims)
        self.finish()
        region[:] = memory.cpu().numpy()
        return counts

    def run_on(self, memory: Any, slots: Slots, dims: dict[str, int]) -> dict[str, int]:
        """Run once on buffers inside ``memory``, a tensor of bytes on the device; ``finish`` belongs to it."""
        self._room = self._scratch(dims)
        for launch in self.launches(memory, slots, dims, self._room):
            launch()
        cuda_driver.synchronize(self.kernel["entry"])
        return {}

    def finish(self) -> None:
        """Look at the guard zones of the scratch of the last run, apart from it: only its kernels ran in it."""
        if self._room is None:
            return
        room, slots = self._room
        host: np.ndarray[Any, Any] = np.empty(room.numel(), np.uint8)
        on_device.download(room, host, slots, ())
        broken = buffers.broken_guard(host, slots)
        if broken:
            name, side, distance = broken
            raise KernelFault("out_of_bounds", f"wrote {distance} bytes {side} scratch {name}", output=name)

    def call(self, memory: Any, slots: Slots, dims: dict[str, int]) -> Callable[[], None]:
        """All launches on these buffers as one call, for a timing loop. Scratch is its own."""
        room = self._scratch(dims)
        self._held.append(room)  # as long as the call may be made
        launches = self.launches(memory, slots, dims, room)
        if len(launches) == 1:
            return launches[0]

        def run() -> None:
            for launch in launches:
                launch()

        return run

    def launches(
        self, memory: Any, slots: Slots, dims: dict[str, int], room: tuple[Any, Slots] | None
    ) -> list[cuda_driver.Launcher]:
        """Every launch at these dimensions, bound to the addresses of the buffers."""
        tensors = {slot.name: (slot.type, slot.shape) for slot in slots}
        steps = cuda_plan.plan(self.kernel, tensors, dims, self.problem.scalars)
        addresses = {slot.name: memory.data_ptr() + slot.offset for slot in slots}
        if room is not None:
            addresses |= {slot.name: room[0].data_ptr() + slot.offset for slot in room[1]}
        return [self.module.launcher(step, addresses) for step in steps]

    def _scratch(self, dims: dict[str, int]) -> tuple[Any, Slots] | None:
        """Scratch buffers, poisoned, with guard zones."""
        import torch

        declared = cuda_plan.scratch(self.kernel, dims)
        if not declared:
            return None
        slots, total = buffers.layout(declared)
        try:
            room = torch.empty(total, dtype=torch.uint8, device="cuda")
        except RuntimeError as error:
            raise KernelFault(
                "memory", f"its scratch buffers need {total:,} bytes, more than are free"
            ) from error
        on_device.fill(room, slots, {})
        return room, slots
