"""Facts of a reply as values, and what a reply says of itself."""

from __future__ import annotations

import pytest

from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Reply,
    Stopped,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.protocol.growth import TextPiece
from tests.lifecycle.test_reply import new_reply

FACTS = (
    TextDelta("a"),
    ReasoningDelta("a"),
    ToolCallBegun(0, "c", "work"),
    ToolInputDelta(0, "a"),
    UsageReported(1, 2),
    Stopped("end_turn"),
    TextPiece(0, "text", 0, "a"),
)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_a_fact_does_not_change(fact: object) -> None:
    """Whoever has taken one may keep it."""
    assert fact in {fact}
    with pytest.raises(AttributeError):
        setattr(fact, "text", "b")  # noqa: B010 # a type checker would see it


@pytest.mark.parametrize(
    ("fact", "empty"),
    [
        (TextDelta("a"), False),
        (ReasoningDelta("a"), False),
        (ToolCallBegun(0, "c", "work"), False),
        (TextDelta(""), True),
        (UsageReported(1, 2), True),
        (Stopped("end_turn"), True),
    ],
    ids=str,
)
def test_a_reply_is_empty_until_something_is_said(fact: ModelFact, empty: bool) -> None:
    reply = new_reply()
    assert reply.is_empty
    reply.take(fact)
    assert reply.is_empty is empty


def test_a_summary_is_marked_as_one() -> None:
    assert not new_reply().message(101).is_summary_message
    summary = Reply(message_id="m", session_id="s", run_id="r", model="b", provider="p", now=100, is_summary=True)
    assert summary.message(101).is_summary_message
