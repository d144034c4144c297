"""What a view does that no recording shows: costs, bounds, and answers that nobody waits for any more."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from covey.client.view.asks import CLOSED_KEPT
from covey.client.view.commands import LoadMessages, LoadSessions, Reconnect, SendCancel, SendPrompt, ShowSession
from covey.client.view.conversation import HELD_DELTAS
from covey.client.view.inputs import (
    AnswerGiven,
    CancelAsked,
    Connected,
    Disconnected,
    MessagesLoaded,
    OlderWanted,
    PromptDropped,
    PromptGiven,
    PromptRefused,
    SessionOpened,
    SessionsLoaded,
)
from covey.client.view.output_tail import SHOWN_BYTES
from covey.client.view.view import View
from covey.protocol.events import PermissionNotification, PermissionRequest, ToolOutputDelta, created, deleted, updated
from covey.protocol.extensions import ApprovalNotification, ApprovalRequest
from covey.protocol.requests import PostPrompt
from tests.client.values import run_complete, some_run, some_session, text_delta, text_message


def shown(*texts: str) -> View:
    """A view of session s1 with these messages, connected and loaded."""
    view = View(loads=True)
    view.apply(SessionOpened("s1"))
    messages = tuple(text_message(f"m{number}", text, finish="end_turn") for number, text in enumerate(texts))
    view.apply(MessagesLoaded(load_of(view), messages))
    return view


def load_of(view: View) -> int:
    return next(command.load for command in view.loads if isinstance(command, LoadMessages))


def request(request_id: str, run_id: str = "r1") -> PermissionRequest:
    return PermissionRequest(
        id=request_id,
        session_id="s1",
        tool_call_id="c1",
        tool_name="bash",
        description="ls",
        action="execute",
        params={},
        path="/project",
        run_id=run_id,
    )


def output(offset: int, text: str) -> ToolOutputDelta:
    return ToolOutputDelta(session_id="s1", run_id="r1", message_id="m1", tool_call_id="c1", offset=offset, delta=text)


def calls_of(view: View, event: Any) -> int:
    """How many functions are called while the view takes an event in."""
    count = 0

    def profile(frame: FrameType, what: str, argument: object) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    sys.setprofile(profile)
    try:
        view.event(event)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "event",
    [
        updated(text_delta("new", 0, "漢字")),
        updated(text_message("new", "whole")),
        updated(some_run("r1")),
        updated(some_session("s1")),
        created(request("p1")),
        updated(output(0, "line\n")),
    ],
    ids=lambda event: event.type,
)
def test_an_event_costs_the_same_after_ten_and_after_ten_thousand_messages(event: Any) -> None:
    counts = []
    for history in (10, 10_000):
        view = shown(*["words"] * history)
        view.event(updated(text_message("new")))
        counts.append(calls_of(view, event))
    assert counts[0] == counts[1]


def test_an_answer_that_nobody_waits_for_any_more_is_ignored() -> None:
    view = View()
    view.apply(SessionOpened("s1"))
    old = load_of(view)
    view.apply(SessionOpened("s2"))
    view.apply(SessionOpened("s1"))
    view.apply(MessagesLoaded(old, (text_message("m1", "late", finish="end_turn"),)))
    assert len(view.conversation.messages) == 0
    view.apply(MessagesLoaded(load_of(view), (text_message("m2", "now", finish="end_turn"),)))
    assert [message.id for message in view.conversation.messages] == ["m2"]


def test_growth_waits_for_the_message_that_is_being_loaded() -> None:
    view = View()
    view.apply(SessionOpened("s1"))
    assert view.event(updated(text_delta("m1", 2, "字 🧪"))).commands == []
    view.apply(MessagesLoaded(load_of(view), (text_message("m1", "漢字"),)))
    message = view.conversation.messages.get("m1")
    assert message is not None and message.text == "漢字字 🧪"


def test_more_growth_than_is_kept_makes_the_stream_open_again() -> None:
    view = View()
    view.apply(SessionOpened("s1"))
    for number in range(HELD_DELTAS + 1):
        view.event(updated(text_delta("m1", 1 + number, "x")))
    step = view.apply(MessagesLoaded(load_of(view), (text_message("m1", "a"),)))
    assert step.commands == []
    assert view.event(updated(text_delta("m1", HELD_DELTAS + 2, "y"))).commands == [Reconnect()]


def test_a_hole_makes_the_stream_open_again() -> None:
    view = shown("one")
    assert view.event(updated(text_delta("unknown", 0, "x"))).commands == [Reconnect()]


def test_older_messages_come_before_the_first_and_are_asked_for_once() -> None:
    view = View()
    view.apply(SessionOpened("s1"))
    assert view.apply(OlderWanted()).commands == []
    view.apply(MessagesLoaded(load_of(view), (text_message("m5", "new", finish="end_turn"),), has_older=True))
    assert view.apply(OlderWanted()).commands == [LoadMessages(load_of(view), "s1", "m5")]
    assert view.apply(OlderWanted()).commands == []
    view.apply(MessagesLoaded(load_of(view), (text_message("m4", "old", finish="end_turn"),)))
    assert [message.id for message in view.conversation.messages] == ["m4", "m5"]
    assert not view.conversation.has_older


def test_a_second_tap_is_not_a_second_prompt_and_a_refused_one_may_be_given_again() -> None:
    view = View()
    given = PromptGiven(PostPrompt(session_id="s1", prompt="漢字", run_id="r1"))
    assert view.apply(given).commands == [SendPrompt("r1")]
    assert view.apply(given).commands == []
    view.apply(PromptRefused("r1", "no model"))
    assert view.apply(given).commands == [SendPrompt("r1")]
    view.event(created(some_run("r1", "accepted")))
    assert view.outbox.prompts == {}
    assert view.apply(given).commands == []
    view.apply(PromptGiven(PostPrompt(session_id="s1", prompt="x", run_id="r2")))
    view.apply(PromptDropped("r2"))
    assert view.outbox.prompts == {}


def test_a_cancel_of_a_session_is_not_sent_again_but_one_of_a_run_is() -> None:
    view = View()
    view.apply(CancelAsked("s1"))
    view.apply(CancelAsked("s1", "r1"))
    assert view.apply(CancelAsked("s1")).commands == []
    view.apply(Disconnected(1.0, "gone"))
    commands = view.apply(Connected(2.0)).commands
    assert [command for command in commands if isinstance(command, SendCancel)] == [SendCancel("s1", "r1")]
    assert list(view.outbox.cancels) == [("s1", "r1")]


def test_an_answer_that_was_lost_leaves_the_ask_open_to_be_answered_again() -> None:
    view = shown("one")
    view.event(created(request("p1")))
    view.apply(AnswerGiven("p1"))
    assert view.asks.open["p1"].is_being_answered
    view.event(created(request("p1")))
    assert not view.asks.open["p1"].is_being_answered


def test_an_approval_is_an_ask_of_no_session_that_outlives_runs_and_says_who_answered() -> None:
    view = shown()
    approval = ApprovalRequest(id="d1", kind="mcp", name="git", source="/p/covey.toml", command="x")
    view.event(created(approval))
    view.event(created(run_complete("r1")))
    assert [(ask.kind, ask.session_id) for ask in view.asks.open.values()] == [("approval", "")]
    view.event(created(ApprovalNotification(approval_id="d1", approved=True, answered_by="ann")))
    assert not view.asks.open and (view.asks.closed["d1"].outcome, view.asks.closed["d1"].by) == ("allowed", "ann")
    view.event(created(ApprovalRequest(id="d2", kind="mcp", name="git", source="/p/covey.toml", command="y")))
    view.event(created(ApprovalNotification(approval_id="d2")))
    assert view.asks.closed["d2"].outcome == "closed"


def test_asks_go_with_their_run_and_only_the_last_closed_ones_are_kept() -> None:
    view = shown("one")
    view.event(created(request("p0", run_id="r0")))
    for number in range(1, CLOSED_KEPT + 10):
        view.event(created(request(f"p{number}")))
    view.event(created(run_complete("r1")))
    assert list(view.asks.open) == ["p0"]
    assert len(view.asks.closed) == CLOSED_KEPT
    notification = PermissionNotification(tool_call_id="c1", granted=True, denied=False, permission_id="p0")
    view.event(created(notification))
    assert view.asks.closed["p0"].outcome == "allowed"


def test_what_a_call_prints_is_kept_to_a_bound_and_cut_between_characters() -> None:
    view = shown("one")
    offset = 0
    for _ in range(40):
        text = "x漢🧪" * 300
        view.event(updated(output(offset, text)))
        offset += len(text.encode())
    kept = view.conversation.outputs["c1"]
    assert kept.end == offset
    assert SHOWN_BYTES - 4 < kept.end - kept.start <= SHOWN_BYTES
    assert "\ufffd" not in kept.text
    view.event(created(run_complete("r1")))
    assert view.conversation.outputs == {}


def test_a_session_that_is_opened_while_not_connected_is_loaded_with_the_next_connection() -> None:
    view = shown("one")
    view.apply(Connected(1.0))
    view.event(updated(some_session("s1")), "1.5")
    view.apply(Disconnected(2.0, "gone"))
    assert view.apply(SessionOpened("s2")).commands == []
    commands = view.apply(Connected(3.0)).commands
    assert ShowSession("s2") in commands
    assert any(isinstance(command, LoadMessages) and command.session_id == "s2" for command in commands)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_session_that_is_opened_while_the_sessions_are_loaded_is_as_the_answer_has_it(is_deleted: bool) -> None:
    view = View()
    commands = view.apply(Connected(1.0)).commands
    load = next(command.load for command in commands if isinstance(command, LoadSessions))
    view.apply(SessionOpened("s1"))
    if is_deleted:
        view.event(deleted(some_session("s1")))
    view.apply(SessionsLoaded(load, (some_session("s1"),)))
    assert [session.id for session, _ in view.sessions] == ([] if is_deleted else ["s1"])
