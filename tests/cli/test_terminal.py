"""`covey run` at a real terminal: questions, Ctrl-C, and a spinner that is never in the way."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from copy import copy

import pytest

from covey.cli import exits
from covey.cli.screen import FRAMES
from covey.client.client import Client
from covey.protocol.paths import Address
from tests.cli.conftest import WAIT_S, Home

QUESTION = "Allow it? "
"""Shown when a key counts."""


class Terminal:
    """A command whose stdin, stdout and stderr are a terminal of its own, with everything that it shows."""

    def __init__(self, home: Home, *command: str) -> None:
        self._screen, self.line = pty.openpty()
        # A session leader that opens a terminal gets it as its own: only then does Ctrl-C reach it.
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(self.line), *command],
            cwd=home.project,
            env=home.env,
            start_new_session=True,
        )
        self.shown = ""

    def wait_for(self, text: str, count: int = 1) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.shown.count(text) < count:
            assert time.monotonic() < deadline, f"{text!r} was not shown; only {self.shown!r}"
            assert self._read(), f"it ended without {text!r}; only {self.shown!r}"

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def finish(self) -> int:
        while self._read():
            pass
        return self._process.wait(WAIT_S)

    def unread(self) -> bytes:
        """What was typed, and the shell would get after the command."""
        modes = termios.tcgetattr(self.line)
        modes[3] &= ~termios.ICANON  # half a line counts too
        termios.tcsetattr(self.line, termios.TCSANOW, modes)
        ready, _, _ = select.select([self.line], [], [], 0)
        return os.read(self.line, 1000) if ready else b""

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._screen)
        os.close(self.line)

    def _read(self) -> bool:
        """False once the command has ended and everything that it wrote was read."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            ended = self._process.poll() is not None
            ready, _, _ = select.select([self._screen], [], [], 0 if ended else 0.05)
            if ready:
                data = os.read(self._screen, 65536)
                self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
                return True
            if ended:
                return False
        raise AssertionError(f"nothing happened any more after {self.shown!r}")


def drawn(shown: str) -> str:
    """What stays on the screen of rows that were drawn over."""
    rows = [row.rpartition("\r\x1b[K")[2] for row in shown.split("\n")]
    return "\n".join(rows)


class Terminals:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._made: list[Terminal] = []

    def run(self, *args: str) -> Terminal:
        return self.start(*self._home.command("run", *args))

    def start(self, *command: str) -> Terminal:
        made = Terminal(self._home, *command)
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()


@pytest.fixture
def terminals(home: Home) -> Iterator[Terminals]:
    made = Terminals(home)
    yield made
    made.close()


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


@pytest.mark.parametrize(
    ("typed", "is_made"), [("y", True), ("n", False), ("\x04", False), ("\x1b[A", None), ("yes please", None)]
)
def test_the_person_at_the_terminal_is_asked(
    terminals: Terminals, home: Home, typed: str, is_made: bool | None
) -> None:
    terminal = terminals.run("use the tool")
    terminal.wait_for(QUESTION)
    assert "bash:\n    touch made\n" in terminal.shown
    assert "\n  y  yes, once\n  n  no\n  s  yes, in this session: this very command\n" in terminal.shown
    assert not (home.project / "made").exists()
    terminal.type(typed)
    if is_made is None:  # several keys at once are no answer
        terminal.wait_for("One key, please")
        assert not (home.project / "made").exists()
        terminal.type("y")
    assert terminal.finish() == 0
    assert (home.project / "made").exists() == (is_made is not False)
    assert "I make a file." in terminal.shown
    assert "\nDone.\nsession " in drawn(terminal.shown)
    assert "\n\n" not in terminal.shown


def test_always_is_for_the_session(terminals: Terminals, home: Home) -> None:
    keeps_the_workspace = terminals.run("hang")
    keeps_the_workspace.wait_for("one two")
    terminal = terminals.run("use the tool")
    terminal.wait_for(QUESTION)
    terminal.type("s")
    assert terminal.finish() == 0
    (home.project / "made").unlink()
    again = terminals.run("-C", "use the tool")
    assert again.finish() == 0
    assert QUESTION not in again.shown
    assert (home.project / "made").exists()


def test_a_rule_is_for_the_directory_that_the_question_names(own_home: Home) -> None:
    elsewhere = copy(own_home)
    elsewhere.project = own_home.project.with_name("elsewhere")
    elsewhere.project.mkdir()
    terminal = Terminal(own_home, *own_home.command("run", "use the tool"))
    try:
        terminal.wait_for(QUESTION)
        assert "\n  r  yes, always here: bash:touch made\n" in terminal.shown
        terminal.type("?")
        terminal.wait_for(QUESTION, count=2)
        assert f"arulethatholdsin{own_home.project}" in "".join(terminal.shown.split())
        terminal.type("r")
        assert terminal.finish() == 0
    finally:
        terminal.close()
    assert "A rule for this is in your config.toml now. It holds in this directory only." in terminal.shown
    again, denied = own_home.covey("run", "use the tool"), elsewhere.covey("run", "use the tool")
    assert "denied" not in again.stderr
    assert f'[projects."{elsewhere.project}".permissions]\n  allow = ["bash:touch made"]\n' in denied.stderr
    assert [(home.project / "made").exists() for home in (own_home, elsewhere)] == [True, False]


