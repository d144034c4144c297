"""`covey run` as people and scripts use it: real processes, a real server that is started on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from covey.cli import exits
from tests.cli.conftest import Home, finish, read_until, until


def test_the_answer_is_on_stdout_and_nothing_else_is(home: Home) -> None:
    done = home.covey("run", "-q", "hello", "there")
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello there\n", "")


def test_stdin_is_put_before_the_prompt(home: Home) -> None:
    assert home.covey("run", "-q", "review", stdin="a diff\n").stdout == "You said: a diff\n\nreview\n"
    assert home.covey("run", "-q", stdin="only this\n").stdout == "You said: only this\n"


def test_text_that_is_long_and_fast_arrives_whole(home: Home) -> None:
    done = home.covey("run", "-q", "long")
    assert done.stdout == "word é😀 " * 5000 + "\n"


def test_json(home: Home) -> None:
    done = home.covey("run", "--json", "--run-id", "mine", "hello")
    result = json.loads(done.stdout)
    assert (result["run_id"], result["text"], result["exit_code"]) == ("mine", "You said: hello", 0)
    assert result["usage"]["prompt_tokens"] == 10
    assert home.messages(result["session_id"])[-1]["id"] == result["message_id"]


def test_stream_json(home: Home) -> None:
    done = home.covey("run", "--stream-json", "hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["type"] == "run_complete"
    text = "".join(e["payload"]["payload"]["delta"] for e in events if e["type"] == "message_delta")
    assert text == "You said: hello"


def test_a_failed_run_exits_1_and_keeps_what_was_said(home: Home) -> None:
    done = home.covey("run", "-q", "fail")
    assert done.returncode == exits.FAILED
    assert done.stdout == "half an answer\n"
    assert "the model broke" in done.stderr


def test_a_session_can_be_continued(home: Home) -> None:
    first = json.loads(home.covey("run", "--json", "hello").stdout)["session_id"]
    other = json.loads(home.covey("run", "--json", "other").stdout)["session_id"]
    by_id = json.loads(home.covey("run", "--json", "-s", first, "again").stdout)["session_id"]
    latest = json.loads(home.covey("run", "--json", "-C", "once more").stdout)["session_id"]
    assert first == by_id == latest != other
    assert len(home.messages(first)) == 6


def test_a_deleted_session_is_not_continued(home: Home) -> None:
    first = json.loads(home.covey("run", "--json", "hello").stdout)["session_id"]
    other = json.loads(home.covey("run", "--json", "other").stdout)["session_id"]
    home.covey("sessions", "delete", other)
    assert json.loads(home.covey("run", "--json", "-C", "again").stdout)["session_id"] == first


def test_streams_and_arguments_of_any_kind(home: Home) -> None:
    """Closed ones, ones that cannot show every character, and bytes that are no text."""
    quoted = " ".join(home.command("run", "-q"))
    for tail, out in (
        ("hello >&-", b""),
        ("hello <&-", b"You said: hello\n"),
        ("hello 2>&-", b"You said: hello\n"),
        ("$(printf 'a\\377b')", "You said: a\ufffdb\n".encode()),
        ("é", b"You said: ?\n"),
    ):
        env = {**home.env, "PYTHONIOENCODING": "ascii"} if tail == "é" else home.env
        done = subprocess.run(["sh", "-c", f"{quoted} {tail}"], cwd=home.project, env=env, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, out, b""), tail


def test_continuing_nothing_begins_a_session(home: Home) -> None:
    done = home.covey("run", "-C", "hello")
    assert done.returncode == 0
    assert "nothing to continue" in done.stderr


def test_an_unknown_session_is_wrong_usage(home: Home) -> None:
    done = home.covey("run", "-s", "nope", "hello")
    assert done.returncode == exits.USAGE
    assert "there is no session nope" in done.stderr
    assert home.sessions() == []


def test_a_model_for_one_run(home: Home) -> None:
    done = home.covey("run", "-m", "other/one", "hello")
    assert done.returncode == exits.FAILED
    assert 'no model is known as "other/one": there is no provider other; known: scripted/default' in done.stderr
    assert home.sessions() == []
    for name in ("default", "scripted/default"):
        assert home.covey("run", "-q", "-m", name, "hello").returncode == 0


def test_a_refused_prompt_leaves_no_session_behind(own_home: Home) -> None:
    """And what was not taken from the configuration is listed line by line."""
    (own_home.project / "covey.toml").write_text(own_home.config.read_text())
    # With a provider that lists no model nothing else is looked for, whatever this machine has.
    own_home.config.write_text('[providers.none]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n')
    done = own_home.covey("run", "hello")
    assert done.returncode == exits.FAILED
    warning, first, *more = done.stderr.splitlines()
    assert "covey.toml: ignored" in warning and "covey trust" in warning
    assert first.startswith("covey: no usable model")
    assert any("The provider none lists no models" in line for line in more)
    assert all(line.startswith("  ") for line in more)
    assert own_home.sessions() == []


def test_files_can_be_attached(home: Home) -> None:
    (home.project / "note.txt").write_text("what the note says")
    done = home.covey("run", "--json", "-a", "note.txt", "read it")
    assert done.returncode == 0
    prompt = home.messages(json.loads(done.stdout)["session_id"])[0]
    assert "what the note says" in json.dumps(prompt) or "note.txt" in json.dumps(prompt)


def test_the_same_run_id_is_the_same_run(home: Home) -> None:
    session = json.loads(home.covey("run", "--json", "--run-id", "mine", "hello").stdout)["session_id"]
    assert len(home.messages(session)) == 2
    for where in ((), ("-C",), ("-s", session)):
        again = home.covey("run", "-q", "--run-id", "mine", *where, "hello")
        assert (again.returncode, again.stdout) == (0, "You said: hello\n")
    other = home.covey("run", "-q", "--run-id", "mine", "something else")
    assert other.returncode == exits.FAILED
    assert "was used for another prompt" in other.stderr
    assert [found["id"] for found in home.sessions()] == [session]


def test_a_detached_run_can_be_waited_for(home: Home) -> None:
    run_id = home.covey("run", "--detach", "hello").stdout.strip()
    done = home.covey("run", "-q", "--run-id", run_id, "hello")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")
    assert len(home.sessions()) == 1


def test_a_directory_that_is_not_there(home: Home) -> None:
    done = home.covey("run", "--cwd", "none", "hello")
    assert done.returncode == exits.USAGE
    assert "is not a directory" in done.stderr


def test_another_directory_is_another_workspace(home: Home) -> None:
    (home.project / "inner").mkdir()
    home.covey("run", "--cwd", "inner", "hello")
    assert home.sessions() == []
    assert "hello" in home.covey("sessions", "--cwd", "inner").stdout


def test_detach_prints_the_id_and_the_run_goes_on(home: Home) -> None:
    done = home.covey("run", "--detach", "hello")
    assert done.returncode == 0
    run_id = done.stdout.strip()
    assert len(run_id) == 12
    (session,) = home.sessions()
    until(lambda: len(home.messages(session["id"])) == 2, "the answer")
    assert home.messages(session["id"])[-1]["run_id"] == run_id


# ── stopping ──


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_cancels_this_run_and_not_its_neighbours(home: Home, number: signal.Signals) -> None:
    run = home.spawn("run", "hang")
    read_until(run, b"one two ")
    (session,) = home.sessions()
    waiting = home.spawn("run", "-q", "-s", session["id"], "hello")
    until(lambda: home.workspace()["queued"] == 1, "the second prompt is queued")
    run.send_signal(number)
    code, _, err = finish(run)
    assert code == exits.STOPPED
    assert "The run is cancelled" in err
    assert finish(waiting)[:2] == (0, "You said: hello\n")
    finishes = [
        part["data"]["reason"] for m in home.messages(session["id"]) for part in m["parts"] if part["type"] == "finish"
    ]
    assert finishes == ["canceled", "end_turn"]


def test_ctrl_c_while_it_waits_in_the_queue(home: Home) -> None:
    run = home.spawn("run", "hang")
    read_until(run, b"one two ")
    (session,) = home.sessions()
    waiting = home.spawn("run", "-q", "-s", session["id"], "hello")
    until(lambda: home.workspace()["queued"] == 1, "the second prompt is queued")
    waiting.send_signal(signal.SIGINT)
    assert finish(waiting)[0] == exits.STOPPED
    assert home.workspace()["busy"] == 1
    run.send_signal(signal.SIGINT)
    assert finish(run)[0] == exits.STOPPED


def test_the_second_ctrl_c_leaves_at_once(own_home: Home) -> None:
    run = own_home.spawn("run", "hang")
    read_until(run, b"one two ")
    server = own_home.pid()
    os.kill(server, signal.SIGSTOP)
    try:
        run.send_signal(signal.SIGINT)
        assert run.stderr
        assert b"Cancelling" in run.stderr.readline()
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        code, _, err = finish(run)
        assert code == exits.STOPPED
        assert "left at once; the run " in err and "`covey runs wait " in err
    finally:
        os.kill(server, signal.SIGCONT)


def test_timeout(home: Home) -> None:
    home.covey("run", "hello")
    done = home.covey("run", "--timeout", "2.5", "hang")
    assert done.returncode == exits.TIMEOUT
    assert done.stdout == "one two \n"
    assert "longer than 2.5 s" in done.stderr
    assert not any(session["is_busy"] for session in home.sessions())


def test_23_an_attachment_that_no_model_sees_is_warned_about(home: Home, tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\0")
    done = home.covey("run", "-q", "-a", str(tmp_path / "core"), "hello")
    assert done.returncode == 0
    assert (
        done.stderr == "covey: core is neither text nor a picture: the model is told its name, and sees none of it.\n"
    )


def test_a_timeout_in_json_has_what_was_said(home: Home) -> None:
    home.covey("run", "hello")
    done = home.covey("run", "--json", "--timeout", "2.5", "hang")
    result = json.loads(done.stdout)
    assert (result["text"], result["exit_code"], result["cancelled"]) == ("one two ", exits.TIMEOUT, True)


def test_a_timeout_before_there_is_a_run(home: Home) -> None:
    done = home.covey("run", "--json", "--timeout", "1e-6", "hello")
    assert done.returncode == exits.TIMEOUT
    assert "the timeout of 1e-06 s has passed" in done.stderr
    result = json.loads(done.stdout)
    assert (result["text"], result["exit_code"]) == (None, exits.TIMEOUT)
    assert result["error"] in done.stderr


def test_a_server_that_is_stopped_is_named(own_home: Home) -> None:
    run = own_home.spawn("run", "-q", "hang")
    read_until(run, b"one two ")
    assert own_home.covey("stop").returncode == 0
    code, _, err = finish(run)
    assert (code, err) == (exits.CANCELLED, "covey: the server was stopped, and the run was cancelled with it.\n")


def test_a_cancel_by_somebody_else_exits_4(home: Home) -> None:
    run = home.spawn("run", "-q", "hang")
    read_until(run, b"one two ")
    (session,) = home.sessions()
    home.covey("sessions", "delete", session["id"])
    code, _, err = finish(run)
    assert code == exits.CANCELLED
    assert "cancelled by somebody else" in err


def test_a_killed_server_is_started_again_and_the_run_is_interrupted(own_home: Home) -> None:
    run = own_home.spawn("run", "hang")
    read_until(run, b"one two ")
    killed = own_home.pid()
    os.kill(killed, signal.SIGKILL)
    code, out, err = finish(run)
    assert code == exits.INTERRUPTED
    assert out.strip() == ""
    assert "reconnecting" in err
    assert own_home.pid() != killed


def test_nobody_reads_stdout_and_the_run_goes_on(home: Home) -> None:
    run = home.spawn("run", "-q", "endless")
    read_until(run, b"0123456789")
    assert run.stdout
    run.stdout.close()
    run.wait(30)
    assert run.stderr
    assert (run.returncode, run.stderr.read()) == (exits.BROKEN_PIPE, b"")
    run.stderr.close()
    (session,) = home.sessions()
    assert session["is_busy"]
    home.covey("sessions", "delete", session["id"])


# ── permissions ──


def test_where_nobody_can_be_asked_it_is_denied_and_said(home: Home) -> None:
    done = home.covey("run", "use the tool")
    assert done.returncode == 0
    assert done.stdout == "I make a file.\nDone.\n"
    assert "denied, because nobody is here to be asked: bash: touch made" in done.stderr
    assert "Allow it with --allow 'bash:touch made'" in done.stderr
    assert not (home.project / "made").exists()


def test_yolo_allows_this_run_and_nothing_else(home: Home) -> None:
    waiting = home.spawn("run", "-q", "hang")
    read_until(waiting, b"one two ")
    done = home.covey("run", "--yolo", "use the tool")
    assert done.returncode == 0
    assert done.stdout == "I make a file.\nDone.\n"
    assert (home.project / "made").exists()
    (home.project / "made").unlink()
    denied = home.covey("run", "use the tool")
    assert "denied" in denied.stderr
    assert not (home.project / "made").exists()
    waiting.send_signal(signal.SIGINT)
    finish(waiting)
