"""An edit leaves a person's hand alone: what was not changed keeps every byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.skill.card import Anchor, Card, Carrier, Evidence, Precondition, Probe, Risk
from klineage.skill.file import edited, kept, parse, render

from .strategies import cards, preconditions, texts, tries

NAME = "c.prefetch.md"

#: Written by hand: comments, its own order, quotes, blank lines, blocks, a list without indentation, prose in two pieces.
HAND = b"""---
# Curated by the kernel team.
intent: 'Ask for lines of B early'   # short on purpose
schema: 1
id: c.prefetch

surface: "c"
action: prefetch
locus: for # the loop over k
scope: {workloads: [gemm, fmha], platforms: ['cpu-x86_64']}
evidence:
- {key: e1, kind: transition, lineage: gemm-c, commit: "0123"}
- key: e2
  kind: probe
  report: ab.json   # the run of Tuesday
preconditions:
  # The one that matters.
  - key:   p1
    kind: storage
    text: >-
      rows begin at a multiple
      of 32 bytes
    evidence: [ e1 ]
    # asked of the target
    check: k % 8 == 0

  - text: "panels fit the first cache"
    key: p2
    kind: hardware
    doubt: ""
risks:
  - text: pushes out lines in use   # seen once
    kind: observed
    evidence:
      - e1
      # and in the probe
      - e2
effects: []   # none yet
---
Carrier and anchor below.
""".replace(b"Carrier and anchor below.\n", b"\n") + b"""# Carrier

## After

```c++ runnable
b();
```

##  Before

~~~~
a();
~~~~

## Settings
```yaml
# measured
AHEAD: 48   # lines
TILE: "64"
```

# Anchor
   The loop over k,
   innermost.

```query
(for_statement) @anchor
```

And nothing else.

# Notes

## Mine

