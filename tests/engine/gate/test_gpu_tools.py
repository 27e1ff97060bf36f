"""What NVIDIA's tools print, read: no GPU is needed for that."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from klineage.worker import gpu_tools

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


def test_the_program_under_a_tool_is_importable() -> None:
    """It says that there is no GPU, and not that there is no such module."""
    pytest.importorskip("torch")
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU here")
    engine = Path(gpu_tools.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", gpu_tools._PROGRAM.format(path="/nowhere/request.json")],
        env={"PYTHONPATH": str(engine)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "FileNotFoundError" in done.stderr
