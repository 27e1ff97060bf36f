"""Read a cubin, which is an ELF file: its kernels, what it still needs, and what it keeps."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from klineage.worker.faults import WorkerError

_SYMBOL_TABLE, _NO_BITS = 2, 8


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    size: int
    link: int
    data: bytes


@dataclass(frozen=True)
class Cubin:
    """``kernels``: name to code bytes. ``undefined``: names that a loader would have to supply.
    ``global_bytes``: device variables that live as long as the module."""

    kernels: dict[str, int]
    undefined: tuple[str, ...]
    global_bytes: int


def read(data: bytes) -> Cubin:
    """Parse a cubin. Raises WorkerError when the bytes are none."""
    try:
        sections = _sections(data)
        undefined = tuple(sorted(name for name, section in _symbols(sections) if section == 0 and name))
    except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        raise WorkerError("cubin", f"the compiler's result cannot be read: {error}") from error
    names = {s.name for s in sections}
    texts = {s.name[len(".text.") :]: s.size for s in sections if s.name.startswith(".text.")}
    kernels = {name: size for name, size in texts.items() if f".nv.info.{name}" in names}
    state = sum(s.size for s in sections if s.name in (".nv.global", ".nv.global.init"))
    return Cubin(kernels, undefined, state)


def _sections(data: bytes) -> list[Section]:
    if data[:5] != b"\x7fELF\x02":
        raise ValueError("it is no 64-bit ELF file")
    offset, entry, count, names_at = (
        struct.unpack_from("<Q", data, 0x28)[0],
        *struct.unpack_from("<HHH", data, 0x3A),
    )
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * entry) for i in range(count)]
    names = data[headers[names_at][4] :][: headers[names_at][5]]
    sections = []
    for name, kind, _, _, start, size, link, _, _, _ in headers:
        content = b"" if kind == _NO_BITS else data[start : start + size]
        sections.append(Section(_text(names, name), kind, size, link, content))
    return sections


def _symbols(sections: list[Section]) -> list[tuple[str, int]]:
    found = []
    for section in sections:
        if section.kind == _SYMBOL_TABLE:
            names = sections[section.link].data
            for start in range(0, len(section.data) - 23, 24):
                name, _, _, index, _, _ = struct.unpack_from("<IBBHQQ", section.data, start)
                found.append((_text(names, name), index))
    return found


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()
