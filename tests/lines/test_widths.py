"""How many columns a text takes, and that nothing which is drawn as one character is taken apart."""

from __future__ import annotations

import pytest

from covey.lines.line import Span, line
from covey.lines.widths import clusters, cut, cut_line, expanded, head, width
from covey.lines.wrap import broken, wrap

FAMILY = "👩\u200d👩\u200d👧"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        ("é", 1),
        ("e\u0301", 1),
        ("日本語", 6),
        ("ｶﾅ", 2),
        ("Ａ", 2),
        ("한국", 4),
        ("\u1112\u1161\u11ab", 2),
        ("👍🏽", 2),
        (FAMILY, 2),
        ("🇩🇪🇫🇷", 4),
        ("❤", 1),
        ("❤\ufe0f", 2),
        ("1\ufe0f\u20e3", 2),
        ("\U0001fae8", 2),
        ("\u0378", 1),
        ("कि", 2),
        ("กำ", 2),
        ("…│✓✗−☐☑•⠋", 9),
    ],
)
def test_a_text_takes_as_many_columns_as_a_terminal_gives_it(text: str, columns: int) -> None:
    assert width(text) == columns
    assert "".join(cluster for cluster, _ in clusters(text)) == text


@pytest.mark.parametrize(
    "text", [FAMILY, "👍🏽", "e\u0301\u0323", "🇩🇪", "❤\ufe0f", "\u1112\u1161\u11ab", "1\ufe0f\u20e3"]
)
def test_what_is_drawn_as_one_character_stays_whole(text: str) -> None:
    assert [cluster for cluster, _ in clusters(f"a{text}b")] == ["a", text, "b"]
    assert head(f"a{text}", 1) == "a"


def test_a_text_is_cut_to_the_columns_that_there_are() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 4) == "abc…"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"
    assert cut("abc", 0) == ""
    assert cut_line(line(Span("日本", "code"), "abc", Span("more", "dim")), 6) == line(Span("日本", "code"), "a…")
    assert cut_line(line("abc", "def"), 6) == line("abc", "def")


def test_tabs_become_blanks_up_to_the_next_stop() -> None:
    assert expanded("a\tb\t\tc") == "a   b       c"
    assert expanded("日本\tx") == "日本    x"
    assert expanded("\tx", 2) == "  x"


@pytest.mark.parametrize("columns", [20, 40, 80])
@pytest.mark.parametrize(
    "text",
    [
        "the quick brown fox jumps over the lazy dog " * 5,
        "日本語のテキストは空白なしで書かれるので、どこでも折り返せます。" * 3,
        f"emoji {FAMILY} and flags 🇩🇪 in between, " * 4,
        "a" * 200,
        "𠮷" * 60,
    ],
)
def test_no_row_is_wider_than_the_screen_and_no_text_is_lost(text: str, columns: int) -> None:
    rows = [row.text for row in wrap([Span(text)], columns)]
    assert max(map(width, rows)) <= columns
    assert "".join("".join(rows).split()) == "".join(text.split())
    code = [row.text for row in broken(text, columns, "code")]
    assert max(map(width, code)) <= columns and "".join(code) == text


def test_rows_have_their_own_indentation_and_words_with_several_styles_stay_together() -> None:
    spans = [Span("one two"), Span("three", "strong"), Span(" four")]
    rows = wrap(spans, 12, [Span("- ")], [Span("  ")])
    assert [row.text for row in rows] == ["- one", "  twothree", "  four"]
    assert rows[1].spans == (Span("  two"), Span("three", "strong"))
