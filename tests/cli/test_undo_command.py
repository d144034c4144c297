"""`covey undo` and `covey fork`, on a server of their own whose model writes files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from covey.cli import exits
from tests.cli.conftest import Home


def write(name: str, content: str) -> dict[str, Any]:
    return {"tool": "write", "input": {"file_path": name, "content": content}}


SCRIPT = {
    "replies": [
        {"when": "one", "steps": [[write("a.txt", "one\n")], [{"text": "Done."}]]},
        {
            "when": "two",
            "steps": [
                [{"tool": "view", "input": {"file_path": "a.txt"}}],
                [write("a.txt", "two\n"), write("b.txt", "new\n")],
                [{"text": "Done."}],
            ],
        },
        {"when": "command", "steps": [[{"tool": "bash", "input": {"command": "touch made"}}], [{"text": "Done."}]]},
        {"steps": [[{"text": "You said: ${prompt}"}]]},
    ]
}


@pytest.fixture(scope="module")
def writing_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    directory = tmp_path_factory.mktemp("home")
    made = Home(directory)
    (directory / "script.json").write_text(json.dumps(SCRIPT))
    yield made
    made.close()


@pytest.fixture
def home(writing_home: Home, tmp_path: Path) -> Home:
    mine = copy(writing_home)
    mine.project = tmp_path / "project"
    mine.project.mkdir()
    return mine


def prompt(home: Home, *words: str) -> dict[str, Any]:
    done = home.covey("run", "--json", "--yolo", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_newest_turn_is_taken_back_and_reported(home: Home) -> None:
    prompt(home, "one")
    prompt(home, "-C", "two")
    done = home.covey("undo")
    assert (done.returncode, done.stderr) == (exits.OK, "")
    assert done.stdout.splitlines() == ["Undone: two", "  restored a.txt", "  removed b.txt", "  removed 7 messages"]
    assert (home.project / "a.txt").read_text() == "one\n"
    assert not (home.project / "b.txt").exists()
    (session,) = home.sessions()
    assert session["message_count"] == len(home.messages(session["id"])) == 4
    assert home.covey("undo", "--json", "-s", session["id"]).returncode == exits.OK
    assert not (home.project / "a.txt").exists()
    empty = home.covey("undo")
    assert (empty.returncode, empty.stdout) == (exits.FAILED, "")
    assert "nothing to undo" in empty.stderr


def test_a_file_changed_by_hand_is_not_lost_and_it_is_said_what_to_do(home: Home) -> None:
    prompt(home, "one")
    (home.project / "a.txt").write_text("by hand\n")
    refused = home.covey("undo")
    assert (refused.returncode, refused.stdout) == (exits.FAILED, "")
    assert "a.txt: it was changed since" in refused.stderr
    assert "--force-file FILE" in refused.stderr and "--keep-files" in refused.stderr
    dry = home.covey("undo", "--dry-run")
    assert dry.returncode == exits.FAILED
    assert "Would undo: one" in dry.stdout and "a.txt: it was changed since" in dry.stderr
    as_json = json.loads(home.covey("undo", "--json").stdout)
    assert (as_json["code"], [c["path"] for c in as_json["conflicts"]]) == (
        "undo_conflict",
        [str(home.project / "a.txt")],
    )
    assert "a.txt: it was changed since" in as_json["error"]
    assert "--force-file FILE" in as_json["error"] and "--keep-files" in as_json["error"]
    assert "force_files" not in as_json["error"], "a field of the API is no option"
    assert (home.project / "a.txt").read_text() == "by hand\n"
    forced = home.covey("undo", "--force-file", "a.txt")
    assert (forced.returncode, (home.project / "a.txt").exists()) == (exits.OK, False)


def test_forcing_another_file_forces_nothing_and_is_said(home: Home) -> None:
    prompt(home, "one")
    (home.project / "a.txt").write_text("by hand\n")
    (home.project / "other.txt").write_text("mine\n")
    slip = "--force-file other.txt: no turn that is taken back has changed this file."
    refused = home.covey("undo", "--force-file", "other.txt")
    assert refused.returncode == exits.FAILED and "a.txt: it was changed since" in refused.stderr
    assert slip in refused.stderr
    as_json = json.loads(home.covey("undo", "--json", "--force-file", "other.txt").stdout)
    assert as_json["code"] == "undo_conflict" and slip in as_json["error"]
    assert (home.project / "a.txt").read_text() == "by hand\n"
    done = home.covey("undo", "--force-file", "other.txt", "--force-file", "./a.txt")
    assert (done.returncode, done.stderr) == (exits.OK, f"covey: {slip}\n"), "the one that it has changed is no slip"
    assert (home.project / "other.txt").read_text() == "mine\n" and not (home.project / "a.txt").exists()


def test_turns_back_to_a_run_go_and_files_can_be_kept(home: Home) -> None:
    first = prompt(home, "one")
    prompt(home, "-C", "two")
    dry = home.covey("undo", "--to", first["run_id"], "--dry-run")
    assert dry.stdout.splitlines()[:3] == [
        "Would undo: one",
        "Would undo: two",
        "  would remove a.txt",
    ]
    done = json.loads(home.covey("undo", "--to", first["run_id"], "--keep-files", "--json").stdout)
    assert [turn["prompt"] for turn in done["undone"]] == ["one", "two"]
    assert (done["restored"], (home.project / "a.txt").read_text()) == ([], "two\n")


def test_what_a_command_made_is_taken_back(home: Home) -> None:
    prompt(home, "command")
    assert (home.project / "made").exists()
    done = home.covey("undo")
    assert (done.returncode, done.stderr) == (exits.OK, "")
    assert "  removed made" in done.stdout.splitlines()
    assert not (home.project / "made").exists()


def test_a_session_is_forked_and_goes_on_by_itself(home: Home) -> None:
    first = prompt(home, "one")
    prompt(home, "-C", "hello")
    source = first["session_id"]
    fork = home.covey("fork", "--title", "another way")
    assert fork.returncode == exits.OK
    fork_id = fork.stdout.strip()
    listed = {session["id"]: session for session in home.sessions()}
    assert (listed[fork_id]["title"], listed[fork_id]["message_count"]) == ("another way", 6)
    at = home.messages(source)[0]["id"]
    part = json.loads(home.covey("fork", "-s", source, "--at", at, "--json").stdout)
    assert (part["message_count"], part["forked_from"]) == (1, source)
    assert prompt(home, "-s", fork_id, "more")["session_id"] == fork_id
    assert len(home.messages(source)) == 6


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["undo"], "no sessions in this directory"),
        (["fork"], "no sessions in this directory"),
        (["undo", "-s", "nobody"], "there is no session nobody in this directory"),
        (["fork", "-s", "nobody"], "there is no session nobody in this directory"),
    ],
)
def test_what_is_not_there_is_wrong_usage(home: Home, args: list[str], said: str) -> None:
    done = home.covey(*args)
    assert done.returncode == exits.USAGE
    assert said in done.stderr and "Traceback" not in done.stderr


def test_an_unknown_run_or_message_is_wrong_usage(home: Home) -> None:
    prompt(home, "hello")
    for args, said in (
        (["undo", "--to", "nobody"], "there is no run nobody"),
        (["fork", "--at", "nobody"], "no message"),
    ):
        done = home.covey(*args)
        assert done.returncode == exits.USAGE
        assert said in done.stderr


@pytest.mark.parametrize("command", ["undo", "fork"])
def test_help_teaches(home: Home, command: str) -> None:
    done = home.covey(command, "--help")
    assert done.returncode == exits.OK
    assert f"covey {command}" in done.stdout and "exit codes:" in done.stdout and "--session" in done.stdout
