"""Making objects: one ``git fast-import`` per write, spoken to line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from klineage.lineage.lock import Held
from klineage.lineage.plumbing import Git


class Importer:
    """A dialog with one ``git fast-import``. Only ``ref`` changes, and only when ``finish`` returns.

    Every commit is made on the one branch ``ref`` in turn; the last one is what it will point to.
    """

    def __init__(self, git: Git, held: Held | None, ref: str, seconds: int, force: bool = False) -> None:
        self._git = git
        self._ref = ref.encode()
        name, mail = (re.sub(r"[<>\x00-\x1f]", " ", part).strip() for part in git.identity)
        self._who = f"{name} <{mail}> {seconds} +0000".encode("utf-8", "replace")
        self._count = 0
        self._marks: dict[str, bytes] = {}  # objects of this dialog have no name but their mark until its end
        options = ["--force"] if force else []
        keep = (held.descriptor,) if held else ()
        self._process = git.start(
            "fast-import", "--quiet", "--done", "--date-format=raw", *options, keep_open=keep
        )

    def commit(
        self,
        message: str,
        files: Mapping[str, bytes | str],
        parents: Sequence[str] = (),
        remove: Sequence[str] = (),
        inherit: bool = True,
        author: bytes = b"",
    ) -> str:
        """Make a commit; returns its hash.

        files: path to content, or to the hash of a blob; added to the first parent's tree, or instead of it
        when ``inherit`` is False. remove: paths dropped from that tree. author: who and when, else the user now.
        """
        text = message.encode("utf-8", "replace")
        signed = (author or self._who, self._who, len(text), text)
        parts = [b"author %s\ncommitter %s\ndata %d\n%s\n" % signed]
        for index, parent in enumerate(parents):
            parts.append(b"%s %s\n" % (b"merge" if index else b"from", self._name(parent)))
        if parents and not inherit:
            parts.append(b"deleteall\n")
        parts += [b"D %s\n" % _quote(path) for path in remove]
        for path, content in files.items():
            if isinstance(content, str):
                parts.append(b"M 100644 %s %s\n" % (self._name(content), _quote(path)))
            else:
                parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (_quote(path), len(content), content))
        start = b"reset %s\n\ncommit %s\n" % (self._ref, self._ref)
        return self._object(start, b"".join(parts))

    def finish(self) -> None:
        """Write everything and move ``ref``. Raises GitError when nothing was written."""
        self._send(b"done\n")
        _, stderr = self._process.communicate()
        if self._process.returncode != 0:
            self._fail(stderr)

    def __enter__(self) -> Importer:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process; what was not finished has not been written."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def _name(self, hash_: str) -> bytes:
        return self._marks.get(hash_, hash_.encode())

    def _object(self, start: bytes, rest: bytes) -> str:
        self._count += 1
        mark = b":%d" % self._count
        self._send(b"%smark %s\n%sget-mark %s\n" % (start, mark, rest, mark))
        answer = self._process.stdout.readline()
        if not answer.endswith(b"\n"):
            self._fail(self._process.communicate()[1])
        hash_ = answer.decode().strip()
        self._marks[hash_] = mark
        return str(hash_)

    def _send(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail(self._process.communicate()[1])

    def _fail(self, stderr: bytes) -> None:
        error = self._git.error("fast-import", self._process.returncode, stderr)
        (self._git.place / f"fast_import_crash_{self._process.pid}").unlink(missing_ok=True)
        for unfinished in re.findall(r"tmp_pack_\w+", error.stderr):
            (self._git.place / "objects" / "pack" / unfinished).unlink(missing_ok=True)
        raise error


def _quote(path: str) -> bytes:
    text = path.encode("utf-8", "surrogateescape")
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
