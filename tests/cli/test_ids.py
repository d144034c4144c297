"""Sessions and runs may be named by the beginning of their ids, wherever a command takes one."""

from __future__ import annotations

import json
from itertools import takewhile

import pytest

from covey.cli import exits
from covey.cli.ids import _only
from tests.cli.conftest import Home


def ask(home: Home, *args: str) -> tuple[str, str]:
    """Have a run, and give the ids of its session and of itself."""
    done = home.covey("run", "--json", *args)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return result["session_id"], result["run_id"]


def alike(one: str, other: str) -> str:
    """The beginning that both have."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def shortest(one: str, *others: str) -> str:
    """The shortest beginning that no other id has."""
    return one[: max(len(alike(one, other)) for other in others) + 1]


def test_every_command_takes_the_beginning_of_a_sessions_id(home: Home) -> None:
    session = ask(home, "first")[0]
    short = shortest(session, ask(home, "second")[0])
    assert ask(home, "-s", short, "again")[0] == session
    assert home.covey("sessions", "export", short).stdout.count("## User") == 2
    assert home.covey("sessions", "rename", short, "new").stdout.startswith(session)
    assert json.loads(home.covey("fork", "-s", short, "--json").stdout)["forked_from"] == session
    # The fork is a session as well, and may begin as its origin does.
    short = shortest(session, *(found["id"] for found in home.sessions() if found["id"] != session))
    assert home.covey("undo", "-s", short).stdout.startswith("Undone: again")
    assert json.loads(home.covey("sessions", "delete", short, "--json").stdout) == {"deleted": session}


def test_every_command_takes_the_beginning_of_a_runs_id(home: Home) -> None:
    session, _ = ask(home, "--run-id", "alpha", "first")
    ask(home, "--run-id", "beta", "-s", session, "second")
    assert home.covey("runs", "wait", "-q", "al").stdout == "You said: first\n"
    assert (
        home.covey("runs", "cancel", "be").stdout
        == "There was nothing to cancel: run beta had ended already (completed).\n"
    )
    assert home.covey("undo", "--to", "b").stdout.startswith("Undone: second")


def test_a_beginning_that_several_have_is_an_error_that_lists_them(home: Home) -> None:
    first, _ = ask(home, "--run-id", "run-1", "first")
    second, _ = ask(home, "--run-id", "run-2", "second")
    done = home.covey("runs", "wait", "run")
    assert done.returncode == exits.USAGE
    assert done.stderr == "covey runs: run could be any of 2 runs: run-2, run-1. Write more of it.\n"
    both = alike(first, second)
    done = home.covey("sessions", "delete", both)
    assert done.returncode == exits.USAGE
    assert f"{both} could be any of 2 sessions: {second}, {first}." in done.stderr
    assert len(home.sessions()) == 2


def test_a_whole_id_wins_over_others_that_begin_with_it(home: Home) -> None:
    ask(home, "--run-id", "r1", "first")
    ask(home, "--run-id", "r10", "second")
    assert home.covey("runs", "wait", "-q", "r1").stdout == "You said: first\n"


def test_a_run_of_another_session_is_not_undone(home: Home) -> None:
    first, run_id = ask(home, "first")
    second, _ = ask(home, "second")
    done = home.covey("undo", "--to", run_id)
    assert done.returncode == exits.USAGE
    assert f"run {run_id} is of session {first}, not of {second}" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(("sessions", "show", ""), ("sessions", "delete", ""), ("run", "-s", "", "second"), ("-s", "")),
        *(("undo", "-s", ""), ("run", "--run-id", "", "second"), ("runs", "wait", "")),
    ],
    ids=" ".join,
)
def test_29_an_empty_id_means_nothing(home: Home, words: tuple[str, ...]) -> None:
    ask(home, "first")
    done = home.covey(*words)
    assert done.returncode == exits.USAGE
    assert "the id is empty" in done.stderr or "'' is not a run id" in done.stderr
    assert len(home.messages(home.sessions()[0]["id"])) == 2


def test_of_very_many_candidates_some_are_shown() -> None:
    with pytest.raises(exits.UsageError, match=r"any of 25 runs: r0, r1, .*r9 and 15 more\."):
        _only("run", "r", [f"r{number}" for number in range(25)], "covey runs --all")
