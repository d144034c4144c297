"""`covey status`, `stop` and `sessions`, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from covey import __version__
from covey.cli import exits, main, status, stop
from covey.client.connect import owner_address
from tests.cli.conftest import Home, finish, has_ended, read_until
from tests.support.stub_server import Connection, Request, StubServer, answer

pytestmark = pytest.mark.anyio

VERSION = {"version": __version__, "commit": "", "build_id": "", "python_version": "3", "platform": "linux"}


def ask(home: Home, *args: str) -> str:
    """Have something in a session, and give its id."""
    return str(json.loads(home.covey("run", "--json", *args).stdout)["session_id"])


def test_status_tells_what_runs(home: Home) -> None:
    run = home.spawn("run", "-q", "hang")
    read_until(run, b"one two ")
    (session,) = home.sessions()
    waiting = home.spawn("run", "--detach", "-s", session["id"], "hello")
    assert finish(waiting)[0] == 0
    status = home.status()
    assert status["address"] == f"unix://{home.socket}"
    os.kill(status["pid"], 0)
    workspace = home.workspace()
    assert workspace["model"] == "scripted/default"
    assert (workspace["busy"], workspace["queued"]) == (1, 1)
    text = home.covey("status").stdout
    assert f"pid {status['pid']}" in text
    assert "1 busy, 1 queued" in text
    run.send_signal(signal.SIGINT)
    finish(run)


def a_workspace(workspace_id: str) -> dict[str, object]:
    config = {"models": {}, "providers": {}, "options": {"data_directory": "/d"}}
    return {"id": workspace_id, "path": "/w", "yolo": False, "data_dir": "/d", "version": "1", "config": config}


def a_run(number: int) -> dict[str, object]:
    """Two of them are of one session."""
    run = {"run_id": f"r{number}", "session_id": f"s{number // 2}", "seq": number, "state": "active"}
    return {**run, "mode": "own_turn", "prompt": "hello", "accepted_at": 1.0, "workspace_id": "w1", "path": "/w"}


@pytest.mark.parametrize("is_old", [False, True])
async def test_status_asks_for_open_runs_and_for_no_sessions(
    is_old: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [a_run(number) for number in range(3)]
    async with StubServer(tmp_path / "s.sock") as server:
        server.on("GET", "/v1/version", answer(200, VERSION))
        server.on("GET", "/v1/health", answer(200, {"status": "ok"}))
        server.on("GET", "/v1/workspaces", answer(200, [a_workspace("w1"), a_workspace("w2")]))
        server.on("GET", "/v1/workspaces/w1/runs" if is_old else "/v1/runs", answer(200, runs))
        if is_old:
            server.on("GET", "/v1/workspaces/w2/runs", answer(200, []))
        server.on("DELETE", "/v1/clients/.*", answer(200))
        args = main.build_parser().parse_args(["status", "--host", str(server.address)])
        assert await status._status(args) == exits.OK
        assert not server.asked("GET", ".*/sessions")
        assert len(server.asked("GET", "/v1/runs")) == 2
        assert len(server.asked("GET", "/v1/workspaces/.*/runs")) == (4 if is_old else 0)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert ["2 busy, 3 queued" in lines[0], "0 busy, 0 queued" in lines[1]] == [True, True]


def test_without_a_server_status_says_so_and_starts_none(own_home: Home) -> None:
    done = own_home.covey("status")
    assert done.returncode == exits.UNREACHABLE
    assert done.stderr == (
        f"covey: No server is running at unix://{own_home.socket}. Whatever needs one starts it, such as `covey run`.\n"
    )
    assert not own_home.socket.exists()


def test_stop_waits_until_the_server_is_gone(own_home: Home) -> None:
    assert "No server is running" in own_home.covey("stop").stdout
    own_home.covey("run", "hello")
    pid = own_home.pid()
    done = own_home.covey("stop")
    assert (done.returncode, done.stdout) == (0, "The server has ended.\n")
    assert has_ended(pid)
    assert owner_address(own_home.data_dir) is None
    assert own_home.covey("status").returncode == exits.UNREACHABLE


def test_stop_if_idle_spares_a_server_with_work(own_home: Home) -> None:
    run = own_home.spawn("run", "hang")
    read_until(run, b"one two ")
    busy = own_home.covey("stop", "--if-idle")
    assert busy.returncode == exits.FAILED
    assert "goes on" in busy.stderr
    assert run.poll() is None
    stopped = own_home.covey("stop")
    assert stopped.returncode == 0
    assert finish(run)[0] in (exits.CANCELLED, exits.INTERRUPTED)


@pytest.mark.parametrize("has_handles", [True, False])
async def test_stop_waits_for_the_process_and_not_for_whoever_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_handles: bool
) -> None:
    """Another client may have started the next server before we look."""
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open")
    process = await asyncio.create_subprocess_exec("sleep", "60")
    monkeypatch.setattr(stop, "server_pid", lambda address, data_dir: process.pid)

    async def shut_down(request: Request, connection: Connection) -> None:
        await connection.answer(200, b"")
        process.terminate()

    async with StubServer(tmp_path / "s.sock") as server:
        server.on("GET", "/v1/version", answer(200, VERSION))
        server.on("GET", "/v1/health", answer(200, {"status": "ok"}))
        server.on("POST", "/v1/control", shut_down)
        server.on("DELETE", "/v1/clients/.*", answer(200))
        args = main.build_parser().parse_args(["stop", "--host", str(server.address)])
        assert await stop._stop(args) == exits.OK
    assert capsys.readouterr().out == "The server has ended.\n"
    assert await process.wait() == -signal.SIGTERM


async def test_stop_says_so_if_the_process_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stop, "server_pid", lambda address, data_dir: os.getpid())
    monkeypatch.setattr(stop, "GONE_S", 0.1)
    async with StubServer(tmp_path / "s.sock") as server:
        server.on("GET", "/v1/version", answer(200, VERSION))
        server.on("POST", "/v1/control", answer(200))
        server.on("DELETE", "/v1/clients/.*", answer(200))
        args = main.build_parser().parse_args(["stop", "--host", str(server.address)])
        assert await stop._stop(args) == exits.FAILED
    assert "has not ended within" in capsys.readouterr().err


def test_sessions_are_listed_the_latest_first(home: Home) -> None:
    assert "no sessions" in home.covey("sessions").stderr
    assert home.covey("sessions", "--json").stdout == "[]\n"
    first, second = ask(home, "first thing"), ask(home, "second thing")
    assert {session["id"] for session in home.sessions()} == {first, second}
    lines = home.covey("sessions").stdout.splitlines()
    assert len(lines) == 2
    assert all("2 messages" in line for line in lines)


def test_sessions_can_be_limited_to_the_latest_and_say_if_there_are_more(home: Home) -> None:
    made = [ask(home, f"thing {number}") for number in range(3)]
    done = home.covey("sessions", "--limit", "1")
    assert done.stdout.startswith(made[-1]) and done.stdout.count("\n") == 1
    assert done.stderr == "There are more: see them with a higher --limit, or without.\n"
    as_json = home.covey("sessions", "list", "--limit", "2", "--json")
    assert [session["id"] for session in json.loads(as_json.stdout)] == made[:0:-1]
    assert as_json.stderr.startswith("There are more")
    enough = home.covey("sessions", "--limit", "3")
    assert (enough.stdout.count("\n"), enough.stderr) == (3, "")
    assert home.covey("sessions", "--limit", "0").returncode == exits.USAGE


def test_sessions_show_and_export(home: Home) -> None:
    session = ask(home, "use the tool")
    text = home.covey("sessions", "export", session).stdout
    answer = "## Assistant (scripted/default)\n\nI make a file."
    for part in ("## User\n\nuse the tool", answer, "- **bash** `touch made`", "Done."):
        assert part in text
    assert home.covey("sessions", "show", session).stdout == text
    exported = json.loads(home.covey("sessions", "export", "--json", session).stdout)
    assert exported["session"]["id"] == session
    assert [message["role"] for message in exported["messages"]] == ["user", "assistant", "tool", "assistant"]


def test_sessions_have_a_model_of_their_own(home: Home) -> None:
    session = json.loads(home.covey("run", "--json", "hello").stdout)["session_id"]
    assert "[scripted/default]" in home.covey("sessions", "model", session, "scripted/default").stdout
    refused = home.covey("sessions", "model", session, "nobody/m")
    assert refused.returncode == 1 and "no model is known" in refused.stderr
    assert "[" not in home.covey("sessions", "model", session).stdout
    home.covey("sessions", "delete", session)


def test_sessions_rename_and_delete(home: Home) -> None:
    session = ask(home, "hello")
    assert "A new title" in home.covey("sessions", "rename", session, "A", "new", "title").stdout
    (found,) = home.sessions()
    assert found["title"] == "A new title"
    assert home.covey("sessions", "delete", session).returncode == 0
    assert home.sessions() == []


def test_an_unknown_session_is_wrong_usage(home: Home) -> None:
    for action in (["show", "nope"], ["export", "nope"], ["delete", "nope"], ["rename", "nope", "x"]):
        done = home.covey("sessions", *action)
        assert done.returncode == exits.USAGE
        assert "there is no session nope" in done.stderr


def test_without_a_server_no_jobs_run_and_that_is_no_failure(own_home: Home) -> None:
    listed = own_home.covey("jobs")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert listed.stderr.startswith("No server is running, so no jobs run. `covey jobs output ID` still shows")
    assert own_home.covey("jobs", "--json").stdout.strip() == "[]"
