"""What the bytes of a Responses answer mean where the fixtures do not go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.lifecycle.reply import ModelFact, ReasoningDelta, Reply, Stopped, TextDelta, ToolCallBegun, ToolInputDelta
from covey.models.responses_answer import ResponsesAnswer
from covey.models.responses_request import encode_request
from covey.models.trouble import AnswerBroken
from covey.protocol.messages import ReasoningPart
from tests.models.asking import request
from tests.models.fixtures import ROOT, fed


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n"


def completed(**fields: Any) -> str:
    return event("response.completed", response={"status": "completed"} | fields)


def facts(*pieces: str, used: tuple[str, ...] = ()) -> list[ModelFact]:
    return fed(ResponsesAnswer(used), "".join(pieces).encode())


def begun(index: int, name: str = "ls", **fields: Any) -> str:
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "name": name, "arguments": ""}
    return event("response.output_item.added", output_index=index, item=item | fields)


def test_text_of_one_read_is_one_fact() -> None:
    deltas = [event("response.output_text.delta", output_index=0, delta=word) for word in ("Hel", "lo")]
    assert facts(*deltas, completed()) == [TextDelta("Hello"), Stopped("end_turn")]


def test_an_item_that_comes_only_whole_is_taken_whole() -> None:
    message = {
        "type": "message",
        "content": [{"type": "output_text", "text": "Hi"}, {"type": "refusal", "refusal": "!"}],
    }
    call = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}
    found = facts(
        event("response.output_item.done", output_index=0, item=message),
        event("response.output_item.done", output_index=1, item=call),
        completed(),
    )
    assert found == [TextDelta("Hi!"), ToolCallBegun(0, "c", "ls"), ToolInputDelta(0, "{}"), Stopped("tool_use")]


def test_only_what_the_deltas_left_out_is_taken_from_the_whole() -> None:
    done = {"type": "function_call", "call_id": "call_3", "name": "ls", "arguments": '{"a":1}'}
    found = facts(
        begun(3),
        event("response.function_call_arguments.delta", output_index=3, delta='{"a"'),
        event("response.output_item.done", output_index=3, item=done),
        completed(),
    )
    assert [fact.text for fact in found if isinstance(fact, ToolInputDelta)] == ['{"a"', ":1}"]


def test_an_id_that_was_used_before_is_replaced() -> None:
    first = facts(begun(0), completed(), used=("call_0",))[0]
    assert isinstance(first, ToolCallBegun) and first.call_id not in ("", "call_0")


def test_input_without_its_call_is_broken() -> None:
    with pytest.raises(AnswerBroken, match="had not begun"):
        facts(event("response.function_call_arguments.delta", output_index=0, delta="{"))


def test_a_call_without_a_name_is_broken() -> None:
    with pytest.raises(AnswerBroken, match="tool call without a name"):
        facts(begun(0, ""))


def test_events_and_items_of_unknown_kinds_are_skipped() -> None:
    found = facts(
        event("response.web_search_call.searching", output_index=0, item_id="ws_1"),
        event("response.output_item.done", output_index=0, item={"type": "web_search_call", "id": "ws_1"}),
        event("keepalive", sequence_number=4),
        event("response.output_text.delta", output_index=1, delta="x"),
        completed(),
    )
    assert found == [TextDelta("x"), Stopped("end_turn")]


@pytest.mark.parametrize("ending", ["", 'data: {"type": "response.comp', event("response.cancelled", response={})])
def test_no_end_means_cut_off(ending: str) -> None:
    with pytest.raises(AnswerBroken, match="cut off"):
        facts(event("response.output_text.delta", output_index=0, delta="x"), ending)


def test_done_is_an_end_even_without_a_reason() -> None:
    found = facts(event("response.output_text.delta", output_index=0, delta="x"), "data: [DONE]\n\n")
    assert found == [TextDelta("x"), Stopped("unknown")]


def test_an_event_of_an_impossible_form_is_quoted() -> None:
    with pytest.raises(AnswerBroken, match=r"unknown form: .*output_text"):
        facts('data: {"type": "response.output_text.delta", "delta": 5}\n\n')


@pytest.mark.parametrize("pieces", [(), ("hello\n",), (": ping\n\n",), ('data: {"type": "ping"}\n\n',)])
def test_nothing_is_not_an_answer(pieces: tuple[str, ...]) -> None:
    with pytest.raises(AnswerBroken):
        facts(*pieces)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_input_breaks_it_in_an_unknown_way(data: bytes) -> None:
    answer = ResponsesAnswer()
    try:
        answer.feed(b"data: " + data)
        answer.end()
    except AnswerBroken:
        pass


def test_thoughts_go_back_as_they_came() -> None:
    """Through the message that is stored, and into the next request, each in its place."""
    path = ROOT / "responses" / "two_thoughts.sse"
    reply = Reply(message_id="m1", session_id="s1", run_id="r1", model="big", provider="local", now=0)
    for fact in fed(ResponsesAnswer(), path.read_bytes()):
        reply.take(fact)
    said = reply.message(0)
    assert [part.data.thinking for part in said.parts if isinstance(part, ReasoningPart)] == ["First.", ""]
    sent = json.loads(encode_request(request("hello", said), "local"))["input"][1:]
    assert [item.get("type", item.get("role")) for item in sent] == [
        "reasoning",
        "assistant",
        "reasoning",
        "function_call",
    ]
    assert [(item["id"], item["encrypted_content"]) for item in sent if item.get("type") == "reasoning"] == [
        ("rs_01", "gAAAAABpF2Vu7t0Q-enc-whole=="),
        ("rs_02", "gAAAAABpF2Vu7t0Q-two-whole=="),
    ]


def test_two_thoughts_without_a_word_between_them_both_go_back() -> None:
    def item(item_id: str) -> str:
        thought = {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": f"e-{item_id}"}
        return event("response.output_item.done", output_index=0, item=thought)

    found = facts(item("rs_1"), item("rs_2"), begun(2), completed())
    reply = Reply(message_id="m1", session_id="s1", run_id="r1", model="big", provider="local", now=0)
    for fact in found:
        reply.take(fact)
    assert [fact.text for fact in found if isinstance(fact, ReasoningDelta)] == ["", ""]
    sent = json.loads(encode_request(request("hello", reply.message(0)), "local"))["input"][1:]
    assert [piece.get("id") for piece in sent] == ["rs_1", "rs_2", None]
