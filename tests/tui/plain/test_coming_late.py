"""`covey --plain` on a session where something is asked already, and what it says when that is over without it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.conftest import Home, until
from tests.tui.program import PtyProgram

ASKED = "Type a number from 1 to "


def _asks(home: Home, prompt: str, *args: str) -> None:
    """A run that nobody watches asks something."""
    assert home.covey("run", "--detach", *args, prompt).returncode == 0
    until(lambda: [run for run in json.loads(home.covey("runs", "--json").stdout) if run["asks"]], "it asks")


@contextmanager
def _talk(home: Home, *args: str) -> Iterator[PtyProgram]:
    with PtyProgram(home.command("--plain", *args), cwd=home.project, env=home.env, columns=100, lines=60) as program:
        yield program


def _until_quiet(talk: PtyProgram) -> None:
    """What comes sooner after a question was not meant for it."""
    talk.wait_until(lambda: not talk.read(0.6), "it never stops writing")


def test_whoever_comes_late_hears_what_was_said_then_what_is_asked_and_then_the_prompt(own_home: Home) -> None:
    assert own_home.covey("run", "hello").returncode == 0
    _asks(own_home, "use two tools", "-c")
    with _talk(own_home, "-c") as talk:
        talk.wait_for(ASKED)
        _until_quiet(talk)
        told = [row.strip() for row in talk.screen.rows if row.strip()]
        order = ["This session has 4 messages. The last of them:", "You said: hello", "use two tools"]
        order += ["next: $ touch first", "May it do this? bash:", "touch first"]
        places = [told.index(row) for row in order]
        assert places == sorted(places) and [row for row in told if row.startswith(">")] == [">"] == told[-1:]
        talk.type("1\r")
        talk.wait_for("done: $ touch first")
        talk.wait_for("next: $ touch second")
        talk.wait_until(lambda: talk.screen.text.count(ASKED) == 2, "the second is asked")
        _until_quiet(talk)
        talk.type("1\r")
        talk.wait_for("Done: 3 steps.")


def test_when_a_kill_of_the_server_ends_what_is_asked_that_is_said_and_a_late_answer_is_no_prompt(
    own_home: Home,
) -> None:
    _asks(own_home, "use a tool")
    with _talk(own_home, "-c") as talk:
        talk.wait_for(ASKED)
        os.kill(own_home.pid(), signal.SIGKILL)
        talk.wait_for("Connected again.\nfailed: $ touch made  not run\nInterrupted.\nNo answer is needed any more.")
        for late in ("1", "y", "s"):
            talk.type(f"{late}\r")
            talk.wait_for(f"Nothing is asked any more, so {late} was not sent. `/say {late}` sends it as a prompt.")
        talk.type("/say 1\r")
        talk.wait_for("You said: 1")
        talk.type("2\r")
        talk.wait_for("You said: 2")
    assert not (own_home.project / "made").exists()


@pytest.mark.parametrize(("prompt", "asked"), [("use a tool", ASKED), ("ask me", "Type 1 or 2")])
def test_a_cancel_while_something_is_asked_is_said_once(home: Home, prompt: str, asked: str) -> None:
    with _talk(home) as talk:
        talk.type(f"{prompt}\r")
        talk.wait_for(asked)
        talk.type("/cancel\r")
        talk.wait_for("Cancelled.")
        _until_quiet(talk)
        assert "It is " not in talk.screen.text and "No answer is needed" not in talk.screen.text


def test_what_another_session_asks_is_asked_when_that_one_is_opened(own_home: Home) -> None:
    _asks(own_home, "use a tool")
    with _talk(own_home) as talk:
        talk.wait_for("Another session waits for an answer: /sessions shows which.")
        talk.type("/open 1\r")
        talk.wait_for(ASKED)
        assert "next: $ touch made\nMay it do this? bash:" in talk.screen.text
