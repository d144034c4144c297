"""`covey runs allow`, `deny`, `answer`, `say`, `interrupt`: a run is steered by somebody who does not wait for it."""

from __future__ import annotations

import json
import tomllib

import msgspec
import pytest

from covey.cli import exits
from covey.cli.open_runs import waits_for
from covey.cli.runs import _asked
from covey.protocol.events import QuestionBatchRequest, QuestionItem
from covey.protocol.runs import RunOptions
from tests.cli.conftest import Home, until
from tests.cli.test_runs_command import detach, detach_until_it_asks, listed
from tests.cli.test_runs_command import tidy_home as tidy_home
from tests.client.values import some_run


def ended(home: Home, run_id: str) -> dict[str, object]:
    done = home.covey("runs", "wait", "--json", run_id)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_what_a_run_asks_is_allowed_by_the_id_that_is_shown(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    (request,) = listed(home)[0]["requests"]
    done = home.covey("runs", "allow", request["id"])
    assert (done.returncode, done.stdout) == (0, "Allowed: bash:\n    touch made\n"), done.stderr
    assert ended(home, run_id)["denied"] == []
    assert (home.project / "made").exists()
    late = home.covey("runs", "allow", request["id"])
    assert late.returncode == exits.USAGE and "it may be answered already" in late.stderr


def test_what_a_run_asks_is_denied_with_a_reason_for_the_model(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    assert home.covey("runs", "deny", run_id[-8:], "use", "the", "other", "one").returncode == 0
    ended(home, run_id)
    session = home.sessions()[0]["id"]
    assert "The user says: use the other one" in json.dumps(home.messages(session))
    late = home.covey("runs", "allow", run_id)
    assert late.returncode == exits.USAGE and "asks nothing now: it is completed" in late.stderr


def test_a_question_is_answered_and_not_allowed(home: Home) -> None:
    run_id = detach(home, "ask me")
    until(lambda: listed(home)[0]["asks"] == "question", "a question")
    refused = home.covey("runs", "allow", run_id)
    assert refused.returncode == exits.USAGE and "covey runs answer" in refused.stderr
    wrong = home.covey("runs", "answer", run_id, "perhaps")
    assert wrong.returncode == exits.USAGE and "does not answer 'Shall I?'" in wrong.stderr
    assert home.covey("runs", "answer", run_id, "yes").stdout == "Answered: Shall I?\n"
    assert ended(home, run_id)["text"] == "Done."


def test_what_is_said_to_a_run_joins_it_or_waits_for_it_and_that_is_said(tidy_home: Home) -> None:
    first = detach(tidy_home, "hang on")
    until(lambda: listed(tidy_home)[0].get("waiting_on") == "model", "the model is asked")
    said = tidy_home.covey("runs", "say", first, "and", "mind", "the", "tests")
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip().endswith(f"joins run {first} before its next step.")
    assert [run["mode"] for run in listed(tidy_home)] == ["fold", "own_turn"]
    own = detach(tidy_home, "--max-steps", "3", "hang with options of its own")
    until(lambda: listed(tidy_home)[0].get("waiting_on") == "model", "the second model is asked")
    waits = tidy_home.covey("runs", "say", own, "faster").stdout
    assert waits.strip().endswith(
        f"queued behind run {own}; {own} was started with options of its own, so it cannot be steered."
    )
    steers = tidy_home.covey("run", "--steer", "--detach", "-s", listed(tidy_home)[0]["session_id"], "slower")
    assert steers.returncode == 0
    assert f"Queued behind run {own} and 1 other prompt; {own} was started with options of its own" in steers.stderr


def test_what_steers_a_run_that_nobody_watches_is_said_to_join_it() -> None:
    run = msgspec.structs.replace(some_run("r1"), state="active", options=RunOptions(unattended=True))
    steer = msgspec.structs.replace(run, run_id="r2", state="queued", mode="fold", place=1, options=None)
    assert waits_for(steer, [run, steer]) == "joins run r1 before its next step"
    watched = msgspec.structs.replace(run, options=RunOptions(debug=True))
    assert waits_for(steer, [watched, steer]) == "joins run r1 before its next step"


def test_an_interrupt_cancels_the_run_and_is_the_next(home: Home) -> None:
    first = detach(home, "hang on")
    until(lambda: listed(home)[0].get("waiting_on") == "model", "the model is asked")
    second = json.loads(home.covey("runs", "interrupt", "--json", first, "hello instead").stdout)["run_id"]
    assert ended(home, second)["text"] == "You said: hello instead"
    assert [run["state"] for run in listed(home, "--all")] == ["completed", "cancelled"]
    gone = home.covey("runs", "say", first, "more")
    assert gone.returncode == exits.USAGE and "has ended (cancelled)" in gone.stderr


def test_wait_needs_no_id_if_there_is_one_open_run(tidy_home: Home) -> None:
    none = tidy_home.covey("runs", "wait")
    assert none.returncode == exits.USAGE and "`covey runs --all` lists those that have ended" in none.stderr
    detach_until_it_asks(tidy_home)
    done = tidy_home.covey("runs", "wait", "--deny")
    assert done.returncode == 0 and done.stdout.endswith("Done.\n"), done.stderr
    runs = {detach(tidy_home, "hang"), detach(tidy_home, "hang")}
    several = tidy_home.covey("runs", "wait")
    assert several.returncode == exits.USAGE
    assert all(run_id in several.stderr for run_id in runs)


def test_a_prompt_interrupts_the_only_active_run(home: Home) -> None:
    detach(home, "hang on")
    until(lambda: listed(home)[0].get("waiting_on") == "model", "the model is asked")
    done = home.covey("run", "--interrupt", "hello instead")
    assert done.stdout == "You said: hello instead\n", done.stderr
    assert [run["state"] for run in listed(home, "--all")] == ["completed", "cancelled"]
    nobody = home.covey("run", "--steer", "hello")
    assert nobody.returncode == exits.USAGE and "there is no active run" in nobody.stderr


def test_a_prompt_that_steers_is_answered_in_the_turn_of_the_run(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    steering = home.spawn("run", "--steer", "and mind the tests")
    until(lambda: len(listed(home)) == 2, "the second prompt")
    assert home.covey("runs", "allow", run_id).returncode == 0
    out, err = steering.communicate(timeout=30)
    assert (steering.returncode, out) == (0, b"You said: and mind the tests\n"), err
    folded = next(run for run in listed(home, "--all") if run["prompt"] == "and mind the tests")
    assert folded["folded_into"] == run_id


@pytest.mark.parametrize("option", ["--yolo", "--plan", "--allow=edit", "--max-steps=2"])
def test_what_steers_a_run_has_no_options_of_its_own(home: Home, option: str) -> None:
    done = home.covey("run", "--steer", option, "hello")
    assert done.returncode == exits.USAGE and "--steer" in done.stderr


def test_a_prefix_that_is_offered_becomes_rules_of_this_directory(own_home: Home) -> None:
    replies = [
        {"when": name, "steps": [[{"tool": "bash", "input": {"command": f"pytest -q {name}"}}], [{"text": "Done."}]]}
        for name in ("one.py", "another.py")
    ]
    script = own_home.config.parent.parent.parent / "script.json"
    script.write_text(json.dumps({"replies": replies}))
    run_id = detach(own_home, "one.py")
    until(lambda: listed(own_home)[0]["asks"] == "permission", "a request for permission")
    (request,) = listed(own_home)[0]["requests"]
    assert request["prefix_rules"] == ["bash:pytest", "bash:pytest *"]
    assert f"covey runs allow --prefix {request['id']}    always here: bash:pytest *" in own_home.covey("runs").stdout
    allowed = own_home.covey("runs", "allow", "--prefix", request["id"])
    assert f"From now on in {own_home.project}: bash:pytest bash:pytest *" in allowed.stdout
    ended(own_home, run_id)
    table = tomllib.loads(own_home.config.read_text())["projects"][str(own_home.project)]
    assert table["permissions"]["allow"] == ["bash:pytest", "bash:pytest *"]
    again = json.loads(own_home.covey("run", "--json", "another.py").stdout)
    assert again["denied"] == []


def test_what_was_allowed_is_in_the_json(home: Home) -> None:
    run_id = detach_until_it_asks(home)
    told = json.loads(home.covey("runs", "allow", "--json", run_id).stdout)
    assert told["resolved"] and told["run_id"] == run_id
    assert (told["action"], told["tool"], told["description"]) == ("allow", "bash", "touch made")
    assert (told["network"], told["unsandboxed"]) == (False, False)


def test_all_questions_of_a_run_stand_below_each_other() -> None:
    items = tuple(QuestionItem(id=str(number), type="free_text", question=f"Which {number}?") for number in (1, 2))
    first, second, _ = _asked(QuestionBatchRequest(id="q1", session_id="s1", tool_call_id="c1", questions=items)).split(
        "\n"
    )
    assert first.index("Which 1?") == second.index("Which 2?")
