"""Running git, through GitPython's command interface, so that nobody's configuration changes the result.

The user's configuration, hooks, attributes, replacements and ``GIT_*`` variables are shut out; the
repository's own object format and storage stay as they are. Nothing here knows what a lineage is.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError

if TYPE_CHECKING:
    import git

OLDEST = (2, 34)
FALLBACK_IDENTITY = ("klineage", "klineage@localhost")

_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.quotePath": "true",
    "core.logAllRefUpdates": "false",
    "commit.gpgSign": "false",
    "log.showSignature": "false",
    "color.ui": "never",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "init.defaultBranch": "main",
    "gc.auto": "0",
    "transfer.fsckObjects": "true",
    "advice.diverging": "false",
}
_FULL = 65_536  # bytes; git often blames the consequence of a full disk instead
_LOCATION = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)


class GitError(KlineageError):
    """git refused. The message is one sentence; ``stderr`` is all that git said."""

    def __init__(self, message: str, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


def find_git() -> str:
    """The git program, checked to be new enough. Raises KlineageError when there is none."""
    program = shutil.which("git")
    if program is None:
        raise KlineageError("git was not found; a workspace is a git repository: install git 2.34 or newer")
    match = re.search(r"(\d+)\.(\d+)", _version(program))
    if match is None:
        raise KlineageError(f"{program} does not answer like git; install git 2.34 or newer")
    if (int(match[1]), int(match[2])) < OLDEST:
        raise KlineageError(f"git {match[0]} is too old; install git {OLDEST[0]}.{OLDEST[1]} or newer")
    return program


@functools.cache
def _version(program: str) -> str:
    return subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout


def isolation(git_dir: Path | None) -> dict[str, str]:
    """Environment variables that pin git to ``git_dir`` (None: to no repository) and to our settings."""
    variables = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_CONFIG_COUNT": str(len(_CONFIG)),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NAMESPACE": "",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_EXTERNAL_DIFF": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_FLUSH": "1",
    }
    for index, (key, value) in enumerate(_CONFIG.items()):
        variables |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    if git_dir is not None:
        variables |= {
            "GIT_DIR": str(git_dir),
            "GIT_COMMON_DIR": str(git_dir),
            "GIT_WORK_TREE": str(git_dir),
            "GIT_OBJECT_DIRECTORY": str(git_dir / "objects"),
            "GIT_INDEX_FILE": str(git_dir / "klineage.no-index"),
        }
    return variables


def _elsewhere() -> list[str]:
    """A command prefix that makes git forget which repository klineage itself was started from."""
    unset = [part for name in _LOCATION if name in os.environ for part in ("-u", name)]
    return ["env", *unset] if unset else []


class Git:
    """One repository's git. ``run`` may be called from any thread."""

    def __init__(self, git_dir: Path | None, cwd: Path | None = None) -> None:
        find_git()
        self.git_dir = git_dir
        self.identity = FALLBACK_IDENTITY
        self._cwd = cwd or git_dir
        self._variables = isolation(git_dir)
        self._reader: Any = None
        self._reading = threading.Lock()
        self._command = self._new_command()

    def _new_command(self) -> git.Git:
        import git

        command = git.Git(str(self._cwd))
        command.update_environment(**self._variables)
        return command

    @property
    def place(self) -> Path:
        """The git directory, or the folder that a git without repository works in."""
        place = self.git_dir or self._cwd
        assert place is not None
        return place

    def sign(self, name: str, mail: str) -> None:
        """Whose name new commits and reflog entries carry."""
        self.identity = (name, mail)
        self._command.update_environment(GIT_COMMITTER_NAME=name, GIT_COMMITTER_EMAIL=mail)

    def start(self, *args: str, keep_open: Sequence[int] = ()) -> Any:
        """A running git with pipes on all three streams. ``keep_open``: file descriptors that it inherits."""
        return self._command.execute(
            [*([] if self.git_dir else _elsewhere()), "git", *args],
            istream=subprocess.PIPE,
            as_process=True,
            pass_fds=tuple(keep_open),
        )

    def run(
        self,
        *args: str,
        data: bytes | None = None,
        allow: Sequence[int] = (0,),
        keep_open: Sequence[int] = (),
    ) -> bytes:
        """What git writes to its standard output. Raises GitError on an exit status not in ``allow``."""
        process = self.start(*args, keep_open=keep_open)
        out, err = process.communicate(data or b"")
        if process.returncode not in allow:
            raise self.error(args[0], process.returncode, err)
        return bytes(out)

    def stream(self, *args: str) -> Iterator[bytes]:
        """What git writes, piece by piece while it still writes. Raises GitError at the end if it fails."""
        process = self.start(*args)
        try:
            while piece := process.stdout.read1(1 << 17):
                yield piece
            _, err = process.communicate()
            if process.returncode != 0:
                raise self.error(args[0], process.returncode, err)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def error(self, verb: str, status: int, stderr: bytes) -> GitError:
        """The sentence for a failed git."""
        text = stderr.decode("utf-8", "replace").strip()
        said = [line for line in text.split("\n") if line.startswith(("fatal:", "error:"))]
        line = (said or text.split("\n"))[-1].removeprefix("fatal: ").removeprefix("error: ")
        place = self.place
        if "No space left on device" in text or shutil.disk_usage(place).free < _FULL:
            return GitError(f"the disk is full, nothing was changed in {place}; free some space", text)
        if status < 0:
            return GitError(f"git {verb} was ended by signal {-status} in {place}", text)
        return GitError(f"git {verb} failed in {place}: {line or f'exit status {status}'}", text)

    def object(self, name: str) -> tuple[str, str, bytes] | None:
        """(hash, type, content) of an object or of what a full ref name points to; None if there is none."""
        if "\n" in name:  # it would be two questions; names come from files of other people, too
            return None
        with self._reading:
            if self._reader is None:
                self._reader = self.start("cat-file", "--batch")
            try:
                return _ask(self._reader, name)
            except OSError as error:
                stderr = self._reader.stderr.read()
                self._drop_reader()
                raise self.error("cat-file", 1, stderr) from error

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.communicate()
            self._reader = None

    def close(self) -> None:
        """End the reading process. The object can still be used; it starts another."""
        with self._reading:
            self._drop_reader()


