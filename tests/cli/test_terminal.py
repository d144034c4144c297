"""`covey run` at a real terminal: Ctrl-C, what is typed, and a spinner that is never in the way."""

from __future__ import annotations

import json
import re
import signal
import termios

from covey.cli import exits
from covey.cli.screen import FRAMES
from tests.cli.conftest import Home
from tests.cli.terminal import QUESTION, Terminals, drawn


def test_19_only_a_run_without_a_terminal_says_that_nobody_can_be_asked(terminals: Terminals, home: Home) -> None:
    assert home.covey("run", "hello there").returncode == 0
    terminal = terminals.run("hello here")
    assert terminal.finish() == 0
    posted = {run["prompt"]: run for run in json.loads(home.covey("runs", "--all", "--json").stdout)}
    assert posted["hello there"]["options"]["unattended"] is True
    assert "options" not in posted["hello here"]


def test_ctrl_c_cancels_the_run_and_waits_for_its_end(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("hang")
    terminal.wait_for("one two")
    terminal.type("\x03")
    assert terminal.finish() == exits.STOPPED
    assert "Cancelling the run" in terminal.shown
    assert "to leave at once.\nThe run is cancelled.\n" in terminal.shown, "there is an empty line, or something else"
    (session,) = home.sessions()
    assert not session["is_busy"]
    assert home.messages(session["id"])[-1]["parts"][-1]["data"]["reason"] == "canceled"


def test_ctrl_c_before_there_is_a_run(terminals: Terminals, home: Home) -> None:
    """Also a server that was just started for us survives it: it is in a session of its own."""
    terminal = terminals.run("--host", "unix:///nowhere/covey.sock", "hello")
    assert terminal.finish() == exits.UNREACHABLE
    home.covey("run", "hello")
    pid = home.pid()
    terminal = terminals.run("hang")
    terminal.wait_for("one two")
    terminal.type("\x03")
    terminal.finish()
    assert home.pid() == pid


def test_a_terminal_is_left_as_it_was(terminals: Terminals, home: Home) -> None:
    for typed in ("n", "\x03"):
        terminal = terminals.run("-q", "use the tool")
        before = termios.tcgetattr(terminal.line)
        terminal.wait_for(QUESTION)
        assert termios.tcgetattr(terminal.line)[3] != before[3]
        terminal.type(typed)
        terminal.finish()
        assert termios.tcgetattr(terminal.line) == before


def test_what_is_typed_while_nothing_is_asked_is_not_shown_and_left_for_the_shell(terminals: Terminals) -> None:
    terminal = terminals.run("pause")
    terminal.wait_for("one")
    terminal.signal(signal.SIGCONT)  # as after Ctrl-Z and fg: it stays unseen
    terminal.type("echo later\n")
    assert terminal.finish() == 0
    assert "two" in terminal.shown and "later" not in terminal.shown
    assert terminal.unread() == b"echo later\n"


def test_what_a_command_prints_is_seen_while_it_runs_and_its_end_stays_when_it_is_cancelled(
    terminals: Terminals,
) -> None:
    terminal = terminals.run("--yolo", "print slowly")
    terminal.wait_for("  │ working")
    terminal.type("\x03")
    assert terminal.finish() == exits.STOPPED
    left = terminal.shown.rpartition("\x1b[J")[2]
    assert "cancelled" in left and left.count("  │ working") == 1


def test_the_command_is_shown_as_it_runs(terminals: Terminals) -> None:
    terminal = terminals.run("-q", "many lines")
    terminal.wait_for(QUESTION)
    terminal.type("n")
    assert terminal.finish() == 0
    assert "bash:\n    # harmless\n    touch made\nNo rule allows `touch made`.\n" in terminal.shown


def test_the_spinner_leaves_alone_what_a_pipe_writes_to_the_terminal(terminals: Terminals, home: Home) -> None:
    terminal = terminals.start("sh", "-c", '"$@" | cat', "sh", *home.command("run", "pause"))
    assert terminal.finish() == 0
    assert "\x1b[K" not in terminal.shown.partition("one")[2]


def test_the_spinner_shows_that_something_happens_and_leaves_no_trace(terminals: Terminals) -> None:
    terminal = terminals.run("hang")
    terminal.wait_for("one two")
    terminal.type("\x03")
    terminal.finish()
    before_text = terminal.shown.partition("one two")[0]
    assert not set(before_text.rpartition("\x1b[K")[2]) & set(FRAMES)
    quiet = terminals.run("-q", "hello")
    quiet.finish()
    assert drawn(quiet.shown) == "You said: hello\n"


def test_the_answer_cannot_drive_the_terminal(terminals: Terminals) -> None:
    terminal = terminals.run("-q", "see \x1b]0;title\x07 \x1b[2J")
    terminal.finish()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", terminal.shown.replace("\r\x1b[K", ""))
