"""The Markdown half of a card: prose, a query and code between fences, each with its place in the text.

Prose is kept without blank lines around it. Code is kept to the byte: a text that lacks its last line end says so
behind its fence (``no-newline``), and a fence is as long as the code demands. A line of prose that Markdown would take
for a heading of the card or for a fence that is never closed is written behind a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from klineage.skill.format.nodes import Fault, shown

SECTIONS = ("Anchor", "Carrier", "Notes")
CARRIER = ("Before", "After", "Settings")
NO_NEWLINE = "no-newline"

_MARK = re.compile(
    r"^ {0,3}(?:(?P<level>#{1,2})(?:[ \t]+(?P<title>[^\n]*))?$|(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}))",
    re.MULTILINE,
)
_OPENS = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)", re.DOTALL)
_ESCAPED = re.compile(r"( {0,3})\\(?=\\*[#`~])")
_HEADING = re.compile(r" {0,3}#(?:[ \t\r]|$)")


@dataclass(frozen=True)
class Fence:
    """Code between two fences. start, end: of the whole block, the last line end left out."""

    info: str
    text: str
    line: int
    start: int
    end: int

    @property
    def code(self) -> str:
        """The code as it was given to ``fenced``."""
        return self.text.removesuffix("\n") if NO_NEWLINE in self.info.split()[1:] else self.text


@dataclass(frozen=True)
class Heading:
    """A heading of the first or second level."""

    level: int
    title: str
    line: int
    start: int
    end: int


@dataclass
class Section:
    """What stands under a heading. ``end``: where the next one begins, or the text ends."""

    heading: Heading
    end: int
    fences: list[Fence] = field(default_factory=list)
    parts: dict[str, Section] = field(default_factory=dict)


def sections(text: str, start: int, line: int) -> dict[str, Section]:
    """The sections of the body, which begins at ``start`` and ``line`` of ``text``.

    Raises Fault for an unknown or repeated heading, a fence that is never closed, and text where none belongs.
    """
    found: dict[str, Section] = {}
    current: Section | None = None
    part: Section | None = None
    for mark in _marks(text, start, line):
        if isinstance(mark, Fence):
            owner = part or current
            if owner is not None:
                owner.fences.append(mark)
        elif mark.level == 1:
            _close(part, mark.start)
            _close(current, mark.start)
            current, part = _opened(mark, found, SECTIONS, "a card"), None
        elif current is not None and current.heading.title == "Carrier":
            _close(part, mark.start)
            part = _opened(mark, current.parts, CARRIER, "# Carrier")
    _close(part, len(text))
    _close(current, len(text))
    first = min((section.heading.start for section in found.values()), default=len(text))
    _nothing_in(text, start, first, line, "text before the first heading; put it under # Notes")
    if "Carrier" in found:
        _only_code(text, found["Carrier"])
    return found


def _close(section: Section | None, end: int) -> None:
    if section is not None:
        section.end = end


def _opened(mark: Heading, found: dict[str, Section], known: tuple[str, ...], owner: str) -> Section:
    if mark.title not in known:
        close = get_close_matches(mark.title.capitalize(), known, n=1)
        hashes = "#" * mark.level
        means = f"did you mean {hashes} {close[0]}?" if close else f"it may be {', '.join(known)}"
        raise Fault(
            mark.line,
            f"{owner} has no section {shown(mark.title)}; {means} In prose, write \\{hashes} for a heading of your own",
        )
    if mark.title in found:
        first = found[mark.title].heading.line
        raise Fault(
            mark.line, f"the section {mark.title} stands here and on line {first}; keep one of the two"
        )
    found[mark.title] = Section(mark, len(mark.title))
    return found[mark.title]


def _only_code(text: str, carrier: Section) -> None:
    for section in (carrier, *carrier.parts.values()):
        if section is carrier and section.fences:
            raise Fault(
                section.fences[0].line,
                "this code stands in no part of # Carrier; put ## Before or ## After above it",
            )
        if len(section.fences) > 1:
            raise Fault(
                section.fences[1].line, f"## {section.heading.title} takes one block of code; join the two"
            )
        ends = [part.heading.start for part in carrier.parts.values()] if section is carrier else []
        end = min([section.end, *ends])
        at = section.heading.end
        for fence in section.fences:
            _nothing_in(
                text, at, fence.start, _line(section, text, at), "text outside a fence; put it under # Notes"
            )
            at = fence.end
        _nothing_in(text, at, end, _line(section, text, at), "text outside a fence; put it under # Notes")


def _line(section: Section, text: str, at: int) -> int:
    return section.heading.line + text.count("\n", section.heading.start, at)


def _nothing_in(text: str, start: int, end: int, line: int, what: str) -> None:
    between = text[start:end]
    if between.strip():
        raise Fault(line + between[: len(between) - len(between.lstrip())].count("\n"), what)


def _marks(text: str, start: int, line: int) -> Iterator[Fence | Heading]:
    at = start
    while found := _MARK.search(text, at):
        line += text.count("\n", at, found.start())
        if found["fence"]:
            mark: Fence | Heading = _fence(text, found, line)
        else:
            title = (found["title"] or "").strip()
            mark = Heading(len(found["level"]), title, line, found.start(), found.end())
        yield mark
        line += text.count("\n", found.start(), mark.end)
        at = mark.end


def _fence(text: str, found: re.Match[str], line: int) -> Fence:
    marks = found["fence"]
    newline = text.find("\n", found.end())
    closing = None if newline < 0 else _closing(marks).search(text, newline + 1)
    if closing is None:
        if len(marks) > 12:
            raise Fault(
                line, f"this fence of {len(marks)} marks is never closed; add one as long below the code"
            )
        raise Fault(
            line, f"this {marks} is never closed; add a line {marks} below the code, or write \\{marks}"
        )
    info = text[found.end() : newline].strip()
    return Fence(info, text[newline + 1 : closing.start()], line, found.start(), closing.end())


def _closing(marks: str) -> re.Pattern[str]:
    return re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t\r]*$", re.MULTILINE)


def prose(text: str) -> str:
    """The text without the blank lines around it: what a card keeps of prose."""
    return re.sub(r"\A(?:[ \t\r]*\n)+", "", text.rstrip(" \t\r\n"))


def read_prose(text: str) -> str:
    """Prose as it was given to ``write_prose``."""
    return prose("\n".join(_lines(prose(text), escape=False, queries=False)))


def write_prose(text: str, queries: bool = False) -> str:
    """Prose that reads back as itself. ``queries``: a ``query`` fence in it is not the card's and is masked."""
    return "\n".join(_lines(prose(text), escape=True, queries=queries))


