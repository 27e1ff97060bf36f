"""The fast reader of YAML and ruamel agree wherever the fast one does not decline: on values, places and faults."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from klineage.skill.card import Card
from klineage.skill.file import render
from klineage.skill.format import writing
from klineage.skill.format.loading import load_any
from klineage.skill.format.nodes import Fault, Node
from klineage.skill.format.quick import quick

from .strategies import cards, tries
from .test_edited import HAND
from .test_lint import GOOD

_FRONT = HAND.decode().split("---\n")[1]
_MORE = """\
text: >-
  rows begin at
  a multiple   # no comment
lit: |
  a
    b

  # no comment
after: >   # folded
  one two

list:
  - text: |-
      x: y
    b: "c\\t\\x41"
    "d e": 'it''s'
gain: -1.5e+20
x: {}
y: [a, [b, {c: d}], "e, f"]
z: a:b#c  d
"""
_LINES = (_FRONT + _MORE).splitlines()
_BITS = (
    *" \n-:#,[]{}\"'\\ak1.~|>&*!%@?`=<",
    " #",
    ": ",
    "- ",
    "  ",
    "\n  ",
    "\n- ",
    "''",
    "\\n",
    "{a: 1}",
    "[x, y]",
    "\n#c\n",
    "\t",
    "ü",
)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A few lines of a card, moved to the left, with small changes that keep most of it YAML."""
    first = draw(st.integers(0, len(_LINES) - 1))
    lines = _LINES[first : first + draw(st.integers(1, 6))]
    column = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    text = "\n".join(line[column:] for line in lines) + "\n"
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from((*_BITS, ""))) + text[at + draw(st.integers(0, 1)) :]
    return text


def told(text: str, whole: bool) -> Node | tuple[int, str] | None:
    try:
        return load_any(text, 4, 2) if whole else quick(text, 4, 2)
    except Fault as fault:
        return fault.line, fault.text


@tries(250)
@given(mangled())
@example("a: >\n  b")
@example("a: |\n  b\n \n  # c\n")
@example("a: >-\n  b\n\n  # c\n")
@example("a: 'b\n")
@example("a: 1\na: 2\n")
@example("a:\n- b\n - c\n")
@example("a:\n- b\nc: d\n")
@example("a: b\n c\n")
@example("a: [b, c: d]\n")
@example("a: \x85\n")
@example("- a\n")
def test_what_the_fast_reader_reads_ruamel_reads_alike(text: str) -> None:
    fast = told(text, whole=False)
    if fast is not None:
        assert fast == told(text, whole=True)


def test_it_reads_what_people_and_klineage_usually_write() -> None:
    assert quick(render(GOOD).decode().split("---\n")[1], 4, 2) is not None
    assert quick(_FRONT, 4, 2) is not None
    assert quick(_MORE, 4, 2) is not None


@tries(15)
@given(cards)
def test_it_reads_what_klineage_writes(card: Card) -> None:
    text = "\n".join(writing.block(writing.front(card))) + "\n"
    fast = quick(text, 4, 2)
    assert fast is None or fast == load_any(text, 4, 2)
