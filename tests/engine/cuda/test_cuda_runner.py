"""Launching through a driver that runs here: what reaches it, and how its errors are told."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import shutil
import subprocess
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from klineage.gate.request import kernel_job, workload_job
from klineage.kernel import Kernel
from klineage.worker import buffers, cuda_driver
from klineage.worker.cuda_runner import CudaRunner, packed
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.runners import problem_of, runner
from klineage.workload import Workload

CUBIN = b"\x7fELF and more"
DIMS = {"rows": 5, "columns": 13}
Make = Callable[..., Kernel]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    target = tmp_path_factory.mktemp("driver") / "libdriver.so"
    source = Path(__file__).with_name("driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", str(source), "-o", str(target)], check=True)
    found = ctypes.CDLL(str(target))
    found.history.restype = ctypes.c_char_p
    return found


@pytest.fixture
def history(library: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """The driver is ours; the answer is what it was asked for."""
    library.forget(0)
    monkeypatch.setattr(cuda_driver, "driver", lambda: library)
    yield lambda: library.history().decode().splitlines()


@pytest.fixture
def load(history: object, rows: Workload) -> Callable[..., CudaRunner]:
    def make(kernel: Kernel, cubin: bytes = CUBIN, **changes: object) -> CudaRunner:
        job = (
            kernel_job(kernel)
            | {"cubin": packed(cubin), "sha256": hashlib.sha256(cubin).hexdigest()}
            | changes
        )
        made = runner("gpu", job, problem_of({"workload": workload_job(rows, "cuda")}), DIMS)
        assert isinstance(made, CudaRunner)
        return made

    return make


@pytest.fixture
def case(rows: Workload) -> tuple[Any, Any, dict[str, Any]]:
    """A region of bytes as torch sees it, its slots, and the inputs in it."""
    torch = pytest.importorskip("torch")
    problem = problem_of({"workload": workload_job(rows, "cuda")})
    slots, total = buffers.layout(problem.tensors(DIMS))
    region, inputs = np.empty(total, np.uint8), problem.inputs(3, DIMS)
    buffers.fill(region, slots, inputs)
    return torch.from_numpy(region), slots, inputs


def test_a_launch_gets_its_arguments_and_writes_the_output(
    load: Callable[..., CudaRunner],
    cuda: Make,
    case: tuple[Any, Any, dict[str, Any]],
    history: Callable[[], list[str]],
) -> None:
    memory, slots, inputs = case
    loaded = load(cuda())
    assert loaded.run_on(memory, slots, DIMS) == {}
    assert loaded.kernel_names == ("scale",)
    assert loaded.artifact == hashlib.sha256(CUBIN).hexdigest()
    region = memory.numpy()
    written = buffers.stored(region, slots[2])
    np.testing.assert_allclose(written, 1.5 * inputs["x"] + inputs["bias"], rtol=1e-6)
    assert buffers.broken_guard(region, slots) is None
    assert history() == ["launch 3 grid 1 1 1 block 128 1 1 shared 0", "wait"]


def test_much_shared_memory_is_asked_for_and_may_be_refused(
    load: Callable[..., CudaRunner],
    cuda: Make,
    case: tuple[Any, Any, dict[str, Any]],
    history: Callable[[], list[str]],
) -> None:
    memory, slots, _ = case
    load(cuda(launch="grid=(1) block=(128) shared=100000")).run_on(memory, slots, DIMS)
    assert history()[:2] == ["attribute 8 100000", "launch 3 grid 1 1 1 block 128 1 1 shared 100000"]
    with pytest.raises(KernelFault, match="300000 bytes of shared memory") as fault:
        load(cuda(launch="grid=(1) block=(128) shared=300000")).run_on(memory, slots, DIMS)
    assert fault.value.reason == "shared_memory"


def test_a_cooperative_launch_is_one(
    load: Callable[..., CudaRunner],
    cuda: Make,
    case: tuple[Any, Any, dict[str, Any]],
    history: Callable[[], list[str]],
) -> None:
    memory, slots, _ = case
    load(cuda(launch="grid=(2) block=(64) cooperative=true")).run_on(memory, slots, DIMS)
    assert history()[0] == "cooperative launch 3 grid 2 1 1 block 64 1 1 shared 0"


MAPPED = b"""// klineage: tensor_map x_map x shape=(rows / 2, 2, columns) box=(1, 2, 16) swizzle=64
// klineage: launch mapped grid=(1) block=(32)
extern "C" __global__ void mapped(const __grid_constant__ CUtensorMap x_map, float *y) {}
"""


def test_a_kernel_gets_a_map_of_its_buffer(
    load: Callable[..., CudaRunner], history: Callable[[], list[str]]
) -> None:
    torch = pytest.importorskip("torch")
    dims = {"rows": 4, "columns": 16}
    loaded = load(Kernel("cuda", "kernel.cu", "mapped", MAPPED))
    slots, total = buffers.layout(loaded.problem.tensors(dims))
    region, inputs = np.empty(total, np.uint8), loaded.problem.inputs(3, dims)
    buffers.fill(region, slots, inputs)
    loaded.run_on(torch.from_numpy(region), slots, dims)
    np.testing.assert_array_equal(buffers.stored(region, slots[2]), inputs["x"])
    assert history() == [
        # CUDA's order, the fastest extent first: extent/box(bytes to the next)
        "map type 7 swizzle 2 promotion 2 interleave 0 fill 0: 16/16(64) 2/2(128) 2/1",
        "launch 5 grid 1 1 1 block 32 1 1 shared 0",
        "wait",
    ]


ERRORS = {
    700: "illegal_access",
    716: "illegal_access",
    715: "crashed",
    719: "crashed",
    702: "timeout",
    2: "memory",
}


@pytest.mark.parametrize("status", ERRORS)
def test_an_error_of_the_device_is_told_as_the_kernels(
    status: int,
    load: Callable[..., CudaRunner],
    cuda: Make,
    case: tuple[Any, Any, dict[str, Any]],
    library: Any,
) -> None:
    memory, slots, _ = case
    library.forget(status)
    with pytest.raises(KernelFault) as fault:
        load(cuda()).run_on(memory, slots, DIMS)
    assert fault.value.reason == ERRORS[status]
    assert fault.value.verdict == "fail"


def test_any_other_error_is_the_workers(
    load: Callable[..., CudaRunner], cuda: Make, case: tuple[Any, Any, dict[str, Any]], library: Any
) -> None:
    memory, slots, _ = case
    library.forget(999)
    with pytest.raises(WorkerError, match=r"could not wait for the device: CUDA_ERROR \(999\)"):
        load(cuda()).run_on(memory, slots, DIMS)


def test_only_what_was_compiled_is_loaded(load: Callable[..., CudaRunner], cuda: Make) -> None:
    with pytest.raises(WorkerError, match="is not what was compiled"):
        load(cuda(), sha256="0" * 64)
    with pytest.raises(WorkerError, match="compiled for another GPU"):
        load(cuda(), cubin=b"not for here")


def test_without_a_driver_there_is_no_gpu() -> None:
    cuda_driver.driver.cache_clear()
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with pytest.raises(WorkerError, match=r"no NVIDIA driver|no usable GPU") as fault:
        cuda_driver.driver()
    assert fault.value.reason == "no_gpu"


def _seen(room: Any, made: list[Any]) -> Any:
    made.append(weakref.ref(room))
    return room


def test_a_write_beyond_scratch_is_found(
    load: Callable[..., CudaRunner],
    cuda: Make,
    case: tuple[Any, Any, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    real = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, device=None, **how: real(*size, **how))
    memory, slots, _ = case
    head = "// klineage: scratch held fp32 (rows, columns)\n// klineage: launch other grid=(1) block=(1) args=(held)\n"
    source = (
        head.encode() + cuda().source + b'extern "C" __global__ void other(float *held) { held[0] = 1; }\n'
    )
    loaded = load(Kernel("cuda", "kernel.cu", "other+scale", source))
    made: list[Any] = []
    monkeypatch.setattr(torch, "empty", lambda *size, device=None, **how: _seen(real(*size, **how), made))
    call = loaded.call(memory, slots, DIMS)
    gc.collect()
    assert [room() is not None for room in made] == [True], "its scratch is gone before it is called"
    call()
    loaded.run_on(memory, slots, DIMS)
    loaded.finish()
    assert loaded._room is not None
    room, (slot,) = loaded._room
    assert (slot.type, slot.shape) == ("fp32", (5, 13))
    assert buffers.is_poison(buffers.stored(room.numpy(), slot), "fp32").all()
    room[slot.end + 8] = 1
    with pytest.raises(KernelFault, match="wrote 8 bytes after scratch held"):
        loaded.finish()
