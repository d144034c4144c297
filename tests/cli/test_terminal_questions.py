"""What `covey run` asks at a real terminal, and how that is answered."""

from __future__ import annotations

import asyncio
import json
import signal
import termios
from copy import copy
from typing import Any

import pytest

from covey.cli import exits
from covey.client.client import Client
from covey.protocol.paths import Address
from tests.cli.conftest import Home, until
from tests.cli.terminal import QUESTION, Terminal, Terminals, drawn


@pytest.mark.parametrize(
    ("typed", "is_made"), [("y", True), ("n", False), ("\x04", False), ("\x1b[A", None), ("yes please", None)]
)
def test_the_person_at_the_terminal_is_asked(
    terminals: Terminals, home: Home, typed: str, is_made: bool | None
) -> None:
    terminal = terminals.run("use the tool")
    terminal.wait_for(QUESTION)
    assert "bash:\n    touch made\n" in terminal.shown
    assert "\n  y  yes, once  n  no  s  yes, in this session: this very command\n" in terminal.shown
    assert not (home.project / "made").exists()
    terminal.type(typed)
    if is_made is None:  # several keys at once are no answer
        terminal.wait_for("Press a key from above")
        assert not (home.project / "made").exists()
        terminal.type("y")
    assert terminal.finish() == 0
    assert (home.project / "made").exists() == (is_made is not False)
    assert "I make a file." in terminal.shown
    assert "\nDone.\nsession " in drawn(terminal.shown)
    assert "\n\n" not in terminal.shown.replace("\n\nDone.", "\nDone."), "a blank line is above the answer alone"
    left = terminal.shown.rpartition("A\r\x1b[J")[2]
    assert left.startswith(f"{'allowed once' if is_made is not False else 'denied'}: $ touch made\n"), "no menu stays"


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
        assert "\n  A  yes, always here: bash:touch made" in terminal.shown
        terminal.type("?")
        terminal.wait_for(QUESTION, count=2)
        assert f"holdsin{own_home.project}andnowhereelse:bash:touchmade" in "".join(terminal.shown.split())
        terminal.type("A")
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
    assert "allowed" not in terminal.shown
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
    terminal.wait_for("No, because: ")
    terminal.type("no, not that\n")
    assert terminal.finish() == 0
    assert not (home.project / "second").exists()
    (session,) = home.sessions()
    assert "not that" in str(home.messages(session["id"]))


def test_words_that_are_no_key_are_the_reason_for_a_no(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("use the tool")
    terminal.wait_for(QUESTION)
    terminal.type("e")
    terminal.wait_for("No, because: ")
    terminal.type("\n")
    terminal.wait_for(QUESTION, count=2)  # nothing was said: the menu again
    terminal.type("e")
    terminal.wait_for("No, because: ", count=2)
    terminal.type("yes\n")  # behind a no nothing is a yes
    assert terminal.finish() == 0
    assert not (home.project / "made").exists()
    (session,) = home.sessions()
    assert "The user says: yes" in str(home.messages(session["id"]))
    left = terminal.shown.rpartition("A\r\x1b[J")[2]
    assert left.startswith("denied: $ touch made\n") and QUESTION not in left, "the question has gone"


def test_a_command_of_which_a_part_was_shown_is_shown_whole_and_asked_about_again(
    terminals: Terminals, home: Home
) -> None:
    terminal = terminals.run("long command")
    terminal.wait_for(QUESTION)
    terminal.type("y")
    terminal.wait_for("This is all of it now. Allow it? ")
    terminal.type("n")
    assert terminal.finish() == 0


def test_one_key_accepts_all_edits_of_the_session(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("write two files")
    terminal.wait_for(QUESTION)
    assert "  m  yes, and all edits in this session" in terminal.shown
    terminal.type("m")
    assert terminal.finish() == 0
    assert terminal.shown.count(QUESTION) == 1
    assert [(home.project / name).exists() for name in ("one", "two")] == [True, True]
    assert [session["mode"] for session in home.sessions()] == ["accept_edits"]


def test_half_an_answer_is_no_command_for_the_shell(terminals: Terminals, home: Home) -> None:
    terminal = terminals.run("ask me")
    terminal.wait_for("Shall I?")
    terminal.type("echo half an answer")
    terminal.wait_for("half an answer")
    (run,) = json.loads(home.covey("runs", "--json").stdout)
    assert home.covey("runs", "answer", run["run_id"], "yes").returncode == 0
    terminal.wait_for("answered by you")
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


@pytest.mark.parametrize("options", [(), ("--plain",)])
def test_in_thirty_columns_no_word_of_a_question_is_cut_in_two(
    terminals: Terminals, home: Home, options: tuple[str, ...]
) -> None:
    for prompt, asked, words in (
        ("ask me", "answer): ", {"answer):"}),
        ("use the tool", "): " if options else QUESTION, {"always", "very"}),
    ):
        terminal = terminals.start(
            "sh", "-c", 'stty cols 30 rows 40; exec "$@"', "sh", *home.command("run", "-q", *options, prompt)
        )
        terminal.wait_for(asked)
        rows = drawn(terminal.shown).split("\n")
        assert max(map(len, rows)) <= 30 and {word for row in rows for word in row.split()} >= words
        terminal.type("\x04")
        assert terminal.finish() == 0


def test_where_the_cursor_must_not_move_the_answer_is_a_line(home: Home) -> None:
    terminal = Terminal(home, *home.command("run", "--plain", "use the tool"))
    try:
        terminal.wait_for("Allow it? [y]es, [n]o or no and why")
        terminal.type("what?\nalways\n")
        assert terminal.finish() == 0
    finally:
        terminal.close()
    assert "next: $ touch made\n" in terminal.shown and "done: $ touch made\n" in terminal.shown
    assert "\x1b" not in terminal.shown and "\r" not in terminal.shown
    assert (home.project / "made").exists()


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
    assert "\nallowed by " in terminal.shown
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


def test_who_steers_a_run_is_asked_what_it_asks_and_leaves_it_with_ctrl_c(terminals: Terminals, home: Home) -> None:
    host = home.covey("run", "--detach", "use two tools").stdout.strip()
    until(lambda: listed(home)[0]["asks"], "the first question")
    terminal = terminals.run("--steer", "use two tools, please")
    until(lambda: len(listed(home)) == 2, "the prompt is there")
    assert home.covey("runs", "allow", host).returncode == 0
    terminal.wait_for(QUESTION)
    terminal.type("\x03")
    assert terminal.finish() == exits.STOPPED
    assert f"the prompt has joined the run {host}: `covey runs cancel {host}`" in " ".join(terminal.shown.split())
    assert [run["state"] for run in listed(home) if run["run_id"] == host] == ["active"]
    assert home.covey("runs", "cancel", host).returncode == 0


def listed(home: Home) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(home.covey("runs", "--json").stdout)
    return found
