"""`covey runs`: a run that goes on by itself is found, followed, answered and cancelled."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import covey
from covey.cli import exits
from covey.cli.runs import ENDED_SHOWN, age
from tests.cli.conftest import Home, finish, read_until, until
from tests.cli.terminal import Terminal


def detach(home: Home, *args: str) -> str:
    done = home.covey("run", "--detach", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def listed(home: Home, *args: str) -> list[dict[str, Any]]:
    done = home.covey("runs", "--json", *args)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def detach_until_it_asks(home: Home) -> str:
    run_id = detach(home, "use the tool")
    until(lambda: listed(home)[0]["asks"] == "permission", "a request for permission")
    return run_id


@pytest.fixture
def tidy_home(home: Home) -> Iterator[Home]:
    """Leaves no open run behind on the server that others share."""
    yield home
    for run in listed(home):
        home.covey("runs", "cancel", run["run_id"])


# ── list ──


def test_without_runs_it_says_so(home: Home) -> None:
    done = home.covey("runs")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no open runs in this directory.\n")
    assert listed(home) == listed(home, "--all") == []


def test_open_runs_are_listed_the_newest_first_with_what_they_wait_on(tidy_home: Home) -> None:
    first = detach(tidy_home, "hang on,\n\x1b[2J please")
    until(lambda: listed(tidy_home)[0].get("waiting_on") == "model", "the model is asked")
    session_id = listed(tidy_home)[0]["session_id"]
    second = detach(tidy_home, "-s", session_id, "then this: " + "word " * 50)
    newest, waits, oldest = tidy_home.covey("runs", "list").stdout.splitlines()
    assert newest.startswith(f"{second}  queued ")
    assert newest.endswith("word wor…")
    assert waits == f"    queued behind run {first}"
    assert oldest.startswith(f"{first}  waiting for the model ")
    assert oldest.endswith(" s ago  hang on, [2J please")


def test_a_run_that_needs_an_answer_says_how_to_give_it(tidy_home: Home) -> None:
    run_id = detach_until_it_asks(tidy_home)
    (request,) = listed(tidy_home)[0]["requests"]
    line, *asked, hint = tidy_home.covey("runs").stdout.splitlines()
    assert line.startswith(f"{run_id}  waiting for a permission ")
    assert [text.strip() for text in asked] == ["asks: bash:", "touch made"]
    assert hint.strip() == f"covey runs allow {request['id']} · covey runs deny {request['id']} [WHY]"


def test_all_tells_also_how_runs_ended(home: Home) -> None:
    home.covey("run", "hello")
    home.covey("run", "fail")
    assert home.covey("runs").stdout == ""
    failed, error, completed = home.covey("runs", "--all").stdout.splitlines()
    assert " failed " in failed and failed.endswith("fail")
    assert "the model broke" in error
    assert " completed " in completed and completed.endswith("hello")
    assert home.covey("runs", "list", "--all").stdout.count("\n") == 3
    assert [run["state"] for run in listed(home, "--all")] == ["failed", "completed"]


def test_all_says_when_it_leaves_some_out(home: Home) -> None:
    home.covey("run", "hello")  # which starts the server

    async def ask_often() -> None:
        async with covey.connect(home.project, host=f"unix://{home.socket}") as client:
            await asyncio.gather(*(client.ask("hello") for _ in range(ENDED_SHOWN)))

    assert home.covey("runs", "--all").stderr == ""
    asyncio.run(ask_often())
    for further in ((), ("--everywhere",)):
        listed_all = home.covey("runs", "--all", *further)
        assert sum(" completed " in line for line in listed_all.stdout.splitlines()) == ENDED_SHOWN
        assert listed_all.stderr == f"Only the latest {ENDED_SHOWN} that have ended are listed: there are more.\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (7199, "1 h"), (86400 * 3, "3 d")]
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert age(seconds) == text


# ── wait ──


def test_with_deny_waiting_denies_where_nobody_can_be_asked_and_the_run_goes_on_to_its_end(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    done = home.covey("runs", "wait", "--deny", run_id)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Done.\n")
    assert "denied, because nobody is here to be asked: bash: touch made" in done.stderr
    assert not (home.project / "made").exists()
    assert listed(home) == []


def test_at_a_terminal_the_open_request_is_asked(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    terminal = Terminal(home, *home.command("runs", "wait", run_id))
    try:
        terminal.wait_for("Allow it? ")
        terminal.type("y\n")
        assert terminal.finish() == 0
    finally:
        terminal.close()
    assert terminal.shown.endswith("Done.\n")
    assert "✓ $ touch made" in terminal.shown
    assert (home.project / "made").exists()


def test_ctrl_c_leaves_and_the_run_goes_on(tidy_home: Home) -> None:
    run_id = detach(tidy_home, "hang")
    waiting = tidy_home.spawn("runs", "wait", run_id)
    read_until(waiting, b"one two ")
    waiting.send_signal(signal.SIGINT)
    code, _, said = finish(waiting)
    assert code == exits.STOPPED
    assert f"the run {run_id} goes on" in said
    assert [run["state"] for run in listed(tidy_home)] == ["active"]


def test_the_end_is_reported_by_the_exit_code(home: Home) -> None:
    failed = detach(home, "fail")
    done = home.covey("runs", "wait", "-q", failed)
    assert done.returncode == exits.FAILED
    assert "the model broke" in done.stderr
    run_id = detach(home, "hang")
    waiting = home.spawn("runs", "wait", run_id)
    read_until(waiting, b"one two ")
    home.covey("runs", "cancel", run_id)
    code, _, said = finish(waiting)
    assert code == exits.CANCELLED
    assert "the run was cancelled" in said


def test_a_run_that_has_ended_is_reported_at_once(home: Home) -> None:
    run_id = json.loads(home.covey("run", "--json", "hello").stdout)["run_id"]
    assert home.covey("runs", "wait", "-q", run_id).stdout == "You said: hello\n"
    result = json.loads(home.covey("runs", "wait", "--json", run_id).stdout)
    assert (result["run_id"], result["text"], result["exit_code"]) == (run_id, "You said: hello", 0)


# ── cancel ──


def test_cancel_says_what_it_reached(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    done = home.covey("runs", "cancel", run_id)
    assert (done.returncode, done.stdout) == (0, f"Run {run_id} was active and is cancelled.\n")
    assert home.covey("runs", "wait", run_id).returncode == exits.CANCELLED
    again = home.covey("runs", "cancel", run_id)
    said = f"There was nothing to cancel: run {run_id} had ended already (cancelled).\n"
    assert (again.returncode, again.stdout) == (0, said)
    told = json.loads(home.covey("runs", "cancel", "--json", run_id).stdout)
    assert (told["covered"], told["run_id"], told["state"]) == ([], run_id, "cancelled")
    assert json.loads(home.covey("runs", "cancel", "--json", run_id).stdout)["covered"] == []
    assert not (home.project / "made").exists()


@pytest.mark.parametrize("action", ["wait", "cancel"])
def test_an_unknown_run_is_wrong_usage(home: Home, action: str) -> None:
    done = home.covey("runs", action, "nope")
    assert done.returncode == exits.USAGE
    assert done.stderr.endswith("there is no run nope in this directory; see `covey runs --all`\n")
    assert home.covey("run", "-q", "--run-id", "nope", "hello").returncode == 0, "a cancel was kept for it"


def test_the_help_of_run_leads_here(home: Home) -> None:
    assert "covey runs wait" in home.covey("run", "--help").stdout
