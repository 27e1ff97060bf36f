"""A card's file: Markdown under YAML front matter, read to a ``Card``, written from one, edited in a person's file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from klineage.errors import KlineageError
from klineage.skill.card import SCHEMA, Anchor, Card, Carrier
from klineage.skill.format import body, reading, writing
from klineage.skill.format.editing import Editor, NotInPlace
from klineage.skill.format.editing_body import body_splices
from klineage.skill.format.loading import load
from klineage.skill.format.migration import migrated, version
from klineage.skill.format.nodes import Entries, Fault, Node, placed
from klineage.skill.format.splicing import Original, Splice, original
from klineage.skill.format.writing_body import section, settings_part

_CLOSES = re.compile(r"^---[^\S\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A card's text with all places in it.

    front: the nodes of the front matter as the file has them, whatever its schema. settings: those of the carrier.
    """

    original: Original
    front: Node
    front_end: int
    sections: dict[str, body.Section]
    settings: Node | None
    card: Card

    @property
    def text(self) -> str:
        return self.original.text


def parse(data: bytes, name: str) -> Card:
    """The card in a file called ``name`` (a path will do; ``<id>.md`` must then fit the card's id).

    Line ends may be LF or CRLF; a byte order mark is allowed. Raises KlineageError, ``name:line: what, what to
    do``, for anything that no card can have: a key that is unknown or stands there twice, a wrong type, broken YAML,
    an id that is not the file's, a schema newer than this program.
    """
    return opened(data, name).card


def opened(data: bytes, name: str) -> Document:
    """As ``parse``, with the places of everything."""
    try:
        document = _read(original(data))
        stem = name.replace("\\", "/").rpartition("/")[2]
        if stem.endswith(".md") and stem != f"{document.card.id}.md":
            line = dict(placed(document.front)).get("id", 1)
            raise Fault(
                line, f"the id is {document.card.id}, but the file is called {stem}; make them the same"
            )
    except Fault as fault:
        raise fault.named(name) from fault
    return document


def lines(data: bytes, name: str) -> dict[str, int]:
    """The line of each field of the file: ``intent``, ``preconditions.p1.check``, ``effects.0.gain``, ``anchor.query``.

    An entry of a list goes by its ``key``, or by its number from 0. Raises KlineageError as ``parse`` does.
    """
    document = opened(data, name)
    found = dict(placed(document.front))
    for title, under in document.sections.items():
        found[title.lower()] = under.heading.line
        for part, inner in under.parts.items():
            found[f"carrier.{part.lower()}"] = inner.heading.line
    if query := _query(document.sections):
        found["anchor.query"] = query.line
    if document.settings is not None:
        found |= {f"carrier.settings.{key}": line for key, line in placed(document.settings)}
    return found


def render(card: Card) -> bytes:
    """The card in the one form that klineage writes: UTF-8, LF. ``parse`` gives the same card back.

    Prose loses blank lines around it. Raises KlineageError for what no file can hold, such as two entries of one
    key.
    """
    front = "\n".join(writing.block(writing.front(card)))
    rest = [written for title in body.SECTIONS if (written := section(card, title))]
    text = "\n\n".join([f"---\n{front}\n---", *rest]) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise KlineageError(
            f"{card.id} holds half a character at {error.start}; take it out of the text"
        ) from error


def edited(data: bytes, card: Card) -> bytes:
    """The file with ``card`` in it: what differs is written anew, in the style it had, and every other byte stays.

    Comments, order, quotes, line ends, a byte order mark and a person's formatting stay where they are. A file of an
    older schema gets the front matter of today. Without a change the very bytes come back. Raises KlineageError as
    ``parse`` does for the file, and as ``render`` does for the card.
    """
    name = f"{card.id}.md"
    document = opened(data, card.id)
    new = kept(card)
    if new == document.card:
        return data
    render(new)
    why: Exception | None = None
    for fine in (True, False):
        try:
            splices = [*_front_splices(document, new, fine), *_body_splices(document, new, fine)]
            written = document.original.spliced(splices)
            if parse(written, name) == new:
                return written
        except (NotInPlace, ValueError, KlineageError) as error:
            why = error
    if isinstance(why, KlineageError):  # what it would become does not read, and says why by line
        raise why
    raise KlineageError(
        f"{name} is written in a way that only a person can edit; open it with klineage card edit {card.id}"
    ) from why


def kept(card: Card) -> Card:
    """The card as a file keeps it: prose without blank lines around it."""
    anchor = Anchor(body.prose(card.anchor.text), body.prose(card.anchor.query))
    return replace(card, anchor=anchor, notes=body.prose(card.notes))


