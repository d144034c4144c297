"""An answer stays within its bounds, whatever a provider sends. What is counted is what is kept, never time."""

from __future__ import annotations

import pytest

from covey.lifecycle import history
from covey.lifecycle.reply import (
    MAX_CALLS,
    MAX_CHARACTERS,
    MAX_PARTS,
    PART_CHARACTERS,
    ModelFact,
    ReasoningDelta,
    Reply,
    Structure,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
)
from covey.protocol.events import MessageDelta
from covey.protocol.messages import Message, Reasoning, ReasoningPart, TextPart, ToolCallPart
from tests.lifecycle.test_reply import new_reply

ROOM = MAX_CHARACTERS - PART_CHARACTERS
"""What the text of an answer with a single part may have."""


def with_calls(count: int) -> Reply:
    reply = new_reply()
    for index in range(count):
        reply.take(ToolCallBegun(index, f"c{index}", "work"))
        reply.take(ToolInputDelta(index, f"[{index}]"))
    return reply


def length(message: Message) -> int:
    """All characters that came from the provider."""
    total = 0
    for part in message.parts:
        match part:
            case TextPart(data=text):
                total += len(text.text)
            case ReasoningPart(data=thought):
                total += len(thought.thinking) + len(thought.signature)
            case ToolCallPart(data=call):
                total += len(call.id) + len(call.name) + len(call.input)
    return total


# ── tool calls ──


@pytest.mark.parametrize("count", [1, MAX_CALLS - 1, MAX_CALLS])
def test_calls_up_to_the_bound_are_all_kept(count: int) -> None:
    reply = with_calls(count)
    assert (len(reply.message(1).tool_calls), reply.dropped_calls, reply.cut_off) == (count, 0, "")
    assert reply.last_call_id == f"c{count - 1}"


def test_calls_beyond_the_bound_are_counted_and_not_kept() -> None:
    reply = with_calls(20_000)
    calls = reply.message(1).tool_calls
    assert [(call.id, call.input) for call in calls] == [(f"c{n}", f"[{n}]") for n in range(MAX_CALLS)]
    assert (reply.dropped_calls, reply.last_call_id) == (20_000 - MAX_CALLS, f"c{MAX_CALLS - 1}")
    assert reply.cut_off == "", "the answer goes on"
    assert len(reply._calls) == reply.part_count == MAX_CALLS


def test_a_dropped_call_and_its_input_are_published_to_nobody() -> None:
    reply = with_calls(MAX_CALLS)
    assert reply.take(ToolCallBegun(MAX_CALLS, "late", "work")) is None
    assert reply.take(ToolInputDelta(MAX_CALLS, "{}")) is None
    assert isinstance(reply.take(ToolInputDelta(0, "!")), MessageDelta), "the others still grow"
    assert isinstance(reply.take(TextDelta("and so on")), MessageDelta)


def test_the_input_of_a_dropped_call_does_not_go_to_another_with_its_number() -> None:
    reply = with_calls(MAX_CALLS)
    reply.take(ToolCallBegun(5, "late", "work"))
    assert reply.take(ToolInputDelta(5, "{}")) is None
    assert [call.input for call in reply.message(1).tool_calls] == [f"[{n}]" for n in range(MAX_CALLS)]


def test_calls_that_all_have_one_number_are_counted_too() -> None:
    reply = new_reply()
    for number in range(MAX_CALLS + 3):
        reply.take(ToolCallBegun(0, f"c{number}", "work"))
    assert (len(reply.message(1).tool_calls), reply.dropped_calls) == (MAX_CALLS, 3)


def test_input_of_a_call_that_never_began_is_a_mistake_as_long_as_none_was_dropped() -> None:
    with pytest.raises(KeyError):
        with_calls(3).take(ToolInputDelta(3, "{}"))


def test_a_stream_of_calls_without_end_is_cut_off() -> None:
    """Even of calls that have next to no text, of which none is kept."""
    reply, count = new_reply(), 0
    while not reply.cut_off:
        reply.take(ToolCallBegun(count, "", "w"))
        count += 1
    assert count <= MAX_CHARACTERS // PART_CHARACTERS
    assert len(reply.message(1).tool_calls) == MAX_CALLS


def test_the_model_is_informed_how_many_calls_were_dropped_and_what_to_do() -> None:
    text = history.dropped_calls(19_872)
    assert "first 128 tool calls" in text and "19,872 more" in text and "at most 128 at a time" in text


# ── length ──


@pytest.mark.parametrize("size", [1, 1000, ROOM - 1])
def test_text_below_the_bound_is_kept_whole(size: int) -> None:
    reply = new_reply()
    reply.take(TextDelta("x" * size))
    assert (reply.message(1).text, reply.cut_off) == ("x" * size, "")


