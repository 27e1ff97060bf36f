"""SIGKILL in the middle of saves: every save that was confirmed is there, whole, and the next writer goes on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from klineage.lineage import Workspace
from klineage.skill.library import Library, report_name

from .some_cards import PREFETCH, named

Plain = Callable[..., str]
ROUNDS = 8


def save_forever(path: Path, done: int) -> None:
    """The child: save a pair of cards with a report, undo and redo, and say so, until killed."""
    library = Library.open(path)
    number = len(library.history())
    while True:
        number += 1
        pair = [replace(card, notes=f"note {number}") for card in (PREFETCH, named("c.twin"))]
        library.save_all(pair, "Bo", f"save {number}", reports=[f'{{"n": {number}}}'])
        os.write(done, f"{number}\n".encode())
        library.undo()
        library.redo()


def killed_child(path: Path, dice: random.Random, whole_group: bool) -> int:
    """Let a child save for a random while, kill it; returns the last save that it confirmed."""
    reading, writing_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reading)
        with contextlib.suppress(BaseException):
            save_forever(path, writing_end)
        os._exit(3)
    os.close(writing_end)
    said = os.read(reading, 100)
    assert said, "the child ended by itself"
    time.sleep(dice.uniform(0.0, 0.08))
    (os.killpg if whole_group else os.kill)(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child ended by itself"
    while more := os.read(reading, 65536):
        said += more
    os.close(reading)
    return int(said.decode().split("\n")[-2])


def test_a_killed_save_is_whole_or_never_was(tmp_path: Path, plain: Plain) -> None:
    dice = random.Random(5)
    workspace = Workspace.create(tmp_path)
    Library.of(workspace).save(PREFETCH)
    workspace.close()
    seen: set[str] = set()
    for round_ in range(ROUNDS):
        confirmed = killed_child(tmp_path, dice, whole_group=bool(round_ % 2))
        library = Library.open(tmp_path)
        log = library.history()
        commits = {entry.commit for entry in log}
        assert seen <= commits
        seen = commits
        assert f"save {confirmed}" in {entry.reason for entry in log}
        assert library.report(report_name(f'{{"n": {confirmed}}}'))
        one, twin = (
            library.get("c.prefetch"),
            library.entry("c.twin").card if "c.twin" in library.stamps() else None,
        )
        assert twin is None or twin == replace(named("c.twin"), notes=one.notes)
        assert (twin is None) == (one.notes == "")
        library.save(named("c.after", notes=f"round {round_}"))
        assert library.get("c.after").notes == f"round {round_}"
        library.close()
    plain(tmp_path, "fsck", "--strict", "--no-dangling")


def test_a_lock_that_a_killed_git_left_is_cleared(library: Library) -> None:
    library.save(PREFETCH)
    lock = library.path / ".git" / "refs" / "heads" / "library.lock"
    lock.write_text("")
    nobody = 2**22 + 1  # above the largest process id
    (library.path / ".git" / "klineage.lock").write_text(f"{nobody} {time.time():.3f} -\n")
    assert library.get("c.prefetch") == PREFETCH
    library.save(replace(PREFETCH, intent="Fetch late"))
    assert library.get("c.prefetch").intent == "Fetch late"
    assert not lock.exists()


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    Library.of(Workspace.create(tmp_path)).save(PREFETCH)
    children = []
    for writer in range(2):
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                library = Library.open(tmp_path)
                for number in range(6):
                    word = f"{writer}.{number}"
                    library.update(
                        "c.prefetch", lambda card, word=word: replace(card, notes=f"{card.notes}\n{word}")
                    )
                status = 0
            os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    library = Library.open(tmp_path)
    notes = library.get("c.prefetch").notes.split()
    assert sorted(notes) == sorted(f"{writer}.{number}" for writer in range(2) for number in range(6))
    assert len(library.history("c.prefetch")) == 13
    library.close()