def _lines(text: str, escape: bool, queries: bool) -> Iterator[str]:
    """The lines, with one backslash more, or one less, where Markdown would see structure of the card."""
    lines = text.split("\n")
    never: dict[str, int] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        opens = _OPENS.fullmatch(line)
        end = None
        if opens and not (queries and opens["info"].split()[:1] == ["query"]):
            end = _closed(lines, at, opens["fence"], never)
        if end is not None:
            yield from lines[at : end + 1]
            at = end + 1
            continue
        if escape and (opens or _HEADING.match(line) or _ESCAPED.match(line)):
            bare = line.lstrip(" ")
            yield f"{line[: len(line) - len(bare)]}\\{bare}"
        else:
            yield line if escape else _ESCAPED.sub(r"\1", line, count=1)
        at += 1


def _closed(lines: list[str], at: int, marks: str, never: dict[str, int]) -> int | None:
    """The line that closes the fence of line ``at``; ``never`` remembers what nothing further down closes."""
    if len(marks) >= never.get(marks[0], len(marks) + 1):
        return None
    closing = _closing(marks)
    for number in range(at + 1, len(lines)):
        if closing.fullmatch(lines[number]):
            return number
    never[marks[0]] = len(marks)
    return None


def fenced(code: str, info: str) -> str:
    """The code in a fence that it cannot close, without a line end behind it."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", code)), default=2) + 1
    if not code.endswith("\n"):
        code, info = code + "\n", f"{info} {NO_NEWLINE}"
    return f"{'`' * ticks}{info}\n{code}{'`' * ticks}"