def test_ctrl_c_at_a_question(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("use the tool")
    terminal.wait_for(QUESTION)
    terminal.type("\x03")
    assert terminal.finish() == exits.STOPPED
    assert not (home.project / "made").exists()
    assert "answered elsewhere" not in terminal.shown
    assert f"{QUESTION}\nCancelling" in terminal.shown.replace("^C", "")


def test_ctrl_d_at_a_question_leaves_its_line(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("-q", "use the tool")
    terminal.wait_for(QUESTION)
    terminal.type("\x04")
    assert terminal.finish() == 0
    assert f"{QUESTION} \n" in terminal.shown


def test_what_was_typed_before_the_question_is_no_answer(terminals: Terminals, home: Home) -> None:
    """Nor is what comes in a burst around the moment at which it appears."""
    terminal = terminals.run("use two tools")
    terminal.type("yyyy\ny\n")
    terminal.wait_for("  y  yes, once")
    terminal.type("y")
    terminal.wait_for(QUESTION)
    assert not (home.project / "first").exists()
    terminal.type("y\n")
    terminal.wait_for(QUESTION, count=2)
    assert (home.project / "first").exists()
    terminal.type("e")
    terminal.wait_for("Your answer: ")
    terminal.type("no, not that\n")
    assert terminal.finish() == 0
    assert not (home.project / "second").exists()
    (session,) = home.sessions()
    assert "not that" in str(home.messages(session["id"]))


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


def test_half_an_answer_is_no_command_for_the_shell(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("ask me")
    terminal.wait_for("Shall I?")
    terminal.type("echo half an answer")
    terminal.wait_for("half an answer")
    (run,) = json.loads(home.covey("runs", "--json").stdout)
    assert home.covey("runs", "answer", run["run_id"], "yes").returncode == 0
    terminal.wait_for("answered elsewhere")
    assert terminal.finish() == 0
    assert terminal.unread() == b""


def test_a_question_is_asked_again_by_keys_when_the_command_was_stopped_and_goes_on(
    terminals: Terminals, home: Home
) -> None:
    terminal = terminals.run("-q", "use the tool")
    as_the_shell_has_it = termios.tcgetattr(terminal.line)
    terminal.wait_for(QUESTION)
    termios.tcsetattr(terminal.line, termios.TCSANOW, as_the_shell_has_it)
    terminal.signal(signal.SIGCONT)
    terminal.wait_for(QUESTION, count=2)
    terminal.type("y")
    assert terminal.finish() == 0
    assert (home.project / "made").exists()
    assert termios.tcgetattr(terminal.line) == as_the_shell_has_it


def test_in_forty_columns_no_line_of_the_question_wraps(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("-q", "long command")
    termios.tcsetwinsize(terminal.line, (24, 40))
    terminal.wait_for(QUESTION)
    terminal.type("v")
    terminal.wait_for(QUESTION, count=2)
    assert max(len(line) for line in terminal.shown.split("\n")) <= 40
    assert "x" * 36 in terminal.shown
    terminal.type("n")
    assert terminal.finish() == 0


def test_where_the_cursor_must_not_move_the_answer_is_a_line(home: Home) -> None:
    terminal = Terminal(home, *home.command("run", "--plain", "use the tool"))
    try:
        terminal.wait_for("Allow it? [y]es, [n]o or no and why")
        terminal.type("what?\nalways\n")
        assert terminal.finish() == 0
    finally:
        terminal.close()
    assert "running: $ touch made\n" in terminal.shown and "done: $ touch made\n" in terminal.shown
    assert "\x1b" not in terminal.shown and "\r" not in terminal.shown
    assert (home.project / "made").exists()


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


def test_somebody_else_may_answer(terminals: Terminals, home: Home) -> None:
    async def allow() -> None:
        async with Client(Address(path=str(home.socket))) as client:
            workspace = await client.create_workspace(str(home.project))
            (request,) = await client.permissions(workspace.id)
            assert await client.answer_permission(workspace.id, request.id, "allow")
            assert not await client.answer_permission(workspace.id, request.id, "deny")

    terminal = terminals.run("use the tool")
    terminal.wait_for(QUESTION)
    asyncio.run(allow())
    assert terminal.finish() == 0
    assert "answered elsewhere: allowed" in terminal.shown
    assert (home.project / "made").exists()


def test_a_prompt_from_a_pipe_leaves_the_terminal_for_answers(terminals: Terminals, home: Home) -> None:
    terminal = terminals.start("sh", "-c", 'echo "use the tool" | "$@"', "sh", *home.command("run"))
    terminal.wait_for(QUESTION)
    terminal.type("y")
    assert terminal.finish() == 0
    assert (home.project / "made").exists()


def test_a_job_in_the_background_is_not_stopped_by_a_question(terminals: Terminals, home: Home) -> None:
    terminal = terminals.start("sh", "-mc", '"$@" & wait $!', "sh", *home.command("run", "use the tool"))
    terminal.finish()
    assert "denied, because nobody is here to be asked" in terminal.shown
    assert not (home.project / "made").exists()


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
