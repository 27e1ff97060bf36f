"""Gates somewhere else, from the command line: over ssh, and by a file that is carried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .commands import KLINEAGE

ROWS = Path(__file__).parents[1] / "engine" / "gate"
KERNEL = Path(__file__).parents[1] / "engine" / "transport" / "rows.c"
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift; echo "$1" >> "$0.log"; shift
exec sh -c "$*"
"""


@pytest.fixture
def away(tmp_path: Path) -> dict[str, str]:
    """An environment with an ssh that runs its command here, and folders of its own for everything."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH)
    program.chmod(0o755)
    (program.parent / "python3").symlink_to(sys.executable)
    folders = {
        name: str(tmp_path / name)
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    }
    return {**os.environ, **folders, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def klineage(away: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KLINEAGE, *words], capture_output=True, text=True, env=away, timeout=600, check=False
    )


def test_a_kernel_is_gated_on_the_host_that_is_named(away: dict[str, str], tmp_path: Path) -> None:
    done = klineage(
        away,
        "gate",
        str(KERNEL),
        "--workload",
        str(ROWS),
        "--host",
        "me@gpu",
        "--host-python",
        sys.executable,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "pass"
    assert set((tmp_path / "bin" / "ssh.log").read_text().split()) == {"me@gpu"}


def test_the_configuration_names_a_host_and_the_option_goes_before_it(
    away: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "XDG_CONFIG_HOME" / "klineage" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'host = "me@gpu"\nhost_python = "{sys.executable}"\n')
    there = json.loads(klineage(away, "doctor", "--json").stdout)
    assert next(row for row in there if row["name"] == "host")["detail"].startswith("me@gpu")
    here = json.loads(klineage(away, "doctor", "--json", "--host", "").stdout)
    assert not any(row["name"] == "host" for row in here)


def test_a_host_that_is_away_is_a_sentence(away: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "ssh").write_text("#!/bin/sh\necho 'ssh: no route to host' >&2\nexit 255\n")
    done = klineage(away, "gate", str(KERNEL), "--workload", str(ROWS), "--host", "me@gpu")
    assert done.returncode == 1
    assert "me@gpu cannot be reached (ssh: no route to host); try: ssh me@gpu true" in done.stderr
    done = klineage(away, "gate", str(KERNEL), "--workload", str(ROWS), "--host", "-oProxyCommand=x")
    assert done.returncode in (1, 2)


def test_a_batch_goes_out_and_comes_back(away: dict[str, str], tmp_path: Path) -> None:
    space = str(tmp_path / "space")
    assert klineage(away, "new", str(KERNEL), "--workload", str(ROWS), "-w", space).returncode == 0
    name = json.loads(klineage(away, "list", "-w", space, "--json").stdout)[0]["id"]
    batch = tmp_path / "batch.py"
    done = klineage(away, "gate-batch", "export", str(batch), "--lineage", name, "-w", space)
    assert done.returncode == 0, done.stderr
    assert "1 gate; on the other machine: python3 batch.py > batch.results" in done.stdout
    assert f"klineage gate-batch import batch.results -w {space}\n" in done.stdout
    done = klineage(away, "gate-batch", "run", str(batch))
    assert done.returncode == 0, done.stderr
    results = tmp_path / "batch.results"
    done = klineage(away, "gate-batch", "import", str(results), "-w", space, "--json")
    assert done.returncode == 0, done.stderr
    (noted,) = json.loads(done.stdout)["noted"]
    assert noted["report"]["trust"] == "measured-cpu"
    results.write_text(results.read_text().replace('"measured-cpu"', '"measured-gpu"'))
    done = klineage(away, "gate-batch", "import", str(results), "-w", space)
    assert done.returncode == 1
    assert "was edited after the run" in done.stdout
    done = klineage(away, "gate-batch", "run", str(KERNEL))
    assert (done.returncode, "is no batch file" in done.stderr) == (1, True)
