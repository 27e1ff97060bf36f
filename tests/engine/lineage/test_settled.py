"""What persons settled, and forward edits worth keeping: in git, undone or not, and refused when damaged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature
from klineage.lineage import KeptEdit, Settlement, Workspace, bundle_create, bundle_open

FUSION = Settlement(
    Feature("kernel.c::gemm", "fusion"), "present", "one sweep", who="A. Curator", at="0" * 40
)
EDIT = KeptEdit("a" * 64, "b" * 64, "command:mine", b"\xff\r\nint x;\r")


def test_a_word_is_a_decision_like_any_other(walk: Workspace) -> None:
    said = walk.settle("gemm", FUSION)
    assert walk.settled("gemm") == (said,)
    changed = walk.settle("gemm", Settlement(FUSION.feature, "absent", "a second look"))
    assert walk.settled("gemm") == (changed,)
    assert changed.who, "whoever git knows"
    other = walk.settle("gemm", Settlement(FUSION.feature, "absent", "for another reason", cue="a loop"))
    assert walk.settled("gemm") == (changed, other)
    assert walk.undo("gemm") == "settle: kernel.c::gemm / fusion is absent"
    assert walk.settled("gemm") == (changed,)
    walk.undo("gemm")
    assert walk.settled("gemm") == (said,)
    walk.undo("gemm")
    assert walk.settled("gemm") == ()
    walk.redo("gemm")
    assert walk.settled("gemm") == (said,)
    assert Workspace.open(walk.path).settled("gemm") == (said,)


def test_a_word_on_an_outdated_head_is_refused(walk: Workspace) -> None:
    old = walk.history("gemm")[0].commit
    with pytest.raises(KlineageError, match="another klineage has moved this lineage"):
        walk.settle("gemm", FUSION, expected_head=old)
    assert walk.settled("gemm") == ()


def test_edits_keep_every_byte_and_are_no_decision(walk: Workspace) -> None:
    before = walk.undoable("gemm")
    walk.keep_edit("gemm", EDIT)
    other = KeptEdit("c" * 64, "b" * 64, "person", b"")
    walk.keep_edit("gemm", other)
    assert walk.edits("gemm") == {EDIT.key: EDIT, other.key: other}
    better = KeptEdit(EDIT.before, EDIT.after, "model:x\ny", b"int y;\n")
    walk.keep_edit("gemm", better)
    assert walk.edits("gemm")[EDIT.key] == KeptEdit(EDIT.before, EDIT.after, "model:x y", b"int y;\n")
    assert walk.undoable("gemm") == before


def test_a_bundle_carries_both(walk: Workspace, tmp_path: Path) -> None:
    walk.settle("gemm", FUSION)
    walk.keep_edit("gemm", EDIT)
    bundle_create(walk, "gemm", tmp_path / "one.bundle")
    there = Workspace.create(tmp_path / "there")
    assert bundle_open(tmp_path / "one.bundle", there) == "gemm"
    assert there.settled("gemm") == walk.settled("gemm")
    assert there.edits("gemm") == walk.edits("gemm")
    assert bundle_open(tmp_path / "one.bundle", there) == "gemm", "twice changes nothing"
    there.close()


def damage(workspace: Workspace, ref: str, name: str, data: bytes) -> None:
    """Put other bytes where klineage keeps its own."""

    def git(*words: str, **more: object) -> str:
        command = ["git", "-C", str(workspace.path), *words]
        return subprocess.run(command, capture_output=True, check=True, **more).stdout.decode().strip()  # type: ignore[call-overload,no-any-return]

    blob = git("hash-object", "-w", "--stdin", input=data)
    tree = git("mktree", input=f"100644 blob {blob}\t{name}\n".encode())
    git("update-ref", ref, git("commit-tree", tree, "-m", "damage"))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"schema": 2, "settled": []}', b'{"schema": 1, "settled": [{"name": 1}]}']
)
def test_damaged_records_are_named_with_the_way_out(walk: Workspace, tmp_path: Path, data: bytes) -> None:
    damage(walk, "refs/klineage/settled/gemm", "settled.json", data)
    with pytest.raises(KlineageError, match=r"git update-ref -d refs/klineage/settled/gemm drops it"):
        walk.settled("gemm")
    damage(walk, "refs/klineage/edits/gemm", "edits.json", data.replace(b"settled", b"edits"))
    with pytest.raises(KlineageError, match=r"git update-ref -d refs/klineage/edits/gemm drops them"):
        walk.edits("gemm")
    bundle_create(walk, "gemm", tmp_path / "one.bundle")
    there = Workspace.create(tmp_path / "there")
    with pytest.raises(KlineageError, match="cannot be read"):
        bundle_open(tmp_path / "one.bundle", there)
    assert there.lineages() == []
    there.close()
