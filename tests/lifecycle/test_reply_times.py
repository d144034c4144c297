"""Thoughts know when they began and ended; deltas do not tell it, whole messages do."""

from __future__ import annotations

from covey.lifecycle.reply import ModelFact, ReasoningDelta, Stopped, TextDelta, ToolCallBegun
from covey.protocol.growth import TextPiece, grown
from covey.protocol.messages import Message, ReasoningPart
from tests.lifecycle.test_reply import new_reply


def times(message: Message) -> list[tuple[int | None, int | None]]:
    """Of each thought."""
    thoughts = [part.data for part in message.parts if isinstance(part, ReasoningPart)]
    return [(thought.started_at, thought.finished_at) for thought in thoughts]


def after(*facts: ModelFact, finished: int | None = None) -> Message:
    """A reply to which a fact came in each second from 101 on."""
    reply = new_reply()
    for now, fact in enumerate(facts, 101):
        reply.take(fact, now)
    if finished:
        reply.finish("end_turn", finished)
    return reply.message(now=200)


def test_a_thought_begins_with_its_first_word_and_ends_when_something_else_begins() -> None:
    assert times(after(ReasoningDelta("h"), ReasoningDelta("m"))) == [(101, None)]
    for following in (TextDelta("I"), ToolCallBegun(0, "c", "view")):
        assert times(after(ReasoningDelta("h"), ReasoningDelta("m"), following, TextDelta(" go"))) == [(101, 103)]


def test_a_signature_ends_no_thought_but_the_next_thought_does() -> None:
    facts = (ReasoningDelta("h"), ReasoningDelta("", "signed"), Stopped("end_turn"), ReasoningDelta("m"))
    assert times(after(*facts)) == [(101, 104), (104, None)]


def test_a_thought_that_is_the_last_part_ends_with_the_message() -> None:
    assert times(after(ReasoningDelta("h"), ReasoningDelta("m"), finished=150)) == [(101, 150)]
    assert times(after(ReasoningDelta("h"), TextDelta("I"), finished=150)) == [(101, 102)]
    assert times(after(ReasoningDelta("", "sealed"), finished=150)) == [(101, 150)]
    assert after(finished=150).finish, "a reply without any part can be finished"


def test_nothing_but_thoughts_has_times() -> None:
    said = after(TextDelta("a"), ToolCallBegun(0, "c", "view"), finished=150)
    assert "started_at" not in repr(said) and "finished_at" not in repr(said)


def test_growth_keeps_the_times_that_are_known_and_makes_none_up() -> None:
    """As a store does with what was saved between two whole messages, also after a crash."""
    whole = after(ReasoningDelta("h"))
    later = grown(
        whole, [TextPiece(0, "reasoning", 1, "m"), TextPiece(1, "text", 0, "I go"), TextPiece(2, "reasoning", 0, "so")]
    )
    assert times(later) == [(101, None), (None, None)]
    assert [part.data.thinking for part in later.parts if isinstance(part, ReasoningPart)] == ["hm", "so"]


def test_without_a_clock_there_are_no_times() -> None:
    reply = new_reply()
    reply.take(ReasoningDelta("h"))
    assert times(reply.message(now=100)) == [(None, None)]
