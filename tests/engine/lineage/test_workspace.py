"""What is written is what is read: steps, files, rejected attempts, reports, drafts, the sealed lineage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Draft, ForwardRecord, Meta, Step, StepRecord, Workspace
from klineage.lineage.message import clean

Record = Callable[..., StepRecord]
Kernel = Callable[[int], bytes]
Plain = Callable[..., str]


def test_a_walk_reads_back_to_the_last_byte(
    walk: Workspace, record: Record, kernel: Kernel, meta: Meta
) -> None:
    fresh = Workspace.open(walk.path)
    steps = fresh.history("gemm")
    assert [step.number for step in steps] == [0, 1, 2, 3]
    assert [step.direction for step in steps] == ["root", "backward", "backward", "backward"]
    assert [step.decision for step in steps] == ["opened", "accepted", "accepted", "accepted"]
    assert [step.parent for step in steps] == ["", *(step.commit for step in steps[:-1])]
    assert steps == walk.history("gemm")
    for number, step in enumerate(steps):
        files = fresh.read(step.commit)
        assert files == {
            "kernel.c": kernel(number),
            "workload.py": b"SIZES = {}\r\n",
            "lineage.json": meta.to_json(),
        }
        assert fresh.meta(step.commit) == meta
    said = clean(record(2))
    assert all(
        getattr(steps[2], name) == getattr(said, name)
        for name in ("body", "removes", "settings", "ratio", "why")
    )
    fresh.close()


def test_reports_are_kept_per_commit_and_grow(walk: Workspace, plain: Plain) -> None:
    head = walk.head("gemm").commit
    walk.add_report(head, '{"platform": "other"}')
    assert walk.reports(head) == ['{"step": 3, "samples": [1.5, 2.5]}', '{"platform": "other"}']
    assert plain(walk.path, "notes", "--ref=klineage", "show", head).split("\n")[1] == '{"platform": "other"}'
    plain(walk.path, "notes", "--ref=klineage", "append", "-m", '{"by": "hand"}', head)
    walk.add_report(head, '{"last": 1}')
    assert walk.reports(head)[2:] == ['{"by": "hand"}', '{"last": 1}']
    assert plain(walk.path, "notes", "--ref=klineage", "list").count("\n") == 4
    with pytest.raises(ValueError, match="Expecting"):
        walk.add_report(head, "not json")
    assert len(walk.reports(head)) == 4


def test_the_configuration_of_a_state_may_change(walk: Workspace, record: Record, meta: Meta) -> None:
    other = replace(meta, config=(("TILE", 1),))
    step = walk.accept("gemm", record(4), {"kernel.c": b"x"}, meta=other)
    assert walk.meta(step.commit) == other
    assert walk.meta(step.parent) == meta


def test_an_edited_step_says_so(walk: Workspace, record: Record) -> None:
    assert walk.accept("gemm", record(4, edited=True), {"kernel.c": b"x"}).decision == "edited"


def test_rejected_attempts_hang_on_the_state_they_were_tried_on(
    walk: Workspace, record: Record, plain: Plain
) -> None:
    states = walk.history("gemm")
    first = walk.reject("gemm", record(8), {"kernel.c": b"bad"}, '{"verdict": "fail"}', on=states[1].commit)
    second = walk.reject("gemm", record(9), {"kernel.c": b"worse"})
    assert walk.rejected("gemm") == [first, second]
    assert (first.decision, first.parent, first.number) == ("rejected", states[1].commit, 2)
    assert second.parent == states[3].commit
    assert walk.read(first.commit)["kernel.c"] == b"bad"
    assert walk.reports(first.commit) == ['{"verdict": "fail"}']
    assert walk.history("gemm") == states
    listed = plain(walk.path, "for-each-ref", "--format=%(refname)", "refs/klineage/rejected/")
    assert listed.split() == ["refs/klineage/rejected/gemm/1", "refs/klineage/rejected/gemm/2"]


def test_ten_rejected_attempts_stay_in_order(walk: Workspace, record: Record) -> None:
    for number in range(11):
        walk.reject("gemm", record(number), {"kernel.c": b"%d" % number})
    assert [step.subject for step in walk.rejected("gemm")] == [f"Remove mechanism {n}" for n in range(11)]


def seal(walk: Workspace, record: Record, kernel: Kernel) -> list[Step]:
    states = walk.history("gemm")
    forward = [
        ForwardRecord(
            record(10 + number, who=""),
            {"kernel.c": kernel(2 - number)},
            "derived",
            states[3 - number].commit,
            "{}",
        )
        for number in range(3)
    ]
    return walk.seal("gemm", forward, "Ann", expected_head=states[-1].commit)


def test_a_sealed_lineage_goes_from_naive_to_expert(walk: Workspace, record: Record, kernel: Kernel) -> None:
    assert walk.lineage("gemm") == []
    assert not walk.sealed("gemm")
    steps = seal(walk, record, kernel)
    assert [walk.read(step.commit)["kernel.c"] for step in steps] == [
        kernel(3),
        kernel(2),
        kernel(1),
        kernel(0),
    ]
    assert [step.number for step in steps] == [0, 1, 2, 3]
    assert {step.decision for step in steps} == {"sealed"}
    assert [step.direction for step in steps] == ["root", "forward", "forward", "forward"]
    assert [step.forward for step in steps] == ["", "derived", "derived", "derived"]
    assert {step.who for step in steps} == {"Ann"}
    assert steps[1].reverses == walk.history("gemm")[3].commit
    assert walk.reports(steps[0].commit) == walk.reports(walk.head("gemm").commit)
    assert walk.sealed("gemm")
    walk.accept("gemm", record(4), {"kernel.c": b"simpler"})
    assert not walk.sealed("gemm")
    assert walk.lineage("gemm") == steps


def test_blame_names_the_optimization_behind_each_line(walk: Workspace, plain: Plain) -> None:
    walk.accept("gemm", StepRecord("Simplest"), {"kernel.c": b"a\nz"})
    walk.seal(
        "gemm",
        [
            ForwardRecord(StepRecord("Add b"), {"kernel.c": b"a\nb\r\nz"}, "replayed"),
            ForwardRecord(StepRecord("Add c"), {"kernel.c": b"\tc\na\nb\r\nz"}, "replayed"),
        ],
    )
    blamed = walk.blame("gemm")
    assert [(line.text, line.step.subject) for line in blamed] == [
        (b"\tc\n", "Add c"),
        (b"a\n", "Start from the simplest kernel"),
        (b"b\r\n", "Add b"),
        (b"z\n", "Start from the simplest kernel"),
    ]
    short = [
        line.split(" ")[0].lstrip("^")
        for line in plain(walk.path, "blame", "-s", "lineage/gemm", "--", "kernel.c").split("\n")[:4]
    ]
    assert all(line.step.commit.startswith(commit) for line, commit in zip(blamed, short, strict=True))


def test_blame_of_an_unsealed_lineage_says_what_to_do(walk: Workspace) -> None:
    with pytest.raises(KlineageError, match="klineage seal gemm"):
        walk.blame("gemm")


def test_a_draft_is_saved_replaced_and_cleared(walk: Workspace) -> None:
    assert walk.load_draft("gemm") is None
    walk.clear_draft("gemm")
    walk.save_draft("gemm", "kernel.c", b"half\r\n", "My idea")
    walk.save_draft("gemm", "kernel.c", b"whole\xff", "My  idea\nLineage-Id: x")
    draft = Workspace.open(walk.path).load_draft("gemm")
    assert draft is not None
    assert draft == Draft(
        "kernel.c", b"whole\xff", "My idea Lineage-Id: x", walk.head("gemm").commit, draft.when
    )
    walk.clear_draft("gemm")
    assert walk.load_draft("gemm") is None
    assert len(walk.operations("gemm")) == 4


def test_lineages_are_listed_with_what_is_broken(walk: Workspace, meta: Meta, plain: Plain) -> None:
    clock = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
    later = Workspace.open(walk.path, clock=lambda: clock)
    later.new(replace(meta, id="fmha", title="Attention"), {"kernel.c": b"", "workload.py": b""})
    tree = plain(walk.path, "mktree", data="").strip()
    foreign = plain(walk.path, "commit-tree", tree, "-m", "Ours is no lineage").strip()
    plain(walk.path, "branch", "walk/the-dog", foreign)
    broken = plain(
        walk.path, "commit-tree", tree, "-m", "Amended by hand", "-p", walk.head("gemm").commit
    ).strip()
    plain(walk.path, "update-ref", "refs/heads/walk/gemm", broken)
    fmha, gemm = later.lineages()
    assert (fmha.id, fmha.title, fmha.steps, fmha.sealed, fmha.problem) == ("fmha", "Attention", 0, False, "")
    assert fmha.updated == datetime(2030, 1, 1, tzinfo=UTC)
    assert gemm.meta is None
    assert broken[:12] in gemm.problem
    with pytest.raises(KlineageError, match=f"commit {broken[:12]} is not a lineage step"):
        later.history("gemm")
    later.close()


def test_a_corrupt_lineage_file_names_the_commit(walk: Workspace, record: Record, plain: Plain) -> None:
    blob = plain(walk.path, "hash-object", "-w", "--stdin", data='{"schema": 1}').strip()
    tree = plain(walk.path, "mktree", data=f"100644 blob {blob}\tlineage.json\n").strip()
    message = plain(walk.path, "log", "-1", "--format=%B", "walk/gemm")
    commit = plain(walk.path, "commit-tree", tree, data=message).strip()
    with pytest.raises(
        KlineageError, match=f"lineage.json of commit {commit[:12]} cannot be read: missing or wrong: id"
    ):
        walk.meta(commit)


@pytest.mark.parametrize(
    "name", ["", "A", "a/b", "..", "a..b", ".a", "a.", "a b", "a.lock", "a~", "-a", "é", "a" * 101]
)
def test_an_id_that_git_could_not_hold_is_refused(workspace: Workspace, meta: Meta, name: str) -> None:
    with pytest.raises(KlineageError, match="cannot name a lineage"):
        workspace.new(replace(meta, id=name), {"kernel.c": b""})


@pytest.mark.parametrize("name", ["a/b", "..", ".git", "lineage.json", "", "a\0b"])
def test_a_file_that_is_no_plain_file_is_refused(walk: Workspace, record: Record, name: str) -> None:
    with pytest.raises(KlineageError, match="cannot be a file"):
        walk.accept("gemm", record(4), {name: b""})
    assert len(walk.history("gemm")) == 4


def test_odd_file_names_survive(walk: Workspace, record: Record) -> None:
    names = {'a "b" \\n.c': b"1", "é 核.c": b"2", "-x": b"3", "new\nline": b"4"}
    step = walk.accept("gemm", record(4), names)
    assert names.items() <= walk.read(step.commit).items()


def test_wrong_questions_get_sentences(walk: Workspace, meta: Meta, record: Record) -> None:
    with pytest.raises(KlineageError, match="no lineage 'fmha'"):
        walk.history("fmha")
    with pytest.raises(KlineageError, match="already"):
        walk.new(meta, {"kernel.c": b""})
    with pytest.raises(KlineageError, match="no commit"):
        walk.read("0" * 40)
    with pytest.raises(KlineageError, match="another klineage has moved this lineage; reload"):
        walk.accept("gemm", record(4), {"kernel.c": b""}, expected_head=walk.history("gemm")[0].commit)


def test_large_and_empty_kernels(walk: Workspace, record: Record) -> None:
    for data in (b"", b"x" * 3_000_000, b"\n" * 5000, b"\0\1\2"):
        step = walk.accept("gemm", record(4), {"kernel.c": data})
        assert walk.read(step.commit)["kernel.c"] == data


def test_the_same_input_makes_the_same_commits(tmp_path: Path, meta: Meta, record: Record) -> None:
    heads = []
    for name in ("a", "b"):
        workspace = Workspace.create(tmp_path / name, clock=lambda: 1_700_000_000.0)
        workspace.new(meta, {"kernel.c": b"0"}, "Ann")
        workspace.reject("gemm", record(1), {"kernel.c": b"1"}, "{}")
        heads.append(
            (workspace.accept("gemm", record(1), {"kernel.c": b"1"}).commit, workspace.operations("gemm"))
        )
        workspace.close()
    assert heads[0] == heads[1]
