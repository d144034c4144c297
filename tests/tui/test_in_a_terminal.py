"""The real program in a pseudo-terminal, with a real server behind it; only the model is scripted."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Home
from tests.tui.program import PtyProgram

NEWLINES = {
    "shift+enter (kitty)": b"\x1b[13;2u",
    "shift+enter (modifyOtherKeys)": b"\x1b[27;2;13~",
    "alt+enter (as tmux sends it)": b"\x1b\r",
    "ctrl+j": b"\n",
    "backslash and enter": b"\\\r",
}


def _start(home: Home, *words: str, **given: Any) -> PtyProgram:
    return PtyProgram(home.command(*words), cwd=home.project, env=home.env, columns=100, lines=30, **given)


@pytest.fixture
def app(home: Home) -> Iterator[PtyProgram]:
    with _start(home) as program:
        program.wait_for(">")
        yield program


def test_a_first_prompt_that_is_refused_comes_back_with_the_whole_reason_and_leaves_no_session(own_home: Home) -> None:
    own_home.config.write_text('[providers.none]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n')
    why = own_home.covey("run", "hello").stderr.removeprefix("covey: ")
    with _start(own_home) as program:
        program.wait_for("Covey needs a model")
        program.type("hello there")
        program.wait_for("> hello there")
        assert "What you type is kept below" in program.screen.text and "Look around first" in program.screen.text
        program.type("\x1b")
        program.wait_until(lambda: "Covey needs a model" not in program.screen.text, "the list is closed")
        program.type("\r")
        program.wait_until(lambda: "".join(why.split()) in "".join(program.screen.text.split()), "all of the reason")
        program.wait_for("> hello there")
    assert own_home.sessions() == []


def test_files_and_prompts_are_those_of_the_directory_that_it_was_started_in(home: Home) -> None:
    (home.project / ".git").mkdir()
    (home.project / "README.md").touch()
    home.project = home.project / "src"
    home.project.mkdir()
    (home.project / "feed.py").touch()
    with _start(home) as program:
        program.wait_for(">")
        program.type("see @fee")
        program.wait_for("@feed.py")
        program.type("\tand @READ")
        program.wait_for("see @feed.py and @READ")
        program.wait_for("@../README.md")
        program.type("\t\r")
        program.wait_for("I am in 'src' of the workspace")
    prompt = home.messages(home.sessions()[0]["id"])[0]
    assert [part["data"].get("Path") for part in prompt["parts"]] == [None, "src/feed.py", "README.md"]


def _settle(program: PtyProgram) -> None:
    program.wait_until(lambda: not program.read(0.3), "it never stops writing")


def _is_restored(program: PtyProgram) -> bool:
    return program.screen.is_as_before and program.attributes() == program.attributes_before


def _prompts(home: Home) -> list[str]:
    """Of all runs in this directory, as the server has them, newest first."""
    done = home.covey("runs", "--all", "--json")
    return [run["prompt"] for run in json.loads(done.stdout)]


def test_row_19_keys_that_are_typed_while_it_starts_are_in_the_composer(home: Home) -> None:
    with _start(home) as program:
        program.type("early words")
        program.wait_for("> early words")
        program.type("\r")
        program.wait_for("You said: early words")


def test_row_1_2_and_8_five_thousand_deltas_and_then_nothing(app: PtyProgram) -> None:
    _settle(app)
    app.screen.counts.outside, before, frames = 0, app.screen.counts.bytes, app.screen.counts.frames
    app.type("long")
    app.type("\r")
    app.wait_until(lambda: app.screen.text.count("word é😀") > 100, "the answer was not shown")
    _settle(app)
    counts = app.screen.counts
    assert counts.clears == 0
    assert counts.outside == 0, "every frame is held together"
    assert counts.frames > frames
    assert (counts.bytes - before) / 5000 < 200
    if sys.platform == "linux":
        app.wait_until(lambda: not app.read(1.5), "it never stops writing")
        status = Path(f"/proc/{app.process.pid}/status")
        wake_ups = status.read_text().partition("\nvoluntary")[2].split()[1]
        assert not app.read(1.0)
        assert status.read_text().partition("\nvoluntary")[2].split()[1] == wake_ups


def test_row_17_a_megabyte_is_one_token_and_arrives_whole(home: Home, app: PtyProgram) -> None:
    text = "pause " + "0123456789abcdef\n" * 60_000 + "end"
    app.type(b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~")
    app.wait_for("[paste 1: 60001 lines]")
    assert _prompts(home) == []
    app.type("\r")
    app.wait_for("one two")
    assert _prompts(home) == [text]


def test_row_18_and_23_neither_lines_nor_answers_of_the_terminal_are_sent_or_typed(home: Home, app: PtyProgram) -> None:
    app.type(b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c\x1bP>|XTerm(1)\x1b\\\x1b_G;OK\x1b\\\x1b[<NaN;NaN;NaNM")
    app.type("y\r?\rn")
    app.wait_for("> y")
    app.wait_until(lambda: any(row.strip() == "n" for row in app.screen.rows), "the last line was not shown")
    assert any(row.strip() == "> y" for row in app.screen.rows)
    assert _prompts(home) == []


def test_row_20_every_way_to_a_new_line_and_enter_alone_sends(home: Home, app: PtyProgram) -> None:
    for number, sent in enumerate(NEWLINES.values()):
        app.type(f"line{number}")
        app.wait_for(f"line{number}")
        app.type(sent)
        app.wait_until(lambda: app.screen.column < 5, "no new line was begun")
    app.type("end")
    app.wait_for("end")
    assert _prompts(home) == []
    app.type("\r")
    app.wait_for("You said: line0")
    assert _prompts(home) == ["line0\nline1\nline2\nline3\nline4\nend"]


def test_row_22_the_cursor_stands_behind_wide_characters(app: PtyProgram) -> None:
    _settle(app)
    column = app.screen.column
    app.type("中文".encode() + b"\x1b[0;1;20837:21147u")
    app.wait_for("> 中文入力")
    _settle(app)
    assert app.screen.column == column + 8
    assert "?25" in app.screen.modes


def test_row_39_text_that_would_drive_a_terminal_is_shown_as_text(app: PtyProgram) -> None:
    """The model of a terminal fails on any sequence that is not ours."""
    evil = "[red]x[/red] \x1b[2J\x1b]0;title\x07\x1b[31m \u202eabc\u2066 \x00\x08\x9b2J end"
    app.type(b"\x1b[200~" + evil.encode() + b"\x1b[201~")
    app.wait_for("[red]x[/red]")
    app.type("\r")
    app.wait_for("You said: [red]x[/red]")
    assert app.screen.counts.clears == 0


@pytest.mark.parametrize("way", ["ctrl+d", "SIGTERM", "SIGHUP", "SIGINT"])
def test_row_24_however_covey_ends_the_terminal_is_as_before(app: PtyProgram, way: str) -> None:
    _settle(app)
    assert {"?1049", "?2004", "?1004", "?1002"} <= app.screen.modes
    if way == "ctrl+d":
        app.type("\x04")
    else:
        app.send_signal(getattr(signal, way))
    expected = {"ctrl+d": 0, "SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130}
    assert app.finish() == expected[way]
    app.wait_until(lambda: _is_restored(app), f"{app.screen.modes}")


def test_row_7_after_a_window_was_dragged_everything_is_there_once(app: PtyProgram) -> None:
    app.type("some words to keep\r")
    app.wait_for("You said: some words to keep")
    app.screen.is_dragged = True  # a frame may have been on its way when the window became smaller
    for step in range(30):
        app.resize(60 + step, 15 + step % 7)
    app.resize(70, 20)
    app.wait_until(lambda: any(row == "─" * 70 for row in app.screen.rows), "it was not drawn for the new size")
    app.screen.is_dragged = False
    _settle(app)
    assert app.screen.text.count("You said: some words to keep") == 1
    assert app.screen.counts.clears == 0


def test_a_terminal_that_answers_nothing_works_as_well(home: Home) -> None:
    with _start(home, answers=False) as program:
        program.wait_for(">")
        program.type("hello\r")
        program.wait_for("You said: hello")
        assert program.screen.counts.frames == 0
