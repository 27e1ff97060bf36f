"""What NVIDIA's tools print, read: no GPU is needed for that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor, bundle
from klineage.gate import POLICY
from klineage.gate.request import workload_job
from klineage.worker import gpu_tools, landlock
from klineage.workload import Workload

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at scale(const float *, float *, int)+0x150 in /tmp/x/kernel.cu:7
=========     by thread (32,0,0) in block (1,0,0)
=========     Address 0x7f0000000200 is out of bounds
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at reduce+0x70 in /tmp/x/kernel.cu:12
=========     and Read access at reduce+0x100 in /tmp/x/kernel.cu:14 [16 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
NCU = """==PROF== Connected to process 1
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","gemm","dram__bytes_read.sum","Mbyte","1.50"
"0","gemm","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","61.2"
"1","gemm","dram__bytes_read.sum","Kbyte","500"
"1","gemm","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","70.1"
"1","gemm","smsp__inst_executed.sum","inst","1,234,567"
"""


def test_a_finding_names_what_and_where() -> None:
    fault = gpu_tools.finding("memcheck", MEMCHECK, "ragged")
    assert fault.reason == "sanitizer"
    assert (
        str(fault) == "kernel.cu:7: Invalid __global__ read of size 4 bytes in scale (memcheck, size ragged)"
    )
    race = str(gpu_tools.finding("racecheck", RACECHECK, "small"))
    assert race.startswith("kernel.cu:12: Error: Race reported between Write access")


def test_counters_are_summed_and_percentages_are_not() -> None:
    found = gpu_tools.counters(NCU)
    assert found == {"dram_bytes_read": 2e6, "sm_percent": 70.1, "warp_instructions": 1_234_567.0}
    assert gpu_tools.counters("==ERROR== nothing") == {}


TOOL = """#!{python}
import os, socket, sys
with open(os.path.join(os.environ["TMPDIR"], "note"), "w") as file:
    file.write("room for temporary files")
os.makedirs(os.path.expanduser("~/Documents"))
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(("localhost", server.getsockname()[1]))
local, other = socket.socketpair()
os.execv(sys.executable, [sys.executable, *sys.argv[sys.argv.index("-c"):]])
"""


def test_a_tool_and_its_program_find_what_they_need_inside_the_walls(tmp_path: Path, rows: Workload) -> None:
    """The program comes as far as the GPU, which is not here; the tool has a home, and a network with itself."""
    pytest.importorskip("torch")
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU here: benchmarks/gpu/times.py runs the tools")
    tool = tmp_path / "bin" / "compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text(TOOL.format(python=sys.executable))
    tool.chmod(0o755)
    executor = LocalExecutor({**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"})
    kernel = {"surface": "triton", "entry": "rows", "filename": "kernel.py", "config": [], "source": ""}
    job = {
        "op": "sanitize_gpu", "kernel": kernel, "size": "small", "dims": rows.sizes["small"], "seed": 1,
        "workload": workload_job(rows, "triton"), "limits": POLICY.limits,
    }  # fmt: skip
    try:
        answer = executor.submit("compiler", job)
    finally:
        executor.close()
    assert answer["reason"] == "no_sanitizer"
    assert answer["summary"].startswith("memcheck does not run here: ")
    assert "CUDA" in answer["summary"] or "NVIDIA" in answer["summary"], answer["log"]


def test_the_program_sees_no_other_files_before_it_reads_a_kernel(tmp_path: Path) -> None:
    """The driver is asked first, and a kernel and its workload only when the files are closed."""
    if not landlock.version():
        pytest.skip("this machine has no Landlock")
    own, secret = tmp_path / "own", tmp_path / "secret"
    own.mkdir()
    secret.write_text("of somebody else")
    request = {"files": {"reads": [], "writes": [str(own)], "closed": True}}
    (own / "request.json").write_text(json.dumps(request))
    program = (
        "import ctypes, sys, types; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n"
        "said = []\n"
        "sys.modules['torch'] = types.SimpleNamespace(zeros=lambda *_, device: said.append(open(sys.argv[1]).read()))\n"
        "from klineage.worker import gpu_program\n"
        "def problem_of(_):\n"
        "    open('request.json', 'a').close()\n"
        "    said.append('own'); open(sys.argv[1])\n"
        "gpu_program.problem_of = problem_of\n"
        "try: gpu_program.run('request.json')\n"
        "except PermissionError: print(*said, 'closed', sep=', ')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(secret)], cwd=own, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(gpu_tools.__file__).parents[2])},
    )  # fmt: skip
    assert done.stdout.strip() == "of somebody else, own, closed", done.stderr


def test_the_worker_that_is_one_file_hands_its_package_on(tmp_path: Path) -> None:
    program = tmp_path / "worker.py"
    own = "from klineage.worker.gpu_program import package; print(package())"
    program.write_text(bundle.program(bundle.WORKER) + own)
    made = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    )
    packages = Path(made.stdout.strip())
    assert packages.parent == tmp_path
    found = subprocess.run(
        [sys.executable, "-c", "import klineage.worker.gpu_program as p; print(p.__file__)"],
        cwd="/", env={"PYTHONPATH": str(packages)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == str(packages / "klineage" / "worker" / "gpu_program.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to keep")
def test_of_roots_privileges_a_reader_of_counters_keeps_one(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys; from klineage.worker import limits\n"
        "os.environ['KLINEAGE_SCRATCH'] = sys.argv[1]\n"
        "held = limits.apply(limits.Limits(memory=None, processes=True, sockets=True, counters=True))\n"
        "if held['small_folder']:\n"
        "    print(subprocess.run(['cat', '/proc/self/status'], capture_output=True, text=True).stdout)\n"
    )
    engine = str(Path(gpu_tools.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": engine}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if not done.stdout:
        pytest.skip("this machine lets nobody leave its mounts")
    told = dict(line.split(":", 1) for line in done.stdout.splitlines() if line.startswith("Cap"))
    kept = {name: int(value, 16) for name, value in told.items()}
    assert kept == dict.fromkeys(("CapPrm", "CapEff", "CapBnd"), 1 << 38) | {"CapInh": 0, "CapAmb": 0}
