"""`covey --plain` with a real server: out of a pipe, and at a terminal where nothing may be moved."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Home, until
from tests.support.mcp import HOSTILE
from tests.tui.program import PtyProgram

WITHOUT_MODELS = '[providers.none]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n'
MOVES = re.compile(r"\x1b\[[0-9;]*[ABCDGHJKST]|\x1b\[\?1049")


def _piped(home: Home, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return home.covey("--plain", *words, stdin=text)


def test_lines_out_of_a_pipe_are_answered_one_after_the_other(home: Home) -> None:
    done = _piped(home, "first\\\nand more\nuse a tool\n1\nask me\n1\n")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    asked = said.index("May it do this? bash:")
    assert said.index("You said: first") < asked < said.index("done: $ touch made") < said.index("Shall I?")
    assert said[asked + 1] == "    touch made"
    assert "  1. yes, this once (y)" in said
    assert said.count("Done: 2 steps.") == 2
    assert (home.project / "made").exists()
    assert "\x1b" not in done.stdout and "\r" not in done.stdout


def test_without_an_answer_nothing_is_allowed_and_it_says_so(home: Home) -> None:
    done = _piped(home, "use a tool\n")
    assert "waits for an answer elsewhere" in done.stdout
    assert not (home.project / "made").exists()


def test_a_number_that_refuses_refuses(home: Home) -> None:
    done = _piped(home, "use a tool\n0\nalso this\n")
    assert not (home.project / "made").exists(), "neither a wrong number nor words are an answer"
    number = re.findall(r"^  (\d)\. no \(n\)$", done.stdout, re.MULTILINE)[0]
    done = _piped(home, f"use a tool\n{number}\n")
    assert "failed: $ touch made  denied" in done.stdout
    assert not (home.project / "made").exists()


@pytest.mark.parametrize(("letter", "is_rule"), [("r", True), ("y", False)])
def test_an_answer_that_adds_a_rule_says_so(own_home: Home, letter: str, is_rule: bool) -> None:
    done = _piped(own_home, f"use a tool\n{letter}\n")
    said = "A rule for this is in your config.toml now. It holds in this directory only."
    assert (said in done.stdout) == is_rule and (own_home.project / "made").exists()


def test_what_can_only_be_meant_as_an_answer_is_no_prompt_unless_it_is_said_to_be(home: Home) -> None:
    done = _piped(home, "use a tool\nok\n8\n/say 8\n1\n")
    for word in ("ok", "8"):
        assert f"{word} is no choice: type a number from 1 to " in done.stdout
    assert "That is sent as a prompt. What was asked still waits for an answer." in done.stdout
    assert "You said: yes" not in done.stdout and (home.project / "made").exists()
    prompts = [line for line in done.stdout.splitlines() if line.startswith("> ")]
    assert [prompt.split(" (")[0] for prompt in prompts] == ["> use a tool", "> 8"]


def test_what_can_only_be_meant_as_a_command_never_reaches_the_model(home: Home) -> None:
    done = _piped(home, "/undo\n/nosuch word\n!ls\n!!ls\n /undo as text\n/a/path is a prompt\n")
    assert done.returncode == 1, "a line out of a pipe was not taken"
    for name in ("undo", "nosuch"):
        assert f"there is no command /{name}; put a blank before the / to send it as text" in done.stdout
    assert done.stdout.count("! commands are for the terminal UI; put a blank before the ! to send it as text") == 2
    said = [row for row in done.stdout.splitlines() if row.startswith("You said: ")]
    assert [row.removeprefix("You said: ").strip() for row in said] == ["/undo as text", "/a/path is a prompt"]


def _answers(home: Home, done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the model has read as answers to its questions."""
    said = json.dumps(home.messages(done.stdout.split()[-1]))
    return re.findall(r"1\. [^?]*\?\\n   (.*?)\"", said)


def test_what_can_only_be_meant_as_a_command_answers_no_question(own_home: Home) -> None:
    commands = own_home.config.parent / "commands"
    commands.mkdir()
    (commands / "greet.md").write_text("Say hello to $ARGUMENTS")
    done = _piped(own_home, "name it\n!ls\n/help\n/greet birds\n !ls, or /greet\n")
    assert done.returncode == 1, "a line out of a pipe was not taken"
    assert "! commands are for the terminal UI; put a blank before the ! to answer with it" in done.stdout
    assert "/greet is a command, which `/say /greet` sends; put a blank before the / to answer with it" in done.stdout
    assert "/open N" in done.stdout, "a command that is known here runs"
    assert _answers(own_home, done) == ["!ls, or /greet"]