def _front_splices(document: Document, new: Card, fine: bool) -> list[Splice]:
    node, before, after = document.front, writing.front(document.card), writing.front(new)
    assert isinstance(node, Entries)
    if version(node) != SCHEMA or node.flow:
        return [Splice(node.start, document.front_end, "\n".join(writing.block(after)) + "\n")]
    editor = Editor(document.text, fine)
    editor.mapping(node, before, after)
    return editor.splices


def _body_splices(document: Document, new: Card, fine: bool) -> list[Splice]:
    old = document.card
    splices = body_splices(document.text, document.sections, _query(document.sections), old, new)
    settings, before, after = document.settings, old.carrier.settings, new.carrier.settings
    if before == after or not before or not after or settings is None:
        return splices
    if fine and isinstance(settings, Entries):
        editor = Editor(document.text)
        editor.mapping(settings, before, after, writing.SETTINGS)
        return [*splices, *editor.splices]
    fence = document.sections["Carrier"].parts["Settings"].fences[0]
    return [*splices, Splice(fence.start, fence.end, settings_part(after))]


def _read(source: Original) -> Document:
    text = source.text
    if line := _torn(text):
        raise Fault(
            line,
            "git left a merge conflict here; keep one side, and take out the lines <<<<<<<, ======= and >>>>>>>",
        )
    first, _, _ = text.partition("\n")
    if first.rstrip() != "---":
        raise Fault(1, "a card begins with a line --- and its front matter")
    start = len(first) + 1
    end, after = _front_end(text, start)
    node = load(text[start:end], start, 2)
    if node is None:
        raise Fault(2, "the front matter is empty; klineage card list shows cards to begin from")
    values = reading.read_front(migrated(node))
    found = body.sections(text, after, text.count("\n", 0, after) + 1)
    settings = _settings(text, found)
    return Document(source, node, end, found, settings, _card(text, values, found, settings))


def _torn(text: str) -> int:
    """The line where plain git has left both sides of a merge; 0 where it has not."""
    start = text.find("\n<<<<<<< ")
    middle = text.find("\n=======\n", start) if start >= 0 else -1
    end = text.find("\n>>>>>>> ", middle) if middle >= 0 else -1
    return text.count("\n", 0, start) + 2 if end >= 0 else 0


def _front_end(text: str, start: int) -> tuple[int, int]:
    """Where the front matter ends, and where the body begins."""
    closes = _CLOSES.search(text, start)
    if closes is None:
        raise Fault(1, "the front matter is never closed; add a line --- below it")
    return closes.start(), min(closes.end() + 1, len(text))


def _card(text: str, values: dict[str, Any], found: dict[str, body.Section], settings: Node | None) -> Card:
    del values["schema"]
    evidence = values.pop("carrier", reading.CarrierEvidence()).evidence
    parts = found["Carrier"].parts if "Carrier" in found else {}
    code = {name: part.fences[0].code for name, part in parts.items() if part.fences}
    query = _query(found)
    return Card(
        **values,
        anchor=Anchor(anchor_prose(text, found), body.prose(query.text) if query else ""),
        carrier=Carrier(
            code.get("Before", ""), code.get("After", ""), reading.read_settings(settings), tuple(evidence)
        ),
        notes=_under(text, found, "Notes"),
    )


def _under(text: str, found: dict[str, body.Section], title: str) -> str:
    section = found.get(title)
    return body.read_prose(text[section.heading.end : section.end]) if section else ""


def anchor_prose(text: str, found: dict[str, body.Section]) -> str:
    """What is said under ``# Anchor`` before and after the query."""
    query = _query(found)
    if query is None:
        return _under(text, found, "Anchor")
    section = found["Anchor"]
    pieces = (text[section.heading.end : query.start], text[query.end : section.end])
    return "\n\n".join(piece for piece in map(body.read_prose, pieces) if piece)


def _query(found: dict[str, body.Section]) -> body.Fence | None:
    section = found.get("Anchor")
    queries = [fence for fence in section.fences if fence.info.split()[:1] == ["query"]] if section else []
    if len(queries) > 1:
        raise Fault(queries[1].line, "an anchor has one query; join the two as alternatives in [ ]")
    return queries[0] if queries else None


def _settings(text: str, found: dict[str, body.Section]) -> Node | None:
    part = found["Carrier"].parts.get("Settings") if "Carrier" in found else None
    if part is None or not part.fences:
        return None
    fence = part.fences[0]
    inside = text.index("\n", fence.start) + 1
    return load(fence.text, inside, fence.line + 1)
