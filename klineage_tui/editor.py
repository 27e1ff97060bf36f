"""The person's own editor on one kernel: a temporary file of the kernel's name, at the changed line."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from klineage.errors import KlineageError

_PLUS_LINE = ("vi", "vim", "nvim", "view", "nano", "micro", "emacs", "emacsclient", "kak", "joe", "ed")
_GOTO = ("code", "code-insiders", "codium", "cursor", "windsurf")
_COLON_LINE = ("subl", "zed", "hx", "helix")
_WAITS = ("code", "code-insiders", "codium", "cursor", "windsurf", "subl", "zed")


def arguments(command: Sequence[str], path: Path, line: int) -> list[str]:
    """The command that opens ``path`` at ``line`` (counted from 1) and returns when the person is done."""
    name = Path(command[0]).stem
    call = list(command)
    if name in _WAITS and "--wait" not in call:
        call.append("--wait")
    if name in _PLUS_LINE:
        return [*call, f"+{line}", str(path)]
    if name in _GOTO:
        return [*call, "--goto", f"{path}:{line}"]
    if name in _COLON_LINE:
        return [*call, f"{path}:{line}"]
    return [*call, str(path)]


def edit_outside(
    command: Sequence[str],
    filename: str,
    source: bytes,
    line: int,
    suspended: Callable[[], AbstractContextManager[None]],
) -> bytes:
    """What the person made of ``source``. ``suspended`` gives the terminal away while the editor runs.

    Raises KlineageError when the editor cannot be started or ends with an error; nothing is taken then.
    """
    with tempfile.TemporaryDirectory(prefix="klineage-") as folder:
        path = Path(folder) / Path(filename).name
        path.write_bytes(source)
        call = arguments(command, path, line)
        try:
            with suspended():
                ended = subprocess.run(call, check=False)
        except OSError as problem:
            raise KlineageError(f"the editor {call[0]} cannot be started: {problem.strerror}") from problem
        if ended.returncode != 0:
            raise KlineageError(f"the editor {call[0]} ended with code {ended.returncode}; nothing was taken")
        if not path.is_file():
            raise KlineageError(f"the editor {call[0]} removed {path.name}; nothing was taken")
        return path.read_bytes()
