"""Nothing that a kernel, a model or a compiler writes reaches the terminal as a command."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from klineage_tui.text.sanitize import TAB_SIZE, display, sanitize, sanitize_lines

HOSTILE = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from(
            "\x1b\x07\x9b\x9d\r\n\t\x00\x7f\u202e\u2066\u200b\u200d\ufe0f\ufeff\u2028\ud800[]0;mA你é"
        ),
    ),
    max_size=60,
)


@given(HOSTILE)
def test_only_printable_characters_remain(text):
    drawn = sanitize(text)
    bad = [c for c in drawn if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")]
    assert bad == []


@given(HOSTILE)
def test_sanitizing_twice_changes_nothing(text):
    assert sanitize(sanitize(text)) == sanitize(text)


@given(HOSTILE)
def test_no_character_disappears(text):
    shown = display(text)
    assert shown.text == sanitize(text)
    if shown.starts is not None:
        assert len(shown.starts) == len(text) + 1
        assert all(a < b for a, b in zip(shown.starts, shown.starts[1:], strict=False))
        assert shown.starts[-1] == len(shown.text)


@given(HOSTILE)
def test_text_after_a_tab_starts_on_a_stop(text):
    assert cell_len(sanitize(text + "\t")) % TAB_SIZE == 0


@pytest.mark.parametrize(
    ("hostile", "visible"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b[2J", "␛[2J"),
        ("\x9b31m", "‹9b›31m"),
        ("a\rb", "a␍b"),
        ("x\u202ey", "x‹202e›y"),
        ("zero\u200bwidth", "zero‹200b›width"),
        ("⚠\ufe0f", "⚠‹fe0f›"),
        ("name\udcff", "name‹dcff›"),
        ("tag\U000e0041", "tag‹e0041›"),
        ("plain [bold]text[/bold]", "plain [bold]text[/bold]"),
        ("変数 = 1  # é", "変数 = 1  # é"),
    ],
)
def test_what_is_seen(hostile, visible):
    assert sanitize(hostile) == visible


def test_tabs_expand_by_the_cells_before_them():
    assert sanitize("a\tb") == "a   b"
    assert sanitize("你\tb") == "你  b"
    assert sanitize("\x1b\tb") == "␛   b"


def test_lines_of_a_log_end_with_either_line_ending():
    assert sanitize_lines("one\r\ntwo\rthree\nfour") == ["one", "two␍three", "four"]


def test_a_line_of_ten_thousand_tabs_is_still_one_line():
    assert len(sanitize("\t" * 10_000)) == 40_000