def test_a_path_answers_a_question_and_a_yes_or_no_is_no_place_for_words(home: Home) -> None:
    done = _piped(home, "name it\n/tmp\nask me\n!ls\n1\n")
    assert "there is no command /tmp" not in done.stdout and _answers(home, done)[0] == "/tmp"
    assert "! commands are for the terminal UI; type 1 or 2" in done.stdout


def test_behind_a_no_a_command_is_no_reason_and_cancels(home: Home) -> None:
    done = _piped(home, "use a tool\ne\n!ls\n/skip\n/cancel\n")
    assert "put a blank before the ! to answer with it" in done.stdout and "No question is asked." in done.stdout
    assert "failed: $ touch made  not run\nCancelled." in done.stdout, "the cancel has reached the server"
    assert "The user says" not in str(home.messages(done.stdout.split()[-1]))


def test_a_command_of_the_workspace_is_no_unknown_one(own_home: Home) -> None:
    commands = own_home.config.parent / "commands"
    commands.mkdir()
    (commands / "greet.md").write_text("Say hello to $ARGUMENTS")
    done = _piped(own_home, "/greet birds\n")
    assert done.returncode == 0 and "You said: /greet birds" in done.stdout, "the server makes the prompt of it"
    assert "there is no command" not in done.stdout


def test_help_lists_skip_and_without_a_question_it_says_that_there_is_none(home: Home) -> None:
    done = _piped(home, "/help\n/skip\n")
    assert re.search(r"^/skip +answer none", done.stdout, re.MULTILINE) and "No question is asked." in done.stdout


def test_a_run_that_fails_is_said_and_is_the_exit_code(home: Home) -> None:
    done = _piped(home, "fail\n")
    assert done.returncode == 1
    assert "half an answer" in done.stdout and "Failed: scripted: the model broke" in done.stdout


def test_a_session_is_gone_on_with_and_its_end_is_told(home: Home) -> None:
    first = _piped(home, "hello\n")
    session = first.stdout.split()[-1]
    again = _piped(home, "/sessions\n/help\nmore\n", "-s", session)
    assert "This session has 2 messages. The last of them:" in again.stdout
    assert "You said: hello" in again.stdout and "You said: more" in again.stdout
    assert "  1. hello (this one)" in again.stdout and "/open N" in again.stdout


def test_a_session_whose_only_prompt_was_refused_is_not_left_behind(own_home: Home) -> None:
    own_home.config.write_text(WITHOUT_MODELS)
    done = _piped(own_home, "hello\nagain\n")
    assert done.returncode == 1 and done.stdout.count("Not sent: no usable model") == 2
    assert own_home.sessions() == []


@pytest.fixture
def talk(home: Home) -> Iterator[PtyProgram]:
    program = PtyProgram(home.command("--plain"), cwd=home.project, env=home.env, columns=80, lines=60)
    with program:
        program.wait_for("\n>")
        yield program


def test_at_a_terminal_nothing_moves_and_a_line_that_was_being_typed_answers_nothing(talk: PtyProgram) -> None:
    talk.type("use a tool\r")
    talk.wait_for("Type a number")
    talk.type("not a number\r")
    talk.wait_for("Type a number")
    talk.type("1\r")
    talk.wait_until(lambda: "done:" in talk.screen.text or talk.screen.text.count("Type a number") == 2, "no answer")
    if "done:" not in talk.screen.text:  # it came so soon that it may have been typed before the question
        talk.wait_until(lambda: not talk.read(0.5), "it never stops writing")
        talk.type("1\r")
    talk.wait_for("done: $ touch made")
    assert not MOVES.search(talk.raw), "lines are only appended"
    talk.type("\x04")
    assert talk.finish() == 0
    assert talk.attributes() == talk.attributes_before and "?2004" not in talk.screen.modes


def test_ctrl_c_cancels_the_run_and_the_second_leaves(home: Home, talk: PtyProgram) -> None:
    talk.type("hang\r")
    until(lambda: json.loads(home.covey("runs", "--json").stdout), "the run has begun")
    talk.type("\x03")
    talk.wait_for("Cancelling. Ctrl-C again leaves.")
    talk.wait_for("Cancelled.")
    talk.type("/help\r")  # whatever is typed in between, it is not the second of two
    talk.wait_for("/open N")
    talk.send_signal(signal.SIGINT)
    talk.wait_for("Ctrl-C again leaves; so does /quit.")
    talk.send_signal(signal.SIGINT)
    assert talk.finish() == 130
    assert talk.attributes() == talk.attributes_before and "?2004" not in talk.screen.modes


