"""With `--json` a script gets exactly one object and the right exit code, also if there is no run or no end of it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from typing import Any

import pytest

from covey.cli import exits
from covey.client.client import Client
from covey.protocol.paths import Address
from tests.cli.conftest import Home, finish, until


def only_object(stdout: str) -> dict[str, Any]:
    (line,) = stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def waiting_bytes(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def metrics(home: Home) -> str:
    async def ask() -> str:
        async with Client(Address(path=str(home.socket))) as client:
            return await client.metrics()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["-m", "other/one", "hello"], exits.FAILED, "no model is known"),
        (["-m", "other/one", "--detach", "hello"], exits.FAILED, "no model is known"),
        (["-s", "nope", "hello"], exits.USAGE, "there is no session nope"),
        (["--cwd", "none", "hello"], exits.USAGE, "is not a directory"),
        (["--host", "tcp://127.0.0.1:1", "hello"], exits.UNREACHABLE, "No Covey server answers at tcp://127.0.0.1:1"),
        (["-a", "none", "hello"], exits.USAGE, "none cannot be attached"),
        ([], exits.USAGE, "there is no prompt"),
        (["--detach", "--timeout", "1", "hello"], exits.USAGE, "use one of them"),
    ],
)
def test_a_refusal_is_an_object(home: Home, args: list[str], code: int, said: str) -> None:
    done = home.covey("run", "--json", "--run-id", "mine", *args)
    result = only_object(done.stdout)
    assert (done.returncode, result["exit_code"]) == (code, code)
    assert said in result["error"] and result["error"] in done.stderr.replace("\n  ", "\n")
    assert (result["run_id"], result["session_id"], result["text"]) == ("mine", "", None)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["undo"], exits.USAGE, "there are no sessions in this directory yet"),
        (["diff", "nope"], exits.USAGE, "there is no session nope"),
        (["runs", "allow", "nope"], exits.USAGE, "nothing that waits for an answer has this id"),
        (["sessions", "show", "nope"], exits.USAGE, "there is no session nope"),
        (["stats", "--host", "tcp://127.0.0.1:1"], exits.UNREACHABLE, "No Covey server answers"),
    ],
)
def test_any_command_that_is_refused_says_so_in_an_object(
    own_home: Home, args: list[str], code: int, said: str
) -> None:
    done = own_home.covey(*args, "--json")
    failure = only_object(done.stdout)
    assert (done.returncode, failure["exit_code"]) == (code, code)
    assert said in failure["error"] and said in done.stderr


def test_an_undo_of_nothing_is_refused_in_an_object(own_home: Home) -> None:
    own_home.covey("run", "hello")
    assert own_home.covey("undo").returncode == exits.OK
    done = own_home.covey("undo", "--json")
    assert done.returncode == exits.FAILED
    assert only_object(done.stdout) == {"error": done.stderr.removeprefix("covey: ").strip(), "exit_code": exits.FAILED}


def test_another_prompt_under_the_same_id_is_an_object(home: Home) -> None:
    home.covey("run", "--run-id", "mine", "hello")
    done = home.covey("run", "--json", "--run-id", "mine", "something else")
    result = only_object(done.stdout)
    assert (done.returncode, result["exit_code"]) == (exits.FAILED, exits.FAILED)
    assert "was used for another prompt" in result["error"]


def test_a_server_that_cannot_start_is_an_object(own_home: Home) -> None:
    own_home.data_dir.mkdir(parents=True, mode=0o700)
    (own_home.data_dir / "covey.db").write_text("this is no store")
    done = own_home.covey("run", "--json", "hello")
    result = only_object(done.stdout)
    assert done.returncode == result["exit_code"] == exits.UNREACHABLE
    assert "covey.db" in result["error"]


def test_a_prompt_that_a_mistake_in_the_configuration_refuses_is_an_object(own_home: Home) -> None:
    own_home.config.write_text("this is not TOML")
    done = own_home.covey("run", "--json", "hello")
    result = only_object(done.stdout)
    assert done.returncode == result["exit_code"] == exits.FAILED
    assert "config.toml" in result["error"]


def test_ctrl_c_while_stdin_is_read_is_an_object(home: Home) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"the beginning of a prompt")
    run = subprocess.Popen(
        ["env", "--default-signal=INT", *home.command("run", "--json")],  # we may run where it is ignored
        cwd=home.project,
        env=home.env,
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: waiting_bytes(reading) == 0, "it reads stdin")
        run.send_signal(signal.SIGINT)
        code, out, err = finish(run)
    finally:
        os.close(reading)
        os.close(writing)
    assert (code, only_object(out)["exit_code"], err) == (exits.STOPPED, exits.STOPPED, "")


def test_the_second_ctrl_c_is_an_object(own_home: Home) -> None:
    own_home.covey("run", "hello")
    run = own_home.spawn("run", "--json", "--run-id", "mine", "hang")
    until(lambda: 'covey_runs_open{state="active"} 1\n' in metrics(own_home), "the run is active")
    server = own_home.pid()
    os.kill(server, signal.SIGSTOP)
    try:
        run.send_signal(signal.SIGINT)
        assert run.stderr
        while b"Cancelling" not in run.stderr.readline():
            pass
        run.send_signal(signal.SIGINT)
        code, out, _ = finish(run)
    finally:
        os.kill(server, signal.SIGCONT)
    result = only_object(out)
    assert (code, result["exit_code"]) == (exits.STOPPED, exits.STOPPED)
    assert "the run mine may go on" in result["error"]


# ── covey runs wait ──


def test_leaving_a_run_is_an_object(own_home: Home) -> None:
    own_home.covey("run", "--detach", "--run-id", "mine", "hang")
    (session,) = own_home.sessions()
    waiting = own_home.spawn("runs", "wait", "--json", "mi")
    until(lambda: "covey_event_streams_open 1\n" in metrics(own_home), "it follows the run")
    waiting.send_signal(signal.SIGINT)
    code, out, err = finish(waiting)
    result = only_object(out)
    assert (code, result["exit_code"]) == (exits.STOPPED, exits.STOPPED)
    assert (result["run_id"], result["session_id"]) == ("mine", session["id"])
    assert "the run mine goes on" in result["error"] and result["error"] in err


def test_waiting_for_a_run_that_is_not_there_is_an_object(home: Home) -> None:
    done = home.covey("runs", "wait", "--json", "nope")
    result = only_object(done.stdout)
    assert (done.returncode, result["exit_code"], result["run_id"]) == (exits.USAGE, exits.USAGE, "nope")
    assert "there is no run nope" in result["error"]


def test_the_object_says_why_the_exit_code_is_not_that_of_the_end(home: Home) -> None:
    late = only_object(home.covey("run", "--json", "--timeout", "0.5", "hang").stdout)
    assert (late["exit_code"], late["error"]) == (exits.TIMEOUT, "the run took longer than 0.5 s and was cancelled.")
    denied = only_object(home.covey("run", "--json", "--fail-on-denied", "use a tool").stdout)
    assert denied["exit_code"] == exits.FAILED and denied["error"].startswith("exit 1, as the run was denied something")


def test_a_stream_without_an_end_of_the_run_ends_with_a_line_that_says_why(home: Home) -> None:
    done = home.covey("run", "--stream-json", "-m", "other/one", "hello")
    last = only_object(done.stdout)
    assert last["exit_code"] == done.returncode == exits.FAILED and "no model is known" in last["error"]


def test_a_rule_about_no_tool_is_wrong_usage(home: Home) -> None:
    done = home.covey("run", "--json", "--allow", "bsh:x", "hello")
    assert done.returncode == exits.USAGE
    assert only_object(done.stdout)["error"].startswith(
        "--allow: the rule 'bsh:x' never applies: there is no tool 'bsh'"
    )
