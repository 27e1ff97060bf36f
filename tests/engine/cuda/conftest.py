"""CUDA kernels for tests: files beside this one, and short ones made from a launch and a body."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.kernel import Kernel
from klineage.walk.reading import read_kernel
from klineage.workload import Workload, load

HERE = Path(__file__).parent
LAUNCH = "grid=(cdiv(rows * columns, 128)) block=(128)"


@pytest.fixture(scope="session")
def rows() -> Workload:
    """``y = alpha * x + bias`` in fp32."""
    return load(HERE / "workload.py")


@pytest.fixture(scope="session")
def cuda() -> Callable[..., Kernel]:
    """``cuda(body, launch=..., head=...)``: a kernel named ``scale`` for ``rows``."""

    def make(body: str = "", *, launch: str = LAUNCH, head: str = "") -> Kernel:
        source = f"""// klineage: launch scale {launch}
{head}
extern "C" __global__ void scale(const float *x, const float *bias, float *y, int rows, int columns, float alpha) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
  if (i < rows * columns) y[i] = alpha * x[i] + bias[i % columns];
}}
"""
        return Kernel("cuda", "kernel.cu", "scale", source.encode())

    return make


@pytest.fixture(scope="session")
def shipped_kernel() -> Callable[[str, str], Kernel]:
    """``shipped_kernel(file, workload)``: a kernel of ``kernels/``."""

    def read(name: str, workload: str) -> Kernel:
        return read_kernel(HERE / "kernels" / f"{name}.cu", load(workload))

    return read


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of compiled kernels for the session."""
    return tmp_path_factory.mktemp("cuda-cache")


@pytest.fixture(scope="session")
def executor() -> Iterator[LocalExecutor]:
    made = LocalExecutor()
    yield made
    made.close()


@pytest.fixture
def nvcc() -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
