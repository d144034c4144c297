"""`covey sessions` to find and put aside, `covey stats` and `covey runs --everywhere`, against a real server."""

from __future__ import annotations

import json

import pytest

from covey.cli import exits
from covey.cli.stats import dollars
from tests.cli.conftest import Home
from tests.cli.terminal import Terminal


def ask(home: Home, prompt: str) -> str:
    return str(json.loads(home.covey("run", "--json", "--yolo", prompt).stdout)["session_id"])


def test_sessions_are_found_by_what_was_said_here_and_everywhere(home: Home) -> None:
    session = ask(home, "where do puffins nest")
    done = home.covey("sessions", "--grep", "puffin")
    assert done.returncode == exits.OK
    assert done.stdout.count(session) >= 2, "the title, the prompt and the answer"
    assert "[puffin]" in done.stdout or "[puffins]" in done.stdout
    as_json = json.loads(home.covey("sessions", "search", "puffins", "nest", "--json").stdout)
    assert {hit["session_id"] for hit in as_json["messages"]} == {session}
    (home.project.parent / "elsewhere").mkdir()
    elsewhere = ("--cwd", str(home.project.parent / "elsewhere"))
    nothing = home.covey("sessions", "--grep", "puffin", *elsewhere)
    assert (nothing.returncode, nothing.stdout) == (exits.FAILED, "")
    assert str(home.project) in home.covey("sessions", "--grep", "puffin", "--everywhere", *elsewhere).stdout
    assert home.covey("sessions", "--grep", '"AND (').returncode == exits.FAILED, "no syntax, and nothing found"
    assert home.covey("sessions", "--grep", "***").returncode == exits.USAGE


def test_the_sessions_of_all_directories_are_listed_by_directory(home: Home) -> None:
    here = ask(home, "about herons")
    other, gone = home.project.parent / "elsewhere", home.project.parent / "gone"
    for directory in (other, gone):
        directory.mkdir()
        assert home.covey("run", "about puffins", "--cwd", str(directory)).returncode == exits.OK
    listed = home.covey("sessions", "--everywhere").stdout
    assert f"{home.project}\n  {here}" in listed and f"{other}\n  " in listed and listed.count("about puffins") == 2
    found = json.loads(home.covey("sessions", "list", "--everywhere", "--json", "--cwd", str(other)).stdout)
    mine = (str(gone), str(other), str(home.project))  # the server has directories of other tests as well
    assert [each["path"] for each in found if each["path"] in mine] == list(mine)
    assert here in home.covey("sessions").stdout and "puffins" not in home.covey("sessions").stdout
    gone.rmdir()
    assert f"{gone}\n  " in home.covey("sessions", "--everywhere").stdout, "its sessions are there still"
    few = home.covey("sessions", "--everywhere", "--limit", "2")
    assert len([line for line in few.stdout.splitlines() if line.startswith("  ")]) == 2
    assert few.stderr == "There are more: see them with a higher --limit, or without.\n"


def test_a_session_is_put_aside_and_taken_back(home: Home) -> None:
    session = ask(home, "hello")
    assert "(archived)" in home.covey("sessions", "archive", session).stdout
    assert home.covey("sessions").stdout == ""
    assert session in home.covey("sessions", "--archived").stdout
    assert "(archived)" not in home.covey("sessions", "unarchive", session[:6]).stdout
    assert session in home.covey("sessions").stdout


def test_without_an_id_the_latest_session_is_shown_and_exported(home: Home) -> None:
    ask(home, "about herons")
    ask(home, "about puffins")
    for action in ("show", "export"):
        done = home.covey("sessions", action)
        assert done.returncode == exits.OK
        assert "about puffins" in done.stdout and "about herons" not in done.stdout


def test_stats_add_up_runs_and_tokens(home: Home) -> None:
    ask(home, "hello")
    (spent,) = json.loads(home.covey("stats", "--json", "--cwd", str(home.project)).stdout)
    assert (spent["path"], spent["model"], spent["runs"]) == (str(home.project), "scripted/default", 1)
    assert (spent["prompt_tokens"], spent["completion_tokens"]) == (10, 5)
    text = home.covey("stats", "--by", "model").stdout
    assert "scripted/default" in text and text.splitlines()[-1].startswith("total")
    assert home.covey("stats", "--cwd", "/nowhere", "--json").stdout == "[]\n"
    listed = home.covey("runs", "--everywhere", "--all").stdout
    assert f"{home.project}\n  " in listed and "hello" in listed
    runs = json.loads(home.covey("runs", "--everywhere", "--all", "--json").stdout)
    assert [run["state"] for run in runs if run["path"] == str(home.project)] == ["completed"]


def test_costs_are_shown_as_people_write_them() -> None:
    assert [dollars(cost) for cost in (0.0, 0.00123, 0.1, 12.345)] == ["-", "$0.0012", "$0.10", "$12.35"]


def test_a_session_is_summarized_and_the_end_is_waited_for(home: Home) -> None:
    session = ask(home, "hello")
    done = home.covey("sessions", "summarize", session[:8], "mind the", "nests", "--json")
    assert done.returncode == exits.OK, done.stderr
    ended = json.loads(done.stdout)
    assert ended["session_id"] == session and ended["text"].startswith("A summary of nests.\n")
    text = home.covey("sessions", "summarize", session, "--quiet").stdout
    assert text.startswith("A summary.\n") and text.count("A summary.") == 1
    detached = home.covey("sessions", "summarize", session, "--detach")
    run_id = detached.stdout.strip()
    assert home.covey("runs", "wait", run_id, "--quiet").returncode == exits.OK
    runs = {run["run_id"]: run for run in json.loads(home.covey("runs", "--all", "--json").stdout)}
    assert {runs[each]["state"] for each in (ended["run_id"], run_id)} == {"completed"}
    assert all(runs[each]["options"]["summarize"] for each in (ended["run_id"], run_id))
    shown = json.loads(home.covey("sessions", "show", session, "--json").stdout)
    assert [m["is_summary_message"] for m in shown["messages"] if m.get("is_summary_message")] == [True] * 3
    assert home.covey("sessions", "summarize", "nobody").returncode == exits.USAGE


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("\n", 1), ("\x03", 1)], ids=["yes", "enter", "ctrl-c"])
def test_at_a_terminal_a_session_is_deleted_only_after_a_yes(home: Home, answer: str, left: int) -> None:
    session = ask(home, "hello")
    terminal = Terminal(home, *home.command("sessions", "delete", session))
    terminal.wait_for("[y/N] ")
    terminal.type(answer)
    assert (terminal.finish() == exits.OK) is not bool(left)
    terminal.close()
    assert [each["id"] for each in home.sessions()].count(session) == left
    home.covey("sessions", "delete", session)


def test_the_mode_of_a_session_is_in_its_line(home: Home) -> None:
    session = ask(home, "hello")
    assert "(plan)" in home.covey("sessions", "mode", session, "plan").stdout
    home.covey("sessions", "delete", session)
