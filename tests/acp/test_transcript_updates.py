"""Messages → updates, without any process: each text once, whatever the stream does, however slowly one reads."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from covey.acp.transcript_updates import SUMMARISED, TranscriptUpdates
from covey.client.transcript import TranscriptChange
from covey.client.view.view import View
from covey.protocol.events import Event, created, deleted, updated
from covey.protocol.messages import (
    Message,
    Reasoning,
    ReasoningPart,
    ShellCommand,
    ShellCommandPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from tests.client.values import text_delta, text_message


class Shown:
    """A view, and an editor that takes updates when it is told to."""

    def __init__(self, own: set[str] | None = None) -> None:
        self.view = View("s1", loads=False)
        self.updates = TranscriptUpdates(own or set(), "/project")
        self.taken: list[dict[str, Any]] = []

    def event(self, event: Event) -> None:
        change = self.view.event(event).change
        if change:
            self.updates.changed(change, self.view.conversation.messages)

    def take(self, limit: int = 100) -> list[dict[str, Any]]:
        found = list(self.updates.take(self.view.conversation.messages, limit))
        self.taken += found
        return found

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.taken if update["sessionUpdate"] == kind)


def growing(shown: Shown, pieces: int) -> None:
    """An answer that grows by so many pieces."""
    shown.event(created(text_message("m1", "")))
    shown.event(updated(text_message("m1", "a")))
    for number in range(1, pieces):
        shown.event(updated(text_delta("m1", number, "a")))


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_an_answer_is_the_same_however_often_somebody_reads(every: int) -> None:
    shown = Shown()
    shown.event(created(text_message("m1", "a")))
    for number in range(1, 500):
        shown.event(updated(text_delta("m1", number, "a")))
        if number % every == 0:
            shown.take()
    shown.event(updated(text_message("m1", "a" * 500 + "!", finish="end_turn")))
    shown.take()
    assert shown.said() == "a" * 500 + "!"
    assert len(shown.taken) <= 500 // every + 2  # whoever reads seldom gets few pieces
    assert not shown.updates.is_pending


def test_an_answer_that_is_begun_anew_is_given_whole_in_the_end() -> None:
    shown = Shown()
    shown.event(created(text_message("m1", "the first try")))
    shown.take()
    shown.event(updated(text_message("m1", "")))
    shown.take()
    shown.event(updated(text_message("m1", "an")))
    shown.event(updated(text_delta("m1", 2, "other")))
    assert shown.take() == []
    shown.event(updated(text_message("m1", "another", finish="end_turn")))
    (whole,) = shown.take()
    assert whole["content"]["text"] == "another" and whole["messageId"] != "m1"


def test_what_is_loaded_again_is_not_given_again() -> None:
    shown = Shown()
    shown.event(created(text_message("m0", "done", finish="end_turn")))
    growing(shown, 10)
    shown.take()
    everything = list(shown.view.conversation.messages)
    shown.view.conversation.load(everything, set(), has_older=False)
    shown.updates.changed(TranscriptChange("reset"), shown.view.conversation.messages)
    assert shown.take() == []
    shown.event(updated(text_delta("m1", 10, "b")))
    assert [update["content"]["text"] for update in shown.take()] == ["b"]


def test_a_replay_in_the_middle_of_growth_has_no_gap_and_no_repeat() -> None:
    shown = Shown()
    shown.event(created(text_message("m0", "before", role="user", run_id="r0")))
    growing(shown, 5)
    shown.updates.replay(shown.view.conversation.messages)
    shown.event(updated(text_delta("m1", 5, "b")))  # while the replay waits to be taken
    first = shown.take(1)
    shown.event(updated(text_delta("m1", 6, "c")))
    shown.take()
    assert first[0]["content"]["text"] == "before"
    assert shown.said() == "aaaaabc"


def test_who_skips_the_past_gets_what_follows() -> None:
    shown = Shown()
    growing(shown, 5)
    shown.updates.skip(shown.view.conversation.messages)
    shown.event(updated(text_delta("m1", 5, "b")))
    shown.take()
    assert shown.said() == "b"


def test_prompts_of_the_editor_are_not_said_to_it_again_unless_it_loads_them() -> None:
    shown = Shown({"mine"})
    shown.event(created(text_message("u1", "from here", role="user", run_id="mine")))
    shown.event(created(text_message("u2", "from elsewhere", role="user", run_id="theirs")))
    shown.take()
    assert shown.said("user_message_chunk") == "from elsewhere"
    shown.updates.replay(shown.view.conversation.messages)
    shown.take()
    assert shown.said("user_message_chunk") == "from elsewherefrom herefrom elsewhere"


def call_message(*, finished: bool, end: bool = False) -> Message:
    call = ToolCall(id="c1", name="bash", input='{"command": "ls"}' if finished else "", finished=finished)
    parts = (ReasoningPart(data=Reasoning(thinking="hm", signature="")), ToolCallPart(data=call))
    return text_message("m1", parts=parts, finish="tool_use" if end else None)


def result_message() -> Message:
    result = ToolResult(tool_call_id="c1", name="bash", content="a\n", metadata='{"exit_code": 1}', is_error=False)
    return text_message("t1", role="tool", parts=(ToolResultPart(data=result),))


def test_a_call_is_told_when_it_begins_when_it_is_whole_and_when_it_ends() -> None:
    shown = Shown()
    for message in (call_message(finished=False), call_message(finished=True), call_message(finished=True, end=True)):
        shown.event(updated(message))
        shown.take()
    shown.event(created(result_message()))
    shown.take()
    kinds = [(update["sessionUpdate"], update.get("status"), update.get("title")) for update in shown.taken]
    assert kinds == [
        ("agent_thought_chunk", None, None),
        ("tool_call", "pending", "bash"),
        ("tool_call_update", "in_progress", "ls"),
        ("tool_call_update", "failed", None),
    ]
    assert shown.taken[-1]["rawOutput"] == {"exit_code": 1}


def test_a_result_whose_call_the_editor_does_not_know_is_a_call_of_its_own() -> None:
    shown = Shown()
    shown.event(updated(call_message(finished=True, end=True)))
    shown.updates.skip(shown.view.conversation.messages)
    shown.event(created(result_message()))
    (update,) = shown.take()
    assert (update["sessionUpdate"], update["title"], update["status"]) == ("tool_call", "bash", "failed")


def test_summaries_and_own_commands_are_told_in_their_way() -> None:
    shown = Shown()
    failed = text_message("m0", "lo", finish="error")
    shown.event(created(structs.replace(failed, is_summary_message=True)))
    summary = text_message("m1", "long ago", finish="end_turn")
    shown.event(created(structs.replace(summary, is_summary_message=True)))
    command = ShellCommand(command="ls", output="``` a", exit_code=0)
    shown.event(created(text_message("u1", role="user", parts=(ShellCommandPart(data=command),))))
    shown.event(created(text_message("u2", role="user", parts=(TextPart(data=Text(text="gone")),))))
    shown.event(deleted(text_message("u2", role="user")))
    shown.take()
    assert shown.said() == SUMMARISED
    assert shown.said("user_message_chunk") == "````\n$ ls\n``` a\n````"


def test_growth_costs_what_it_brings() -> None:
    """A long answer is not put together for each piece."""
    shown = Shown()
    shown.event(created(text_message("m1", "x" * 1_000_000)))
    shown.take()
    shown.event(updated(text_delta("m1", 1_000_000, "y")))
    (update,) = shown.take()
    assert update["content"]["text"] == "y"
    assert shown.view.conversation.messages.begun("m1") == text_message("m1", "x" * 1_000_000)  # not joined
