"""What is new about a run: each text and each call exactly once, whatever the stream does."""

from __future__ import annotations

from msgspec import structs

from covey.client.view.run_news import (
    AnswerCut,
    AnswerGrew,
    CallBegun,
    CallEnded,
    PromptJoined,
    RetryAnnounced,
    RunMoved,
    RunNews,
    RunNewsItem,
    ThoughtGrew,
)
from covey.client.view.view import View
from covey.protocol.events import AgentEvent, Event, Gap, created, updated
from covey.protocol.growth import GrowingMessage
from covey.protocol.messages import (
    Message,
    Reasoning,
    ReasoningPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from tests.client.values import run_complete, some_run, text_delta, text_message


class Watched:
    def __init__(self) -> None:
        self.view = View("s1", loads=False)
        self.news = RunNews(self.view, "r1")

    def event(self, event: Event) -> list[RunNewsItem]:
        return self.news.update(self.view.event(event).change)


CALL = ToolCall(id="c1", name="bash", input="{}", finished=True)
RESULT = ToolResult(tool_call_id="c1", name="bash", content="x", metadata="", is_error=False)


def test_a_run_is_news_when_its_state_changes_and_a_retry_when_it_is_announced() -> None:
    watched = Watched()
    assert watched.event(updated(some_run("r1"))) == [RunMoved(some_run("r1"))]
    assert watched.event(updated(some_run("r1"))) == []
    retry = AgentEvent(type="retry", session_id="s1", run_id="r1", attempt=2)
    assert watched.event(created(retry)) == [RetryAnnounced(retry)]
    assert watched.event(updated(some_run("r0"))) == []


def test_a_call_is_open_from_when_it_is_asked_for_until_it_has_a_result() -> None:
    watched = Watched()
    asked = text_message("m1", parts=(ToolCallPart(data=CALL),))
    assert watched.event(created(asked)) == [CallBegun(CALL)]
    assert watched.event(updated(asked)) == []
    assert watched.news.open_calls == [CALL]
    came = text_message("t1", role="tool", parts=(ToolResultPart(data=RESULT),))
    assert watched.event(created(came)) == [CallEnded(CALL, RESULT)]
    assert watched.event(updated(came)) == []
    assert watched.news.open_calls == []
    assert watched.news.steps == 1


def test_who_comes_late_sees_the_result_of_a_call_that_was_not_seen() -> None:
    came = text_message("t1", role="tool", parts=(ToolResultPart(data=RESULT),))
    (ended,) = Watched().event(created(came))
    assert isinstance(ended, CallEnded) and ended.call.name == "bash"


def test_thoughts_come_once_whether_they_were_streamed_or_not() -> None:
    watched = Watched()
    parts = (ReasoningPart(data=Reasoning(thinking="Hm. So.", signature="")), TextPart(data=Text(text="Yes")))
    first = (ReasoningPart(data=Reasoning(thinking="Hm.", signature="")),)
    assert watched.event(created(text_message("m1", parts=first))) == [ThoughtGrew("m1", "Hm.")]
    assert watched.event(updated(text_message("m1", parts=parts))) == [
        ThoughtGrew("m1", " So."),
        AnswerGrew("m1", "Yes"),
    ]


def test_a_gap_repeats_nothing_and_the_end_brings_what_is_missing() -> None:
    watched = Watched()
    watched.event(created(text_message("m1")))
    assert watched.event(updated(text_delta("m1", 0, "Hel"))) == [AnswerGrew("m1", "Hel")]
    assert watched.event(created(Gap(reason="old", resume_from="2.1"))) == []
    assert watched.event(updated(text_message("m1", "Hel"))) == []
    assert watched.news.end(run_complete(text="Hello")) == [AnswerGrew("m1", "lo")]


def test_an_answer_that_did_not_come_to_its_end_says_so_once() -> None:
    watched = Watched()
    assert watched.event(created(text_message("m1", finish="max_tokens"))) == [AnswerCut("max_tokens")]
    assert watched.event(updated(text_message("m1", finish="max_tokens"))) == []
    assert watched.event(created(text_message("m2", finish="end_turn"))) == []


def test_text_that_grows_is_never_put_together_for_it() -> None:
    """A delta costs its own length: only a whole message is looked at as a whole."""
    watched, put_together = Watched(), 0
    watched.event(created(text_message("m1")))
    real = GrowingMessage.message

    def counted(self: GrowingMessage) -> Message:
        nonlocal put_together
        put_together += 1
        return real(self)

    GrowingMessage.message = counted  # type: ignore[method-assign]
    try:
        for at in range(100):
            watched.event(updated(text_delta("m1", at, "x")))
    finally:
        GrowingMessage.message = real  # type: ignore[method-assign]
    assert put_together == 0


def test_who_comes_late_sees_the_call_that_is_open_until_the_next_answer_begins() -> None:
    """Its result may have come between the messages that were loaded and the stream."""
    watched = Watched()
    before = [text_message("m0", parts=(ToolCallPart(data=CALL),))]
    assert watched.news.recall(before) == [CallBegun(CALL)]
    assert watched.news.open_calls == [CALL]
    watched.event(created(text_message("m1", "Done")))
    assert watched.news.open_calls == []
    came = text_message("t0", role="tool", parts=(ToolResultPart(data=RESULT),))
    assert Watched().news.recall([*before, came]) == []


def test_what_others_say_to_a_run_is_news_once_and_what_is_followed_is_not() -> None:
    watched = Watched()
    joins = structs.replace(some_run("r2", "folded"), folded_into="r1", posted_by="ann")
    watched.event(updated(joins))
    said = text_message("u2", "use tabs", role="user", run_id="r2")
    assert watched.event(created(said)) == [PromptJoined(joins, "use tabs")]
    assert watched.event(updated(said)) == []
    follows = Watched()
    follows.event(updated(structs.replace(some_run("r1", "folded"), folded_into="r0")))
    assert follows.event(created(text_message("u1", "mine", role="user", run_id="r1"))) == []
