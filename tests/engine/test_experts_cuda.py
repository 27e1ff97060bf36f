"""The CUDA experts on a CPU: every thread is run, one after the other, and what Hopper alone has is written out.

So is a form of attention that is no expert. That is no proof that a GPU agrees; it is one that the arithmetic of
threads, places and swizzles is right.
"""

from __future__ import annotations

import ctypes
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from klineage import workload
from klineage.gate.request import kernel_job
from klineage.kernel import Kernel
from klineage.surface.cuda_launch import launch_job
from klineage.walk.reading import read_kernel
from klineage.worker import buffers, cuda_plan
from klineage.worker.cuda_tensor_map import TensorMap
from klineage.worker.examine import Case, values_of
from klineage.worker.problem import load

EXPERTS = Path(__file__).parents[2] / "experts"
FIBERS = Path(__file__).with_name("rules") / "cuda_on_cpu.h"
VARIANTS = EXPERTS.parent / "benchmarks" / "gpu" / "variants"
KERNELS = {
    "topk": EXPERTS / "topk" / "cuda" / "kernel.cu",
    "gdn_cumsum": EXPERTS / "gdn_cumsum" / "cuda" / "kernel.cu",
    "gemm": EXPERTS / "gemm" / "cuda" / "kernel.cu",
    "fmha": EXPERTS / "fmha" / "cuda" / "kernel.cu",
    "fmha_async": VARIANTS / "fmha" / "specialized.cu",
    "fmha_clusters": VARIANTS / "fmha" / "clusters.cu",
    "conv2d": EXPERTS / "conv2d" / "cuda" / "kernel.cu",
}

# Beyond what the fibers have. Shared memory of a block is one array; an address in it is its offset there.
# A descriptor of the matrix unit is read as PTX defines it: lines of 128 bytes, whose pieces are permuted by address.
EXTRAS = """
alignas(1024) static unsigned char rooms_of_a_launch[2][262144];  // of the blocks of a cluster
static int into = -1;  // the block whose shared memory is meant; -1: the thread's own
static int block_here() { return into < 0 ? current / threads_of_a_block() : into; }
static unsigned char *shared_at(uint32_t address) { return rooms_of_a_launch[block_here()] + address; }
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
static inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
static inline float __fdividef(float x, float y) { return x * (1.0f / y); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __ballot_sync(unsigned mask, bool vote) {
  unsigned votes = (unsigned)vote << current % 32;
  for (int lanes = 16; lanes > 0; lanes /= 2) votes |= __shfl_xor_sync(mask, votes, lanes);
  return votes;
}
struct __nv_bfloat162 { __nv_bfloat16 x, y; };
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16(x), __float2bfloat16(y)}; }
static float entry(uint64_t descriptor, int line, int column) {
  if (descriptor >> 16 != 0x400000400001) abort();
  uint32_t address = (uint32_t)(descriptor & 0x3fff) * 16 + line * 128 + column * 2;
  address ^= (address >> 7 & 7) << 4;
  __nv_bfloat16 found;
  memcpy(&found, shared_at(address), 2);
  return __bfloat162float(found);
}
static void wgmma(float (&d)[128], uint64_t x, uint64_t weight) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  for (int i = 0; i < 128; i++) {
    const int row = warp * 16 + lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; k++) d[i] += entry(x, row, k) * entry(weight, column, k);
  }
}
struct half { uint16_t bits; };
struct half2 { half x, y; };
typedef half2 __half2;
static inline float __half2float(half value) { _Float16 h; memcpy(&h, &value, 2); return (float)h; }
static inline half __float2half(float value) { _Float16 h = (_Float16)value; half found; memcpy(&found, &h, 2); return found; }
static inline half2 __floats2half2_rn(float x, float y) { return {__float2half(x), __float2half(y)}; }
#define __grid_constant__
struct CUtensorMap { const unsigned char *at; int rank, shape[5], box[5]; };
static void cp_async(uint32_t to, const void *from, bool real) {
  if (real) memcpy(shared_at(to), from, 16);
  else memset(shared_at(to), 0, 16);
}
"""

ROLES = Path(__file__).with_name("cuda") / "roles_on_cpu.h"
REPLACED = re.findall(
    r"^(?:template <.*> )?static \S+ "
    r"(barrier_(?!at)\w+|turn_\w+|stores?_\w+|load_matrices|blocks?_(?!here)\w+|cop(?:y|ies)_\w+|multiply_\w+|exp2_\w+)\(",
    ROLES.read_text(encoding="utf-8"),
    re.MULTILINE,
)


def workload_of(name: str) -> Path:
    return EXPERTS / name.removesuffix("_async").removesuffix("_clusters") / "workload.py"


def kernel_of(name: str) -> Kernel:
    return read_kernel(KERNELS[name], workload.load(workload_of(name)))


def on_a_cpu(source: str) -> str:
    """The kernel's text with the instructions of a GPU replaced; shared memory begins off the swizzle's boundary."""
    source = re.sub(r"#include <.*>", "", source).replace('extern "C" __global__', "__global__")
    if "barrier_init" in source:
        for name in REPLACED:
            head = rf"(?:template <[^\n]*>\n)?__device__ __forceinline__ \w+ {name}\("
            source, replaced = re.subn(rf"{head}[^\n]*}}\n|{head}.*?\n}}\n", "", source, flags=re.DOTALL)
            assert replaced <= 1, name
        source = f"using namespace roles;\n{source}"
    source = re.sub(r"extern __shared__ ([\w ]+) (\w+)\[\];", r"\1 *\2 = (\1 *)shared_at(512);", source)
    source = source.replace("__cvta_generic_to_shared(room)", "512")
    source = re.sub(r'asm volatile\("cp\.async\.cg[^;]*;[^;]*;', "cp_async(to, from, real);", source)
    source = re.sub(
        r'asm volatile\(\s*"wgmma\.mma.*?\(weight\)\);', "wgmma(d, x, weight);", source, flags=re.DOTALL
    )
    source = re.sub(r'asm volatile\("[^"]*"[^;]*;', ";", source)
    assert "asm" not in source
    return source


