"""What an editor shows besides: plans, thoughts, live output, questions, modes, models, summaries, failures."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from covey.client.view_loads import MESSAGES_PAGE
from tests.acp.conftest import StartEditor
from tests.acp.looking import state_of
from tests.cli.conftest import Home, has_ended, until

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


def test_a_plan_thoughts_the_title_and_the_tokens_are_told(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    editor.reply(editor.prompt(session, "plan it"))
    until(lambda: _kind(editor.updates(), "usage_update") or editor.next() is None, "the tokens")
    (plan,) = _kind(editor.updates(), "plan")
    assert [(entry["content"], entry["status"]) for entry in plan["entries"]] == [
        ("look", "completed"),
        ("change", "in_progress"),
    ]
    assert editor.said("agent_thought_chunk") == "What is there to do?"
    assert _kind(editor.updates(), "session_info_update")[0]["title"] == "plan it"
    used = _kind(editor.updates(), "usage_update")[-1]
    assert (used["used"], used["size"]) == (120, 10_000_000)


def _kind(updates: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [update for update in updates if update["sessionUpdate"] == kind]


def test_what_a_command_prints_is_shown_while_it_runs(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "print")
    shown = editor.update("tool_call_update", lambda update: update["status"] == "in_progress" and "content" in update)
    assert shown["content"][0]["content"]["text"] == "```\nworking\n```"
    editor.notify("session/cancel", {"sessionId": session})
    assert editor.reply(prompt)["result"]["stopReason"] == "cancelled"
    last = _kind(editor.updates(), "tool_call_update")[-1]
    assert last["status"] == "failed"


def test_a_cancel_closes_the_permission_that_the_run_waits_for(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "make a file")
    request = editor.asked()
    editor.notify("session/cancel", {"sessionId": session})
    editor.answer(request, {"outcome": {"outcome": "cancelled"}})
    assert editor.reply(prompt)["result"]["stopReason"] == "cancelled"
    assert not (home.project / "made").exists()


def test_an_editor_that_cannot_ask_anybody_is_taken_for_no(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "make a file")
    editor.send({"id": editor.asked()["id"], "error": {"code": -32601, "message": "unknown"}})
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"
    assert not (home.project / "made").exists()


def test_questions_are_asked_as_a_form(home: Home, start: StartEditor) -> None:
    editor = start(home, FORMS)
    session = editor.new()
    prompt = editor.prompt(session, "ask me")
    request = editor.asked("elicitation/create")
    fields = request["params"]["requestedSchema"]["properties"]
    (yes, which, why) = fields
    assert [field["type"] for field in fields.values()] == ["boolean", "string", "string"]
    blue = next(choice["const"] for choice in fields[which]["oneOf"] if choice["title"] == "blue")
    editor.answer(request, {"action": "accept", "content": {yes: True, which: blue, why: "because"}})
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"
    result = _kind(editor.updates(), "tool_call_update")[-1]["content"][0]["content"]["text"]
    assert "yes" in result.lower() and "blue" in result and "because" in result


def test_questions_that_the_editor_declines_are_not_answered(home: Home, start: StartEditor) -> None:
    editor = start(home, FORMS)
    session = editor.new()
    prompt = editor.prompt(session, "ask me")
    editor.answer(editor.asked("elicitation/create"), {"action": "decline"})
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"
    assert editor.said() == "Thank you."


def test_questions_are_told_where_the_editor_has_no_forms(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "ask me")
    told = editor.update("agent_message_chunk")["content"]["text"]
    assert "Shall I?" in told and "covey runs answer" in told
    run = told.partition("covey runs answer ")[2].partition("`")[0]
    assert home.covey("runs", "answer", run, "yes", "red", "so").returncode == 0
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"


def test_mode_and_model_are_chosen_by_the_editor_or_elsewhere(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    editor.call("session/set_mode", {"sessionId": session, "modeId": "plan"})
    editor.told("config_option_update", lambda update: update["configOptions"][0]["currentValue"] == "plan")
    prompt = editor.prompt(session, "make a file")
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"  # nothing was asked, and nothing done
    assert not (home.project / "made").exists()
    option = {"sessionId": session, "configId": "model", "value": "scripted/other"}
    answer = editor.call("session/set_config_option", option)
    assert answer["configOptions"][1]["currentValue"] == "scripted/other"
    assert home.covey("sessions", "mode", session, "accept_edits").returncode == 0
    editor.told("current_mode_update", lambda update: update["currentModeId"] == "accept_edits")
    assert editor.refused("session/set_mode", {"sessionId": session, "modeId": "fly"})["code"] == -32602
    wrong = {"sessionId": session, "configId": "model", "value": "nobody/nothing"}
    assert editor.refused("session/set_config_option", wrong)["code"] == -32602


@pytest.mark.parametrize(("prompt", "reason"), [("too much", "max_tokens"), ("/summarize the nests", "end_turn")])
def test_a_prompt_ends_for_its_reason(home: Home, start: StartEditor, prompt: str, reason: str) -> None:
    editor = start(home)
    session = editor.new()
    editor.reply(editor.prompt(session, "hello"))
    assert editor.reply(editor.prompt(session, prompt))["result"]["stopReason"] == reason


def test_a_run_that_fails_is_an_error_with_its_words(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    error = editor.reply(editor.prompt(session, "fail"))["error"]
    assert error["code"] == -32603 and "the model broke" in error["message"]
    assert error["data"]["outcome"] == "failed"
    assert editor.reply(editor.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


def test_resume_gives_nothing_of_the_past_and_all_that_follows(home: Home, start: StartEditor) -> None:
    one = start(home)
    session = one.new()
    one.reply(one.prompt(session, "hello"))
    two = start(home)
    two.call("session/resume", {"sessionId": session, "cwd": str(home.project)})
    assert two.reply(two.prompt(session, "again"))["result"]["stopReason"] == "end_turn"
    assert two.said() == "You said: again"
    assert two.said("user_message_chunk") == ""


def test_a_session_that_somebody_deletes_ends_its_prompts(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "hang on")
    editor.update("agent_message_chunk")
    assert home.covey("sessions", "delete", session, "--yes").returncode == 0
    assert editor.reply(prompt)["result"]["stopReason"] == "cancelled"


def test_when_the_server_is_killed_in_a_turn_the_prompt_is_answered_and_the_next_one_works(
    own_home: Home, start: StartEditor
) -> None:
    editor = start(own_home)
    session = editor.new()
    prompt = editor.prompt(session, "hang on")
    editor.update("agent_message_chunk", lambda update: "two" in update["content"]["text"])
    server = own_home.pid()
    os.kill(server, signal.SIGKILL)
    until(lambda: has_ended(server), "the end of the server")
    error = editor.reply(prompt)["error"]
    assert error["data"]["outcome"] == "interrupted"
    assert editor.reply(editor.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"
    assert editor.said() == "one two You said: hello"


def test_commands_of_the_user_are_offered_and_taken_up_by_their_name(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    offered = {each["name"]: each for each in editor.update("available_commands_update")["availableCommands"]}
    assert offered["greet"] == {"name": "greet", "description": "Say hello", "input": {"hint": "WHO"}}
    assert "summarize" in offered
    assert editor.reply(editor.prompt(session, "/greet Ann"))["result"]["stopReason"] == "end_turn"
    editor.load(session)
    assert editor.said("user_message_chunk") == "/greet Ann"  # what it stands for is for the model


def test_an_editor_that_reads_nothing_for_a_while_gets_all_of_it_in_few_pieces(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    editor.may_read.clear()
    prompt = editor.prompt(session, "a very long answer")
    until(lambda: state_of(home, "a very long answer") == "completed", "the end of the run")
    editor.may_read.set()
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"
    assert editor.said() == "0123456789" * 100 * 4000
    assert len(_kind(editor.updates(), "agent_message_chunk")) < 3000


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_whoever_closes_a_session_has_the_answers_to_its_prompts_first(
    home: Home, start: StartEditor, method: str
) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "hang on")
    editor.update("agent_message_chunk")
    closing = editor.begin(method, {"sessionId": session})
    assert editor.reply(prompt)["result"]["stopReason"] == "cancelled"
    assert editor.reply(closing)["result"] == {}
    assert editor.refused("session/prompt", {"sessionId": session, "prompt": []})["code"] == -32002


def test_a_history_that_is_longer_than_a_page_is_given_whole_in_its_order_and_once(
    home: Home, start: StartEditor
) -> None:
    """A view begins with the newest `MESSAGES_PAGE` messages; here are more."""
    editor = start(home)
    session = editor.new()
    assert editor.reply(editor.prompt(session, "many steps"))["result"]["stopReason"] == "end_turn"
    updates = start(home).load(session)
    begun = [update["rawInput"]["todos"][0]["content"] for update in _kind(updates, "tool_call")]
    assert begun == [f"thing {number}" for number in range(105)]
    assert len(updates) > MESSAGES_PAGE and len(_kind(updates, "tool_call_update")) == 105
    assert updates[0]["content"]["text"] == "many steps"


def test_a_server_that_has_left_meanwhile_is_started_again(own_home: Home, start: StartEditor) -> None:
    """As one does that was started for somebody, and that nobody has needed for a minute."""
    editor = start(own_home)
    session = editor.new()
    editor.reply(editor.prompt(session, "hello"))
    assert len(editor.call("session/list", {})["sessions"]) == 1
    editor.call("session/close", {"sessionId": session})
    assert own_home.covey("stop").returncode == 0
    assert [each["sessionId"] for each in editor.call("session/list", {})["sessions"]] == [session]
