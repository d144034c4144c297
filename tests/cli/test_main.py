"""The command line itself: help that answers at once, and mistakes that are explained."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from covey import __version__
from covey.cli import exits, running
from covey.cli.main import build_parser, main
from covey.cli.option_types import RUN_ID
from covey.cli.parser import all_commands, did_you_mean
from covey.cli.texts import SESSION_MODES
from covey.protocol.messages import SessionMode
from covey.server.routes import runs as routes

HEAVY = ("asyncio", "msgspec", "httpx2", "covey.client", "covey.protocol", "covey.server", "ssl")


def covey(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "covey", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["serve", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "covey", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "covey.cli.main" in imported
    assert not {name for name in imported if name.startswith(HEAVY)}
    assert done.returncode == 0


def test_help_teaches_with_examples() -> None:
    text = build_parser().format_help()
    assert "git diff | covey run" in text
    for command in ("run", "serve", "sessions", "status", "stop"):
        assert f"\n    {command} " in text


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in all_commands(build_parser()):
        examples = command.parser.format_help().partition("examples:")[2]
        too_long = [line for line in examples.split("\n") if len(line) > columns]
        assert too_long == [], command.words
        assert " ".join(examples.split()) == " ".join((command.parser.epilog or "").partition("examples:")[2].split())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"covey {__version__}\n"


def test_without_a_command_or_a_terminal_it_says_why_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == exits.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 3
    assert said.err.startswith("covey: the terminal UI needs a terminal.")
    assert "covey run" in said.err


@pytest.mark.parametrize(
    "args",
    [
        ["dance"],
        ["run", "--timeout", "soon", "x"],
        ["run", "--timeout", "-1", "x"],
        ["run", "--timeout", "0", "x"],
        ["run", "--run-id", "a b", "x"],
        ["run", "--json", "--stream-json", "x"],
        ["run", "-C", "-s", "s1", "x"],
        ["sessions", "burn"],
        ["sessions", "show", "s1", "s2"],
        ["sessions", "rename", "s1"],
        ["sessions", "delete", "s1", "s2"],
        ["run", "hello", "--dance"],
        ["status", "hello"],
        ["serve", "--idle-exit", "nan"],
        ["run", "--max-steps", "0", "x"],
        ["run", "--max-steps", "1.5", "x"],
        ["run", "--max-cost", "free", "x"],
        ["sessions", "--limit", "0"],
    ],
)
def test_wrong_usage_exits_2(args: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(args)
    assert left.value.code == exits.USAGE


@pytest.mark.parametrize(
    ("args", "command", "why"),
    [
        (["run", "--frob"], "covey run", "unrecognized arguments: --frob"),
        (["status", "--frob"], "covey status", "unrecognized arguments: --frob"),
        (["sessions", "show", "s1", "--frob"], "covey sessions", "unrecognized arguments: --frob"),
        (["runs", "wait", "--frob"], "covey runs", "unrecognized arguments: --frob"),
        (["logs", "-n", "few"], "covey logs", "argument -n/--lines: 'few' is not a whole number"),
        (["sessions", "delete"], "covey sessions delete", "the following arguments are required: ID"),
    ],
)
def test_wrong_usage_is_told_in_one_line_and_where_the_help_is(
    args: list[str], command: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(args)
    assert left.value.code == exits.USAGE
    assert capsys.readouterr().err == f"{command}: {why}\nSee `{command} --help`.\n"


@pytest.mark.parametrize(
    ("words", "dest", "taken"),
    [
        (["jobs", "output", "--json", "job-1"], "job", ["job-1"]),
        (["jobs", "kill", "job-1", "--json", "job-2"], "job", ["job-1", "job-2"]),
        (["config", "set", "--json", "model", "a/b"], "words", ["model", "a/b"]),
        (["config", "set", "model", "--json", "a/b"], "words", ["model", "a/b"]),
        (["nodes", "drain", "--json", "one"], "node", "one"),
        (["run", "fix", "--yolo", "the", "bug"], "prompt", ["fix", "the", "bug"]),
    ],
)
def test_options_may_stand_anywhere_among_the_words_of_a_command(
    words: list[str], dest: str, taken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = argparse.Namespace()

    def run(args: argparse.Namespace) -> int:
        vars(given).update(vars(args))
        return exits.OK

    monkeypatch.setattr(running, "run", run)
    assert main(words) == exits.OK
    assert getattr(given, dest) == taken


@pytest.mark.parametrize("words", [["mcp", "logs", "one", "--json", "two"], ["status", "--json", "x"]])
def test_words_that_no_argument_takes_are_still_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == exits.USAGE


def test_a_guess_at_an_option_is_about_its_name_and_not_its_dashes() -> None:
    options = build_parser()._option_string_actions
    assert did_you_mean("--sesion", options, at_most=1) == "did you mean --session?"
    assert did_you_mean("--bogus", ["--verbose", "--json"]) == ""


def test_exit_codes_stay_whole_where_they_are_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = next(command for command in all_commands(build_parser()) if command.words == ("mcp",)).parser.format_help()
    assert "\n  2 wrong usage     3 no server\n" in said


def test_what_may_be_left_out_is_not_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sessions", "summarize"])
    assert "the following arguments are required: ID\n" in capsys.readouterr().err


def test_run_ids_are_those_of_the_server() -> None:
    assert RUN_ID == routes.RUN_ID


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run"], "there is no prompt"),
        (["What does this do?"], "a prompt comes after `run`"),
        (["run", "-a", "/none/there", "x"], "cannot be attached"),
        (["run", "--host", "ftp://x", "x"], "is not an address"),
        (["run", "--host", "tcp://127.0.0.1:1", "--token-file", "/none/there", "x"], "there is no token"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(args: list[str], said: str) -> None:
    done = covey(*args)
    assert done.returncode == exits.USAGE
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_options_may_stand_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.Namespace] = []

    def record(args: argparse.Namespace) -> int:
        seen.append(args)
        return 0

    monkeypatch.setattr("covey.cli.run.main", record)
    monkeypatch.setattr("covey.cli.sessions.main", record)
    main(["run", "fix", "--yolo", "the", "-q", "bug"])
    assert seen[-1].prompt == ["fix", "the", "bug"]
    main(["run", "--", "--not-an-option"])
    assert seen[-1].prompt == ["--not-an-option"]
    main(["sessions", "--json"])
    assert (seen[-1].action, seen[-1].json, seen[-1].cwd) == (None, True, None)
    options = ["--json", "--cwd", "x"]
    for args in ([*options, "show", "s1"], ["show", *options, "s1"], ["show", "s1", *options]):
        main(["sessions", *args])
        assert (seen[-1].action, seen[-1].session, seen[-1].json, seen[-1].cwd) == ("show", "s1", True, "x")


def test_no_server_exits_3() -> None:
    for args in (["run", "x"], ["status"], ["sessions"]):
        done = covey(*args, "--host", "tcp://127.0.0.1:1")
        assert done.returncode == exits.UNREACHABLE
        assert "No Covey server answers at tcp://127.0.0.1:1 (Connection refused)" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [["--version"], ["run", "--help"], ["trust", "--list"]])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_stdout_that_takes_nothing_is_no_traceback(args: list[str], buffered: bool, tmp_path: Path) -> None:
    """Written at once or at the end: a pipe that nobody reads ends it quietly, a full disk with a sentence."""
    (tmp_path / "covey").mkdir()
    (tmp_path / "covey" / "trusted.toml").write_text(f'directories = ["{tmp_path}"]\n')
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    env |= {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    env |= {} if buffered else {"PYTHONUNBUFFERED": "1"}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe, Path("/dev/full").open("wb") as full:
        for stdout, code in ((pipe, exits.BROKEN_PIPE), (full, exits.FAILED)):
            command = [sys.executable, "-m", "covey", *args]
            done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=env, timeout=30)
            if buffered or args[0] not in ("--version", "run"):  # argparse ignores it where it can
                assert done.returncode == code
            assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
            assert code == exits.FAILED or done.stderr == ""


def test_the_modes_of_a_session_are_those_of_the_protocol() -> None:
    assert get_args(SessionMode) == SESSION_MODES
