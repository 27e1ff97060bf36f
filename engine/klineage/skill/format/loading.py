"""Any YAML that a person may write, as nodes; what a card has no use for is refused by line.

Most files are read by ``quick``; ruamel reads the rest, and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from klineage.skill.format.nodes import Entries, Fault, Items, Node, Scalar, entries
from klineage.skill.format.quick import quick

_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_DEEPEST = 32
_MOST = (
    256 * 1024
)  # characters; ruamel takes seconds for them, where a broken quote or bracket makes it look for its end

_ADVICE = {
    "mapping values are not allowed here": "a text that holds a colon needs double quotes, or the indentation is off",
    "found undefined alias": "a text that begins with * needs double quotes",
    "that cannot start any token": "a text that begins with this needs double quotes; indent by spaces, never by tabs",
    "found unexpected end of stream": "a quote is opened and not closed",
    "stream end": "a bracket or a quote is opened and not closed",
    "block end": "the indentation is off",
}


def load(text: str, start: int = 0, line: int = 1) -> Node | None:
    """The one document in ``text``, which stands at ``start`` and ``line`` of the file; None where it is empty.

    Raises Fault as ``load_any`` does.
    """
    return quick(text, start, line) or load_any(text, start, line)


def load_any(text: str, start: int = 0, line: int = 1) -> Node | None:
    """As ``load``, by ruamel alone.

    Raises Fault for more than 256 KiB, broken YAML, anchors, aliases, tags, keys that are no text, a second document, and what
    nests more than 32 deep.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(text) > _MOST:
        raise Fault(
            line,
            f"this is {len(text) // 1024} KiB of YAML in a form that is slow to read; write each value on its line, "
            "and what is long under # Notes",
        )
    if bad := _UNREADABLE.search(text):
        where = line + text.count("\n", 0, bad.start())
        raise Fault(where, f"the character U+{ord(bad.group()):04X} cannot stand here; take it out")
    reader = YAML(typ="safe", pure=True)
    try:
        return _Composer(reader.parse(text), text, start, line).document()
    except MarkedYAMLError as error:
        at = error.problem_mark.line if error.problem_mark else 0
        raise Fault(min(line + at, line + text.count("\n")), _said(error)) from error
    except YAMLError as error:
        raise Fault(line, f"this is not YAML: {' '.join(str(error).split())}") from error


def _said(error: Any) -> str:
    problem = " ".join(str(error.problem or error.context or "it cannot be read").split())
    advice = next(
        (advice for known, advice in _ADVICE.items() if known in problem), "mend it here or just above"
    )
    return f"this is not YAML: {problem}; {advice}"


class _Composer:
    """Events to nodes. ruamel's own composer forgets aliases and says nothing of keys that stand twice."""

    def __init__(self, events: Iterator[Any], text: str, start: int, line: int) -> None:
        self.events = iter(events)
        self.text = text
        self.start = start
        self.line = line

    def document(self) -> Node | None:
        node: Node | None = None
        for event in self.events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                if node is not None or event.version or event.tags:
                    raise Fault(self.line + event.start_mark.line, "only one YAML document can stand here")
                node = self.node(next(self.events), 0)
        if isinstance(node, Scalar) and not node.text and not node.style:
            return None
        return node

    def node(self, event: Any, depth: int) -> Node:
        kind = type(event).__name__
        line = self.line + event.start_mark.line
        if kind == "AliasEvent" or event.anchor is not None:
            raise Fault(line, "a card knows no anchors (&) and aliases (*); write it out, or quote the text")
        if kind == "ScalarEvent":
            return self.scalar(event, line)
        if event.tag is not None:
            raise Fault(line, f"a card knows no tags; take {event.tag} away")
        if depth > _DEEPEST:
            raise Fault(line, f"this nests more than {_DEEPEST} deep, which no card does")
        if kind == "SequenceStartEvent":
            return self.sequence(event, line, depth)
        return self.mapping(event, line, depth)

    def scalar(self, event: Any, line: int) -> Scalar:
        if event.tag is not None:
            raise Fault(line, f"a card knows no tags; take {event.tag} away")
        start, end = event.start_mark.index, event.end_mark.index
        style = event.style or ""
        if style in ("|", ">"):
            end = start + len(self.text[start:end].rstrip())
        return Scalar(event.value, style, line, self.start + start, self.start + end)

    def sequence(self, event: Any, line: int, depth: int) -> Items:
        items: list[Node] = []
        while type(after := next(self.events)).__name__ != "SequenceEndEvent":
            item = self.node(after, depth + 1)
            if isinstance(item, Scalar) and not item.text and not item.style:
                raise Fault(line, "an entry of this list is empty; write it or take it away")
            items.append(item)
        flow = bool(event.flow_style)
        end = self.start + after.end_mark.index if flow else items[-1].end
        return Items(tuple(items), flow, line, self.start + event.start_mark.index, end)

    def mapping(self, event: Any, line: int, depth: int) -> Entries:
        pairs: list[tuple[Scalar, Node]] = []
        while type(after := next(self.events)).__name__ != "MappingEndEvent":
            key = self.node(after, depth + 1)
            if not isinstance(key, Scalar) or key.style in ("|", ">"):
                raise Fault(key.line, "a key must be one word")
            value = self.node(next(self.events), depth + 1)
            if isinstance(value, Scalar) and not value.text and not value.style:
                value = self.nothing(key)
            pairs.append((key, value))
        flow = bool(event.flow_style)
        end = self.start + after.end_mark.index if flow else pairs[-1][1].end
        return entries(pairs, flow, line, self.start + event.start_mark.index, end)

    def nothing(self, key: Scalar) -> Scalar:
        """A value that is left out stands right after its key's colon: ruamel puts it at the next word."""
        after = self.text[key.end - self.start :]
        place = key.end + (len(after) - len(after.lstrip()) + 1 if after.lstrip().startswith(":") else 0)
        return Scalar("", "", key.line, place, place)
