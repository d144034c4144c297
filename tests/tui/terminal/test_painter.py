"""Frames → bytes, seen by a model of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.lines.line import EMPTY, STYLES, Span, StyledLine, line
from covey.lines.theme import DARK, NONE, SIXTEEN, Theme
from covey.lines.widths import width
from covey.tui.frame import ScreenFrame
from covey.tui.terminal.painter import ScreenLook, moved_rows, paint
from tests.tui.screen_model import NOTHING, TerminalModel

WIDTH, HEIGHT = 30, 10


def frame(*rows: str | StyledLine, cursor: tuple[int, int] | None = None, title: str = "") -> ScreenFrame:
    return ScreenFrame(WIDTH, tuple(line(r) if isinstance(r, str) else r for r in rows), cursor, title)


def painted(
    frames: Sequence[ScreenFrame],
    *,
    theme: Theme = NONE,
    synchronized: bool = False,
    widths: Callable[[str], int] = width,
) -> TerminalModel:
    """A terminal that was shown these, one after the other."""
    model = TerminalModel(WIDTH, HEIGHT, widths=widths)
    model.feed("\x1b[?7l")
    look = ScreenLook(WIDTH, HEIGHT, theme, is_synchronized=synchronized)
    before: ScreenFrame | None = None
    for each in frames:
        model.feed(paint(before, each, look).decode())
        before = each
    return model


TEXTS = st.one_of(
    st.text(st.sampled_from("ab 中文한─│…жé\u0301\u200d👨👩🇩🇪⚡️✓❤\ufe0f\t\x00\x1b[m\u202e"), max_size=45),
    st.text(max_size=20),
    st.just(""),
)
SPANS = st.builds(Span, TEXTS, st.sampled_from(STYLES), st.sampled_from(["", "", "https://a.example/é\x1b\\x"]))
ROWS = st.lists(SPANS, max_size=4).map(lambda spans: StyledLine(tuple(spans)))
FRAMES = st.builds(
    ScreenFrame,
    st.just(WIDTH),
    st.lists(ROWS, max_size=HEIGHT + 2).map(tuple),
    st.one_of(st.none(), st.tuples(st.integers(0, HEIGHT + 2), st.integers(0, WIDTH + 2))),
    st.text(max_size=5),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(FRAMES, min_size=2, max_size=4), st.booleans(), st.sampled_from([NONE, SIXTEEN, DARK]))
def test_row_39_whatever_frames_hold_the_screen_is_that_of_the_last_one(
    frames: list[ScreenFrame], synchronized: bool, theme: Theme
) -> None:
    """Any text in any place: it is shown as text, and what was there before leaves nothing behind."""
    step_by_step = painted(frames, theme=theme, synchronized=synchronized)
    at_once = painted(frames[-1:], theme=theme)
    assert step_by_step.grid == at_once.grid
    assert step_by_step.counts.clears == 0
    assert ("?25" in step_by_step.modes) == (frames[-1].cursor is not None)
    if frames[-1].cursor is not None:
        assert (step_by_step.row, step_by_step.column) == (at_once.row, at_once.column)
    assert step_by_step.title == at_once.title


@settings(max_examples=30, deadline=None)
@given(FRAMES)
def test_the_same_frame_again_costs_no_byte(each: ScreenFrame) -> None:
    assert paint(each, each, ScreenLook(WIDTH, HEIGHT, DARK)) == b""


def _wide_ambiguous(cluster: str) -> int:
    """A terminal that is set up for East Asia."""
    return 2 if cluster in "─│…ж→" and cluster else min(width(cluster), 2)


def _old_table(cluster: str) -> int:
    """One that knows no emoji, and draws each part of a cluster for itself."""
    return max(1, sum(1 if ord(char) > 0x1F000 else width(char) for char in cluster))


def _one_for_each(cluster: str) -> int:
    return max(1, width(cluster[0]))


@pytest.mark.parametrize("widths", [width, _wide_ambiguous, _old_table, _one_for_each])
@pytest.mark.parametrize(
    "text", ["👨\u200d👩\u200d👧 ok", "❤\ufe0f❤\ufe0f", "🇩🇪 x", "e\u0301a\u0308", "⚡ a", "中文 a", "ж… → a"]
)
def test_row_38_a_border_stands_in_its_column_whatever_the_terminal_thinks_of_the_text(
    text: str, widths: Callable[[str], int]
) -> None:
    def row(inside: str) -> StyledLine:
        return line(Span("│", "border"), inside, " " * (WIDTH - 2 - width(inside)), Span("│", "border"))

    frames = [
        frame("plain text that was there", row("abc")),
        frame(row(text), row("abc" + text)),
        frame(row("x" + text)),
    ]
    for number in range(1, len(frames) + 1):
        model = painted(frames[:number], theme=SIXTEEN, widths=widths)
        for shown, given_row in zip(model.grid, frames[number - 1].rows, strict=False):
            if given_row.text.endswith("│"):
                columns = [at for at, (char, _, _) in enumerate(shown) if char == "│"]
                # The last column is too narrow for a wide one, which then begins one before.
                assert columns[-1] in (WIDTH - 1, WIDTH - widths("│"))
                assert shown[0][0] == "│" or widths("│") == 2


@pytest.mark.parametrize("widths", [width, _old_table, _one_for_each])
@pytest.mark.parametrize("text", ["❤\ufe0f❤\ufe0f end", "🇩🇪🇩🇪 end", "⚡⚡ end"])
def test_row_38_nothing_stays_behind_where_the_terminal_draws_narrower(text: str, widths: Callable[[str], int]) -> None:
    for frames in ([frame("x" * WIDTH), frame(text)], [frame("x" * WIDTH), frame("a" + text), frame(text)]):
        shown = painted(frames, widths=widths).rows[0]
        assert shown.endswith("end") and "x" not in shown and "a" not in shown


def test_row_38_a_wide_character_that_does_not_fit_leaves_a_blank() -> None:
    rows = [line("x" * odd + "中" * WIDTH) for odd in range(4)]
    model = painted([frame(*rows)])
    for odd, shown in enumerate(model.rows):
        assert shown == ("x" * odd + "中" * ((WIDTH - odd) // 2) if odd < 4 else "")
    model = painted([frame(*rows), frame(*rows[1:]), frame("中" * 15, "a" + "中" * 14), frame("a" + "中" * 14)])
    assert model.rows[:2] == ["a" + "中" * 14, ""]


def test_row_1_only_what_changed_is_written() -> None:
    before = frame("first", "second row", "third", cursor=(9, 2))
    look = ScreenLook(WIDTH, HEIGHT, NONE)
    assert paint(before, frame("first", "second ROW", "third", cursor=(9, 2)), look) == (
        b"\x1b[?25l\x1b[2;8HROW\x1b[10;3H\x1b[?25h"
    )
    assert paint(before, frame("first", "second row", "third", cursor=(9, 3)), look) == b"\x1b[10;4H"
    assert paint(before, frame("first", "second row", "third"), look) == b"\x1b[?25l"


def test_row_1_two_thousand_deltas_cost_bytes_for_what_they_add() -> None:
    """Text grows at the end of a full screen between a head and a prompt, and rows move up."""
    words = [f"word{number} " for number in range(2000)]
    rows: list[str] = [""]
    frames: list[ScreenFrame] = []
    for word in words:
        if len(rows[-1]) + len(word) > WIDTH:
            rows.append("")
        rows[-1] += word
        frames.append(frame("head", *([""] * (HEIGHT - 2 - len(rows)) + rows[-(HEIGHT - 2) :]), "> ", cursor=(9, 2)))
    model = painted(frames, synchronized=True)
    assert model.counts.clears == 0
    assert model.counts.frames == 2000
    assert model.rows[HEIGHT - 2] == rows[-1].rstrip()
    assert model.counts.bytes / len(words) < 60, "the word, where it goes, and now and then a row that moves"
    assert model.counts.drawn_rows.count(0) == 1, "the head is drawn once"


def test_row_2_each_frame_is_held_together_where_the_terminal_can() -> None:
    frames = [frame(f"{number}", f"row {number}", cursor=(0, 0), title=f"{number}") for number in range(20)]
    model = painted(frames, synchronized=True)
    assert model.counts.frames == 20
    assert model.counts.outside == 0
    assert painted(frames).counts.frames == 0


def test_rows_that_moved_are_moved_by_the_terminal() -> None:
    rows = [f"row {number:2}" for number in range(40)]
    look = ScreenLook(WIDTH, HEIGHT, NONE)
    before, after = frame("head", *rows[0:8], "foot"), frame("head", *rows[3:11], "foot")
    assert b"\x1b[2;9r\x1b[3S\x1b[r" in paint(before, after, look)
    assert b"\x1b[2;9r\x1b[3T\x1b[r" in paint(after, before, look)
    assert painted([before, after]).rows == ["head", *rows[3:11], "foot"]
    assert painted([before, after, before]).rows == ["head", *rows[0:8], "foot"]


def test_rows_that_repeat_are_moved_by_no_more_than_they_moved() -> None:
    """A long word fills rows that come again every few rows: each row fits in many places."""
    old = [line("abcde"[number % 5] * 20) for number in range(30)]
    new = [*old[1:], line("new")]
    assert moved_rows(old, new) == (0, 29, 1)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=12, max_size=12), st.lists(st.integers(0, 5), min_size=12, max_size=12))
def test_a_region_that_moved_is_really_the_same(old: list[int], new: list[int]) -> None:
    texts = [EMPTY, *(line(f"text {number}") for number in range(5))]
    found = moved_rows([texts[n] for n in old], [texts[n] for n in new])
    if found:
        top, bottom, by = found
        assert 0 <= top <= bottom < 12
        for row in range(top, bottom + 1):
            if top <= row + by <= bottom:
                assert new[row] == old[row + by]


def test_links_are_closed_safe_and_whole_over_several_rows() -> None:
    link = "https://a.example/\x1b]52;c;evil\x07 ü"
    model = painted(
        [frame(StyledLine((Span("here", "link", link), Span(" not"))), StyledLine((Span("on", "", link),)))]
    )
    safe = "https://a.example/%1B]52;c;evil%07%20%C3%BC"
    assert [char[2] for char in model.grid[0][:8]] == [safe] * 4 + [""] * 4
    assert model.grid[1][0][2] == safe and model.copied == []
    assert painted([frame(StyledLine((Span("x", "", "javascript:alert(1)"),)))]).grid[0][0][2] == ""
    assert painted([frame(StyledLine((Span("x", "", "https://" + "a" * 3000),)))]).grid[0][0][2] == ""


def test_what_is_erased_has_no_colour() -> None:
    bar = StyledLine((Span("x" * WIDTH, "bar"),))
    model = painted([frame(bar, bar), frame("short", "👨\u200d👩 short")], theme=DARK)
    assert model.grid[0][10] == NOTHING and model.grid[1][20] == NOTHING


def test_row_39_text_of_others_moves_no_cursor_and_turns_no_direction() -> None:
    evil = "a\x1b[2Jb\x9b31m\u202ec\r\nd\x07[red]\x00"
    shown = painted([frame(evil)]).rows[0]
    assert shown == "a[2Jb31mc d[red]"


def test_a_frame_for_another_size_is_cut() -> None:
    model = painted([ScreenFrame(99, tuple(line("y" * 99) for _ in range(50)), (49, 98))])
    assert model.rows == ["y" * WIDTH] * HEIGHT
    assert (model.row, model.column) == (HEIGHT - 1, WIDTH - 1)