def _ask(reader: Any, name: str) -> tuple[str, str, bytes] | None:
    reader.stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
    reader.stdin.flush()
    answer: bytes = reader.stdout.readline()
    if not answer.endswith(b"\n"):
        raise BrokenPipeError("git cat-file has ended")
    words = answer.split()
    if words[-1] in (b"missing", b"ambiguous"):
        return None
    size = int(words[2])
    data: bytes = reader.stdout.read(size + 1)
    if len(data) != size + 1:
        raise BrokenPipeError("git cat-file has ended")
    return words[0].decode(), words[1].decode(), data[:-1]


def discover(path: Path) -> Path:
    """The git directory, shared by all work trees, of the repository that ``path`` is in.

    The user's own settings hold here, so that ``safe.directory`` keeps its meaning.
    """
    find_git()
    import git  # refuses to be imported where there is no git

    if not path.exists():
        raise KlineageError(f"{path} does not exist; give the folder of a workspace (a git repository)")
    if not path.is_dir():
        raise KlineageError(f"{path} is a file; give the folder of a workspace (a git repository)")
    if (closed := _closed(path)) is not None:  # GitPython would look in the current folder instead
        raise KlineageError(f"{closed} cannot be read; check its owner and its permissions")
    status, out, err = git.Git(str(path)).execute(
        [*_elsewhere(), "git", "rev-parse", "--path-format=absolute", "--git-common-dir"],
        with_extended_output=True,
        with_exceptions=False,
    )
    if status == 0:
        return Path(out)
    if "dubious ownership" in err:
        raise KlineageError(
            f"git does not trust {path} because another user owns it; "
            f"run: git config --global --add safe.directory {path}"
        )
    said = next((line for line in err.splitlines() if line.startswith("fatal:")), "")
    if (path / ".git").exists() and "not a git repository" not in said:
        raise KlineageError(
            f"git cannot use {path}: {said.removeprefix('fatal: ') or f'exit status {status}'}"
        )
    if (path / ".git").exists():
        raise KlineageError(
            f"{path / '.git'} is damaged: git does not take it for a repository; restore its HEAD, objects and refs "
            "from a copy, or give another folder"
        )
    raise KlineageError(f"{path} is not a git repository; run git init there, or give another folder")


def _closed(path: Path) -> Path | None:
    """What keeps git from reading the repository at ``path``: the folder, or a part of its git directory."""
    parts = (path, path / ".git", *(path / ".git" / name for name in ("HEAD", "objects", "refs")))
    for part in parts:
        if not part.exists():
            continue
        if not os.access(part, os.R_OK | os.X_OK if part.is_dir() else os.R_OK):
            return part
    return None


def user_identity(path: Path) -> tuple[str, str]:
    """(name, e-mail) that git would sign the user's own commits with, else the neutral identity."""
    import git

    status, out, _ = git.Git(str(path)).execute(
        [*_elsewhere(), "git", "var", "GIT_AUTHOR_IDENT"],
        with_extended_output=True,
        with_exceptions=False,
        env={"GIT_AUTHOR_DATE": "@0 +0000"},
    )
    match = re.fullmatch(r"(.*) <(.*)> \d+ [-+]\d+", out) if status == 0 else None
    return (match[1], match[2]) if match and match[1] else FALLBACK_IDENTITY
