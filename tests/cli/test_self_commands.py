"""Commands about Covey itself: help, completion, the manual page, logs, and what variables say."""

from __future__ import annotations

import ast
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from covey.cli import exits
from covey.cli.log_file import LogFile
from covey.cli.main import build_parser, main
from covey.cli.manual import page
from covey.cli.parser import all_commands
from covey.cli.prompt_input import MAX_PIPED_BYTES
from tests.cli.conftest import Home, until

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_manual_page_is_the_one_that_the_parser_makes() -> None:
    assert (ROOT / "docs" / "covey.1").read_text() == page(), "python -m covey.cli.manual > docs/covey.1"


def test_the_manual_teaches_covey_without_a_command() -> None:
    said = page().partition(".SH THE TERMINAL UI")[2].partition(".SH COMMANDS")[0]
    assert "opens the terminal UI" in said
    for option in ("session", "continue", "plain", "cwd", "host"):
        assert rf"\fB\-\-{option}\fR" in said


@pytest.mark.parametrize("words", [command.words for command in all_commands(build_parser())])
def test_every_command_has_help_and_is_in_the_manual(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", *words]) == exits.OK
    assert capsys.readouterr().out.startswith(f"usage: covey {' '.join(words)} ")
    assert f".SS covey {' '.join(words)}".replace("-", r"\-") in page()


@pytest.mark.parametrize("command", [command for command in all_commands(build_parser()) if len(command.words) == 1])
def test_every_command_teaches_with_an_example(command: object) -> None:
    epilog = getattr(command, "parser").epilog  # noqa: B009 - parametrised values have no type
    assert re.search(r"examples:\n  ", epilog or "")


def test_39_no_message_sends_people_to_a_page_that_is_not_installed() -> None:
    """Pages are in the sources alone. Comments and docstrings may name them: their readers have those."""
    for path in sorted((ROOT / "src" / "covey").rglob("*.py")):
        tree = ast.parse(path.read_text())
        notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in notes]
        assert [text for text in texts if isinstance(text, str) and re.search(r"docs/\w+\.md", text)] == [], path


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rnu"], "did you mean run"),
        (["sessions", "exprot", "x"], "did you mean export?"),
        (["run", "--acept-edits", "x"], "did you mean --accept-edits?"),
        (["help", "sesions"], "did you mean sessions"),
        (["export"], "did you mean `covey sessions export`?"),
        (["search", "words"], "did you mean `covey sessions search`?"),
        (["help", "export"], "did you mean `covey sessions export`?"),
        (["cancel"], "did you mean `covey runs cancel`?"),
        (["zzzzz"], "there is: run, "),
    ],
)
def test_what_was_probably_meant_is_said(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(args)
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == exits.USAGE
    assert said in capsys.readouterr().err


def test_an_unknown_model_gets_the_nearest_one(home: Home) -> None:
    done = home.covey("run", "-m", "scripted2/defualt", "hello")
    assert done.returncode == exits.FAILED and "did you mean scripted/default?" in done.stderr


# ── completion ──


def completed(home: Home, *words: str) -> list[str]:
    """What bash offers for the last of these words, by the script."""
    program = home.project / "bin" / "covey"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m covey "$@"\n')
        program.chmod(0o755)
    line = " ".join(f"'{word}'" for word in ("covey", *words))
    script = f"""
        source <(covey completion bash)
        COMP_WORDS=({line}); COMP_CWORD={len(words)}
        _covey; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    env = {**home.env, "PATH": f"{program.parent}:{home.env['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=home.project, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_and_what_the_server_knows(home: Home) -> None:
    home.covey("run", "--run-id", "my-run", "hello")
    (session,) = home.sessions()
    assert completed(home, "ru") == ["run", "runs"]
    assert completed(home, "runs", "wa") == ["wait"]
    assert completed(home, "run", "--acc") == ["--accept-edits"]
    assert completed(home, "run", "--sandbox", "") == ["auto", "required", "off"]
    assert completed(home, "run", "-s", "") == [session["id"]]
    assert completed(home, "runs", "wait", "my") == ["my-run"]
    assert completed(home, "run", "-m", "scr") == ["scripted/default"]


def test_no_server_is_started_to_complete_something(own_home: Home) -> None:
    done = own_home.covey("completion", "--words", "sessions")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    assert not own_home.socket.exists()


@pytest.mark.parametrize(("shell", "line"), [("zsh", "bashcompinit"), ("fish", "complete -c covey -n ")])
def test_other_shells_have_scripts_too(shell: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == exits.OK
    out = capsys.readouterr().out
    assert line in out and "accept-edits" in out and "interrupt" in out


# ── logs ──


def test_the_log_says_of_each_run_when_it_came_began_and_how_it_ended(home: Home) -> None:
    home.covey("run", "--run-id", "logged", "fail about my-private-words")
    lines = home.covey("logs", "-n", "9999").stdout.splitlines()
    said = [line.partition("covey.runs: run logged ")[2] for line in lines]
    session = home.sessions()[0]["id"]
    assert [text for text in said if text] == [
        f"accepted: session {session}, seq 1",
        f"started: session {session}",
        f"ended: session {session}, failed (scripted: the model broke)",
    ]
    assert "my-private-words" not in home.covey("logs", "-n", "9999").stdout
    assert (home.data_dir / "server.log").stat().st_mode & 0o777 == 0o600


def test_the_log_is_followed_also_when_it_is_put_aside(home: Home) -> None:
    home.covey("run", "hello")
    following = home.spawn("logs", "-f", "-n", "1")
    try:
        assert following.stdout and following.stdout.readline()
        home.covey("run", "--run-id", "followed", "hello")
        assert until(lambda: b"run followed" in following.stdout.readline(), "a line about the run")  # type: ignore[union-attr]
    finally:
        following.kill()
        following.communicate()


def test_without_a_log_it_says_so(own_home: Home) -> None:
    done = own_home.covey("logs")
    assert done.returncode == exits.FAILED and "server.log cannot be read" in done.stderr


def test_a_log_has_a_bound_and_stays_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.cli.log_file.MAX_BYTES", 1000)
    handler = LogFile(tmp_path / "server.log")
    for number in range(200):
        handler.emit(logging.LogRecord("x", logging.INFO, "", 0, "line %d", (number,), None))
    handler.close()
    found = sorted(tmp_path.iterdir())
    assert [path.name for path in found] == ["server.log", "server.log.1"]
    assert all(
        path.stat().st_size < 1000 + len("line 100\n") and path.stat().st_mode & 0o777 == 0o600 for path in found
    )
    assert "".join(path.read_text() for path in reversed(found)).endswith("line 199\n")


# ── variables, and stdin ──


def test_variables_say_what_no_option_says(home: Home, tmp_path: Path) -> None:
    home.env = {**home.env, "COVEY_MODEL": "nobody/nothing"}
    assert "nobody" in home.covey("run", "hello").stderr
    assert home.covey("run", "-m", "scripted/default", "hello").returncode == 0
    home.env = {**home.env, "COVEY_HOST": f"unix://{tmp_path}/none.sock"}
    assert "none.sock" in home.covey("status").stderr
    assert home.covey("status", "--host", f"unix://{home.socket}").returncode == 0
    home.env = {**home.env, "COVEY_HOST": "", "COVEY_DATA_DIR": str(tmp_path / "other")}
    assert home.covey("status").returncode == exits.UNREACHABLE


def test_two_homes_of_one_user_are_two_servers(tmp_path: Path) -> None:
    one, other = Home(tmp_path / "one"), Home(tmp_path / "other")
    try:
        other.env["XDG_RUNTIME_DIR"] = str(one.runtime)
        other.socket = one.runtime / other.socket.name
        one.covey("run", "hello")
        assert other.covey("status").returncode == exits.UNREACHABLE
        other.covey("run", "hello")
        assert one.pid() != other.pid()
    finally:
        other.close()
        one.close()


def test_32_too_much_on_stdin_is_refused_with_advice(home: Home) -> None:
    done = home.covey("run", "why?", stdin="x" * (MAX_PIPED_BYTES + 1))
    assert done.returncode == exits.USAGE
    assert "more than 256 KiB came in on stdin" in done.stderr and "tail -c" in done.stderr
    assert home.covey("run", "-q", "long", stdin="x" * 1000).returncode == 0


def test_no_old_lines_of_the_log_can_be_asked_for(home: Home) -> None:
    home.covey("run", "hello")
    done = home.covey("logs", "-n", "0")
    assert (done.returncode, done.stdout) == (exits.OK, "")
