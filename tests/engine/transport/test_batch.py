"""A batch goes out as one file and comes back as results, which are believed only if they are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from klineage.errors import KlineageError
from klineage.gate import GateRequest, Verdict
from klineage.gate.batch import Item, export, read_key, read_results, seal
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.walk import Walk, new_lineage
from klineage.walk.batch import export_lineage, import_results
from klineage.workload import Workload

from .conftest import ROWS

KEY = bytes(range(32))
MakeC = Callable[..., Kernel]
#: No klineage, no msgspec, no platformdirs: numpy alone, as on a machine where nothing was installed.
BARE = """
import importlib.abc, runpy, sys
class No(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("msgspec", "platformdirs", "tree_sitter", "git"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, No())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def carried(file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a batch file as on another machine."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(file.parent), "TMPDIR": str(file.parent)}
    command = [sys.executable, "-c", BARE, str(file), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A batch of a good kernel and a wrong one, and what it printed."""
    from klineage.workload import load

    rows, folder = load(ROWS), tmp_path_factory.mktemp("batch")
    text = (ROWS.parent / "transport" / "rows.c").read_bytes()
    good = Kernel("c", "kernel.c", "rows_kernel", text)
    wrong = Kernel("c", "kernel.c", "rows_kernel", text.replace(b"alpha *", b"2 * alpha *"))
    file = folder / "batch.py"
    items = [
        Item("the good one", GateRequest(good, rows, "cpu-native"), "c0ffee"),
        Item("the wrong one", GateRequest(wrong, rows, "cpu-native", good)),
    ]
    file.write_text(export(items, KEY))
    done = carried(file)
    yield {"file": file, "done": done, "good": good, "wrong": wrong}


def test_a_batch_runs_where_nothing_is_installed(ran: dict[str, Any]) -> None:
    assert ran["done"].returncode == 0, ran["done"].stderr
    results, refused = read_results(ran["done"].stdout.encode(), "r", KEY)
    assert refused == []
    assert [(r.label, r.report.verdict, r.commit) for r in results] == [
        ("the good one", Verdict.PASS, "c0ffee"),
        ("the wrong one", Verdict.FAIL, ""),
    ]
    assert results[1].report.baseline == ran["good"].hash
    assert "the good one" in ran["done"].stderr
    assert sorted(p.name for p in ran["file"].parent.iterdir()) == ["batch.py"]


def test_a_batch_says_what_is_in_it(ran: dict[str, Any]) -> None:
    done = carried(ran["file"], "--list")
    assert done.returncode == 0, done.stderr
    assert "the wrong one  for cpu-native" in done.stdout


def resealed(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "seal": seal(found["token"], found["report"])}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: {**r, "report": {**r["report"], "platform": "cpu-x86-64"}}, "is for platform cpu-x86-64"),
        (
            lambda r: {**r, "report": {**r["report"], "kernel": "0" * 64}},
            "is of another kernel: 000000000000",
        ),
        (lambda r: {**r, "report": {**r["report"], "workload": "0" * 64}}, "is of another workload"),
        (lambda r: {**r, "report": {**r["report"], "policy": "0"}}, "is for policy 0"),
        (lambda r: {**r, "report": {**r["report"], "finished": ""}}, "was edited after the run"),
        (
            lambda r: {**r, "bound": {**r["bound"], "kernel": "0" * 64}},
            "is of no batch that was exported here",
        ),
        (lambda r: {**r, "bound": {**r["bound"], "nonce": "0"}}, "is of no batch that was exported here"),
        (lambda r: {**r, "token": "é"}, "is of no batch that was exported here"),
        (lambda r: {**r, "program": "0" * 64}, "was made by an edited batch file"),
        (lambda r: {"klineage-batch": 1, "label": "x"}, "lacks a part"),
        (lambda r: {**r, "klineage-batch": 2}, "of this version"),
        (lambda r: {**r, "refused": "no"}, "was not gated: no"),
        (lambda r: resealed({**r, "report": {**r["report"], "stages": 7}}), "not a gate report"),
    ],
)
def test_a_result_that_is_not_its_own_is_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]], says: str, ran: dict[str, Any]
) -> None:
    lines = ran["done"].stdout.splitlines()
    changed = json.dumps(change(json.loads(lines[0])))
    results, refused = read_results("\n".join([changed, lines[1]]).encode(), "results", KEY)
    assert [r.label for r in results] == ["the wrong one"]  # the others stay good
    (sentence,) = refused
    assert sentence.startswith("results:1: ")
    assert says in sentence


def test_another_users_results_are_refused(ran: dict[str, Any]) -> None:
    results, refused = read_results(ran["done"].stdout.encode(), "r", bytes(32))
    assert (results, len(refused)) == ([], 2)


def test_no_results_at_all() -> None:
    with pytest.raises(KlineageError, match="python3 FILE > RESULTS"):
        read_results(b"\n", "r", KEY)


def test_an_edited_batch_file_is_noticed(ran: dict[str, Any], tmp_path: Path) -> None:
    text = ran["file"].read_text()
    gate = text.index("def _progress")
    edited = tmp_path / "edited.py"
    edited.write_text(text[:gate] + text[gate:].replace("def _progress", "def  _progress", 1))
    done = carried(edited, "--only", "1")
    results, refused = read_results(done.stdout.encode(), "r", KEY)
    assert results == []
    assert "edited batch file" in refused[0]


def test_an_edited_kernel_is_not_gated(ran: dict[str, Any], tmp_path: Path) -> None:
    text = ran["file"].read_text()
    edited = tmp_path / "edited.py"
    edited.write_text(text.replace('"rows_kernel"', '"other_kernel"'))
    done = carried(edited)
    assert done.returncode == 1
    _, refused = read_results(done.stdout.encode(), "r", KEY)
    assert len(refused) == 2
    assert all("edited after the export" in sentence for sentence in refused)


def test_a_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "data" / "batch.key"
    key = read_key(path)
    assert read_key(path) == key
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"short")
    with pytest.raises(KlineageError, match="damaged"):
        read_key(path)


def test_reports_become_notes_on_the_steps_of_their_kernels(
    tmp_path: Path, rows: Workload, c: MakeC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    source = tmp_path / "kernel.c"
    source.write_bytes(c().source)
    workspace = Workspace.create(tmp_path / "space")
    try:
        name = new_lineage(workspace, source, ROWS)
        walk = Walk(workspace, name)
        file = tmp_path / "batch.py"
        assert export_lineage(walk, file, "cpu-native") == 1
        done = carried(file)
        assert done.returncode == 0, done.stderr
        results = tmp_path / "batch.results"
        results.write_text(done.stdout)
        found = import_results(workspace, results)
        ((step, report),) = found.noted
        assert (step.number, report.platform, report.verdict) == (0, "cpu-native", Verdict.PASS)
        assert found.refused == ()
        assert walk.reports(step.commit) == (report,)
        again = import_results(workspace, results)
        assert (again.noted, again.known) == ((), (report,))
        assert len(walk.reports(step.commit)) == 1
    finally:
        workspace.close()
