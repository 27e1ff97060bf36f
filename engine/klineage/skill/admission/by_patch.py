"""The carrier as a structural patch: its before is looked for in the target, and becomes its after.

Names are variables and words of the language are not, as in a semantic patch (Padioleau, Lawall, Hansen and Muller,
EuroSys 2008). A name that the before only shows to be left alone must be the same name throughout; numbers must be equal.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Surface
from klineage.skill.admission.materializer import Failed, Made, changed
from klineage.skill.admission.target import Target
from klineage.skill.card import Card
from klineage.surface.tree import Edit, apply_edits, parse, parse_kernel, walk

_NAMES = ("identifier", "type_identifier", "field_identifier")
#: Names that mean the same everywhere, and so stand for themselves.
_FIXED = frozenset(
    {"tl", "triton", "math", "float", "int64_t", "int32_t", "size_t", "range", "min", "max", "len"}
)
_CONTEXT = (40, 12, 4)  # tokens of the before that are kept around a change, the most first


@dataclass(frozen=True)
class Token:
    """One leaf of the syntax tree, or a line of the preprocessor. named: whether it is a variable of the patch."""

    text: str
    start: int
    end: int
    named: bool


@dataclass(frozen=True)
class Hunk:
    """One change: ``before`` becomes ``after``, with the tokens of context that both begin and end with."""

    before: tuple[Token, ...]
    after: tuple[Token, ...]
    lead: int
    tail: int


@dataclass(frozen=True)
class ByPatch:
    """The carrier with as much context as can be found again, then with less."""

    name: str = "patch"

    def answers(self, card: Card, target: Target, failed: Callable[[], tuple[Failed, ...]]) -> Iterator[Made]:
        if not card.carrier.after.strip():
            yield Made(self.name, problem="the card's carrier has no code after the change")
            return
        seen = {target.kernel.source}
        for context in _CONTEXT:
            source = patched(
                target.kernel.surface, card.carrier.before, card.carrier.after, target.kernel.source, context
            )
            if source is not None and source not in seen:
                seen.add(source)
                broken = parse(target.kernel.surface, target.kernel.filename, source).broken_lines()
                if len(broken) <= len(parse_kernel(target.kernel).broken_lines()):
                    yield Made(
                        self.name, changed(target, source), f"the carrier with {context} tokens of context"
                    )
        if len(seen) == 1:
            yield Made(self.name, problem="nothing in the target reads like the code before the change")


def has_place(card: Card, target: Target) -> bool:
    """Whether the carrier can be put into a kernel as a patch. Nothing is gated."""
    return any(made.kernel is not None for made in ByPatch().answers(card, target, lambda: ()))


def patched(surface: Surface, before: str, after: str, source: bytes, context: int) -> bytes | None:
    """The source with every change of the carrier made once; None when one of them has no place or several.

    Names in the carrier stand for whatever the target has in their place, the same for all changes.
    """
    tokens = tokens_of(surface, source)
    bound: dict[str, str] = {}
    edits: list[Edit] = []
    for hunk in hunks(tokens_of(surface, before.encode()), tokens_of(surface, after.encode()), context):
        found = list(_matches(hunk.before, tokens, bound))
        if len(found) != 1:
            return None
        at, names = found[0]
        bound = names
        first, last = at + hunk.lead, at + len(hunk.before) - hunk.tail
        start = tokens[first].start if first < len(tokens) else len(source)
        end = tokens[last - 1].end if last > first else start
        fresh = hunk.after[hunk.lead : len(hunk.after) - hunk.tail]
        edits.append(Edit(start, end, _written(after.encode(), fresh, names, following=last == first)))
    return apply_edits(source, edits) if edits else None


def hunks(before: Sequence[Token], after: Sequence[Token], context: int) -> list[Hunk]:
    """The changes between two pieces of code, each with its context of equal tokens."""
    matcher = difflib.SequenceMatcher(None, [t.text for t in before], [t.text for t in after], autojunk=False)
    found = []
    for group in matcher.get_grouped_opcodes(context):
        (_, start, _, first, _), (_, _, end, _, last) = group[0], group[-1]
        lead = group[0][2] - group[0][1] if group[0][0] == "equal" else 0
        tail = group[-1][2] - group[-1][1] if group[-1][0] == "equal" else 0
        found.append(Hunk(tuple(before[start:end]), tuple(after[first:last]), lead, tail))
    return found


def tokens_of(surface: Surface, source: bytes) -> list[Token]:
    """The tokens of code, comments left out; pragmas and other lines of the preprocessor are one token each."""
    unit = parse(surface, "carrier", source)
    pragmas = [
        Token(" ".join(unit.source[a:b].decode("utf-8", "replace").split()), a, b, False)
        for a, b in unit.loop_pragmas
    ]
    leaves = [
        _token(unit.text(node), node) for node in walk(unit.root) if not node.children and not _blank(node)
    ]
    return sorted([*pragmas, *leaves], key=lambda token: token.start)


def _blank(node: Node) -> bool:
    return (
        node.type == "comment"
        or node.start_byte == node.end_byte
        or any(above is not None and above.type == "comment" for above in (node.parent,))
    )


def _token(text: str, node: Node) -> Token:
    called = node.parent is not None and node.parent.type in ("call_expression", "call", "attribute")
    named = (
        node.type in _NAMES
        and text not in _FIXED
        and not text.startswith("__")
        and not (called and _is_function(node))
    )
    return Token(text, node.start_byte, node.end_byte, named)


def _is_function(node: Node) -> bool:
    parent = node.parent
    return parent is not None and node in (
        parent.child_by_field_name("function"),
        parent.child_by_field_name("attribute"),
    )


def _matches(
    pattern: Sequence[Token], tokens: Sequence[Token], bound: dict[str, str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Where a pattern stands in the target, and what its names stand for: different names for different names."""
    for at in range(len(tokens) - len(pattern) + 1):
        names = dict(bound)
        if all(_fits(want, have, names) for want, have in zip(pattern, tokens[at:], strict=False)):
            yield at, names


def _fits(want: Token, have: Token, names: dict[str, str]) -> bool:
    if not want.named:
        return want.text == have.text
    if not have.named:
        return False
    if want.text in names:
        return names[want.text] == have.text
    if have.text in names.values():
        return False
    names[want.text] = have.text
    return True


def _written(source: bytes, tokens: Sequence[Token], names: dict[str, str], *, following: bool) -> bytes:
    """Tokens with the white space that stood between them, and the target's names."""
    if not tokens:
        return b""
    parts: list[bytes] = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        text = (
            names.get(token.text, token.text)
            if token.named
            else source[token.start : token.end].decode("utf-8", "replace")
        )
        parts.append(text.encode())
        gap = (
            source[token.end : after.start]
            if after is not None
            else (_gap(source, token.end) if following else b"")
        )
        parts.append(gap)
    return b"".join(parts)


def _gap(source: bytes, at: int) -> bytes:
    """The white space behind a token."""
    end = at
    while end < len(source) and source[end : end + 1].isspace():
        end += 1
    return source[at:end]
