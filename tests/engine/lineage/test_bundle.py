"""A bundle carries a lineage whole, and nothing else; opening one never overwrites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import ForwardRecord, Meta, StepRecord, Workspace, bundle_create, bundle_open

Record = Callable[..., StepRecord]
Plain = Callable[..., str]


@pytest.fixture
def full(walk: Workspace, record: Record, meta: Meta) -> Workspace:
    """Two lineages; "gemm" with everything that a lineage can have."""
    walk.reject("gemm", record(8), {"kernel.c": b"bad"}, '{"verdict": "fail"}')
    walk.accept("gemm", record(9), {"kernel.c": b"undone"}, '{"undone": 1}')
    walk.undo("gemm")
    walk.seal(
        "gemm", [ForwardRecord(record(5), {"kernel.c": b"expert"}, "derived", report_json='{"forward": 1}')]
    )
    walk.save_draft("gemm", "kernel.c", b"private")
    walk.new(replace(meta, id="fmha"), {"kernel.c": b"secret"}, "Ann", '{"secret": 1}')
    return walk


def everything(workspace: Workspace) -> list[object]:
    steps = [*workspace.history("gemm"), *workspace.rejected("gemm"), *workspace.lineage("gemm")]
    return [
        steps,
        [workspace.read(step.commit) for step in steps],
        [workspace.reports(step.commit) for step in steps],
        workspace.operations("gemm"),
        workspace.sealed("gemm"),
        workspace.redoable("gemm"),
    ]


def test_a_lineage_arrives_whole(full: Workspace, tmp_path: Path, plain: Plain) -> None:
    bundle = tmp_path / "gemm.bundle"
    bundle_create(full, "gemm", bundle)
    other = Workspace.create(tmp_path / "other")
    assert bundle_open(bundle, other) == "gemm"
    assert everything(other) == everything(full)
    assert [summary.id for summary in other.lineages()] == ["gemm"]
    assert other.load_draft("gemm") is None
    before = plain(other.path, "for-each-ref")
    assert bundle_open(bundle, other) == "gemm"
    assert plain(other.path, "for-each-ref") == before
    assert other.undo("gemm").startswith("seal: ")
    plain(other.path, "gc", "--quiet", "--prune=now")
    plain(other.path, "fsck", "--strict")
    other.close()


def test_nothing_of_another_lineage_travels(full: Workspace, tmp_path: Path, plain: Plain) -> None:
    bundle_create(full, "gemm", tmp_path / "gemm.bundle")
    plain(tmp_path, "clone", "--quiet", "--mirror", str(tmp_path / "gemm.bundle"), "mirror")
    objects = plain(tmp_path / "mirror", "cat-file", "--batch-all-objects", "--batch")
    assert "secret" not in objects
    assert "private" not in objects
    assert '"forward": 1' in objects


def test_plain_git_clones_a_bundle(full: Workspace, tmp_path: Path, plain: Plain) -> None:
    bundle_create(full, "gemm", tmp_path / "gemm.bundle")
    plain(tmp_path, "clone", "--quiet", str(tmp_path / "gemm.bundle"), "clone")
    assert (tmp_path / "clone" / "kernel.c").read_bytes() == b"expert"
    subjects = plain(tmp_path / "clone", "log", "--format=%s").split("\n")
    assert subjects[:2] == ["Remove mechanism 5", "Start from the simplest kernel"]


def test_a_bundle_joins_a_workspace_with_its_own_reports(full: Workspace, tmp_path: Path, meta: Meta) -> None:
    bundle_create(full, "gemm", tmp_path / "gemm.bundle")
    other = Workspace.create(tmp_path / "other")
    mine = other.new(replace(meta, id="mine"), {"kernel.c": b"m"}, "Bo", '{"mine": 1}')
    bundle_open(tmp_path / "gemm.bundle", other)
    assert other.reports(mine.commit) == ['{"mine": 1}']
    assert everything(other) == everything(full)
    other.close()


def test_another_version_is_never_overwritten(
    full: Workspace, tmp_path: Path, plain: Plain, record: Record
) -> None:
    bundle_create(full, "gemm", tmp_path / "gemm.bundle")
    full.accept("gemm", record(20), {"kernel.c": b"newer"})
    before = plain(full.path, "for-each-ref")
    with pytest.raises(
        KlineageError, match=r"another version of gemm; klineage bundle open gemm\.bundle --as NAME"
    ):
        bundle_open(tmp_path / "gemm.bundle", full)
    assert plain(full.path, "for-each-ref") == before


def test_an_interrupted_opening_is_completed(full: Workspace, tmp_path: Path, plain: Plain) -> None:
    bundle_create(full, "gemm", tmp_path / "gemm.bundle")
    other = Workspace.create(tmp_path / "other")
    bundle_open(tmp_path / "gemm.bundle", other)
    plain(other.path, "update-ref", "-d", "refs/klineage/rejected/gemm/1")
    plain(other.path, "update-ref", "-d", "refs/heads/lineage/gemm")
    bundle_open(tmp_path / "gemm.bundle", other)
    assert everything(other) == everything(full)
    other.close()


def test_what_is_no_bundle_of_one_sound_lineage_is_refused(
    full: Workspace, tmp_path: Path, plain: Plain
) -> None:
    source, target = full.path, Workspace.create(tmp_path / "target")
    bundle_create(full, "gemm", tmp_path / "good.bundle")
    good = (tmp_path / "good.bundle").read_bytes()
    (tmp_path / "cut.bundle").write_bytes(good[: len(good) // 2])
    (tmp_path / "text.bundle").write_text("hello")
    plain(source, "branch", "main", "walk/gemm")
    plain(source, "bundle", "create", "--quiet", str(tmp_path / "none.bundle"), "main")
    plain(source, "bundle", "create", "--quiet", str(tmp_path / "two.bundle"), "walk/gemm", "walk/fmha")
    plain(source, "bundle", "create", "--quiet", str(tmp_path / "foreign.bundle"), "walk/gemm", "main")
    plain(source, "bundle", "create", "--quiet", str(tmp_path / "part.bundle"), "walk/gemm", "^walk/gemm~1")
    tree = plain(source, "mktree", data="").strip()
    other = plain(source, "commit-tree", tree, "-m", "Not a step").strip()
    plain(source, "update-ref", "refs/heads/walk/odd", other)
    plain(source, "bundle", "create", "--quiet", str(tmp_path / "odd.bundle"), "walk/odd")
    plain(source, "update-ref", "refs/heads/walk/liar", "refs/heads/walk/gemm")
    plain(source, "bundle", "create", "--quiet", str(tmp_path / "liar.bundle"), "walk/liar")
    for name, complaint in {
        "absent": "does not exist", "text": "is not a git bundle", "cut": "is damaged or incomplete",
        "none": "holds no lineages", "two": "holds 2 lineages", "foreign": "also holds refs/heads/main",
        "part": "is damaged or incomplete", "odd": "is not a lineage step", "liar": "belongs to 'gemm'",
    }.items():  # fmt: skip
        with pytest.raises(KlineageError, match=complaint):
            bundle_open(tmp_path / f"{name}.bundle", target)
    assert plain(target.path, "for-each-ref") == ""
    target.close()


def test_a_file_that_is_no_bundle_is_not_overwritten(full: Workspace, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(KlineageError, match="will not be overwritten"):
        bundle_create(full, "gemm", tmp_path / "thesis.txt")
    with pytest.raises(KlineageError, match="no lineage"):
        bundle_create(full, "absent", tmp_path / "x.bundle")
    with pytest.raises(KlineageError, match="make it first"):
        bundle_create(full, "gemm", tmp_path / "no" / "x.bundle")
    bundle_create(full, "gemm", tmp_path / "x.bundle")
    bundle_create(full, "gemm", tmp_path / "x.bundle")
