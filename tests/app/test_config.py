"""Configuration, session state, and the external editor's command."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.proposer.settings import Settings

from klineage_tui.config import Config, editor_command, load_config
from klineage_tui.crash import log_exception
from klineage_tui.editor import arguments, edit_outside
from klineage_tui.session import Session, load_session


def test_no_file_means_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path / "config.toml") == Config()


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        'theme = "ansi"\nkeys = "vim"\neditor = "nvim -f"\nlayout = "split"\n[overrides]\naccept = "y"\n'
    )
    config = load_config(path)
    assert config == Config("ansi", "vim", "nvim -f", "split", overrides={"accept": "y"})
    assert config.keymap()["accept"] == "y"
    assert config.keymap()["line-down"] == "down,j"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('colour = "red"', ("colour", "known are theme")),
        ('keys = "emacs"', ("'emacs'", "default or vim")),
        ("theme = 3", ("'theme'", "3")),
        ("theme = ", ("not valid TOML",)),
        ('[overrides]\naccept = "x"', ("'x'", "accept", "reject")),
        ("overrides = 1", ("overrides", "table")),
        ('editor = "vim \\"x"', ("editor",)),
        ("proposer = 1", ("'proposer'", "[proposer]")),
        ('[proposer]\nmodle = "x"', ("'modle'", "[proposer]", "model")),
        ('[proposer]\nmodel = "claude; rm"', ("claude; rm", "model")),
        ('[proposer]\neffort = "huge"', ("'huge'", "'medium'")),
        ('[proposer]\nbase_url = "ftp://x"', ("ftp://x", "https://")),
        ('[proposer]\nbase_url = "http://[::1"', ("http://[::1", "https://")),
        ('[proposer]\nbase_url = "http://localhost:port"', ("localhost:port", "https://")),
        ("[proposer]\nmax_tokens = 0.5", ("max_tokens", "whole number")),
        ("[proposer]\ntimeout = true", ("timeout", "True")),
        ("[proposer]\nretries = -1", ("retries", "at least 0")),
        ('[proposer.commands]\nmine = ""', ("'mine'", "empty")),
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(KlineageError) as problem:
        load_config(path)
    for word in (str(path), *words):
        assert word in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_secret_in_an_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for address in ("https://me:hush@api.example.org", "https://api.example.org/?key=hush"):
        path.write_text(f'[proposer]\nbase_url = "{address}"\n')
        with pytest.raises(KlineageError, match="ANTHROPIC_API_KEY") as problem:
            load_config(path)
        assert "hush" not in str(problem.value)


def test_the_documented_example_is_valid(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    path = tmp_path / "config.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    config = load_config(path)
    assert config.keymap()["next-proposal"] == "right_square_bracket,f8"
    assert config.layout == "split"
    assert config.proposer == Settings(commands={"mine": ("my-agent", "--quiet")})


def test_session_survives_and_replaces_at_once(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "session.json"
    session, problem = load_session(path)
    assert not problem
    session.theme, session.lineages["/w"] = "ansi", "gemm-c"
    session.save()
    session.places["/w"] = "history"
    session.save()
    assert load_session(path) == (Session(path, "ansi", "", {"/w": "gemm-c"}, {"/w": "history"}), "")
    assert [file.name for file in path.parent.iterdir()] == ["session.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"theme": 3}', '{"new_field": ""}', '{"places": {"a": 1}}'])
def test_a_broken_session_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "session.json"
    path.write_text(text)
    session, problem = load_session(path)
    assert session == Session(path)
    assert str(path) in problem


def test_which_editor() -> None:
    assert editor_command(Config(editor="hx --x"), {"EDITOR": "vi"}) == ["hx", "--x"]
    assert editor_command(Config(), {"VISUAL": "code", "EDITOR": "vi"}) == ["code"]
    with pytest.raises(KlineageError, match="EDITOR"):
        editor_command(Config(), {})
    with pytest.raises(KlineageError, match="the editor 'vi \"' is no command: No closing quotation"):
        editor_command(Config(), {"EDITOR": 'vi "'})


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (["vim", "-f"], ["vim", "-f", "+7", "k.py"]),
        (["/usr/bin/emacs"], ["/usr/bin/emacs", "+7", "k.py"]),
        (["code"], ["code", "--wait", "--goto", "k.py:7"]),
        (["subl", "--wait"], ["subl", "--wait", "k.py:7"]),
        (["hx"], ["hx", "k.py:7"]),
        (["my-editor"], ["my-editor", "k.py"]),
    ],
)
def test_editors_open_at_the_line(command: list[str], call: list[str]) -> None:
    assert arguments(command, Path("k.py"), 7) == call


def test_edit_outside_keeps_bytes(tmp_path: Path) -> None:
    script = (
        "import sys; p = sys.argv[1]; d = open(p, 'rb').read(); open(p, 'wb').write(d.replace(b'4', b'1'))"
    )
    edited = edit_outside([sys.executable, "-c", script], "kernel.py", b"\xff a = 4\r\n", 1, nullcontext)
    assert edited == b"\xff a = 1\r\n"


@pytest.mark.parametrize("command", [["/no/such/editor"], [sys.executable, "-c", "raise SystemExit(3)"]])
def test_a_failing_editor_is_a_sentence(command: list[str]) -> None:
    with pytest.raises(KlineageError, match="editor"):
        edit_outside(command, "kernel.py", b"x", 1, nullcontext)


def test_crash_log_has_neither_locals_nor_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-something-secret")
    secret_local = "only-in-a-local"  # noqa: F841
    try:
        raise ValueError("request with sk-ant-something-secret failed")
    except ValueError as problem:
        log = Path(log_exception(problem, tmp_path))
    text = log.read_text(encoding="utf-8")
    assert "ValueError" in text
    assert "sk-ant" not in text
    assert "only-in-a-local" not in text.replace('secret_local = "only-in-a-local"', "")
