"""An edit of structured fields as splices: the changed value alone is written anew, in the style it was written in."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from klineage.skill.format import writing
from klineage.skill.format.nodes import Entries, Items, Node, Scalar
from klineage.skill.format.splicing import Splice

_BLOCK = re.compile(r"(?P<style>[|>])(?P<chomp>[-+]?)(?P<rest>[ \t]*(#[^\n]*)?)")


class NotInPlace(Exception):
    """The way a value is written allows no small edit of it."""


class Editor:
    """Collects the splices that turn the fields ``old`` of a mapping into ``new``.

    fine: item by item, scalar by scalar. Otherwise each field of the outermost mapping that differs is written whole.
    """

    def __init__(self, text: str, fine: bool = True) -> None:
        self.text = text
        self.fine = fine
        self.splices: list[Splice] = []

    def mapping(self, node: Entries, old: Mapping[str, Any], new: Mapping[str, Any], name: str = "") -> None:
        """Edit a mapping. Raises NotInPlace where only writing it whole would do."""
        if old == new:
            return
        there = {key.text: (key, value) for key, value in node.entries}
        changed = {key for key, value in new.items() if key not in old or old[key] != value}
        removed = [key for key in there if key in old and key not in new]
        if node.flow and (removed or not changed <= there.keys()):
            kept = {key: value for key, value in new.items() if key in there or key in changed}
            self._put(node.start, node.end, writing.flow(kept, name == writing.SETTINGS))
            return
        after = node.entries[0][1]
        for key, value in new.items():
            if key in there:
                after = there[key][1]
            if key in changed and key in there:
                self._value(there[key][0], after, old.get(key), value, node, name)
            elif key in changed:
                self._insert_field(node, after, key, value, name)
        for key in removed:
            self._remove(*there[key])

    def _value(self, key: Scalar, node: Node, old: Any, new: Any, owner: Entries, name: str) -> None:
        loose = name == writing.SETTINGS
        if isinstance(node, Scalar) and not isinstance(new, Mapping | list):
            self._scalar(node, new, owner.flow, loose)
        elif (
            self.fine
            and isinstance(node, Entries)
            and isinstance(new, Mapping)
            and new
            and isinstance(old, Mapping)
        ):
            self.mapping(node, old, new, key.text)
        elif (
            self.fine and isinstance(node, Items) and isinstance(new, list) and new and isinstance(old, list)
        ):
            self._list(key, node, old, new, owner)
        elif owner.flow:
            self._put(node.start, node.end, writing.flow(new, loose or key.text == writing.SETTINGS))
        else:
            self._whole(key, node, new, loose)

    def _whole(self, key: Scalar, node: Node, new: Any, loose: bool = False) -> None:
        lines = writing.field_lines(key.text, new, self._column(key.start), loose)
        self._put(self._colon(key) + 1, node.end, "\n".join(lines))

    def _scalar(self, node: Scalar, new: Any, in_flow: bool, loose: bool) -> None:
        written = restyled(self.text[node.start : node.end], node, new, in_flow, loose)
        self._put(node.start, node.end, written if node.end > node.start else f" {written}")

    def _list(self, key: Scalar, node: Items, old: list[Any], new: list[Any], owner: Entries) -> None:
        if node.flow:
            if len(old) == len(new):
                for item, before, value in zip(node.items, old, new, strict=True):
                    self._item(key, item, before, value, in_flow=True)
            elif owner.flow:
                self._put(node.start, node.end, writing.flow(new))
            else:
                self._whole(key, node, new)
            return
        matcher = SequenceMatcher(
            None, [_identity(item) for item in old], [_identity(item) for item in new], False
        )
        sources = {_identity(one): self._source(node, n) for n, one in enumerate(old) if one in new}
        for what, i1, i2, j1, j2 in matcher.get_opcodes():
            paired = min(i2 - i1, j2 - j1) if what != "replace" or not _keyed(old + new) else 0
            for i, j in zip(range(i1, i1 + paired), range(j1, j1 + paired), strict=True):
                self._item(key, node.items[i], old[i], new[j], in_flow=False)
            for i in range(i1 + paired, i2):
                self._remove_item(node, i)
            for j in range(j1 + paired, j2):
                self._insert_item(key, node, i1 + paired, new[j], sources.get(_identity(new[j])))

    def _item(self, key: Scalar, node: Node, old: Any, new: Any, in_flow: bool) -> None:
        if old == new:
            return
        if isinstance(node, Scalar) and isinstance(new, str):
            self._scalar(node, new, in_flow, False)
        elif isinstance(node, Entries) and isinstance(new, Mapping):
            self.mapping(node, old, new)
        else:
            raise NotInPlace(f"an entry of {key.text}")

    def _insert_item(self, key: Scalar, node: Items, number: int, item: Any, source: str | None) -> None:
        indent = self._column(self._dash(node.items[0]))
        lines = source or "\n".join(writing.item_lines(key.text, item, indent))
        first = self._line_start(self._dash(node.items[0])) - 1
        at = self._line_end(node.items[number - 1].end) if number else first
        self._put(at, at, f"\n{lines}")

    def _source(self, node: Items, number: int) -> str:
        return self.text[
            self._line_start(self._dash(node.items[number])) : self._line_end(node.items[number].end)
        ]

    def _remove_item(self, node: Items, number: int) -> None:
        item = node.items[number]
        start = self._line_start(self._dash(item))
        if number == 0 and self.text[start : self._dash(item)].strip():
            raise NotInPlace("the first entry stands on its parent's line")
        self._put(start - 1, self._line_end(item.end), "")

    def _insert_field(self, node: Entries, after: Node, key: str, value: Any, name: str) -> None:
        indent = self._column(node.entries[0][0].start)
        lines = writing.block({key: value}, indent, name == writing.SETTINGS)
        at = self._line_end(after.end)
        self._put(at, at, "\n" + "\n".join(lines))

    def _remove(self, key: Scalar, node: Node) -> None:
        start = self._line_start(key.start)
        if self.text[start : key.start].strip():
            raise NotInPlace(f"{key.text} stands on the line of its dash")
        self._put(start - 1, self._line_end(node.end), "")

    def _dash(self, item: Node) -> int:
        """Where the dash before an entry of a block list is."""
        at = item.start
        while at > 0:
            start = self._line_start(at)
            before = self.text[start:at].partition(" #")[0].rstrip()
            if before.endswith("-"):
                return start + len(before) - 1
            if before and not before.lstrip().startswith("#"):
                break
            at = start - 1
        raise NotInPlace("an entry has no dash")

    def _colon(self, key: Scalar) -> int:
        return self.text.index(":", key.end)

    def _column(self, at: int) -> int:
        return at - self._line_start(at)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        return self.text.index("\n", at)

    def _put(self, start: int, end: int, new: str) -> None:
        self.splices.append(Splice(start, end, new))


def restyled(source: str, node: Scalar, new: Any, in_flow: bool, loose: bool = False) -> str:
    """A new value in the quotes, or in the kind of block, that the old one had in ``source``, where it can be."""
    written = writing.scalar(new, in_flow, loose or not node.style)
    if not isinstance(new, str):
        return written
    if node.style == '"':
        return writing.quoted(new)
    if node.style == "'" and new.isprintable():
        doubled = new.replace("'", "''")
        return f"'{doubled}'"
    if node.style in ("|", ">"):
        return _as_block(source, new) or writing.quoted(new)
    return written


def _as_block(source: str, new: str) -> str:
    """The text as a block under the header of ``source``; empty where a block cannot hold it."""
    header, *lines = source.split("\n")
    found = _BLOCK.fullmatch(header)
    held = [line for line in lines if line.strip()]
    text = new.removesuffix("\n")
    if not (
        found and held and text and text == text.strip() and all(p.isprintable() for p in text.split("\n"))
    ):
        return ""
    indent = len(held[0]) - len(held[0].lstrip(" "))
    chomp = "" if new.endswith("\n") else "-"
    if found["style"] == "|":
        wrapped = text.split("\n")
    elif "\n" in text or "  " in text:
        return ""
    else:
        width = max(60, *(len(line) - indent for line in held))
        wrapped = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    written = [f"{' ' * indent}{line}" if line else "" for line in wrapped]
    return "\n".join([f"{found['style']}{chomp}{found['rest']}", *written])


def _identity(item: Any) -> str:
    if isinstance(item, Mapping) and "key" in item:
        return str(item["key"])
    return json.dumps(item, sort_keys=True)


def _keyed(items: list[Any]) -> bool:
    return any(isinstance(item, Mapping) and "key" in item for item in items)
