"""What the bytes of an answer mean, however a server writes and cuts them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.models import sse
from covey.models.chat_answer import ChatAnswer
from covey.models.trouble import AnswerBroken
from tests.support.fake_model import Call, Reply, delta, event, events

DONE = "data: [DONE]\n\n"


def facts(*pieces: str, used: tuple[str, ...] = ()) -> list[ModelFact]:
    """What the pieces mean, each being one read."""
    answer = ChatAnswer(used)
    found = [fact for piece in pieces for fact in answer.feed(piece.encode())]
    return found + answer.end()


def call(arguments: Any = None, name: str | None = None, **fields: Any) -> str:
    function = {"name": name, "arguments": arguments}
    return delta(
        tool_calls=[fields | {"function": {key: value for key, value in function.items() if value is not None}}]
    )


def calls(found: list[ModelFact]) -> list[tuple[str, str, str]]:
    """Id, name and whole input of each tool call."""
    begun = {fact.index: fact for fact in found if isinstance(fact, ToolCallBegun)}
    inputs = dict.fromkeys(begun, "")
    for fact in found:
        if isinstance(fact, ToolInputDelta):
            inputs[fact.index] += fact.text
    return [(fact.call_id, fact.name, inputs[index]) for index, fact in begun.items()]


def test_text_usage_and_end() -> None:
    usage = event(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 2})
    assert facts(
        delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop"), usage, DONE
    ) == [
        TextDelta("Hel"),
        TextDelta("lo"),
        UsageReported(7, 2),
        Stopped("end_turn"),
    ]


def test_what_comes_in_one_read_is_one_fact() -> None:
    assert facts("".join(delta(content=str(n)) for n in range(5)) + delta("stop") + DONE) == [
        TextDelta("01234"),
        Stopped("end_turn"),
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_before_text(field: str) -> None:
    data = delta(**{field: "hm", "content": None}) + delta(**{field: "m", "content": "So"}) + delta("stop")
    assert facts(data) == [ReasoningDelta("hmm"), TextDelta("So"), Stopped("end_turn")]


def test_a_refusal_is_text() -> None:
    assert facts(delta(refusal="No."), delta("stop"))[0] == TextDelta("No.")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "content_filter"),
        ("tool_calls", "end_turn"),  # it says so, but there are none
        ("eos_token", "unknown"),
    ],
)
def test_finish_reasons_of_an_answer_without_tool_calls(given: str, meant: str) -> None:
    assert facts(delta(content="x"), delta(given))[-1] == Stopped(meant)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("tool_calls", "tool_use"), ("function_call", "tool_use"), ("stop", "tool_use"), ("length", "max_tokens")],
)
def test_finish_reasons_of_an_answer_with_tool_calls(given: str, meant: str) -> None:
    assert facts(call("{}", "bash", index=0, id="a"), delta(given))[-1] == Stopped(meant)  # type: ignore[arg-type]


def test_tool_calls_in_fragments_that_alternate() -> None:
    found = facts(
        call("", "bash", index=0, id="a"),
        call('{"x"', index=0),
        call("", "view", index=1, id="b"),
        call('{"y"', index=1),
        call(":1}", index=0),
        call(":2}", index=1),
        delta("tool_calls"),
        DONE,
    )
    assert calls(found) == [("a", "bash", '{"x":1}'), ("b", "view", '{"y":2}')]
    assert [fact.index for fact in found if isinstance(fact, ToolCallBegun)] == [0, 1]


def test_whole_tool_calls_in_one_event() -> None:
    both = [
        {"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{}"}},
        {"index": 1, "id": "b", "function": {"name": "view", "arguments": '{"y":2}'}},
    ]
    assert calls(facts(delta("tool_calls", tool_calls=both))) == [("a", "bash", "{}"), ("b", "view", '{"y":2}')]


def test_tool_calls_without_an_index() -> None:
    found = facts(call('{"x":', "bash", id="a"), call("1}"), call("{}", "view", id="b"), delta("stop"))
    assert calls(found) == [("a", "bash", '{"x":1}'), ("b", "view", "{}")]


def test_tool_calls_that_repeat_their_id_and_have_no_index() -> None:
    found = facts(call('{"x":', "bash", id="a"), call("1}", "bash", id="a"), delta("stop"))
    assert calls(found) == [("a", "bash", '{"x":1}')]


def test_whole_tool_calls_that_all_have_index_0() -> None:
    found = facts(call("{}", "bash", index=0, id="a"), call("{}", "view", index=0, id="b"), delta("stop"))
    assert calls(found) == [("a", "bash", "{}"), ("b", "view", "{}")]


def test_input_as_an_object_instead_of_a_string() -> None:
    assert calls(facts(call({"x": 1}, "bash", index=0, id="a"), delta("stop"))) == [("a", "bash", '{"x":1}')]


def test_calls_without_an_id_get_one_each() -> None:
    found = calls(facts(call("{}", "bash"), call("{}", "view", id=""), delta("stop")))
    ids = {call_id for call_id, _, _ in found}
    assert len(found) == len(ids) == 2 and all(ids)


def test_an_id_that_was_used_before_is_replaced() -> None:
    found = calls(
        facts(call("{", "bash", index=0, id="call_0"), call("}", index=0, id="call_0"), delta("stop"), used=("call_0",))
    )
    [(call_id, _, arguments)] = found
    assert call_id not in ("", "call_0") and arguments == "{}"


def test_a_call_without_a_name_is_broken() -> None:
    with pytest.raises(AnswerBroken, match="tool call without a name"):
        facts(call("{}", index=0, id="a"))


def test_comments_other_fields_and_line_ends() -> None:
    data = (
        ": hello\r\n\r\nevent: message\r\nid: 1\r\ndata:" + delta(content="x")[5:].strip() + "\r\n\r\n" + delta("stop")
    )
    assert facts(data) == [TextDelta("x"), Stopped("end_turn")]


def test_events_of_unknown_kinds_are_skipped() -> None:
    assert facts('data: {"type": "ping"}\n\n', delta(content="x"), delta("stop"))[0] == TextDelta("x")


def test_an_answer_that_was_not_streamed() -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
    assert facts(json.dumps(whole)) == [TextDelta("x"), Stopped("end_turn")]


def test_done_is_an_end_even_without_a_reason() -> None:
    assert facts(delta(content="x"), DONE)[-1] == Stopped("unknown")


def test_a_reason_is_an_end_even_without_done() -> None:
    assert facts(delta(content="x"), delta("stop"))[-1] == Stopped("end_turn")


@pytest.mark.parametrize("last", ["", 'data: {"choices": [{"del', "data: "])
def test_no_end_means_cut_off(last: str) -> None:
    with pytest.raises(AnswerBroken, match="the answer was cut off"):
        facts(delta(content="x"), last)


@pytest.mark.parametrize("last", ['data: {"choices": [], "usa', "data: [DO"])
def test_an_answer_that_is_whole_cannot_be_cut_off(last: str) -> None:
    assert facts(delta(content="x"), delta("stop"), last) == [TextDelta("x"), Stopped("end_turn")]


def test_words_before_a_break_count() -> None:
    answer = ChatAnswer()
    assert answer.feed((delta(content="x") + "data: garbage\n\n" + delta(content="y")).encode()) == [TextDelta("x")]
    assert answer.done
    with pytest.raises(AnswerBroken, match="garbage"):
        answer.end()


def test_usage_with_every_chunk_is_reported_once_for_each_read() -> None:
    chunks = [
        event(choices=[{"delta": {"content": "x"}}], usage={"prompt_tokens": 3, "completion_tokens": n})
        for n in range(3)
    ]
    assert facts("".join(chunks), delta("stop")) == [TextDelta("xxx"), UsageReported(3, 2), Stopped("end_turn")]


@pytest.mark.parametrize("pieces", [(), (DONE,), ("hello\n",), (": ping\n\n",)])
def test_nothing_is_not_an_answer(pieces: tuple[str, ...]) -> None:
    with pytest.raises(AnswerBroken, match="the answer of a model's API"):
        facts(*pieces)


@pytest.mark.parametrize("garbage", ["data: not json\n\n", "data: {]\n\n", "data: \x00\x01\n\n"])
def test_garbage_is_quoted(garbage: str) -> None:
    with pytest.raises(AnswerBroken, match="sent garbage: "):
        facts(delta(content="x"), garbage)


def test_an_event_of_an_impossible_form_is_quoted() -> None:
    with pytest.raises(AnswerBroken, match=r"unknown form: .*choices"):
        facts('data: {"choices": 5}\n\n')


def test_a_web_page_is_recognised() -> None:
    with pytest.raises(AnswerBroken, match="does not look like the API of a model"):
        facts("\n  <!doctype html>\n<html>…")


@pytest.mark.parametrize(
    "error",
    [
        'data: {"error": {"message": "overloaded", "code": 529}}\n\n',
        'data: {"error": "overloaded"}\n\n',
        'data: {"object": "error", "message": "overloaded"}\n\n',
        'event: error\ndata: {"choices": [], "error": {"message": "overloaded"}}\n\n',
        '{"error": {"message": "overloaded"}}',
        'data: {"error": {"type": "overloaded"}}\n\n',
    ],
)
def test_errors_inside_the_stream(error: str) -> None:
    with pytest.raises(AnswerBroken, match=r"reported an error: .*overloaded"):
        facts(error)


def test_a_line_without_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_LINE_BYTES", 1000)
    answer = ChatAnswer()
    for _ in range(9):
        answer.feed(b"data: " + b"x" * 100)
    assert not answer.done
    answer.feed(b"x" * 100)
    assert answer.done
    with pytest.raises(AnswerBroken, match="a line of more than"):
        answer.end()


@settings(deadline=None)
@given(st.data())
def test_how_the_bytes_are_cut_does_not_matter(data: st.DataObject) -> None:
    reply = Reply(
        reasoning="Hmm, 🤔 …",
        text="Grüße {n} ",
        chunks=3,
        tools=(Call(name="bash", input={"a": "ß"}, id="c", pieces=3),),
    )
    whole = "".join(events(reply)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    answer = ChatAnswer()
    found = []
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += answer.feed(whole[start:stop])
    found += answer.end()
    assert "".join(fact.text for fact in found if isinstance(fact, ReasoningDelta)) == "Hmm, 🤔 …"
    assert "".join(fact.text for fact in found if isinstance(fact, TextDelta)) == "Grüße 0 Grüße 1 Grüße 2 "
    assert calls(found) == [("c", "bash", json.dumps({"a": "ß"}))]
    assert found[-2:] == [UsageReported(10, 5), Stopped("tool_use")]


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_input_breaks_it_in_an_unknown_way(data: bytes) -> None:
    answer = ChatAnswer()
    try:
        answer.feed(b"data: " + data)
        answer.end()
    except AnswerBroken:
        pass
