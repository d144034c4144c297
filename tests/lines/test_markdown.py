"""Markdown while it is written: every row once, never changed, and at a cost that is linear in the text."""

from __future__ import annotations

import random

import pytest

from covey.lines import markdown as module
from covey.lines.inline import styled
from covey.lines.line import Span, StyledLine
from covey.lines.markdown import MarkdownRows, markdown
from covey.lines.widths import width

SAMPLE = """# A title with `code`

A paragraph with **bold words that go on** and *emphasis*, a [link](https://example.org/x), https://a.b/c and 日本語.

- one
  - nested, and so long that it must be wrapped somewhere
- [x] done
- [ ] open
1. first

> quoted text with **bold** that is wrapped at the width of the screen
> > nested

```python
def f(x):  # comment
\treturn "text" + 12
```

| a | b | a long column |
|---|:-:|---|
| 1 | 2 | some long text in a cell that must wrap as it is too wide |
| 日本 | x | y |

---
The end, with snake_case_names, 2*3*4 and a `tick
"""
NESTED = """A title &amp; more
===
***bold italic*** and *it with **bold** inside*, ***a** b* and ***c* d**, **e *f***, 这是**重点**内容, 这是*重点*内容
Not path/*.py and src/*.js, src/**/*.py and x/**, 2**3 and 4**5, __init__.py and __all__, f(*a, **k) and g(*a, **k).
"""


def texts(lines: list[StyledLine]) -> list[str]:
    return [line.text for line in lines]


def test_columns_of_a_table_stand_on_the_side_that_is_marked() -> None:
    table = "| name | price | how |\n|:--|--:|:-:|\n| tea | 2 | a |\n| coffee | 12.50 | warm |\n"
    assert texts(markdown(table, 80)) == [
        "name    price  how",
        "──────  ─────  ────",
        "tea         2   a",
        "coffee  12.50  warm",
    ]


@pytest.mark.parametrize("columns", [20, 40, 80])
@pytest.mark.parametrize("sample", [SAMPLE, NESTED])
def test_it_does_not_matter_in_which_pieces_a_text_comes(columns: int, sample: str) -> None:
    whole = markdown(sample, columns)
    assert max(width(row.text) for row in whole) <= columns
    chance = random.Random(columns)
    for longest in (1, 3, 40):
        rows, got, at = MarkdownRows(columns), list[StyledLine](), 0
        while at < len(sample):
            size = chance.randint(1, longest)
            got += rows.add(sample[at : at + size])
            assert width(rows.open_row.text) <= columns
            at += size
        assert texts([*got, *rows.end()]) == texts(whole)


def test_blocks_look_like_what_they_are() -> None:
    assert texts(markdown(SAMPLE, 40)) == [
        "# A title with code",
        "",
        "A paragraph with bold words that go on",
        "and emphasis, a link",
        "(https://example.org/x), https://a.b/c",
        "and 日本語.",
        "",
        "• one",
        "  • nested, and so long that it must be",
        "    wrapped somewhere",
        "☑ done",
        "☐ open",
        "1. first",
        "",
        "│ quoted text with bold that is wrapped",
        "│ at the width of the screen",
        "│ │ nested",
        "",
        "── python",
        "def f(x):  # comment",
        '    return "text" + 12',
        "──",
        "",
        "a     b  a long column",
        "────  ─  ───────────────────────────────",
        "1     2  some long text in a cell that",
        "         must wrap as it is too wide",
        "日本  x  y",
        "",
        "─" * 40,
        "The end, with snake_case_names, 2*3*4",
        "and a `tick",
    ]


def test_marks_inside_a_line_become_styles() -> None:
    assert styled("a **b** `c` *d* ~~e~~ _f_") == [
        Span("a "),
        Span("b", "strong"),
        Span(" "),
        Span("c", "code"),
        Span(" "),
        Span("d", "emphasis"),
        Span(" "),
        Span("e", "struck"),
        Span(" "),
        Span("f", "emphasis"),
    ]
    assert styled(r"\*no\* ``a ` b``") == [Span("*"), Span("no"), Span("*"), Span(" "), Span("a ` b", "code")]
    assert [span.text for span in styled("[text](http://x.y) and <http://z>")] == [
        *("text", " (", "http://x.y", ")", " and ", "http://z"),
    ]
    assert styled("**b** in a title", "heading")[0] == Span("b", "heading")


def test_marks_may_be_nested() -> None:
    assert styled("***a***") == [Span("a", "strong")]
    assert styled("*it with **bold** inside*") == [
        Span("it with ", "emphasis"),
        Span("bold", "strong"),
        Span(" inside", "emphasis"),
    ]
    assert styled("***a** b*") == [Span("a", "strong"), Span(" b", "emphasis")]
    assert [span.text for span in styled("***a* b** **c *d***")] == ["a", " b", " ", "c ", "d"]


