"""Notes and the spinner: on stderr only, never in the way of the answer."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

import pytest

from covey.cli import screen as module
from covey.cli.output import TextPrinter
from covey.cli.screen import Screen, plain, share_lines
from covey.client.view.run_news import AnswerGrew
from covey.lines.line import line
from covey.lines.widths import width as text_width
from covey.protocol.events import created
from tests.client.values import text_message


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def test_notes_can_be_silenced_and_warnings_cannot() -> None:
    stream = io.StringIO()
    screen = Screen(stream, quiet=True, shares_terminal=False)
    screen.say("note")
    screen.warn("warning")
    assert stream.getvalue() == "covey: warning\n"


def is_warning(row: str) -> bool:
    return row.startswith("covey: ")


def test_notes_are_wrapped_by_words_at_a_terminal_and_stay_one_line_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "columns_of", lambda stream: 30)
    text = "some words that are not all on one row, 鳥の巣箱 and more"
    for stream in (Terminal(), io.StringIO()):
        screen = Screen(stream, quiet=False, shares_terminal=False)
        screen.say(text)
        screen.warn(text)
        rows = stream.getvalue().splitlines()
        if stream.isatty():
            assert all(text_width(row) < 30 for row in rows)
            assert [row for row in rows if not row.startswith("  ")] == [rows[0], next(filter(is_warning, rows))]
            assert "".join("".join(rows).split()) == "".join(f"{text} covey: {text}".split())
        else:
            assert rows == [text, f"covey: {text}"]


def test_a_question_is_wrapped_by_words_and_answered_after_its_last_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "columns_of", lambda stream: 30)
    stream = Terminal()
    question = "どの形式の設定ファイルを使いますか？\n    1. the one that is read fastest"
    text = f"{question}\nA number, or your own words (Ctrl-D: none): "
    Screen(stream, quiet=True, shares_terminal=True).ask(text)
    rows = stream.getvalue().split("\n")
    assert all(text_width(row) < 30 for row in rows) and rows[-1] == "  (Ctrl-D: none): "
    assert "".join("".join(rows).split()) == "".join(text.split())
    assert {word for row in rows for word in row.split()} >= {"fastest", "number,", "words"}


@pytest.mark.parametrize(("typed", "rows"), [("no", 3), ("n" * 50, 5), ("鳥" * 50, 7)])
def test_a_question_goes_with_all_rows_that_were_typed_after_it(
    monkeypatch: pytest.MonkeyPatch, typed: str, rows: int
) -> None:
    monkeypatch.setattr(module, "columns_of", lambda stream: 30)
    stream = Terminal()
    screen = Screen(stream, quiet=True, shares_terminal=True)
    screen.ask("Tell why not, in as many words as you like: ", [line("Allow it? e")])
    screen.answered(f"{typed}\n")
    assert screen.take_back_question() and stream.getvalue().endswith(f"\x1b[{rows}A\r\x1b[J")


def test_one_file_for_both_is_one_text_and_two_are_not(tmp_path: Path) -> None:
    with (
        (tmp_path / "log").open("w") as log,
        (tmp_path / "log").open("a") as again,
        (tmp_path / "b").open("w") as other,
    ):
        assert share_lines(log, again)
        assert not share_lines(log, other)
    assert share_lines(Terminal(), Terminal())
    assert not share_lines(io.StringIO(), io.StringIO())


def test_further_lines_of_a_warning_are_indented() -> None:
    stream = io.StringIO()
    Screen(stream, quiet=True, shares_terminal=False).warn("no model\ncovey.toml: not trusted")
    assert stream.getvalue() == "covey: no model\n  covey.toml: not trusted\n"


def test_colors_only_on_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(stream: io.StringIO) -> str:
        Screen(stream, quiet=False, shares_terminal=False).say("note")
        return stream.getvalue()

    assert said(Terminal()) == "note\n"
    monkeypatch.delenv("NO_COLOR")
    assert said(Terminal()) == "\x1b[2mnote\x1b[0m\n"
    assert said(io.StringIO()) == "note\n"


def test_a_note_does_not_run_into_the_answer() -> None:
    stream = Terminal()
    screen = Screen(stream, quiet=False, shares_terminal=True)
    screen.at_line_start = False
    screen.say("note")
    assert stream.getvalue() == "\nnote\n"


def test_what_others_wrote_cannot_drive_the_terminal() -> None:
    assert plain("rm \x1b[2K\r\x1b[1Als\x9b2J") == "rm [2K[1Als2J"
    assert plain("line\nand\ttab, é😀") == "line\nand\ttab, é😀"


async def spin(screen: Screen) -> None:
    task = asyncio.create_task(screen.spin())
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait({task})


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRAME_S", 0.001)
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)


@pytest.mark.anyio
@pytest.mark.usefixtures("fast")
async def test_the_spinner_is_taken_away_before_anything_is_written() -> None:
    stream = Terminal()
    screen = Screen(stream, quiet=False, shares_terminal=True)
    screen.wait_for("thinking")
    await spin(screen)
    assert re.search(r"thinking \d+s", stream.getvalue())
    screen.say("note")
    assert stream.getvalue().endswith("\r\x1b[Knote\n")


@pytest.mark.anyio
@pytest.mark.usefixtures("fast")
async def test_no_spinner_in_the_middle_of_a_line_of_the_answer() -> None:
    stream = Terminal()
    screen = Screen(stream, quiet=False, shares_terminal=True)
    screen.wait_for("thinking")
    screen.at_line_start = False
    await spin(screen)
    assert stream.getvalue() == ""


@pytest.mark.anyio
@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("stdout", "spins"), [(io.StringIO(), False), (Terminal(), True)])
async def test_no_spinner_any_more_once_text_went_into_a_pipe(stdout: io.StringIO, spins: bool) -> None:
    stream = Terminal()
    screen = Screen(stream, quiet=False, shares_terminal=spins)
    TextPrinter(stdout, screen).update(created(text_message("m1")), [AnswerGrew("m1", "Hello\n")])
    screen.wait_for("thinking")
    await spin(screen)
    assert ("thinking" in stream.getvalue()) == spins


@pytest.mark.anyio
@pytest.mark.usefixtures("fast")
async def test_no_spinner_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    quiet, dumb = Terminal(), Terminal()
    screens = [
        Screen(pipe, quiet=False, shares_terminal=False),
        Screen(quiet, quiet=True, shares_terminal=False),
    ]
    monkeypatch.setenv("TERM", "dumb")
    screens.append(Screen(dumb, quiet=False, shares_terminal=False))
    for screen in screens:
        screen.wait_for("thinking")
        await spin(screen)
    assert pipe.getvalue() + quiet.getvalue() + dumb.getvalue() == ""


@pytest.mark.anyio
@pytest.mark.usefixtures("fast")
async def test_what_is_below_the_spinner_goes_with_it() -> None:
    stream = Terminal()
    screen = Screen(stream, quiet=False, shares_terminal=True)
    screen.tail = lambda: [line("x" * 500), line("second")]
    screen.wait_for("$ make")
    await spin(screen)
    assert "\nsecond" in stream.getvalue()
    assert max(map(len, re.split(r"[\r\n]", stream.getvalue()))) <= 90, "a row that wraps cannot be erased"
    screen.say("note")
    assert stream.getvalue().endswith("\x1b[2A\r\x1b[Jnote\n")


def test_where_lines_are_read_out_none_is_drawn_over() -> None:
    assert not Screen(Terminal(), quiet=False, shares_terminal=True, is_plain=True).moves_cursor
    assert not Screen(io.StringIO(), quiet=False, shares_terminal=False).moves_cursor
