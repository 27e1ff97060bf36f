"""What an input completes: words, then files and folders; whatever lies in a folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klineage_tui.completion import Completer, completed_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("kernel.c", "kernel.py", "notes.txt", ".hidden.c", "evil\x1b[31m.c", "zß.c"):
        (tmp_path / name).write_text("")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "gemm.cu").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_paths_are_completed_as_they_are_typed(folder: Path) -> None:
    kernels = (".c", ".cu")
    assert completed_path(f"{folder}/ker", kernels) == f"{folder}/kernel.c"
    assert completed_path("kernel.p", kernels) is None, "no kernel of these languages"
    assert completed_path("kernel.p", (".py",)) == "kernel.py"
    assert completed_path("kernels", kernels) == "kernels/"
    assert completed_path("kernels/", kernels) == "kernels/gemm.cu"
    assert completed_path("~/kernels/g", kernels) == "~/kernels/gemm.cu"
    assert completed_path(".h", kernels) == ".hidden.c"
    assert completed_path("z", kernels) == "zß.c"
    assert completed_path("ev", kernels) is None, "a name that cannot be shown is not offered"
    for nothing in ("nowhere/x", "kernel.c/x", "x" * 5_000, "\0", "~nobody-at-all/x"):
        assert completed_path(nothing, kernels) is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.one_of(st.text(max_size=12), st.sampled_from(["", ".", "..", "./", "~", "/", "//"])))
def test_a_completion_begins_with_what_is_typed_and_is_there(folder: Path, value: str) -> None:
    found = completed_path(value, (".c",))
    if found is not None:
        assert found.startswith(value) and found != value
        assert os.path.exists(os.path.expanduser(found))  # noqa: PTH110, PTH111


def test_words_come_before_paths(folder: Path) -> None:
    completer = Completer(["kernel-of-mine"], (".c",))
    assert asyncio.run(completer.get_suggestion("kern")) == "kernel-of-mine"
    assert asyncio.run(completer.get_suggestion("kernel.")) == "kernel.c"
    assert asyncio.run(Completer(["a"]).get_suggestion("kernel.")) is None
