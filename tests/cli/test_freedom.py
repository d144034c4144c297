"""Between asking and yolo: rules and accepted edits for one run, and what becomes of denials."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest

from covey.cli import exits
from tests.cli.conftest import Home


def result(home: Home, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.covey("run", "--json", *args).stdout)
    return found


def test_a_rule_of_the_run_allows_without_asking(home: Home) -> None:
    done = home.covey("run", "--allow", "bash:touch *", "use the tool")
    assert (done.returncode, done.stdout) == (0, "I make a file.\nDone.\n"), done.stderr
    assert (home.project / "made").exists()


def test_a_rule_of_the_run_holds_for_that_run_only(home: Home) -> None:
    home.covey("run", "--allow", "bash:touch made", "use the tool")
    (home.project / "made").unlink()
    (denied,) = result(home, "-c", "use the tool")["denied"]
    assert not (home.project / "made").exists()
    assert denied["tool"] == "bash" and denied["input"] == {"command": "touch made"} and denied["by"] == "nobody"
    assert "nobody could be asked" in denied["reason"].lower()


def test_another_rule_of_the_run_allows_nothing_more(home: Home) -> None:
    assert len(result(home, "--allow", "bash:make", "--allow", "edit", "use the tool")["denied"]) == 1


def test_a_rule_about_a_tool_that_there_is_not_is_refused(home: Home) -> None:
    done = home.covey("run", "--allow", "bahs:make", "hello")
    assert done.returncode == exits.USAGE
    assert "did you mean bash?" in done.stderr
    assert home.covey("run", "--allow", "bash touch", "hello").returncode == exits.USAGE


def test_a_run_that_was_denied_something_fails_if_that_is_asked_for(home: Home) -> None:
    assert home.covey("run", "use the tool").returncode == exits.OK
    done = home.covey("run", "--fail-on-denied", "use the tool")
    assert done.returncode == exits.FAILED
    assert "exit 1, as the run was denied something: bash: touch made" in done.stderr
    assert home.covey("run", "--fail-on-denied", "--yolo", "use the tool").returncode == exits.OK
    told = result(home, "--fail-on-denied", "use the tool")
    assert told["exit_code"] == exits.FAILED and "was denied something" in told["error"] and len(told["denied"]) == 1


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize("line", ["cat {outside}/egg.txt", "cat ~/nest/egg.txt", "cat link", "cat ../nest/egg.txt"])
def test_what_a_denial_advises_makes_a_look_outside_work(own_home: Home, line: str, by_file: bool) -> None:
    directory = own_home.project.parent
    (directory / "nest").mkdir()
    (directory / "nest" / "egg.txt").write_text("speckled")
    (own_home.project / "link").symlink_to(directory / "nest" / "egg.txt")
    command = line.format(outside=directory / "nest")
    steps = [[{"tool": "bash", "input": {"command": command}}], [{"text": "Done."}]]
    (directory / "script.json").write_text(json.dumps({"replies": [{"steps": steps}]}))
    told = own_home.covey("run", "look").stderr
    options: list[str] = []
    if by_file:
        table = told[told.index("  [projects.") :]
        own_home.config.write_text(own_home.config.read_text() + table)
    else:
        (advice,) = re.findall("Allow it with (.*)", told)
        options = shlex.split(advice)
    done = result(own_home, *options, "look")
    said = [part["data"] for message in own_home.messages(done["session_id"]) for part in message["parts"]]
    (seen,) = (part["content"] for part in said if part.get("tool_call_id"))
    assert done["denied"] == [] and "speckled" in seen


def test_a_plan_is_made_with_agents_that_look_and_change_nothing(own_home: Home) -> None:
    script = own_home.config.parent.parent.parent / "script.json"
    look = {"tool": "agent", "input": {"prompt": "Where are the nests?"}}
    writer = {"tool": "agent", "input": {"prompt": "Build a nest.", "writes": True}}
    touch = {"tool": "bash", "input": {"command": "touch made"}}
    agent = {"when": "Where are the nests?", "steps": [[touch], [{"text": "In the oak."}]]}
    script.write_text(json.dumps({"replies": [agent, {"steps": [[look, writer], [{"text": "A plan."}]]}]}))
    done = result(own_home, "--plan", "--yolo", "Plan a nest")
    assert done.get("text") == "A plan.", done
    said = own_home.messages(done["session_id"])
    results = [
        part["data"]["content"] for message in said for part in message["parts"] if part["type"] == "tool_result"
    ]
    assert results[0] == "In the oak." and "No agent may write" in results[1]
    assert list(own_home.project.iterdir()) == []


def test_accepted_edits_are_not_asked_about_and_commands_are(own_home: Home) -> None:
    write = {"tool": "write", "input": {"file_path": "made.txt", "content": "hello\n"}}
    touch = {"tool": "bash", "input": {"command": "touch made"}}
    script = own_home.config.parent.parent.parent / "script.json"
    script.write_text(json.dumps({"replies": [{"steps": [[write], [touch], [{"text": "Done."}]]}]}))
    (denied,) = result(own_home, "--accept-edits", "go")["denied"]
    assert denied["tool"] == "bash"
    assert (own_home.project / "made.txt").read_text() == "hello\n"
    (own_home.project / "made.txt").unlink()
    assert [one["tool"] for one in result(own_home, "-c", "go")["denied"]] == ["write", "bash"]
