"""`covey diff`, on a server of its own whose model writes files and runs commands."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

from covey.cli import exits
from tests.cli.conftest import Home
from tests.cli.test_undo_command import home, prompt, writing_home

__all__ = ["home", "writing_home"]


def test_tools_and_commands_are_shown_with_who_made_the_change(home: Home) -> None:
    prompt(home, "two")
    prompt(home, "-C", "command")
    done = home.covey("diff")
    assert (done.returncode, done.stderr) == (exits.OK, "")
    assert done.stdout.splitlines() == [
        "added: a.txt (write)",
        "--- a.txt",
        "+++ a.txt",
        "@@ -0,0 +1,1 @@",
        "+two",
        "added: b.txt (write)",
        "--- b.txt",
        "+++ b.txt",
        "@@ -0,0 +1,1 @@",
        "+new",
        "added: made (command `touch made`)",
    ]
    assert home.covey("diff", "--stat").stdout.splitlines() == [
        " a.txt |     1 + (added, write)",
        " b.txt |     1 + (added, write)",
        " made  |     0 (added, command `touch made`)",
        " 3 files changed, 2 insertions(+), 0 deletions(-)",
    ]


def test_json_is_the_answer_of_the_server_with_all_pages(home: Home) -> None:
    run = prompt(home, "one")
    (session,) = home.sessions()
    found = json.loads(home.covey("diff", session["id"][:6], "--json").stdout)
    (file,) = found["files"]
    assert (file["path"], file["change"]["status"]) == (str(home.project / "a.txt"), "added")
    assert file["turns"][0]["run_id"] == run["run_id"]
    only = json.loads(home.covey("diff", "--run", run["run_id"], "--json").stdout)
    assert only["files"] == found["files"]


def test_a_session_without_changes_says_so_and_an_unknown_one_is_refused(home: Home) -> None:
    prompt(home, "hello")
    nothing = home.covey("diff")
    assert (nothing.returncode, nothing.stdout) == (exits.OK, "")
    assert "changed no file" in nothing.stderr
    assert home.covey("diff", "nosuch").returncode == exits.USAGE


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({"NO_COLOR": ""}, b"32"),
        ({"NO_COLOR": "", "COVEY_THEME": "light"}, b"38;5;28"),
        ({"NO_COLOR": "1", "COVEY_THEME": "light"}, b""),
    ],
)
def test_colours_are_for_terminals_and_those_of_the_theme(home: Home, env: dict[str, str], code: bytes) -> None:
    prompt(home, "one")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        home.command("diff"), cwd=home.project, env={**home.env, "TERM": "xterm", **env}, stdout=theirs
    )
    os.close(theirs)
    shown = b""
    while b"+one" not in shown:
        shown += os.read(ours, 4096)
    assert process.wait(30) == exits.OK
    os.close(ours)
    assert (b"\x1b[%bm+one" % code in shown, b"\x1b" in shown) == (bool(code), bool(code))
