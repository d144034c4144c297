"""Folding events gives what the server has, however the stream was cut, repeated or merged."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from covey.client.transcript import Transcript, TranscriptChange
from covey.lifecycle.reply import ReasoningDelta, Reply, Structure, TextDelta, ToolCallBegun, ToolInputDelta
from covey.protocol.events import Event, Gap, MessageDelta, created, decode_event, deleted, encode_event, updated
from covey.protocol.messages import Message, ToolCall, ToolCallPart
from tests.client.values import run_complete, text_delta, text_message


def text_of(transcript: Transcript, message_id: str = "m1") -> str:
    message = transcript.get(message_id)
    assert message is not None
    return message.text


def begun() -> Transcript:
    transcript = Transcript()
    transcript.apply(created(text_message("m1")))
    return transcript


def test_deltas_grow_a_message() -> None:
    transcript = begun()
    assert transcript.apply(updated(text_delta("m1", 0, "Hel"))) == TranscriptChange("grew", "m1", "Hel")
    assert transcript.apply(updated(text_delta("m1", 3, "lo"))) == TranscriptChange("grew", "m1", "lo")
    assert text_of(transcript) == "Hello"
    assert transcript.apply(updated(text_delta("m1", 5, "!"))) == TranscriptChange("grew", "m1", "!")
    assert text_of(transcript) == "Hello!"


def test_known_text_is_ignored() -> None:
    transcript = begun()
    transcript.apply(updated(text_delta("m1", 0, "Hello")))
    assert transcript.apply(updated(text_delta("m1", 0, "Hel"))) is None
    assert transcript.apply(updated(text_delta("m1", 2, "llo, you"))) == TranscriptChange("grew", "m1", ", you")
    assert text_of(transcript) == "Hello, you"


def test_holes_are_noticed_and_nothing_is_lost_by_them() -> None:
    transcript = begun()
    transcript.apply(updated(text_delta("m1", 0, "Hello")))
    for event in (
        text_delta("m1", 6, "x"),
        text_delta("m1", 0, "x", part=2),
        text_delta("unknown", 0, "x"),
        msgspec.structs.replace(text_delta("m1", 0, "x"), kind="reasoning"),
        msgspec.structs.replace(text_delta("m1", 0, "x", part=1), kind="tool_input"),
    ):
        assert transcript.apply(updated(event)) == TranscriptChange("hole", event.message_id)
    assert text_of(transcript) == "Hello"
    transcript.apply(updated(text_message("m1", "Hello, you")))
    assert transcript.apply(updated(text_delta("m1", 10, "!"))) == TranscriptChange("grew", "m1", "!")
    assert text_of(transcript) == "Hello, you!"


def test_offsets_count_code_points() -> None:
    transcript = begun()
    transcript.apply(updated(text_delta("m1", 0, "a😀é")))
    assert transcript.apply(updated(text_delta("m1", 3, "z"))) == TranscriptChange("grew", "m1", "z")
    assert text_of(transcript) == "a😀éz"


def test_a_finished_message_takes_no_late_deltas() -> None:
    transcript = begun()
    transcript.apply(updated(text_message("m1", "Hello", finish="end_turn")))
    assert transcript.apply(updated(text_delta("m1", 0, "Hello, and more"))) is None
    assert transcript.apply(updated(text_delta("m1", 0, "x", part=1))) is None
    assert transcript.get("m1") == text_message("m1", "Hello", finish="end_turn")


def test_order_removal_and_reset() -> None:
    transcript = Transcript()
    for message_id in ("m1", "m2", "m3"):
        transcript.apply(created(text_message(message_id, message_id)))
    assert transcript.apply(updated(text_message("m1", "changed"))) == TranscriptChange("whole", "m1")
    assert [message.id for message in transcript] == ["m1", "m2", "m3"]
    assert transcript.apply(deleted(text_message("m2"))) == TranscriptChange("removed", "m2")
    assert [message.id for message in transcript] == ["m1", "m3"]
    assert transcript.apply(created(Gap(reason="old", resume_from="2.1"))) == TranscriptChange("reset")
    assert len(transcript) == 0


def test_other_events_change_nothing() -> None:
    assert Transcript().apply(created(run_complete())) is None


def test_tool_input_grows_a_call_that_was_announced() -> None:
    call = ToolCallPart(data=ToolCall(id="c1", name="bash", input="", finished=False))
    transcript = Transcript()
    transcript.apply(created(text_message("m1", parts=(call,))))
    delta = msgspec.structs.replace(text_delta("m1", 0, '{"a"'), kind="tool_input")
    assert transcript.apply(updated(delta)) == TranscriptChange("grew", "m1", '{"a"', "tool_input")
    message = transcript.get("m1")
    assert message is not None
    assert message.tool_calls[0].input == '{"a"'


facts = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(min_size=1, max_size=5)),
        st.builds(ReasoningDelta, st.text(min_size=1, max_size=5)),
        st.just("call"),
        st.builds(lambda text: ("input", text), st.text(min_size=1, max_size=4)),
    ),
    max_size=30,
)


def wire(event: Event) -> Event:
    """The event after its way through the wire."""
    decoded = decode_event(encode_event(event))
    assert decoded is not None
    return decoded


@given(facts=facts, resume_at=st.sets(st.integers(0, 30)), repeat=st.sets(st.integers(0, 30)))
def test_whatever_the_model_says_the_transcript_is_what_the_server_has(
    facts: list[object], resume_at: set[int], repeat: set[int]
) -> None:
    """A resume sends the whole message again; a repeated delta must not be counted twice."""
    reply = Reply(message_id="m1", session_id="s1", run_id="r1", model="m", provider="p", now=1)
    transcript = Transcript()
    transcript.apply(created(reply.message(1)))
    calls = 0
    for step, fact in enumerate(facts):
        if fact == "call":
            taken = reply.take(ToolCallBegun(calls, f"c{calls}", "bash"))
            calls += 1
        elif isinstance(fact, tuple):
            taken = reply.take(ToolInputDelta(calls - 1, fact[1])) if calls else None
        else:
            assert isinstance(fact, TextDelta | ReasoningDelta)
            taken = reply.take(fact)
        if taken is Structure.CHANGED:
            transcript.apply(wire(updated(reply.message(1))))
        elif isinstance(taken, MessageDelta):
            for _ in range(2 if step in repeat else 1):
                transcript.apply(wire(updated(taken)))
        if step in resume_at:
            transcript.apply(wire(updated(reply.message(1))))
        assert list(transcript) == [reply.message(1)]
    reply.finish("end_turn", 2)
    transcript.apply(wire(updated(reply.message(2))))
    stored: Message = reply.message(2)
    assert [msgspec.json.encode(message) for message in transcript] == [msgspec.json.encode(stored)]