Text.
"""  # fmt: skip

CARD = parse(HAND, NAME)
Change = Callable[[Card], Card]


def first(**parts: Any) -> Change:
    return lambda card: replace(
        card, preconditions=(replace(card.preconditions[0], **parts), *card.preconditions[1:])
    )


def part(name: str, **parts: Any) -> Change:
    return lambda card: replace(card, **{name: replace(getattr(card, name), **parts)})


def test_a_file_of_a_persons_own_making_reads_as_it_is_meant() -> None:
    assert CARD.preconditions[0].text == "rows begin at a multiple of 32 bytes"
    assert CARD.anchor == Anchor(
        "   The loop over k,\n   innermost.\n\nAnd nothing else.", "(for_statement) @anchor"
    )
    assert CARD.carrier == Carrier("a();\n", "b();\n", {"AHEAD": "48", "TILE": "64"})
    assert CARD.notes == "## Mine\n\nText."


def rewritten(**parts: Any) -> Change:
    return lambda card: replace(card, **parts)


SECOND = ['  - text: "panels fit the first cache"', "    key: p2", "    kind: hardware", '    doubt: ""']
THIRD = Precondition("p3", "layout", "dense")


@pytest.mark.parametrize(
    ("change", "gone", "come"),
    [
        (rewritten(intent="Ask"), ["intent: 'Ask for lines of B early'   # short on purpose"], ["intent: 'Ask'   # short on purpose"]),
        (rewritten(status="admitted"), [], ["status: admitted"]),
        (rewritten(locus="function"), ["locus: for # the loop over k"], ["locus: function # the loop over k"]),
        (
            part("scope", workloads=("gemm", "topk")),
            ["scope: {workloads: [gemm, fmha], platforms: ['cpu-x86_64']}"],
            ["scope: {workloads: [gemm, topk], platforms: ['cpu-x86_64']}"],
        ),
        (first(check="k % 16 == 0"), ["    check: k % 8 == 0"], ["    check: k % 16 == 0"]),
        (first(check=""), ["    check: k % 8 == 0"], []),
        (first(evidence=("e1", "e2")), ["    evidence: [ e1 ]"], ["    evidence: [e1, e2]"]),
        (
            first(text="rows begin at a multiple of 64 bytes"),
            ["      of 32 bytes", "      rows begin at a multiple"],
            ["      rows begin at a multiple of 64 bytes"],
        ),
        (
            first(probe=Probe("misalign", {"value": "4"})),
            [],
            ["    probe:", "      change: misalign", "      settings: {value: 4}"],
        ),
        (rewritten(preconditions=CARD.preconditions[:1]), SECOND, []),
        (
            rewritten(preconditions=(*CARD.preconditions, THIRD)),
            [],
            ["  - key: p3", "    kind: layout", "    text: dense"],
        ),
        (rewritten(evidence=(*CARD.evidence, Evidence("e3", "import"))), [], ["- key: e3", "  kind: import"]),
        (rewritten(risks=(replace(CARD.risks[0], evidence=("e2",)),)), ["      - e1"], []),
        (rewritten(risks=(*CARD.risks, Risk("a second one"))), [], ["  - text: a second one"]),
        (part("carrier", after="c();\n"), ["b();"], ["c();"]),
        (part("carrier", before=""), ["##  Before", "~~~~", "a();", "~~~~"], []),
        (part("carrier", settings={"AHEAD": "50", "TILE": "64"}), ["AHEAD: 48   # lines"], ["AHEAD: 50   # lines"]),
        (part("carrier", settings={"AHEAD": "48", "TILE": "64", "N": "2"}), [], ["N: 2"]),
        (part("anchor", query="(if_statement) @anchor"), ["(for_statement) @anchor"], ["(if_statement) @anchor"]),
        (rewritten(notes="## Mine\n\nOther."), ["Text."], ["Other."]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_the_lines_of_the_change_differ(
    change: Change, gone: list[str], come: list[str], ending: str
) -> None:
    hand = HAND.replace(b"\n", ending.encode())
    after = change(CARD)
    written = edited(hand, after)
    assert parse(written, NAME) == kept(after)
    before_lines = hand.decode().split(ending)
    after_lines = written.decode().split(ending)
    assert not any("\n" in line for line in after_lines)
    lost, new = [], []
    for what, i1, i2, j1, j2 in SequenceMatcher(
        None, before_lines, after_lines, autojunk=False
    ).get_opcodes():
        if what != "equal":
            lost += before_lines[i1:i2]
            new += after_lines[j1:j2]
    assert sorted(line for line in lost if line) == sorted(gone)
    assert sorted(line for line in new if line) == sorted(come)


def test_a_list_that_was_empty_takes_its_first_entries() -> None:
    effects = parse(render(CARD), NAME).effects
    assert effects == ()
    card = replace(CARD, preconditions=(), risks=())
    none = edited(HAND, card)
    assert parse(none, NAME) == card
    assert b"# Curated by the kernel team." in none
    again = edited(none, CARD)
    assert parse(again, NAME) == CARD


def test_moved_entries_keep_their_writing() -> None:
    card = replace(CARD, preconditions=CARD.preconditions[::-1])
    written = edited(HAND, card)
    assert parse(written, NAME) == card
    assert b"    # asked of the target\n    check: k % 8 == 0" in written


def test_a_field_whose_line_cannot_go_is_written_whole_and_the_rest_stays() -> None:
    """The entry begins with what is to go, so its dash would go too: the list is written anew, and no other field."""
    hand = HAND.replace(
        b"  - text: pushes out lines in use", b"  - doubt: who knows\n    text: pushes out lines in use"
    )
    card = parse(hand, NAME)
    after = replace(card, risks=(replace(card.risks[0], doubt=""),), locus="function")
    written = edited(hand, after)
    assert parse(written, NAME) == after
    assert b"locus: function # the loop over k" in written
    assert b"    # asked of the target\n    check: k % 8 == 0" in written


def test_settings_in_an_odd_form_are_written_whole_and_an_odd_field_is_left_to_a_person() -> None:
    hand = HAND.replace(b"AHEAD: 48   # lines", b"? AHEAD\n: 48")
    card = parse(hand, NAME)
    after = replace(card, carrier=replace(card.carrier, settings={"TILE": "32"}))
    assert parse(edited(hand, after), NAME) == after
    odd = HAND.replace(b"locus: for # the loop over k", b"? rule\n: c.prefetch")
    with pytest.raises(
        KlineageError, match=r"only a person can edit; open it with klineage card edit c\.prefetch"
    ):
        edited(odd, replace(parse(odd, NAME), rule=""))


@tries(40)
@given(
    st.lists(preconditions, max_size=4, unique_by=lambda one: one.key).map(tuple),
    texts,
    cards,
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
def test_any_edit_of_a_hand_written_file_reads_back(
    held: tuple[Precondition, ...], text: str, other: Card, ending: bytes, mark: bool
) -> None:
    hand = (b"\xef\xbb\xbf" if mark else b"") + HAND.replace(b"\n", ending)
    changed = replace(
        CARD,
        preconditions=(*held, replace(CARD.preconditions[0], key="p10", text=text)),
        scope=other.scope,
        effects=other.effects,
        risks=other.risks,
        anchor=other.anchor,
        carrier=other.carrier,
        notes=text,
    )
    written = edited(hand, changed)
    assert parse(written, NAME) == kept(changed)
    assert edited(written, changed) is written
    assert written.startswith(b"\xef\xbb\xbf") == mark
    assert b"# Curated by the kernel team." in written and b"# short on purpose" in written
    assert parse(edited(written, CARD), NAME) == CARD
