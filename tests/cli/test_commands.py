"""`covey status`, `stop` and `sessions`, against a real server."""

from __future__ import annotations

import json
import os
import signal

from covey.cli import exits
from tests.cli.conftest import Home, finish, read_until


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
    assert (workspace["sessions"], workspace["busy"], workspace["queued"]) == (1, 1, 1)
    text = home.covey("status").stdout
    assert f"pid {status['pid']}" in text
    assert "1 sessions, 1 busy, 1 queued" in text
    run.send_signal(signal.SIGINT)
    finish(run)


def test_without_a_server_status_says_so_and_starts_none(own_home: Home) -> None:
    done = own_home.covey("status")
    assert done.returncode == exits.UNREACHABLE
    assert "No Covey server answers" in done.stderr
    assert not own_home.socket.exists()


def test_stop_waits_until_the_server_is_gone(own_home: Home) -> None:
    assert "No server is running" in own_home.covey("stop").stdout
    own_home.covey("run", "hello")
    pid = own_home.pid()
    done = own_home.covey("stop")
    assert (done.returncode, done.stdout) == (0, "The server has ended.\n")
    assert not os.path.exists(f"/proc/{pid}")
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


def test_sessions_are_listed_the_latest_first(home: Home) -> None:
    assert "no sessions" in home.covey("sessions").stderr
    assert home.covey("sessions", "--json").stdout == "[]\n"
    first, second = ask(home, "first thing"), ask(home, "second thing")
    assert {session["id"] for session in home.sessions()} == {first, second}
    lines = home.covey("sessions").stdout.splitlines()
    assert len(lines) == 2
    assert all("2 messages" in line for line in lines)


def test_sessions_show_and_export(home: Home) -> None:
    session = ask(home, "use the tool")
    text = home.covey("sessions", "export", session).stdout
    for part in ("## User\n\nuse the tool", "## Assistant\n\nI make a file.", "**bash**", '"touch made"', "Done."):
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
