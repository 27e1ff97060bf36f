"""The YAML that klineage writes and most people type, read ten times as fast as by a reader of all YAML.

Scalars of one line, blocks of text, block mappings and sequences, brackets and braces that close on their line, comments.
Whatever else there may be, ``quick`` declines, and ``loading`` reads it: nothing is read here in another way than there.
"""

from __future__ import annotations

import re

from klineage.skill.format.nodes import Entries, Items, Node, Scalar, entries

#: Characters at which ruamel breaks lines or takes offence, tabs among them.
_ODD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_KEY = re.compile(r'(?:(?P<word>[A-Za-z_][\w.-]*)|"(?P<quoted>[^"\\]{1,80})"):(?= |$)', re.ASCII)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SINGLE = re.compile(r"'((?:[^']|'')*)'")
_PLAIN = re.compile(r"(?:-(?=[0-9.])|[\w(/.$^~+;<=\\])(?:[^ :#]|:(?=[^ ])|(?<=[^ ])#| +(?=[^ #]))*")
_PLAIN_IN_FLOW = re.compile(
    r"(?:-(?=[0-9.])|[\w(/.$^~+;<=\\])(?:[^ :#,\[\]{}?\"'&*!|>%@`]| +(?=[^ :#,\[\]{}?\"'&*!|>%@`]))*"
)
_BLOCK = re.compile(r" +([|>])(-?)(?: *$| +#)")
_END = re.compile(r" *$| +#.*$")
_ESCAPE = re.compile(
    r"\\(?:([nrt0\"\\/])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))"
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", '"': '"', "\\": "\\", "/": "/"}
_DEEPEST = 16


class _Declined(Exception):
    """Something that only a whole reader of YAML should judge."""


class _Line:
    __slots__ = ("at", "column", "number", "text")

    def __init__(self, number: int, at: int, column: int, text: str) -> None:
        self.number = number
        self.at = at  # where ``text`` begins in the file
        self.column = column
        self.text = text


def quick(text: str, start: int = 0, line: int = 1) -> Node | None:
    """The mapping in ``text``, as ``loading.load`` reads it, or None where that must read it.

    Raises Fault for a key that stands twice.
    """
    if _ODD.search(text) or not text.endswith("\n"):
        return None
    lines = []
    at = start
    raws = text.split("\n")
    for number, raw in enumerate(raws, line):
        bare = raw.lstrip(" ")
        if bare and not bare.startswith("#"):
            column = len(raw) - len(bare)
            lines.append(_Line(number, at + column, column, bare))
        at += len(raw) + 1
    if not lines or lines[0].column:
        return None
    try:
        reader = _Reader(lines, raws, line)
        node = reader.mapping(0, 0)
    except _Declined:
        return None
    return node if reader.next == len(lines) else None


class _Reader:
    def __init__(self, lines: list[_Line], raws: list[str], first: int) -> None:
        self.lines = lines
        self.raws = raws
        self.first = first
        self.next = 0

    def mapping(self, column: int, depth: int) -> Entries:
        if depth > _DEEPEST:
            raise _Declined
        first = self.lines[self.next]
        pairs: list[tuple[Scalar, Node]] = []
        while self.next < len(self.lines):
            line = self.lines[self.next]
            if line.column < column:
                break
            found = _KEY.match(line.text) if line.column == column else None
            if found is None:
                if line.column == column and line.text.startswith("- ") and pairs:
                    break
                raise _Declined
            word = found["word"]
            key = (
                Scalar(word, "", line.number, line.at, line.at + len(word))
                if word is not None
                else Scalar(found["quoted"], '"', line.number, line.at, line.at + found.end() - 1)
            )
            pairs.append((key, self.value(line, found.end(), column, depth)))
        return entries(pairs, False, first.number, first.at, pairs[-1][1].end)

    def value(self, line: _Line, colon: int, column: int, depth: int) -> Node:
        """What stands behind a key, on its line or below it."""
        self.next += 1
        if opens := _BLOCK.match(line.text, colon):
            return self.block(line, opens, column)
        if not _END.match(line.text, colon):
            rest = line.text[colon:]
            at = colon + len(rest) - len(rest.lstrip(" "))
            node, end = _inline(line, at, 0)
            if not _END.match(line.text, end):
                raise _Declined
            return node
        if self.next < len(self.lines):
            below = self.lines[self.next]
            dash = below.text.startswith("- ")
            if dash and below.column >= column:
                return self.sequence(below.column, depth + 1)
            if below.column > column:
                return self.mapping(below.column, depth + 1)
        place = line.at + colon
        return Scalar("", "", line.number, place, place)

    def block(self, line: _Line, opens: re.Match[str], column: int) -> Scalar:
        """A text of several lines: as they are behind ``|``, joined behind ``>``."""
        held: list[str] = []
        end = line.at + len(line.text)
        deep = 0
        for number in range(line.number - self.first + 1, len(self.raws)):
            raw = self.raws[number]
            indent = len(raw) - len(raw.lstrip(" "))
            if raw and indent == len(raw):
                raise _Declined
            if raw and indent <= column:
                break
            deep = deep or indent
            if raw and (indent < deep or (opens[1] == ">" and (indent > deep or (held and not held[-1])))):
                raise _Declined
            held.append(raw[deep:])
            end += 1 + len(raw)
        text = "\n".join(held).rstrip("\n")
        last = line.number + text.count("\n") + 1
        if not text or not held[0] or text != text.rstrip():
            raise _Declined
        end -= len("\n".join(held)) - len(text)
        while self.next < len(self.lines) and self.lines[self.next].number <= last:
            self.next += 1
        joined = text.replace("\n", " ") if opens[1] == ">" else text
        start = line.at + opens.start(1)
        return Scalar(joined if opens[2] else f"{joined}\n", opens[1], line.number, start, end)

    def sequence(self, column: int, depth: int) -> Items:
        if depth > _DEEPEST:
            raise _Declined
        first = self.lines[self.next]
        items: list[Node] = []
        while self.next < len(self.lines):
            line = self.lines[self.next]
            if line.column < column or (line.column == column and not line.text.startswith("-")):
                break
            if line.column > column or not line.text.startswith("- "):
                raise _Declined
            rest = line.text[1:].lstrip(" ")
            step = len(line.text) - len(rest)
            if _KEY.match(rest):
                self.lines[self.next] = _Line(line.number, line.at + step, column + step, rest)
                items.append(self.mapping(column + step, depth + 1))
                continue
            self.next += 1
            node, end = _inline(line, step, 0)
            if not _END.match(line.text, end):
                raise _Declined
            items.append(node)
        return Items(tuple(items), False, first.number, first.at, items[-1].end)


def _inline(line: _Line, at: int, depth: int) -> tuple[Node, int]:
    """The value that begins in the line at ``at``, and where it ends there."""
    sign = line.text[at : at + 1]
    if sign in ("[", "{"):
        if depth > _DEEPEST:
            raise _Declined
        return _sequence(line, at, depth) if sign == "[" else _mapping(line, at, depth)
    return _scalar(line, at, _PLAIN_IN_FLOW if depth else _PLAIN)


def _scalar(line: _Line, at: int, plain: re.Pattern[str]) -> tuple[Scalar, int]:
    sign = line.text[at : at + 1]
    form = _DOUBLE if sign == '"' else _SINGLE if sign == "'" else plain
    found = form.match(line.text, at)
    if found is None:
        raise _Declined
    if sign == '"':
        text, style = _unescaped(found[1]), '"'
    elif sign == "'":
        text, style = found[1].replace("''", "'"), "'"
    else:
        text, style = found[0], ""
    return Scalar(text, style, line.number, line.at + at, line.at + found.end()), found.end()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _ESCAPED[found[1]]
    digits = found[2] or found[3] or found[4]
    if not digits:
        raise _Declined
    return chr(int(digits, 16))


def _skip(line: _Line, at: int) -> int:
    while line.text[at : at + 1] == " ":
        at += 1
    return at


def _sequence(line: _Line, start: int, depth: int) -> tuple[Items, int]:
    items: list[Node] = []
    at = _skip(line, start + 1)
    while line.text[at : at + 1] != "]":
        node, at = _inline(line, at, depth + 1)
        items.append(node)
        at = _after(line, at, "]")
    return Items(tuple(items), True, line.number, line.at + start, line.at + at + 1), at + 1


def _mapping(line: _Line, start: int, depth: int) -> tuple[Entries, int]:
    pairs: list[tuple[Scalar, Node]] = []
    at = _skip(line, start + 1)
    while line.text[at : at + 1] != "}":
        key, at = _scalar(line, at, _PLAIN_IN_FLOW)
        if line.text[at : at + 2] != ": " or key.end - key.start > 80:
            raise _Declined
        node, at = _inline(line, _skip(line, at + 1), depth + 1)
        pairs.append((key, node))
        at = _after(line, at, "}")
    return entries(pairs, True, line.number, line.at + start, line.at + at + 1), at + 1


def _after(line: _Line, at: int, closing: str) -> int:
    """Where the next entry begins, or the closing bracket stands."""
    at = _skip(line, at)
    sign = line.text[at : at + 1]
    if sign == closing:
        return at
    if sign != ",":
        raise _Declined
    at = _skip(line, at + 1)
    if line.text[at : at + 1] == closing:
        raise _Declined
    return at