def test_a_cancel_is_said_once_for_a_turn_with_how_many_prompts_waited_for_it(home: Home, talk: PtyProgram) -> None:
    talk.type("hang\r")
    until(lambda: [1 for each in home.sessions() if len(home.messages(each["id"])) == 2], "the model is answering")
    talk.type("mind the nests\r")
    talk.wait_for("It joins the turn.")
    talk.type("/queue and then this\r")
    until(lambda: len(json.loads(home.covey("runs", "--json").stdout)) == 3, "both wait")
    talk.type("\x03")
    talk.wait_for("Cancelled, and 2 prompts that waited.")
    until(lambda: json.loads(home.covey("runs", "--json").stdout) == [], "all is cancelled")
    assert talk.screen.text.count("Cancelled") == 1


def test_while_it_works_a_line_steers_as_in_the_other_faces_and_commands_queue_or_interrupt(
    home: Home, talk: PtyProgram
) -> None:
    talk.type("hang\r")
    until(lambda: [1 for each in home.sessions() if len(home.messages(each["id"])) == 2], "the model is answering")
    talk.type("mind the nests\r")
    talk.wait_for("It joins the turn. /queue TEXT waits for its own, /interrupt TEXT goes first.")
    until(lambda: len(json.loads(home.covey("runs", "--json").stdout)) == 2, "it waits")
    talk.type("/queue\r")
    talk.wait_for("1. mind the nests")
    talk.type("/queue and then this\r")
    talk.wait_for("It waits for a turn of its own.")
    runs = until(lambda: len(runs := json.loads(home.covey("runs", "--json").stdout)) == 3 and runs, "both wait")
    assert {run["prompt"]: run["mode"] for run in runs} == {
        "hang": "own_turn",
        "mind the nests": "fold",
        "and then this": "own_turn",
    }
    talk.type("/interrupt look here\r")
    talk.wait_for("What runs is cancelled, and this is next.")
    talk.wait_for("Cancelled.")
    talk.wait_for("You said: and then this")
    ended = json.loads(home.covey("runs", "--all", "--json").stdout)
    assert {run["prompt"]: run["state"] for run in ended}["look here"] == "completed"


@pytest.mark.parametrize("typed", ["\x04", "/quit\r"])
def test_who_leaves_while_something_is_asked_is_told_that_it_still_waits(
    home: Home, talk: PtyProgram, typed: str
) -> None:
    talk.type("use a tool\r")
    talk.wait_for("Type a number")
    talk.type(typed)
    assert talk.finish() == 0
    assert "The run still waits for an answer: `covey runs` shows what it asks." in talk.screen.text
    [run] = json.loads(home.covey("runs", "--json").stdout)
    assert run["asks"] == "permission" and not (home.project / "made").exists()
    assert talk.attributes() == talk.attributes_before


def test_a_signal_leaves_the_terminal_as_it_was(talk: PtyProgram) -> None:
    talk.type("half a li")
    talk.wait_for("half a li")
    talk.send_signal(signal.SIGTERM)
    assert talk.finish() == 143
    assert talk.attributes() == talk.attributes_before and "?2004" not in talk.screen.modes


def test_a_dumb_terminal_gets_lines_without_being_asked(home: Home) -> None:
    with PtyProgram(home.command(), cwd=home.project, env=home.env, term="dumb") as program:
        program.wait_for("\n>")
        program.type("hello\r")
        program.wait_for("You said: hello")
        assert "\x1b" not in program.raw
        program.type("/quit\r")
        assert program.finish() == 0


def test_an_extension_is_approved_by_a_person_and_never_by_a_pipe(own_home: Home) -> None:
    added = own_home.covey("mcp", "add", "h", "--", sys.executable, str(HOSTILE), "normal")
    assert added.returncode == 0, added.stderr
    piped = _piped(own_home, "hello\n1\n")
    assert "May this extension be used?" not in piped.stdout and "You said: 1" in piped.stdout
    with PtyProgram(own_home.command("--plain"), cwd=own_home.project, env=own_home.env, columns=200, lines=60) as talk:
        talk.wait_for("No run waits for it.")
        assert "Says it again." in talk.screen.text, "what it tells the model is shown"
        talk.wait_until(lambda: not talk.read(0.5), "it never stops writing")  # sooner, it was not read
        talk.type("1\r")
        talk.wait_for("It may be used.")
    assert json.loads(own_home.covey("mcp", "list", "--json").stdout)[0]["state"] != "needs_approval"


def test_on_a_narrow_terminal_no_word_of_ours_is_cut_in_two(home: Home) -> None:
    with PtyProgram(home.command("--plain"), cwd=home.project, env=home.env, columns=60) as program:
        program.wait_for("there is.\n>")
        program.type("/help\r")
        program.wait_for("goes on in the next one.")
        words = {word for row in program.screen.rows for word in row.split()}
        assert {"prompt,", "whatever", "asked"} <= words
        program.type("\x04")
        program.finish()
