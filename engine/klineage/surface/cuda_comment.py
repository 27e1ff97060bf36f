"""The text of a klineage comment in a CUDA file: keys with their values, lists, extents."""

from __future__ import annotations

import re

from klineage.surface.expression import NotAnExpression, Tree, parse_expression


def keyed(text: str, keys: tuple[str, ...]) -> dict[str, str]:
    """``grid=(a, b) shared=0`` by key. A key inside brackets belongs to what is around it."""
    key = re.compile(rf"\b({'|'.join(keys)})\s*=(?!=)")
    starts = [m for m in key.finditer(text) if _depth(text[: m.start()]) == 0]
    if text[: starts[0].start() if starts else len(text)].strip():
        raise NotAnExpression(
            f"{text.strip()[:40]!r} is not understood; after the name come {', '.join(f'{k}=' for k in keys)}"
        )
    values: dict[str, str] = {}
    ends = [m.start() for m in starts[1:]] + [len(text)] * bool(starts)
    for start, end in zip(starts, ends, strict=True):
        if start[1] in values:
            raise NotAnExpression(f"{start[1]}= stands there twice")
        values[start[1]] = text[start.end() : end].strip()
    return values


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")


def listed(text: str) -> list[str]:
    """``(a, f(b, c))`` as ``["a", "f(b, c)"]``; one item may stand without brackets."""
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") and _balanced(text[1:-1]) else text
    items, depth, begin = [], 0, 0
    for index, letter in enumerate(inner):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            items.append(inner[begin:index].strip())
            begin = index + 1
    return [item for item in (*items, inner[begin:].strip()) if item]


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def extents(text: str, what: str) -> tuple[Tree, ...]:
    """Three extents of a grid or a block; those that are not written are 1."""
    found = tuple(map(parse_expression, listed(text)))
    if not 1 <= len(found) <= 3:
        raise NotAnExpression(f"{what} has {len(found)} extents; it takes one to three")
    return (*found, *[1] * (3 - len(found)))