@pytest.mark.parametrize("pieces", [(ROOM,), (ROOM + 1,), (ROOM - 1, 2), (ROOM - 5, 50_000), (1, ROOM, 7)])
def test_text_is_kept_up_to_the_bound_and_published_so_far(pieces: tuple[int, ...]) -> None:
    reply = new_reply()
    given = [reply.take(TextDelta("x" * size)) for size in pieces]
    assert reply.message(1).text == "x" * ROOM
    assert sum(len(delta.delta) for delta in given if isinstance(delta, MessageDelta)) == ROOM
    assert reply.cut_off == "the answer was cut off at 8,388,608 characters"


@pytest.mark.parametrize(
    "fact",
    [
        TextDelta("x" * 9_999),
        ReasoningDelta("x" * 9_999),
        ReasoningDelta("", "x" * 9_999),
        ReasoningDelta("x" * 5_000, "y" * 4_999),
        ToolInputDelta(0, "x" * 9_999),
        ToolCallBegun(1, "x" * 5_000, "y" * 4_999),
    ],
    ids=lambda fact: type(fact).__name__,
)
def test_whatever_an_answer_is_made_of_it_is_cut_off_at_the_bound(fact: ModelFact) -> None:
    reply = new_reply()
    reply.take(ToolCallBegun(0, "c", "work"))
    taken = 0
    while not reply.cut_off:
        reply.take(fact)
        taken += 1
    assert taken <= MAX_CHARACTERS // 9_999 + 1
    assert length(reply.message(1)) <= MAX_CHARACTERS


def test_a_signature_is_kept_whole_or_not_at_all() -> None:
    """The provider would refuse a history with half of one."""
    reply = new_reply()
    reply.take(ReasoningDelta("x" * (ROOM - 10)))
    reply.take(ReasoningDelta("", "s" * 11))
    (part,) = reply.message(1).parts
    assert isinstance(part, ReasoningPart) and part.data.signature == "" and reply.cut_off


def test_a_thought_that_comes_with_too_long_a_signature_tells_nothing() -> None:
    reply = new_reply()
    reply.take(ReasoningDelta("x" * (ROOM - 1)))
    assert reply.take(ReasoningDelta("y" * 10, "s" * 100)) is None
    (part,) = reply.message(1).parts
    assert isinstance(part, ReasoningPart) and part.data == Reasoning(thinking="x" * (ROOM - 1), signature="")


@pytest.mark.parametrize("fact", [ReasoningDelta("x"), ReasoningDelta("", "s"), ToolCallBegun(0, "c", "work")])
def test_a_part_for_which_there_is_no_room_does_not_begin(fact: ModelFact) -> None:
    """An empty text would be refused by providers, and a call without its input is none."""
    reply = new_reply()
    reply.take(TextDelta("x" * (ROOM - 1)))
    assert reply.take(fact) is None
    assert reply.part_count == 1 and reply.cut_off


def test_nothing_is_taken_after_the_cut() -> None:
    reply = new_reply()
    reply.take(TextDelta("x" * MAX_CHARACTERS))
    before = reply.message(1)
    for fact in (TextDelta("y"), ReasoningDelta("y", "s"), ToolCallBegun(0, "c", "work")):
        assert reply.take(fact) is None
    assert reply.message(1) == before


def test_words_and_thoughts_that_take_turns_for_ever_are_cut_off() -> None:
    reply = new_reply()
    while not reply.cut_off:
        reply.take(TextDelta("a"))
        reply.take(ReasoningDelta("b"))
    assert reply.part_count == MAX_PARTS and len(reply.message(1).parts) == MAX_PARTS
    assert reply.cut_off == "the answer was cut off at 4,096 parts"


def test_signed_thoughts_without_end_are_cut_off() -> None:
    reply = new_reply()
    while not reply.cut_off:
        reply.take(ReasoningDelta("thought", "signature"))
    assert reply.part_count == MAX_PARTS


def test_a_signed_thought_that_would_be_one_part_too_many_goes_nowhere() -> None:
    reply = new_reply()
    for _ in range(MAX_PARTS):
        reply.take(ReasoningDelta("a", "s"))
    before = reply.message(1)
    assert reply.take(ReasoningDelta("b")) is None
    assert reply.message(1) == before and reply.cut_off


# ── what it costs ──


def test_unsaved_text_can_be_had_of_the_first_parts_alone() -> None:
    reply = new_reply()
    reply.take(TextDelta("a"))
    assert reply.take(ToolCallBegun(0, "c", "work")) is Structure.CHANGED
    reply.take(ToolInputDelta(0, "{}"))
    assert [piece.part for piece in reply.unsaved(1)] == [0]
    assert [piece.part for piece in reply.unsaved()] == [1]
