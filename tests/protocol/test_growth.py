"""A message that grows is the same for whoever folds it. What is counted is what is kept or called, never time."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from msgspec import structs

from covey.protocol.events import DeltaKind, MessageDelta
from covey.protocol.growth import JOIN_AT, GrowingMessage, GrowingPart, Pieces, TextPiece, grown
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Finish,
    FinishPart,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
)

THOUGHT = ReasoningPart(data=Reasoning(thinking="hm", signature="signed", started_at=1, finished_at=2))
WORDS = TextPart(data=Text(text="é👋"))
CALL = ToolCallPart(data=ToolCall(id="c", name="bash", input="{", finished=False))
PICTURE = BinaryPart(data=Binary(Path="a.png", MIMEType="image/png", Data="AA=="))
END = FinishPart(data=Finish(reason="end_turn", time=3))


def message(*parts: Part) -> Message:
    return Message(
        id="m", role="assistant", session_id="s", parts=parts, model="m", provider="p", created_at=1, updated_at=1
    )


def delta(part: int, kind: DeltaKind, offset: int, text: str) -> MessageDelta:
    return MessageDelta(message_id="m", session_id="s", run_id="r", part=part, kind=kind, offset=offset, delta=text)


def texts(whole: Message) -> list[str]:
    """Of each part, what deltas grow."""
    data: list[Any] = [part.data for part in whole.parts]
    return [getattr(d, "text", "") or getattr(d, "thinking", "") or getattr(d, "input", "") for d in data]


# ── what fits ──


def test_every_kind_of_part_that_has_deltas_grows_and_keeps_the_rest_of_it() -> None:
    growing = GrowingMessage(message(THOUGHT, WORDS, CALL))
    assert growing.grow(delta(0, "reasoning", 2, "m")) == "m"
    assert growing.grow(delta(1, "text", 2, "!")) == "!"
    assert growing.grow(delta(2, "tool_input", 1, "}")) == "}"
    thought = ReasoningPart(data=structs.replace(THOUGHT.data, thinking="hmm"))
    words = TextPart(data=Text(text="é👋!"))
    call = ToolCallPart(data=structs.replace(CALL.data, input="{}"))
    assert growing.message() == message(thought, words, call)


@pytest.mark.parametrize(("kind", "text"), [("text", "a"), ("reasoning", "b")])
def test_words_and_thoughts_begin_behind_the_last_part(kind: DeltaKind, text: str) -> None:
    growing = GrowingMessage(message(CALL))
    assert growing.grow(delta(1, kind, 0, text)) == text
    assert growing.part_count == 2
    assert growing.grow(delta(1, kind, 1, "z")) == "z"
    assert growing.grow(delta(2, "text", 0, "next")) == "next"
    whole = growing.message()
    begun = (
        TextPart(data=Text(text="az")) if kind == "text" else ReasoningPart(data=Reasoning(thinking="bz", signature=""))
    )
    assert whole == message(CALL, begun, TextPart(data=Text(text="next")))


@pytest.mark.parametrize(
    ("offset", "text", "fresh"), [(0, "é", ""), (0, "é👋", ""), (1, "👋, you", ", you"), (2, "", ""), (0, "é👋x", "x")]
)
def test_only_what_is_not_known_yet_is_added(offset: int, text: str, fresh: str) -> None:
    growing = GrowingMessage(message(WORDS))
    assert growing.grow(delta(0, "text", offset, text)) == fresh
    assert texts(growing.message()) == ["é👋" + fresh]


@pytest.mark.parametrize(
    "misfit",
    [
        delta(1, "text", 3, "x"),
        delta(1, "text", -1, "x"),
        delta(1, "reasoning", 2, "x"),
        delta(2, "text", 0, "x"),
        delta(3, "text", 1, "x"),
        delta(3, "tool_input", 0, "x"),
        delta(4, "text", 0, "x"),
        delta(-1, "text", 0, "x"),
    ],
    ids=lambda misfit: f"{misfit.part}-{misfit.kind}-{misfit.offset}",
)
def test_what_does_not_fit_changes_nothing(misfit: MessageDelta) -> None:
    whole = message(THOUGHT, WORDS, PICTURE)
    growing = GrowingMessage(whole)
    assert growing.grow(misfit) is None
    assert not growing.begin(misfit)
    assert (growing.part_count, growing.message()) == (3, whole)


def test_nothing_is_added_to_a_finished_message_and_nothing_is_missing_of_it() -> None:
    growing = GrowingMessage(message(WORDS, END))
    assert growing.grow(delta(0, "text", 2, "late")) == ""
    assert growing.grow(delta(2, "text", 0, "late")) == ""
    assert not growing.begin(delta(2, "text", 0, "late"))
    assert growing.extend([TextPiece(0, "text", 2, "late")]) == 0
    assert growing.message() == message(WORDS, END)


def test_a_text_without_anything_begins_no_part() -> None:
    growing = GrowingMessage(message())
    assert growing.grow(delta(0, "text", 0, "")) == ""
    assert growing.message() == message()


# ── beginning, replacing, looking ──


def test_a_part_can_be_begun_before_it_grows() -> None:
    growing = GrowingMessage(message(WORDS))
    first = delta(1, "reasoning", 0, "hm")
    assert growing.begin(first)
    assert growing.message() == message(WORDS, ReasoningPart(data=Reasoning(thinking="", signature="")))
    assert not growing.begin(first), "it is there"
    assert growing.grow(first) == "hm"
    assert not growing.begin(delta(1, "reasoning", 2, "!"))
    assert texts(growing.message()) == ["é👋", "hm"]


def test_a_whole_message_takes_the_place_of_what_was_known() -> None:
    growing = GrowingMessage(message(WORDS))
    growing.grow(delta(0, "text", 2, " and more"))
    growing.grow(delta(1, "text", 0, "another"))
    growing.replace(message(CALL))
    assert (growing.part_count, growing.message()) == (1, message(CALL))
    assert growing.grow(delta(0, "tool_input", 1, "}")) == "}"


def test_looking_at_the_message_does_not_change_what_comes_of_it() -> None:
    seen, unseen = GrowingMessage(message(WORDS)), GrowingMessage(message(WORDS))
    for number in range(30):
        part, offset = number % 3, number // 3 + (2 if number % 3 == 0 else 0)
        for growing in (seen, unseen):
            assert growing.grow(delta(part, "text", offset, "x")) == "x"
        seen.message()
    assert seen.message() == unseen.message()
    assert texts(unseen.message()) == ["é👋" + "x" * 10, "x" * 10, "x" * 10]
    assert seen.message() is seen.message()


def test_a_message_that_was_handed_out_stays_as_it_was() -> None:
    growing = GrowingMessage(message(WORDS))
    before = growing.message()
    growing.grow(delta(0, "text", 2, "!"))
    assert growing.message() != before == message(WORDS)


def test_a_part_that_has_no_deltas_is_itself() -> None:
    part = GrowingPart(PICTURE)
    assert (part.kind, part.length, part.part()) == (None, 0, PICTURE)


# ── text that was saved ──


def test_saved_text_is_taken_up_to_the_first_piece_that_does_not_continue_it() -> None:
    good = [TextPiece(0, "text", 2, "a"), TextPiece(1, "reasoning", 0, "b"), TextPiece(0, "text", 3, "c")]
    assert texts(grown(message(WORDS), good)) == ["é👋ac", "b"]
    for bad in (
        TextPiece(0, "text", 2, "known"),
        TextPiece(0, "text", 9, "x"),
        TextPiece(5, "text", 0, "x"),
        TextPiece(2, "nonsense", 0, "x"),  # type: ignore[arg-type] # a damaged file can hold anything
    ):
        growing = GrowingMessage(message(WORDS))
        assert growing.extend([*good[:2], bad, good[2]]) == 2
        assert texts(growing.message()) == ["é👋a", "b"]


# ── what it costs ──


def test_a_delta_costs_the_same_however_long_the_message_is() -> None:
    growing = GrowingMessage(message())
    calls: Counter[str] = Counter()
    length = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            calls[getattr(arg, "__name__", frame.f_code.co_name)] += 1

    def cost() -> Counter[str]:
        nonlocal length
        deltas = [delta(0, "text", length + 10 * number, "ten chars.") for number in range(JOIN_AT)]
        length += 10 * JOIN_AT
        calls.clear()
        sys.setprofile(count)
        for growth in deltas:
            growing.grow(growth)
        sys.setprofile(None)
        return Counter(calls)

    growing.begin(delta(0, "text", 0, "x"))
    costs = [cost() for _ in range(20)]
    assert costs == costs[:1] * 20
    assert costs[0]["join"] == 1, "counted: of the last pieces only, since nobody needs the whole text yet"
    assert len(growing.message().text) == length


def test_tiny_pieces_do_not_take_more_room_than_their_text() -> None:
    pieces = Pieces()
    for _ in range(50 * JOIN_AT + 7):
        pieces.append("".join(("ä", "ö")))
    kept = [*pieces._chunks, *pieces._recent]
    assert len(kept) < 50 + JOIN_AT
    assert sum(map(sys.getsizeof, kept)) < 50 * JOIN_AT * 2 + 60 * len(kept) + 2 * JOIN_AT
    assert str(pieces) == "äö" * (50 * JOIN_AT + 7)


@pytest.mark.parametrize("count", [0, 1, 2, JOIN_AT - 1, JOIN_AT, JOIN_AT + 1, 2 * JOIN_AT, 3 * JOIN_AT])
@pytest.mark.parametrize("looked_at", [-1, 1, JOIN_AT - 1, JOIN_AT])
def test_text_in_pieces_is_the_text(count: int, looked_at: int) -> None:
    pieces = Pieces()
    for number in range(count):
        pieces.append(f"{number},")
        if number == looked_at:
            assert str(pieces).endswith(f",{number},")
    text = "".join(f"{number}," for number in range(count))
    assert (str(pieces), str(pieces), bool(pieces)) == (text, text, count > 0)
