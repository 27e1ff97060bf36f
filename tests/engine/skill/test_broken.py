"""Files that no card can be: each is named by file and line, in one sentence, and quickly."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.skill.card import Carrier
from klineage.skill.file import edited, lines, parse, render

from .strategies import tries
from .test_edited import HAND
from .test_lint import GOOD

TEXT = render(GOOD).decode()
NAME = "cards/c.prefetch.md"


def fault(data: bytes | str, name: str = NAME) -> tuple[int, str]:
    with pytest.raises(KlineageError) as caught:
        parse(data.encode() if isinstance(data, str) else data, name)
    found = re.fullmatch(rf"{re.escape(name)}:(\d+): (.*)", str(caught.value))
    assert found, str(caught.value)
    return int(found[1]), found[2]


def at(line: str) -> int:
    return TEXT.splitlines().index(line) + 1


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("intent:", "intend:", "intent", "no field 'intend'; did you mean intent?"),
        ("    kind: storage", "    kinds: storage", "    kind: storage", "no field 'kinds'; did you mean kind?"),
        ("    kind: storage", "    kind: strage", "    kind: storage", "did you mean storage?"),
        ("status: hypothesis", "status: ready", "status: hypothesis", "is not one of hypothesis, admitted, retired"),
        ("locus: function\n", "locus: function\naction: simd\n", "scope:", "'action' stands here and on line 5"),
        ("    gain: 1.4", "    gain: fast", "    gain: 1.4", "gain must be a number such as 1.25, not 'fast'"),
        ("    gain: 1.4", '    gain: "1.4"', "    gain: 1.4", "gain must be a number"),
        ("    gain: 1.4", "    gain: .nan", "    gain: 1.4", "gain must be a number"),
        ("    gain: 1.4", "    gain: [1.4]", "    gain: 1.4", "not a list"),
        ("intent: ", "intent: [x] #", "intent", "intent must be a text, not a list; quote it"),
        ("  requires: []", "  requires: none", "  requires: []", "requires must be a list, such as [a, b], not 'none'"),
        ("scope:\n", "scope: all\nold:\n", "scope:", "scope must be made of fields (workloads"),
        ("    lineage: gemm-c", "    lineage: gemm-c\n    key: e9", None, "'key' stands here and on line"),
        ("  - key: e2", "  - key: e1", "  - key: e2", "the key e1 is taken on line"),
        ("  - key: e2", "  - key: e 2", "  - key: e2", "must be one short word, such as e1"),
        ("  - key: e2", "  - kee: e2", "  - key: e2", "no field 'kee'; did you mean key?"),
        ("    kind: storage\n", "", "  - key: p1", "each of preconditions lacks kind; add it"),
        ("id: c.prefetch", "id: c.Prefetch", "id: c.prefetch", "cannot name a card"),
        ("id: c.prefetch", "id: cuda.prefetch", "id: c.prefetch", "another surface than c"),
        ("id: c.prefetch", "id: c.prefetch-b", "id: c.prefetch", "the file is called c.prefetch.md; make them the same"),
        ("schema: 1", "schema: 2", "schema: 1", "of schema 2 and this klineage reads up to 1; update klineage"),
        ("schema: 1\n", "", "schema: 1", "does not name its schema; write schema: 1"),
        ("schema: 1", "schema: one", "schema: 1", "does not name its schema"),
        ("action: prefetch", "\taction: prefetch", "action: prefetch", "indent by spaces, never by tabs"),
        ("action: prefetch", "action: a: b", "action: prefetch", "a text that holds a colon needs double quotes"),
        ("action: prefetch", 'action: "prefetch', None, "this is not YAML"),
        ("action: prefetch", "action: *all", "action: prefetch", "no anchors (&) and aliases (*)"),
        ("action: prefetch", "action: &a prefetch", "action: prefetch", "no anchors (&) and aliases (*)"),
        ("action: prefetch", "action: !!python/name:os.system prefetch", "action: prefetch", "a card knows no tags"),
        ("action: prefetch", "action: @prefetch", "action: prefetch", "needs double quotes"),
        ("action: prefetch", "action: a\x07b", "action: prefetch", "U+0007 cannot stand here"),
        ("action: prefetch", "? [a]\n: b", "action: prefetch", "a key must be one word"),
        ("action: prefetch", "...\n--- x", "action: prefetch", "only one YAML document"),
        ("action: prefetch", "action: " + "[" * 500 + "]" * 500, "action: prefetch", "nests more than 32 deep"),
        ("# Carrier", "# Carier", "# Carrier", "did you mean # Carrier?"),
        ("## After", "## Afterwards", "## After", "# Carrier has no section 'Afterwards'; did you mean ## After?"),
        ("## After", "## Before", "## After", "the section Before stands here and on line"),
        ("# Carrier", "# Anchor", "# Carrier", "the section Anchor stands here and on line"),
        ("## After\n", "", None, "## Before takes one block of code; join the two"),
        ("## After\n", "## After\n\nfirst of all\n", None, "text outside a fence; put it under # Notes"),
        ("## Before\n", "", None, "put ## Before or ## After above it"),
        ("# Anchor\n", "Hello.\n\n# Anchor\n", "# Anchor", "text before the first heading"),
        ("```yaml\n", "````yaml\n", "```yaml", "this ```` is never closed"),
        ("AHEAD: 48", "AHEAD: [48]", "AHEAD: 48", "AHEAD must be a text, not a list"),
        ("AHEAD: 48", "AHEAD: 48\nAHEAD: 49", "AHEAD: 48", "'AHEAD' stands here and on line"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_line(old: str, new: str, line: str | None, says: str) -> None:
    assert old in TEXT
    number, text = fault(TEXT.replace(old, new, 1))
    assert says in text
    if line is not None:
        rows = [n for n, row in enumerate(TEXT.splitlines(), start=1) if row.startswith(line)]
        assert number in (rows[0], rows[0] + 1), text


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        (b"", 1, "begins with a line ---"),
        (b"# A card\n", 1, "begins with a line ---"),
        (b"---\n", 1, "never closed"),
        (b"---\nid: c.x\n", 1, "never closed"),
        (b"---\n---\n", 2, "the front matter is empty"),
        (b"---\n# only a comment\n---\n", 2, "the front matter is empty"),
        (b"---\n- a\n---\n", 2, "does not name its schema"),
        (b"---\nschema: 1\n---\n", 2, "the front matter lacks id; add it"),
        (b"---\nschema: 1\nid: \xff\n---\n", 3, "not UTF-8"),
        ("\ufeff---\nschema: 1\nid: c.x\n---\n".encode("utf-16"), 1, "not UTF-8"),
        (b"---\nschema: 1\na: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n---\n", 3, "no anchors"),
    ],
)
def test_files_that_are_something_else(data: bytes, line: int, says: str) -> None:
    number, text = fault(data)
    assert (number, says in text) == (line, True), text


def test_line_ends_marks_and_missing_ends_are_no_fault() -> None:
    plain = TEXT.encode()
    for data in (plain, plain.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + plain, plain.rstrip(b"\n")):
        assert parse(data, NAME) == GOOD
    mixed = plain.replace(b"action: prefetch\n", b"action: prefetch\r\n").replace(
        b"# Carrier\n", b"# Carrier\r\n"
    )
    assert parse(mixed, NAME) == GOOD


def test_lines_name_every_field() -> None:
    at_ = lines(TEXT.encode(), NAME)
    rows = TEXT.splitlines()
    for field, row in {
        "intent": "intent:", "preconditions.p1": "  - key: p1", "preconditions.p1.check": "    check:",
        "effects.0.gain": "    gain:", "evidence.e2.commit": "    commit:", "scope.platforms": "  platforms:",
        "anchor": "# Anchor", "anchor.query": "```query", "carrier.before": "## Before", "carrier.settings": "## Settings",
        "carrier.settings.AHEAD": "AHEAD:",
    }.items():  # fmt: skip
        assert rows[at_[field] - 1].startswith(row), field


def test_a_carrier_of_two_megabytes() -> None:
    code = "    sum += a[i] * b[i]; // ```` and ~~~~\n# Notes\n" * 50_000
    card = replace(GOOD, carrier=Carrier(code, code + "x", {"N": "1"}, ("e1",)))
    data = render(card)
    assert len(data) > 4_000_000
    assert parse(data, NAME) == card
    changed = replace(card, intent="Less of it", carrier=replace(card.carrier, after="y\n"))
    assert parse(edited(data.replace(b"\n", b"\r\n"), changed), NAME) == changed


def test_a_thousand_fences_and_headings_cost_no_more_than_their_size() -> None:
    """Each opens a fence that nothing closes: looking for the end of each would be quadratic."""
    notes = "\n".join(f"```{n}\n# {n}\n~~~{n}" for n in range(30_000))
    card = replace(GOOD, notes=notes)
    assert parse(render(card), NAME) == card


def test_what_only_costs_time_is_refused_and_said_briefly() -> None:
    opened = TEXT.replace("action: prefetch", "action: [" + "a, " * 100_000)
    assert fault(opened) == (
        2,
        "this is 293 KiB of YAML in a form that is slow to read; write each value on its line, and what is long under # Notes",
    )
    for broken in (
        TEXT.replace("kind: storage", "kind: " + "x" * 100_000),
        TEXT.replace("kind: storage", "x" * 100_000 + ": storage"),
        TEXT.replace("# Carrier", "# " + "x" * 100_000),
        TEXT + "`" * 100_000 + "\n",
    ):
        assert len(fault(broken)[1]) < 250


@tries(120)
@given(st.data())
def test_a_broken_file_is_a_card_or_a_fault_with_a_line(data: st.DataObject) -> None:
    """Whatever an editor, a merge or a disk does to a file: it reads as a card or says where it does not."""
    source = data.draw(st.sampled_from([HAND, TEXT.encode()]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(source)))
        end = min(len(source), start + data.draw(st.integers(0, 12)))
        bits = st.sampled_from(
            [
                b"\n",
                b"\r\n",
                b"---\n",
                b"```",
                b"# ",
                b"  ",
                b"\t",
                b": ",
                b"- ",
                b'"',
                b"&a ",
                b"*a",
                b"\xff",
                b"<<<<<<< ours\n",
                b"{",
                b"]",
            ]
        )
        source = source[:start] + data.draw(st.one_of(bits, st.binary(max_size=3))) + source[end:]
    count = source.count(b"\n") + 1
    try:
        card = parse(source, "x")
    except KlineageError as error:
        found = re.fullmatch(r"x:(\d+): [^\n]+", str(error))
        assert found, str(error)
        assert 1 <= int(found[1]) <= count
    else:
        assert parse(render(card), "x") == card
        assert edited(source, card) is source
        assert parse(edited(source, replace(card, rule="c.new")), "x").rule == "c.new"


def test_a_merge_conflict_is_named_where_it_begins() -> None:
    conflict = "<<<<<<< ours\nintent: a\n=======\nintent: b\n>>>>>>> theirs\n"
    number, text = fault(TEXT.replace("action: prefetch\n", conflict + "action: prefetch\n"))
    assert number == at("action: prefetch")
    assert "merge conflict" in text


def test_a_card_that_no_file_can_hold_is_not_written() -> None:
    twice = replace(GOOD, evidence=(GOOD.evidence[0], GOOD.evidence[0]))
    with pytest.raises(KlineageError, match="the key 'e1' of its evidence must be one word, and unique"):
        render(twice)
    half = replace(GOOD, notes="\ud800")
    with pytest.raises(KlineageError, match="half a character"):
        render(half)
    with pytest.raises(KlineageError, match="half a character"):
        edited(TEXT.encode(), half)
    no_number = replace(GOOD, effects=(replace(GOOD.effects[0], gain=float("nan")),))
    with pytest.raises(KlineageError, match="nan"):
        render(no_number)


def test_schema_0_is_read_and_becomes_the_schema_of_today() -> None:
    sketch = b"""---
schema: 0
id: c.prefetch
intent: Ask for lines early
action: prefetch
surface: c
scope: {cases: [gemm], languages: [c]}
preconditions:
  - "Data types: elements fill a line evenly"
  - "Layout: rows follow each other"
risks: [pushes out lines in use]
---

# Notes

Jotted down.
"""
    card = parse(sketch, NAME)
    assert [(p.key, p.kind, p.text) for p in card.preconditions] == [
        ("p1", "data-types", "elements fill a line evenly"),
        ("p2", "layout", "rows follow each other"),
    ]
    assert (card.scope.workloads, card.scope.surfaces) == (("gemm",), ("c",))
    assert [risk.text for risk in card.risks] == ["pushes out lines in use"]
    assert edited(sketch, card) is sketch
    saved = edited(sketch, replace(card, locus="for"))
    assert b"schema: 1\n" in saved
    assert saved.endswith(b"---\n\n# Notes\n\nJotted down.\n")
    assert parse(saved, NAME) == replace(card, locus="for")
    assert fault(sketch.replace(b"Layout:", b"Layoutt:"))[0] == 10
    assert (
        "each of risks has no field"
        not in fault(sketch.replace(b"risks: [pushes", b"risks: [{text: pushes"))[1]
    )