def blocks_together(name: str, function: str) -> int:
    """How many blocks of a launch are a cluster."""
    head = rf"__cluster_dims__\((\d)\) __launch_bounds__\([^)]*\)\s+{function}\("
    found = re.search(head, kernel_of(name).source.decode())
    return int(found[1]) if found else 1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("cuda")
    text = [f'#include "{FIBERS}"', EXTRAS, f'namespace roles {{\n#include "{ROLES}"\n}}']
    for name in KERNELS:
        kernel = kernel_of(name)
        text.append(f"namespace of_{name} {{\n{on_a_cpu(kernel.source.decode())}\n}}")
        for launch in launch_job(kernel)["launches"]:
            signature = re.search(rf"\b{launch['kernel']}\((.*?)\)\s*{{", kernel.source.decode(), re.DOTALL)
            assert signature is not None
            listed = re.sub(r"\bbf16\b", "__nv_bfloat16", signature.group(1).replace("__restrict__", ""))
            given = ", ".join(re.split(r"[\s*&]+", p)[-1] for p in listed.split(","))
            listed = listed.replace("__grid_constant__ CUtensorMap ", "CUtensorMap &")
            text.append(
                f'extern "C" void run_{name}_{launch["kernel"]}(const unsigned *grid, const unsigned *block, {listed}) '
                f"{{ launch(grid, block, [=] {{ of_{name}::{launch['kernel']}({given}); }}, {blocks_together(name, launch['kernel'])}); }}"
            )
    (folder / "all.cpp").write_text("\n".join(text))
    command = [compiler, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "all.cpp", "-o", "all.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "all.so"))


@pytest.mark.parametrize("size", ["small", "ragged", "hidden"])
@pytest.mark.parametrize("recipe", ["normal", "ties"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_cuda_expert_computes_its_workload(library: ctypes.CDLL, name: str, recipe: str, size: str) -> None:
    space = runpy.run_path(str(workload_of(name)))
    _computes(library, name, recipe, size, space["HIDDEN"] if size == "hidden" else space["SIZES"][size])


def _computes(
    library: ctypes.CDLL, name: str, recipe: str, size: str, dims: dict[str, int], blocks: int | None = None
) -> None:
    path = workload_of(name)
    problem = load(path.read_bytes(), str(path), runpy.run_path(str(path))["ELEMENT"]["cuda"])
    inputs = problem.inputs(5, dims, recipe)
    slots, total = buffers.layout(problem.tensors(dims))
    region = np.empty(total, np.uint8)
    buffers.fill(region, slots, inputs)
    arrays = {slot.name: buffers.stored(region, slot) for slot in slots}
    (step,) = cuda_plan.plan(kernel_job(kernel_of(name)), problem.tensors(dims), dims, problem.scalars)
    three = [
        (ctypes.c_uint * 3)(*extents) for extents in ((blocks or step.grid[0], *step.grid[1:]), step.block)
    ]
    getattr(library, f"run_{name}_{step.kernel}")(*three, *(_given(a, arrays) for a in step.arguments))
    told = {"size": size, "dims": dims, "seed": 5, "recipe": recipe, "variant": ""}
    case = Case(problem, told, inputs, problem.reference(inputs, dims), slots)
    assert buffers.broken_guard(region, slots, False) is None
    found = values_of(case, {n: arrays[n] for n in problem.outputs})
    assert "failure" not in found, found["failure"]["summary"]


class _Map(ctypes.Structure):
    """What stands for a tensor map in cuda/roles_on_cpu.h."""

    _fields_: ClassVar = [
        ("at", ctypes.c_void_p),
        ("rank", ctypes.c_int),
        ("shape", ctypes.c_int * 5),
        ("box", ctypes.c_int * 5),
    ]


def _given(argument: cuda_plan.Argument, arrays: dict[str, Any]) -> Any:
    value = argument.value
    if isinstance(value, TensorMap):
        assert (value.box[-1], value.swizzle, value.type) == (64, 128, "fp16")
        extents = [(ctypes.c_int * 5)(*numbers) for numbers in (value.shape, value.box)]
        return ctypes.byref(_Map(arrays[value.buffer].ctypes.data, len(value.shape), *extents))
    if isinstance(value, str):
        return arrays[value].ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_int(int(value))


@pytest.mark.parametrize("name", ["fmha", "fmha_async", "fmha_clusters"])
def test_a_block_of_attention_goes_on_to_its_next_queries(library: ctypes.CDLL, name: str) -> None:
    """More tiles than blocks, and enough keys that both buffers are filled again and again."""
    dims = {"sequences": 2, "length": 500, "tokens": 700, "heads": 2, "dim": 128}
    _computes(library, name, "normal", "several tiles", dims, blocks=2)


@pytest.mark.parametrize(
    "dims",
    [
        {"batch": 1, "height": 8, "width": 8, "channels": 64, "filters": 128, "kernel": 3},
        {"batch": 2, "height": 11, "width": 21, "channels": 64, "filters": 256, "kernel": 3},
    ],
)
def test_a_convolution_reads_its_taps_from_one_patch(library: ctypes.CDLL, dims: dict[str, int]) -> None:
    """Whole tiles and cut ones, more filters than a block has, and a last block with idle warpgroups."""
    _computes(library, "conv2d", "normal", "patches", dims)
