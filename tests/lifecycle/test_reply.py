"""Model facts become one message: what clients assemble from deltas and whole messages is what is stored."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Reply,
    Stopped,
    Structure,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.protocol.events import MessageDelta
from covey.protocol.growth import JOIN_AT, TextPiece, grown
from covey.protocol.messages import (
    Finish,
    FinishPart,
    Message,
    Reasoning,
    ReasoningPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
)


def new_reply() -> Reply:
    return Reply(message_id="m", session_id="s", run_id="r", model="big", provider="local", now=100)


def delta_of(answer: MessageDelta | Structure | None) -> MessageDelta:
    assert isinstance(answer, MessageDelta)
    return answer


def test_text_grows_by_deltas_at_rising_offsets() -> None:
    reply = new_reply()
    assert not reply.message(0).parts
    first = reply.take(TextDelta("Hel"))
    assert first == MessageDelta(message_id="m", session_id="s", run_id="r", part=0, kind="text", offset=0, delta="Hel")
    assert delta_of(reply.take(TextDelta("lo"))).offset == 3
    assert reply.message(0).parts
    assert reply.message(now=101) == Message(
        id="m",
        role="assistant",
        session_id="s",
        parts=(TextPart(data=Text(text="Hello")),),
        model="big",
        provider="local",
        created_at=100,
        updated_at=101,
        run_id="r",
    )


def test_r11_each_delta_and_the_message_say_whose_they_are() -> None:
    reply = new_reply()
    delta = delta_of(reply.take(TextDelta("x")))
    message = reply.message(now=101)
    assert (delta.run_id, delta.session_id) == (message.run_id, message.session_id) == ("r", "s")


@pytest.mark.parametrize(
    ("text", "points"), [("naïve", 5), ("日本語", 3), ("👍🏽", 2), ("👩\u200d👧", 3), ("e\u0301", 2)]
)
def test_offsets_count_code_points(text: str, points: int) -> None:
    """Neither bytes nor what JavaScript counts nor what people see."""
    reply = new_reply()
    reply.take(TextDelta(text))
    assert delta_of(reply.take(TextDelta("!"))).offset == points
    assert delta_of(reply.take(TextDelta("?"))).offset == points + 1
    assert reply.message(now=101).text == text + "!?"


def test_a_thought_then_words_then_calls_are_parts_in_order() -> None:
    reply = new_reply()
    assert delta_of(reply.take(ReasoningDelta("hm"))).part == 0
    assert delta_of(reply.take(TextDelta("I look"))).part == 1
    assert reply.take(ToolCallBegun(0, "c1", "view")) is Structure.CHANGED
    assert reply.take(ToolCallBegun(1, "c2", "grep")) is Structure.CHANGED
    assert delta_of(reply.take(ToolInputDelta(1, "{"))).part == 3
    assert delta_of(reply.take(ToolInputDelta(0, "{}"))) == MessageDelta(
        message_id="m", session_id="s", run_id="r", part=2, kind="tool_input", offset=0, delta="{}"
    )
    assert delta_of(reply.take(ToolInputDelta(1, "}"))).offset == 1
    assert delta_of(reply.take(TextDelta("and"))).part == 4
    assert reply.message(now=101).parts == (
        ReasoningPart(data=Reasoning(thinking="hm", signature="")),
        TextPart(data=Text(text="I look")),
        ToolCallPart(data=ToolCall(id="c1", name="view", input="{}", finished=False)),
        ToolCallPart(data=ToolCall(id="c2", name="grep", input="{}", finished=False)),
        TextPart(data=Text(text="and")),
    )


@pytest.mark.parametrize("fact", [TextDelta(""), ReasoningDelta("")])
def test_empty_text_makes_no_part(fact: ModelFact) -> None:
    """Providers send empty deltas, and refuse a history with empty text."""
    reply = new_reply()
    assert reply.take(fact) is None
    assert not reply.message(0).parts
    assert reply.message(now=101).parts == ()


def test_a_reply_knows_whether_the_model_asked_for_anything() -> None:
    reply = new_reply()
    reply.take(TextDelta("I look"))
    assert reply.has_calls is False
    reply.take(ToolCallBegun(0, "c1", "view"))
    assert reply.has_calls is True


def test_empty_input_of_a_call_tells_nobody_anything() -> None:
    reply = new_reply()
    reply.take(ToolCallBegun(0, "c1", "view"))
    assert reply.take(ToolInputDelta(0, "")) is None


def test_a_signature_belongs_to_the_thought_before_it() -> None:
    reply = new_reply()
    reply.take(ReasoningDelta("fi"))
    assert delta_of(reply.take(ReasoningDelta("rst"))).offset == 2
    assert reply.take(ReasoningDelta("", signature="si")) is None
    assert reply.take(ReasoningDelta("", signature="gned")) is None
    second = delta_of(reply.take(ReasoningDelta("second")))
    assert (second.part, second.offset) == (1, 0)
    assert reply.message(now=101).parts == (
        ReasoningPart(data=Reasoning(thinking="first", signature="signed")),
        ReasoningPart(data=Reasoning(thinking="second", signature="")),
    )


def test_a_signature_without_a_thought_is_a_part_that_no_delta_tells_of() -> None:
    reply = new_reply()
    assert reply.take(ReasoningDelta("", signature="sealed")) is Structure.CHANGED
    assert delta_of(reply.take(TextDelta("x"))).part == 1


def test_usage_and_the_reason_to_stop_are_kept_and_not_published() -> None:
    reply = new_reply()
    assert (reply.stopped, reply.usage) == (None, UsageReported(0, 0))
    for fact in (UsageReported(1, 2), UsageReported(10, 20), Stopped("max_tokens")):
        assert reply.take(fact) is None
    assert (reply.stopped, reply.usage) == ("max_tokens", UsageReported(10, 20))
    assert not reply.message(0).parts


def test_finishing_closes_the_calls_and_says_why() -> None:
    reply = new_reply()
    reply.take(ToolCallBegun(0, "c1", "view"))
    reply.take(ToolInputDelta(0, '{"pa'))
    reply.finish("canceled", now=105)
    message = reply.message(now=106)
    assert message.tool_calls == (ToolCall(id="c1", name="view", input='{"pa', finished=True),)
    assert message.finish == Finish(reason="canceled", time=105)
    assert message.updated_at == 106
    reply.finish("error", now=107, message="The run failed", details="no key")
    assert reply.message(now=107).parts[1:] == (
        FinishPart(data=Finish(reason="error", time=107, message="The run failed", details="no key")),
    )


def test_an_empty_answer_can_be_finished() -> None:
    reply = new_reply()
    reply.finish("end_turn", now=105)
    assert reply.message(now=105).parts == (FinishPart(data=Finish(reason="end_turn", time=105)),)


def test_unsaved_text_is_what_came_since_the_last_time() -> None:
    reply = new_reply()
    reply.take(TextDelta("a"))
    reply.take(TextDelta("b👍"))
    reply.take(ToolCallBegun(0, "c1", "view"))
    reply.take(ToolInputDelta(0, "{"))
    assert reply.unsaved() == [TextPiece(0, "text", 0, "ab👍"), TextPiece(1, "tool_input", 0, "{")]
    reply.take(ToolInputDelta(0, "}"))
    assert reply.unsaved() == [TextPiece(1, "tool_input", 1, "}")]
    assert reply.unsaved() == []


def test_no_fact_costs_more_because_the_message_is_long() -> None:
    """Work is counted, not timed: calls made for each fact, and text copied by all checkpoints together."""
    reply = new_reply()
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            calls[getattr(arg, "__name__", frame.f_code.co_name)] += 1

    def cost_of(facts: int) -> Counter[str]:
        calls.clear()
        sys.setprofile(count)
        for _ in range(facts):
            reply.take(TextDelta("ten chars."))
        sys.setprofile(None)
        return Counter(calls)

    reply.take(TextDelta("ten chars."))
    copied = 0
    costs = []
    for _ in range(20):
        costs.append(cost_of(JOIN_AT))
        copied += sum(len(piece.text) for piece in reply.unsaved())
    assert costs == costs[:1] * 20
    assert costs[0]["join"] == 1, "counted: of the last pieces only, since nobody needs the whole text yet"
    assert copied == len(reply.message(now=101).text) == (20 * JOIN_AT + 1) * 10


FACTS: st.SearchStrategy[ModelFact] = st.one_of(
    st.builds(TextDelta, st.text(max_size=5)),
    st.builds(ReasoningDelta, st.text(max_size=5), st.sampled_from(["", "", "", "sig"])),
    st.builds(ToolCallBegun, st.integers(0, 2), st.sampled_from(["c1", "c2"]), st.just("view")),
    st.builds(ToolInputDelta, st.integers(0, 2), st.text(max_size=5)),
)


@given(st.lists(FACTS, max_size=40), st.integers(1, 7))
@settings(derandomize=True, database=None, deadline=None, max_examples=200)
def test_whole_messages_and_deltas_between_them_tell_everything(facts: list[ModelFact], every: int) -> None:
    """A client that applies deltas, and a store that saves what is unsaved, both know the message at every moment."""
    reply = new_reply()
    begun: set[int] = set()
    client = stored = reply.message(now=100)
    for number, fact in enumerate(facts):
        if isinstance(fact, ToolInputDelta) and fact.index not in begun:
            continue
        if isinstance(fact, ToolCallBegun):
            begun.add(fact.index)
        answer = reply.take(fact)
        if isinstance(answer, Structure):
            reply.unsaved()
            client = stored = reply.message(now=100)
        elif answer:
            client = grown(client, [TextPiece(answer.part, answer.kind, answer.offset, answer.delta)])
        if number % every == 0:
            stored = grown(stored, reply.unsaved())
    stored = grown(stored, reply.unsaved())
    whole = _without_signatures(reply.message(now=100))
    assert _without_signatures(client) == whole
    assert _without_signatures(stored) == whole


def _without_signatures(message: Message) -> list[object]:
    """Signatures are for the provider: they come with whole messages only."""
    return [part.data.thinking if isinstance(part, ReasoningPart) else part.data for part in message.parts]
