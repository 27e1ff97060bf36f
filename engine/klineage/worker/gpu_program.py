"""The program that NVIDIA's tools follow: it loads a kernel and runs it once.

Every buffer is an allocation of its own there, made without torch's cache, so that memcheck sees where it ends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from klineage.worker import buffers, landlock
from klineage.worker.faults import WorkerError
from klineage.worker.problem import Problem
from klineage.worker.runners import load_entry, problem_of


def run(path: str) -> None:
    """The program under the tool: run the kernel of the request in this JSON file once, on the GPU."""
    import torch

    request = json.loads(Path(path).read_text(encoding="utf-8"))
    torch.zeros(1, device="cuda")
    close(request["files"])
    problem, dims, kernel = problem_of(request), request["dims"], request["kernel"]
    tensors = _tensors(problem, dims, problem.inputs(request["seed"], dims))
    if kernel["surface"] == "triton":
        load_entry(kernel, "gpu")({**dims, **problem.scalars, **tensors})
    else:
        _launch(kernel, problem, dims, tensors)
    torch.cuda.synchronize()


def close(files: dict[str, Any]) -> None:
    """See no other files from now on. Not earlier: NVIDIA's driver names its threads as it opens the device, in /proc/PID/task,
    ends with error 304 where it may not, and no rule can name the folder of a process that does not exist yet.
    """
    if files["closed"] and not landlock.restrict(
        files["reads"], files["writes"], processes=True, devices=True
    ):
        raise WorkerError("walls", "the program under NVIDIA's tool could not close the file system")


def _tensors(problem: Problem, dims: dict[str, int], inputs: dict[str, Any]) -> dict[str, Any]:
    """One allocation a buffer; outputs hold poison."""
    import torch

    made = {}
    for name, (type_, shape) in problem.tensors(dims).items():
        if name in inputs:
            array = np.ascontiguousarray(inputs[name])
        else:
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(buffers.poison(type_) * count, buffers.STORAGE[type_]).reshape(shape)
        flat = torch.from_numpy(array.reshape(-1).view(np.uint8).copy()).cuda()
        made[name] = flat.view(_dtype(type_)).view(shape)
    return made


def _dtype(type_: str) -> Any:
    from klineage.worker import on_device

    return on_device.dtype(type_)


def _launch(kernel: dict[str, Any], problem: Problem, dims: dict[str, int], tensors: dict[str, Any]) -> None:
    import torch

    from klineage.worker import cuda_plan
    from klineage.worker.cuda_runner import CudaRunner

    runner = CudaRunner(kernel, problem)
    held = dict(tensors)
    for name, (type_, shape) in cuda_plan.scratch(kernel, dims).items():
        held[name] = torch.empty(shape, dtype=_dtype(type_), device="cuda")
    addresses = {name: tensor.data_ptr() for name, tensor in held.items()}
    for step in cuda_plan.plan(kernel, problem.tensors(dims), dims, problem.scalars):
        runner.module.launcher(step, addresses)()


def package() -> Path:
    """A new folder, in the current one, that holds the package ``klineage`` and nothing else.

    A confined program may read the package, but cannot look for it where it lies: what is beside it is hidden.
    """
    folder = Path.cwd() / "packages"
    folder.mkdir()
    root = Path(__file__).resolve().parents[1]
    if root.is_dir():
        (folder / "klineage").symlink_to(root)
        return folder
    loader: Any = __spec__.loader  # of the worker that is one file
    for name in loader.names():
        place = folder.joinpath(*name.split("."))
        file = place / "__init__.py" if loader.is_package(name) else place.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(loader.get_source(name), encoding="utf-8")
    return folder
