"""card and library on the command line: edits, decisions, pulls; what is wrong is said, and no text is lost."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klineage_tui.cli import main

Said = Callable[..., str]
CARD = "c.prefetch"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Ann Curator\n\temail = ann@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    from klineage.lineage import Workspace

    Workspace.create(tmp_path / "work").close()
    return tmp_path / "work"


@pytest.fixture
def klineage(place: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    """Run one command on the workspace; returns what it printed, errors last."""

    def run(*words: str, code: int = 0, where: Path | None = None) -> str:
        assert main([*words, "-w", str(where or place)]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


@pytest.fixture
def begun(klineage: Said) -> Said:
    klineage(
        "card", "edit", CARD, "--new", "--reason", "seen in gemm", "--set", "intent=Fetch ahead",
        "--set", "preconditions.p1.text=the array is larger than the cache", "--who", "Bo Reviewer",
    )  # fmt: skip
    return klineage


def editor(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """An editor that does what ``body`` says with ``path`` each time it is opened."""
    script = folder / "editor.py"
    script.write_text(f"import sys\nfrom pathlib import Path\npath = Path(sys.argv[-1])\n{body}\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")


def shown(klineage: Said, card_id: str = CARD) -> dict[str, Any]:
    return dict(json.loads(klineage("card", "show", card_id, "--json"))["card"])


def test_a_card_is_begun_edited_and_its_history_told(begun: Said) -> None:
    said = begun("card", "edit", CARD, "--set", "intent=Fetch early", "--reason", "it was vague")
    assert f"{CARD} is saved; klineage card undo -w" in said
    assert "error: evidence: the card has no evidence" in said
    listed = json.loads(begun("card", "list", "--json"))
    assert [(row["id"], row["status"], row["problem"]) for row in listed] == [(CARD, "hypothesis", None)]
    history = begun("card", "history", CARD, "--diff")
    assert re.search(
        r"Ann Curator +Edit c\.prefetch: intent\n +it was vague\n +intent: Fetch ahead -> Fetch early",
        history,
    )
    assert re.search(r"Bo Reviewer +Add c\.prefetch\n +seen in gemm", history)
    assert "taken back: Edit c.prefetch: intent" in begun("card", "undo")
    assert shown(begun)["intent"] == "Fetch ahead"
    begun("card", "redo")
    assert shown(begun)["intent"] == "Fetch early"
    oldest = json.loads(begun("card", "history", CARD, "--json"))[-1]["commit"]
    assert "intent: Fetch ahead\n" in begun("card", "show", CARD, "--at", oldest)


def test_the_editors_text_is_taken_byte_for_byte(
    begun: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor(
        monkeypatch,
        tmp_path,
        "path.write_bytes(b'---\\n# mine\\n' + path.read_bytes()[4:].replace(b'ahead', b'soon'))",
    )
    begun("card", "edit", CARD, "--reason", "by hand")
    source = json.loads(begun("card", "show", CARD, "--json"))["source"]
    assert source.startswith("---\n# mine\n")
    assert shown(begun)["intent"] == "Fetch soon"
    editor(monkeypatch, tmp_path, "")
    assert begun("card", "edit", CARD, "--reason", "nothing") == "nothing changed\n"


def test_a_broken_edit_is_named_by_line_and_kept(
    begun: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor(monkeypatch, tmp_path, "path.write_bytes(path.read_bytes().replace(b'intent:', b'intnet:'))")
    said = begun("card", "edit", CARD, "--reason", "by hand", code=1)
    kept = re.search(r"c\.prefetch\.md:4: .*'intnet'.*nothing was saved; your text is in (\S+);", said)
    assert kept
    text = Path(kept[1]).read_bytes()
    assert b"intnet: Fetch ahead" in text
    Path(kept[1]).write_bytes(text.replace(b"intnet: Fetch ahead", b"intent: Fetch late"))
    begun("card", "edit", CARD, "--file", kept[1], "--reason", "mended")
    assert shown(begun)["intent"] == "Fetch late"


def test_in_a_terminal_the_editor_opens_again_until_it_is_right(
    begun: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    editor(
        monkeypatch, tmp_path,
        "old = path.read_text()\n"
        "new = old.replace('intnet:', 'intent:') if 'intnet' in old else old.replace('intent: Fetch ahead', 'intnet: Fetch far')\n"
        "path.write_text(new)",
    )  # fmt: skip
    monkeypatch.setattr("sys.stdin", Terminal("y\nsecond thoughts\n"))
    assert "did you mean intent?" in begun("card", "edit", CARD)
    assert shown(begun)["intent"] == "Fetch far"
    assert "second thoughts" in begun("card", "history", CARD)
    monkeypatch.setattr("sys.stdin", Terminal(""))
    editor(monkeypatch, tmp_path, "path.write_text(path.read_text().replace('far', 'near'))")
    said = begun("card", "edit", CARD, code=1)
    assert "stopped; nothing was saved; your text is in " in said


def test_two_editors_of_different_fields_both_win(
    begun: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: Path
) -> None:
    meanwhile = (
        "import subprocess\n"
        f"subprocess.run([sys.executable, '-m', 'klineage_tui.cli', 'card', 'edit', '{CARD}', '--set', '%s', "
        f"'--reason', 'meanwhile', '--who', 'Cy', '-w', {str(place)!r}], check=True, capture_output=True)\n"
        "path.write_text(path.read_text().replace('Fetch ahead', 'Fetch early'))"
    )
    editor(monkeypatch, tmp_path, meanwhile % "locus=for")
    assert "edited meanwhile, elsewhere in it; both edits are kept" in begun(
        "card", "edit", CARD, "--reason", "mine"
    )
    card = shown(begun)
    assert (card["intent"], card["locus"]) == ("Fetch early", "for")
    begun("card", "edit", CARD, "--set", "intent=Fetch ahead", "--reason", "again")
    editor(monkeypatch, tmp_path, meanwhile % "intent=Fetch late")
    said = begun("card", "edit", CARD, "--reason", "mine", code=1)
    assert "somebody has edited intent of c.prefetch meanwhile; nothing was saved; your text is in " in said
    assert shown(begun)["intent"] == "Fetch late"


def test_decisions_on_whole_cards(begun: Said) -> None:
    begun("card", "edit", "c.prefetching", "--new", "--set", "intent=Fetch ahead", "--set", "action=prefetch",
          "--set", "preconditions.p1.text=rows are dense", "--reason", "seen in topk")  # fmt: skip
    assert "c.prefetch  c.prefetching: " in begun("card", "list", "--twins")
    assert "c.prefetching is merged into c.prefetch" in begun(
        "card", "merge", CARD, "c.prefetching", "--reason", "the same"
    )
    assert [p["text"] for p in shown(begun)["preconditions"]] == [
        "the array is larger than the cache",
        "rows are dense",
    ]
    assert shown(begun, "c.prefetching")["retired"] == "merged into c.prefetch: the same"
    begun(
        "card",
        "split",
        CARD,
        "c.dense",
        "--intent",
        "Fetch rows",
        "--move",
        "preconditions.p2",
        "--reason",
        "two things",
    )
    assert [p["key"] for p in shown(begun)["preconditions"]] == ["p1"]
    assert shown(begun, "c.dense")["intent"] == "Fetch rows"
    begun("card", "retire", "c.dense", "--reason", "of no use")
    assert "retired" in begun("card", "list", "--status", "retired")
    assert "c.dense is retired already: of no use" in begun(
        "card", "retire", "c.dense", "--reason", "x", code=1
    )
    for title in ("Retire c.dense", "Split c.dense off c.prefetch", "Merge c.prefetching into c.prefetch"):
        assert begun("card", "undo") == f"taken back: {title}\n"
    assert shown(begun, "c.prefetching")["status"] == "hypothesis"


def test_a_broken_card_in_a_folder_is_named_and_the_rest_listed(begun: Said, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    assert "1 card, 0 reports and 0 lineages" in begun("library", "write", str(folder), "--all")
    (folder / "cards" / "c.broken.md").write_text("---\nid: c.broken\nintent: [\n---\n")
    listed = begun("card", "list", "--library", str(folder))
    assert re.search(r"^broken +c\.broken +.*cards/c\.broken\.md:\d+: ", listed, re.MULTILINE)
    assert CARD in listed
    rows = json.loads(begun("card", "lint", "--library", str(folder), "--json", code=1))
    assert {row["id"] for row in rows if row["severity"] == "error"} == {CARD, "c.broken"}
    assert "klineage library pull" in begun(
        "card", "retire", CARD, "--reason", "x", "--library", str(folder), code=1
    )


def test_a_shipped_card_can_be_looked_up_where_its_lineage_has_another_name(
    klineage: Said, tmp_path: Path
) -> None:
    from shutil import copy

    from klineage.resources import shipped

    kernel = shipped("experts") / "add_rmsnorm" / "cuda" / "kernel.cu"
    klineage("new", str(kernel), "--workload", "add_rmsnorm", "--platform", "nvidia-sm90")
    card, source = "cuda.register-tile", shipped("library") / "nvidia-sm90"
    (tmp_path / "cards").mkdir()
    copy(source / "cards" / f"{card}.md", tmp_path / "cards")
    for part in ("reports", "bundles"):
        (tmp_path / part).symlink_to(source / part)
    said = klineage("library", "pull", str(tmp_path))
    assert "lineage  add_rmsnorm-cuda-2, which is add_rmsnorm-cuda there: that name is taken here\n" in said
    assert "left out" not in said
    rows = json.loads(klineage("card", "lint", card, "--json"))
    assert [row for row in rows if row["field"].startswith(("evidence", "contract"))] == []


def test_a_check_that_cannot_be_read_is_refused_with_its_place(
    begun: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = "preconditions.p1.check"
    said = begun("card", "edit", CARD, "--set", f"{check}=k >= 5 and", "--reason", "x", code=1)
    assert re.search(
        r"c\.prefetch\.md:\d+: preconditions\.p1\.check: the check cannot be read as an expression: "
        r"invalid syntax, character \d+, at its end; write one such as",
        said,
    )
    said = begun("card", "edit", CARD, "--set", f"{check}=k = 5 or m", "--reason", "x", code=1)
    assert re.search(r"character \d, at '.*= 5 or m'", said)
    said = begun("card", "edit", CARD, "--set", "anchor.query=(nothing) @anchor", "--reason", "x", code=1)
    assert re.search(r"c\.prefetch\.md:\d+: anchor\.query: ", said)
    editor(
        monkeypatch,
        tmp_path,
        "path.write_text(path.read_text().replace('kind: storage', 'kind: storage\\n    check: n >'))",
    )
    said = begun("card", "edit", CARD, "--reason", "x", code=1)
    assert re.search(r"c\.prefetch\.md:\d+: preconditions\.p1\.check: .* at its end", said)
    assert "your text is in" in said
    assert shown(begun)["preconditions"][0]["check"] == ""
    begun("card", "edit", CARD, "--set", f"{check}=k >= 5", "--reason", "x")
    assert shown(begun)["preconditions"][0]["check"] == "k >= 5"


def test_pull_conflict_diff_and_take(begun: Said, tmp_path: Path, place: Path) -> None:
    from klineage.lineage import Workspace

    other = tmp_path / "other"
    Workspace.create(other).close()
    assert "new      c.prefetch" in begun("library", "pull", str(place), where=other)
    begun("card", "edit", CARD, "--set", "intent=Theirs", "--reason", "x")
    begun("card", "edit", CARD, "--set", "intent=Ours", "--set", "locus=for", "--reason", "x", where=other)
    diff = json.loads(begun("library", "diff", str(place), str(other), "--json"))
    assert [(c["field"], c["before"], c["after"]) for c in diff["changed"][CARD]] == [
        ("intent", "Theirs", "Ours"), ("locus", "function", "for"),
    ]  # fmt: skip
    said = begun("library", "merge", str(place), where=other, code=1)
    assert "CONFLICT cards/c.prefetch.md:4: intent; ours: Ours; theirs: Theirs; before: Fetch ahead" in said
    assert "--take CARD:FIELD=ours" in said
    assert "--take cannot be 'intent'" in begun(
        "library", "merge", str(place), "--take", "intent", where=other, code=1
    )
    begun("library", "merge", str(place), "--take", f"{CARD}:intent=theirs", where=other)
    card = json.loads(begun("card", "show", CARD, "--json", where=other))["card"]
    assert (card["intent"], card["locus"]) == ("Theirs", "for")
    assert "nothing new" in begun("library", "pull", str(place), where=other)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "c.none"], "there is no card 'c.none'"),
        (["edit", CARD, "--set", "intent=x"], "say why with --reason"),
        (["edit", CARD, "--set", "intent", "--reason", "x"], "write FIELD=VALUE"),
        (["edit", CARD, "--set", "status=good", "--reason", "x"], "write hypothesis, admitted, retired"),
        (["edit", CARD, "--new", "--reason", "x"], "edit it without --new"),
        (["edit", "Bad Name", "--new", "--reason", "x"], "cannot name a card"),
        (["merge", CARD, CARD, "--reason", "x"], "cannot be merged with itself"),
        (["retire", "c.none", "--reason", "x"], "no card 'c.none'"),
        (["redo"], "nothing to redo"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_one_sentence(begun: Said, words: list[str], said: str) -> None:
    refused = begun("card", *words, code=1)
    assert said in refused
    assert refused.startswith("klineage: ")
    assert refused.count("\n") == 1