@pytest.mark.parametrize(
    "text",
    [
        *("path/*.py and src/*.js", "src/**/*.py and tests/**/*.js", "src/** or tests/**", "*.py and *.md, lib*.so"),
        *("__init__.py and __main__.py", "__all__, __slots__", "2**3 and 4**5, 2*3*4", "x = *p*2"),
        *("f(*args, **kwargs) and g(*args, **kwargs)", "SELECT *, count(*) FROM t", "int *p, char *q"),
    ],
)
def test_stars_and_underscores_of_names_paths_and_sums_stay(text: str) -> None:
    assert styled(text) == [Span(text)]


def test_where_words_have_no_blanks_between_them_marks_stand_between_letters() -> None:
    assert styled("这是**重点**内容") == [Span("这是"), Span("重点", "strong"), Span("内容")]
    assert styled("这是*重点*内容") == [Span("这是"), Span("重点", "emphasis"), Span("内容")]


def test_entities_are_what_they_stand_for_unless_nobody_could_see_that() -> None:
    assert "".join(span.text for span in styled("a &amp;&nbsp;b &lt;x&gt; &#8230; `&lt;`")) == "a & b <x> … &lt;"
    hidden = "&#27; &#x202e; &#10; &nothing;"
    assert "".join(span.text for span in styled(hidden)) == hidden


def test_a_heading_that_is_underlined_has_a_line_under_it() -> None:
    assert texts(markdown("Title\n=====\ntext\n\n====\n", 8)) == ["Title", "═" * 8, "text", "", "===="]


def test_words_are_shown_as_soon_as_they_are_whole_and_an_open_mark_is_not() -> None:
    rows = MarkdownRows(20)
    assert rows.add("one two three four fi") == []
    assert rows.open_row.text == "one two three four f…"[:19] + "…"
    assert texts(rows.add("ve six ")) == ["one two three four"]
    assert rows.open_row.text.startswith("five six")
    assert rows.add("and **bold words th") == []
    assert rows.open_row.text == "five six and **bold…"
    assert texts(rows.add("at end** now")) == ["five six and bold"]


def test_something_else_may_be_shown_in_between() -> None:
    rows = MarkdownRows(40)
    rows.add("half a li")
    assert texts(rows.end()) == ["half a li"]
    assert rows.end() == []
    assert texts(rows.add("ne\n")) == ["ne"]


def test_an_open_fence_gives_out_each_line_at_once_and_ends_with_its_own_marks() -> None:
    rows = MarkdownRows(20)
    assert texts(rows.add("````py\na = 1\n```\nb")) == ["── py", "a = 1", "```"]
    assert rows.open_row.text == "b"
    assert texts(rows.add("\n````\n")) == ["b", "──"]
    (line,) = MarkdownRows(20).add("~~~diff\n+new\n")[1:]
    assert line.spans == (Span("+new", "added"),)


def test_control_characters_of_a_text_never_get_into_a_row() -> None:
    hostile = "a\x1b[2J \u202eb\u202c c\r\n```\n\x9b1mx\x07\n```\n| \x1b]0;t\x07 | \u200b |\n"
    assert not {"\x1b", "\x9b", "\x07", "\u202e", "\u200b", "\r"} & set("".join(texts(markdown(hostile, 40))))


@pytest.mark.parametrize(
    "source",
    [
        "a word and **another one** in a long, long line ",
        "```\n" + "x = 1  # a line of code\n" * 20,
        "y" * 50,
        "**open and never closed ",
        "***open and **nested *marks ",
        "| a | b |\n",
        "- item\n",
    ],
)
def test_what_is_looked_at_grows_with_the_text_and_not_with_its_square(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    def counting(name: str) -> None:
        real = getattr(module, name)

        def counted(text: object, *args: object) -> object:
            nonlocal looked_at
            looked_at += len(text) if isinstance(text, str) else sum(map(len, text))  # type: ignore[call-overload]
            return real(text, *args)

        monkeypatch.setattr(module, name, counted)

    for name in ("styled", "complete_until", "coloured", "table_lines", "plain", "expanded", "broken"):
        counting(name)

    def cost(repeat: int) -> int:
        nonlocal looked_at
        looked_at = 0
        rows, text = MarkdownRows(80), source * repeat
        for at in range(0, len(text), 20):
            rows.add(text[at : at + 20])
        rows.end()
        return looked_at

    small, large = cost(40), cost(400)
    assert large <= 12 * small
