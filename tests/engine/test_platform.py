"""Order of platforms, limits, and what this machine is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.platform import Platform, detect, exceeded, limits, parse, satisfies, this_machine
from klineage.platform.detect import cpu_platform, parse_gpu


@pytest.mark.parametrize(
    "name", ["nvidia-sm80", "nvidia-sm90a", "nvidia-sm120", "amd-gfx942", "cpu-x86-64-v3", "cpu-aarch64"]
)
def test_names_round_trip(name: str) -> None:
    assert str(parse(name)) == name


@pytest.mark.parametrize(
    "name", ["", "sm90", "nvidia-sm9", "nvidia-90", "cpu-x86-64-v9", "tpu-v5", "nvidia-sm90\nx"]
)
def test_unknown_names_are_refused_with_the_forms(name: str) -> None:
    with pytest.raises(KlineageError, match="nvidia-sm90"):
        parse(name)


@pytest.mark.parametrize(
    ("available", "needed", "expected"),
    [
        ("nvidia-sm90", "nvidia-sm80", True),
        ("nvidia-sm80", "nvidia-sm90", False),
        ("nvidia-sm90", "nvidia-sm90a", True),
        ("nvidia-sm90a", "nvidia-sm90", True),
        ("nvidia-sm100", "nvidia-sm90", True),
        ("nvidia-sm100", "nvidia-sm90a", False),
        ("nvidia-sm120", "nvidia-sm89", True),
        ("cpu-x86-64-v4", "cpu-x86-64-v2", True),
        ("cpu-x86-64-v2", "cpu-x86-64-v3", False),
        ("cpu-aarch64", "cpu-x86-64", False),
        ("amd-gfx942", "amd-gfx942", True),
        ("amd-gfx950", "amd-gfx942", False),
        ("nvidia-sm90", "cpu-x86-64", False),
    ],
)
def test_order(available: str, needed: str, expected: bool) -> None:
    assert satisfies(available, needed) is expected


def test_order_is_transitive_and_reflexive() -> None:
    names = [
        "nvidia-sm80",
        "nvidia-sm86",
        "nvidia-sm89",
        "nvidia-sm90",
        "nvidia-sm90a",
        "nvidia-sm100",
        "nvidia-sm120",
    ]
    platforms = [parse(name) for name in names]
    for a in platforms:
        assert a.satisfies(a)
        for b in platforms:
            for c in platforms:
                if a.satisfies(b) and b.satisfies(c) and not c.specific:
                    assert a.satisfies(c)


@pytest.mark.parametrize(
    ("platform", "kib"),
    [("sm80", 163), ("sm86", 99), ("sm89", 99), ("sm90", 227), ("sm100", 227), ("sm120", 99)],
)
def test_shared_memory_of_a_block(platform: str, kib: int) -> None:
    found = limits(f"nvidia-{platform}")
    assert found.shared_bytes_per_block == kib * 1024
    assert (found.registers_per_thread, found.registers_per_block, found.threads_per_block) == (
        255,
        65536,
        1024,
    )


def test_limits_of_what_the_table_lacks_are_refused() -> None:
    with pytest.raises(KlineageError, match="nvidia-sm90"):
        limits("amd-gfx942")
    with pytest.raises(KlineageError, match="sm99"):
        limits(Platform("nvidia", "sm99"))


def test_a_broken_limit_is_named_with_both_numbers() -> None:
    assert exceeded("nvidia-sm90", shared_bytes=196 << 10, registers=168, threads=256) is None
    reason, sentence = exceeded("nvidia-sm120", shared_bytes=196 << 10) or ("", "")
    assert reason == "shared_memory"
    assert "200704" in sentence and "101376" in sentence
    assert (exceeded("nvidia-sm90", threads=2048) or ("",))[0] == "threads"
    assert (exceeded("nvidia-sm90", registers=128, threads=1024) or ("",))[0] == "registers"
    assert (exceeded("nvidia-sm90", registers=256, threads=32) or ("",))[0] == "registers"


def test_cpu_levels_need_every_flag() -> None:
    v2 = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}
    v3 = v2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
    assert cpu_platform("x86_64", set()) == "cpu-x86-64"
    assert cpu_platform("x86_64", v2 | {"avx512f"}) == "cpu-x86-64-v2"
    assert cpu_platform("x86_64", v3) == "cpu-x86-64-v3"
    assert cpu_platform("x86_64", v3 - {"fma"}) == "cpu-x86-64-v2"
    assert cpu_platform("arm64", set()) == "cpu-aarch64"


def test_gpu_is_read_from_what_the_driver_prints() -> None:
    gpu = parse_gpu("NVIDIA H200, 9.0, 143771, 580.159.03\nNVIDIA H200, 9.0, 143771, 580.159.03\n")
    assert gpu is not None
    assert (gpu.name, gpu.platform, gpu.memory_bytes) == ("NVIDIA H200", "nvidia-sm90", 143771 << 20)
    assert parse_gpu("NVIDIA RTX PRO 6000, 12.0, 97887, 575.1").platform == "nvidia-sm120"  # type: ignore[union-attr]
    assert parse_gpu("No devices were found\n") is None
    assert parse_gpu("") is None


def test_this_machine() -> None:
    machine = detect()
    assert parse(machine.cpu_platform).vendor == "cpu"
    assert machine.cores >= 1
    assert machine.cpu
    compilers = [tool for tool in (machine.gcc, machine.clang) if tool]
    assert all(tool.version[0].isdigit() for tool in compilers)
    assert machine.packages["numpy"]


def test_programs_that_fail_or_are_not_there_are_no_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"nvcc": "echo broken; exit 3", "nvidia-smi": "exit 9", "gcc": "echo 'gcc (Debian) 12.2.0'"}
    for name, text in texts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = detect()
    assert (machine.nvcc, machine.clang, machine.gpus) == (None, None, ())
    assert machine.gcc is not None
    assert machine.gcc.version == "12.2.0"


def test_a_machine_is_looked_at_once() -> None:
    assert this_machine() is this_machine()


def test_detection_imports_nothing_heavy() -> None:
    code = (
        "import sys; from klineage.platform import detect; detect(); "
        "heavy = {'torch', 'triton', 'numpy', 'textual'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
