"""Real terminals on a real server: several windows on one session, a server that dies, and what is left afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.conftest import Home, finish, until
from tests.tui.program import PtyProgram

ESCAPE = b"\x1b[27u"
"""As terminals send it that say what they mean."""


OWN = re.compile(r"\w+ · \d\d:\d\d$|\(?\d+(?:\.\d)? s\)?")


class Windows:
    """Faces on one project, each in a terminal of its own."""

    def __init__(self, home: Home, stack: ExitStack) -> None:
        self.home = home
        self._stack = stack

    def open(self, *args: str, name: str = "ann", columns: int = 100, lines: int = 30) -> PtyProgram:
        env = {**self.home.env, "LOGNAME": name, "XDG_STATE_HOME": str(self.home.data_dir.parent / "state")}
        command = self.home.command(*args)
        program = PtyProgram(command, cwd=self.home.project, env=env, columns=columns, lines=lines)
        return self._stack.enter_context(program)


@pytest.fixture
def windows(tmp_path: Path) -> Iterator[Windows]:
    home = Home(tmp_path)
    with ExitStack() as stack:
        yield Windows(home, stack)
    home.close()


def conversation(window: PtyProgram) -> list[str]:
    """What is shown of it, without what windows may differ in: first and last row, who is you, how long a call took."""
    rows = [OWN.sub("", row).rstrip() for row in window.screen.rows[1:-3]]
    return [re.sub(r"by \w+$", "by somebody", row) for row in rows]


def until_same(one: PtyProgram, other: PtyProgram) -> None:
    def read_both() -> bool:
        one.read(0.02)
        other.read(0.02)
        return conversation(one) == conversation(other)

    until(read_both, "the same in both windows")


def test_row_32_two_windows_and_a_command_on_one_session_stay_in_step(windows: Windows) -> None:
    ann = windows.open()
    ann.wait_for("What should I do?")
    ann.type("use a tool, please\r")
    ann.wait_for("allow this command?")
    session_id = windows.home.sessions()[0]["id"]
    kim = windows.open("-s", session_id, name="kim")
    kim.wait_for("allow this command?")
    ann.wait_for("kim sees it too")

    # A third one answers: the panel is gone in both windows, and they say who it was.
    windows.home.env["LOGNAME"] = "lee"
    [run_id] = [run["run_id"] for run in json.loads(windows.home.covey("runs", "--json").stdout)]
    answered = windows.home.covey("runs", "allow", run_id)
    assert answered.returncode == 0, answered.stderr
    for window in (ann, kim):
        window.wait_for("allowed by lee")
        window.wait_for("Done.")
        assert "allow this command?" not in window.screen.text
    until_same(ann, kim)

    # `covey run` prompts on the same session, one window cancels, and all three see it.
    run = windows.home.spawn("run", "-s", session_id, "hang on")
    for window in (ann, kim):
        window.wait_for("one two")
    kim.type(ESCAPE)
    kim.wait_for("again cancels")
    kim.type(ESCAPE)
    kim.wait_for("cancelled 1 run")
    ann.wait_for("cancelled by kim")
    exit_code, _, said = finish(run)
    assert exit_code != 0
    assert "cancel" in said

    # The server is killed in the middle of an answer: it is shown, it comes back, nothing is lost or there twice.
    ann.type("endless\r")
    for window in (ann, kim):
        window.wait_for("0123456789")
    os.kill(windows.home.pid(), signal.SIGKILL)
    for window in (ann, kim):
        window.wait_for("interrupted")
        window.wait_until(lambda window=window: "lost" not in window.screen.rows[0], "connected again")  # type: ignore[misc]
    until_same(ann, kim)
    kim.type("still there?\r")
    for window in (ann, kim):
        window.wait_for("You said: still there?")
    until_same(ann, kim)
    prompts = [m for m in windows.home.messages(session_id) if m["role"] == "user"]
    assert len(prompts) == 4


def test_rows_19_and_34_what_is_typed_is_never_lost(windows: Windows) -> None:
    window = windows.open()
    window.type("typed before the first frame")
    window.wait_for("> typed before the first frame")
    window.wait_for("Recent" if "Recent" in window.screen.text else "/ commands")
    drafts = windows.home.data_dir.parent / "state" / "covey" / "tui" / "drafts"
    until(lambda: list(drafts.glob("*.json")), "the draft on disk")
    window.process.kill()  # nobody can say goodbye
    window.process.wait()
    again = windows.open()
    again.wait_for("> typed before the first frame")
    again.type("\x03")
    again.wait_for("draft put aside")
    again.type("\x1b[A")
    again.wait_for("> typed before the first frame")


def test_row_24_it_leaves_the_terminal_as_it_was_and_says_how_to_go_on(windows: Windows) -> None:
    window = windows.open()
    window.wait_for("What should I do?")
    window.type("hello\r")
    window.wait_for("You said: hello")
    session_id = windows.home.sessions()[0]["id"]
    window.type("\x04")
    assert window.finish() == 0
    assert window.screen.is_as_before
    assert f"covey -s {session_id}" in window.screen.text


def test_a_wrong_key_in_the_configuration_is_said_and_nothing_starts(windows: Windows) -> None:
    with windows.home.config.open("a") as file:
        file.write('\n[keys]\npalette = "ctrl+k"\n')
    window = windows.open()
    assert window.finish() == 1
    assert "keys.palette: ctrl+k already means kill_line" in window.screen.text
    assert window.screen.is_as_before


def test_row_08_nothing_is_written_while_nothing_happens(windows: Windows) -> None:
    window = windows.open()
    window.wait_for("What should I do?")
    window.type("hello\r")
    window.wait_for("You said: hello")
    window.wait_for("f1 keys")
    while window.read(0.5):  # what is still on its way
        pass
    before = window.screen.counts.bytes
    window.type(b"\x1b[O\x1b[I")  # the focus goes and comes: nothing is laid out anew (row 13)
    while window.read(1.0):
        pass
    assert window.screen.counts.bytes == before
    assert window.screen.counts.clears <= 1
