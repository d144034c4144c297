"""The whole program beside what else uses a terminal: a shell with job control, libraries that print, the clipboard."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Home
from tests.tui.program import PtyProgram

SHELL = ["bash", "--norc", "--noprofile", "-i"]
QUIET = {"PS1": "$ ", "HISTFILE": ""}
SCREEN_MODES = {"?1049", "?1002", "?1004"}


def _open(home: Home, **env: str) -> PtyProgram:
    program = PtyProgram(home.command(), cwd=home.project, env=home.env | env, columns=100, lines=30)
    program.wait_for("What should I do?")
    return program


@pytest.mark.skipif(not shutil.which("bash"), reason="needs job control")
def test_row_24_killed_with_9_it_leaves_the_terminal_to_the_shell_as_it_was(home: Home, tmp_path: Path) -> None:
    """Below a shell, as people have it: with the first process of a session its terminal goes too, guard or not."""
    own = tmp_path / "pid"
    command = f"sh -c 'echo $$ > {own}; exec \"$@\"' - {shlex.join(home.command())}"
    with PtyProgram(SHELL, cwd=home.project, env=home.env | QUIET, columns=100, lines=30) as program:
        program.wait_for("$")
        program.type(f"{command}\r")
        program.wait_for("What should I do?")
        assert program.screen.modes >= SCREEN_MODES
        os.kill(int(own.read_text()), signal.SIGKILL)
        program.wait_until(lambda: not program.screen.modes & SCREEN_MODES, "nobody put it back")
        program.type("echo wor''king\r")
        program.wait_for("\nworking")


@pytest.mark.skipif(not shutil.which("bash"), reason="needs job control")
def test_row_25_ctrl_z_in_the_middle_of_a_run_and_fg(home: Home) -> None:
    with PtyProgram(SHELL, cwd=home.project, env=home.env | QUIET, columns=100, lines=30) as program:
        program.wait_for("$")
        program.type(f"{shlex.join(home.command())}\r")
        program.wait_for("What should I do?")
        program.type("pause here\r")
        program.wait_for("┃ pause here")
        program.type("a draft of mine")
        program.wait_for("> a draft of mine")
        program.type("\x1a")
        program.wait_for("Stopped")
        assert not program.screen.modes & SCREEN_MODES
        program.type("echo wor''king\r")
        program.wait_for("\nworking")
        program.type("fg\r")
        program.wait_for("> a draft of mine")
        program.wait_for("one two")  # what ran went on meanwhile
        assert program.screen.text.count("pause here") >= 1
        assert "Stopped" not in program.screen.text
        assert "working" not in program.screen.text, "nothing of the shell is left on our screen"
        assert program.screen.modes >= SCREEN_MODES
        program.type("\x03\x04")
        program.wait_for("goes on with this session")
        program.type("exit\r")
        program.finish()
        assert not program.screen.modes & SCREEN_MODES


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_row_26_what_a_library_or_a_child_prints_is_not_on_the_screen(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "wl-paste").write_text("#!/bin/sh\necho a child complains >&2\nexit 1\n")
    (folder / "wl-paste").chmod(0o755)
    state = tmp_path / "state"
    path = f"{folder}:{home.env['PATH']}"
    with _open(home, PATH=path, WAYLAND_DISPLAY="w9", XDG_STATE_HOME=str(state)) as program:
        program.type("hang on\r")
        program.wait_for("one two")
        before = program.screen.rows[2:-4]
        for number in (1, 2):
            with Path(f"/proc/{program.process.pid}/fd/{number}").open("a") as stream:
                stream.write(f"a library says \x1b[31m{number}\n" * 50)
        program.type("\x16")
        program.wait_for("clipboard")
        program.type("typed on")
        program.wait_for("> typed on")
        assert "library says" not in program.raw
        assert "complains" not in program.raw
        assert program.screen.rows[2:-4] == before
        assert (state / "covey" / "tui" / "printed.log").read_text().count("a library says") == 100


def test_row_37_what_the_terminal_was_only_asked_for_is_not_called_copied(home: Home, tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")  # and no program for a clipboard
    with _open(home, PATH=str(tmp_path), WAYLAND_DISPLAY="", DISPLAY="") as program:
        program.type("remember me\r")
        program.wait_for("You said: remember me")
        program.type("/copy\r")
        program.wait_for("the last answer: the terminal was asked to copy")
        assert "copied" not in program.screen.text
        assert program.screen.copied == [f"c;{base64.b64encode(b'You said: remember me').decode()}"]


def test_the_line_to_resume_by_names_the_server_and_the_directory_if_these_were_named(home: Home) -> None:
    home.covey("status")
    server, elsewhere = f"unix://{home.socket}", home.project.parent
    command = home.command("--host", server, "--cwd", str(home.project))
    with PtyProgram(command, cwd=elsewhere, env=home.env, columns=300) as program:
        program.wait_for("What should I do?")
        program.type("remember me\r")
        program.wait_for("You said: remember me")
        program.type("\x04")
        program.finish()
        (said,) = [row for row in program.screen.rows if "goes on with this session" in row]
    again = shlex.split(said.partition("   goes on")[0])
    assert again[:5] == ["covey", "--host", server, "--cwd", str(home.project)]
    with PtyProgram(home.command(*again[1:]), cwd=elsewhere, env=home.env) as program:
        program.wait_for("You said: remember me")
        program.type("\x04")
        assert program.finish() == 0
