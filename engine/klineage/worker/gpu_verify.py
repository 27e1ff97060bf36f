"""Whether runs in the middle of a measurement still compute what the first run did.

The first run of a process is what correctness checked in another one. A kernel that works for some calls and then
rests leaves something else, or the poison, in its outputs.
"""

from __future__ import annotations

from typing import Any

from klineage.worker import buffers, on_device
from klineage.worker.faults import KernelFault
from klineage.worker.gpu_timing import Launch
from klineage.worker.problem import Problem

_ORDER = 2.0  # two right results of one kernel with atomics are at most this many tolerances apart


class TimedOutputs:
    """Outputs of the candidate's first run, kept, and compared with those of timed ones.

    memories: the sets of buffers, tensors of bytes. returned: what the candidate returned for each set, by an
    entry that returns its outputs; where there is nothing, they are in the buffers.
    """

    def __init__(
        self,
        problem: Problem,
        dims: dict[str, int],
        inputs: dict[str, Any],
        memories: list[Any],
        slots: tuple[buffers.Slot, ...],
    ) -> None:
        self.problem, self.dims, self.inputs = problem, dims, inputs
        self.memories, self.slots = memories, slots
        self.returned: dict[int, Any] = {}
        self.kept: dict[str, Any] = {}

    def begin(self, run: Launch) -> None:
        """Keep what the first run of all computes, on the first set."""
        run()
        self.kept = {name: tensor.clone() for name, tensor in self._outputs(0).items()}
        self._fill(0)

    def _fill(self, turn: int) -> None:
        on_device.fill(self.memories[turn], self.slots, self.inputs)

    def _outputs(self, turn: int) -> dict[str, Any]:
        returned = self.returned.get(turn)
        if returned is not None:
            values = returned if isinstance(returned, (tuple, list)) else (returned,)
            return dict(zip(self.problem.outputs, values))  # noqa: B905 - Python 3.9
        memory = self.memories[turn]
        return {s.name: on_device.stored(memory, s) for s in self.slots if s.name in self.problem.outputs}

    def check(self, turn: int, run: Launch) -> None:
        """Lay out a set anew, take a timed run on it, and compare. Raises KernelFault("timed_output", ...)."""
        self._fill(turn)
        run()
        types = {slot.name: slot.type for slot in self.slots}
        for name, got in self._outputs(turn).items():
            wanted, type_ = self.kept[name], types[name]
            if on_device.digest(got) == on_device.digest(wanted):
                continue
            rtol = _ORDER * self.problem.rtol(type_, self.dims)
            if not on_device.errors(got, on_device.decode(wanted, type_), type_, rtol, False)[0]:
                raise KernelFault(
                    "timed_output",
                    f"{name} is another one while it is timed than on the first call, which was checked",
                    output=name,
                )
