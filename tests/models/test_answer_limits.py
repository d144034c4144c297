"""What a decoder remembers of an answer has a bound, and what a tool call costs it does not depend on their number."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from covey.lifecycle.reply import ToolCallBegun
from covey.models import anthropic_answer, sse
from covey.models.anthropic_answer import MessagesAnswer
from covey.models.chat_answer import ChatAnswer
from covey.models.google_answer import GeminiAnswer
from covey.models.responses_answer import ResponsesAnswer
from covey.models.sse import SseAnswer
from covey.models.trouble import AnswerBroken


def _event(**value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _chat_delta(**delta: Any) -> bytes:
    return _event(choices=[{"index": 0, "delta": delta}])


def chat(number: int) -> bytes:
    function = {"name": "work", "arguments": "{}"}
    return _chat_delta(tool_calls=[{"index": number, "id": f"c{number}", "function": function}])


def chat_without_index(number: int) -> bytes:
    return _chat_delta(tool_calls=[{"id": f"c{number}", "function": {"name": "work", "arguments": "{}"}}])


def chat_with_index_0(number: int) -> bytes:
    function = {"name": "work", "arguments": "{}"}
    return _chat_delta(tool_calls=[{"index": 0, "id": f"c{number}", "function": function}])


def responses(number: int) -> bytes:
    item = {"type": "function_call", "call_id": f"c{number}", "name": "work", "arguments": "{}"}
    return _event(type="response.output_item.done", output_index=number, item=item)


def messages(number: int) -> bytes:
    block = {"type": "tool_use", "id": f"c{number}", "name": "work", "input": {}}
    start = _event(type="content_block_start", index=number, content_block=block)
    return start + _event(type="content_block_stop", index=number)


def gemini(number: int) -> bytes:
    part = {"functionCall": {"name": "work", "id": f"c{number}", "args": {}}}
    return _event(candidates=[{"content": {"parts": [part]}}])


CALLS: dict[str, tuple[type[SseAnswer], Callable[[int], bytes]]] = {
    "chat": (ChatAnswer, chat),
    "chat without an index": (ChatAnswer, chat_without_index),
    "chat with index 0": (ChatAnswer, chat_with_index_0),
    "responses": (ResponsesAnswer, responses),
    "anthropic": (MessagesAnswer, messages),
    "google": (GeminiAnswer, gemini),
}


def lines_for(decoder: SseAnswer, data: bytes) -> int:
    """How many lines of Python it takes to decode this."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        decoder.feed(data)
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize(("kind", "call"), CALLS.values(), ids=CALLS)
def test_a_call_costs_the_same_however_many_there_are(kind: type[SseAnswer], call: Callable[[int], bytes]) -> None:
    decoder = kind()
    first = lines_for(decoder, call(0))
    begun = [fact for number in range(1, 500) for fact in decoder.feed(call(number))]
    assert len([fact for fact in begun if isinstance(fact, ToolCallBegun)]) == 499
    assert lines_for(decoder, call(500)) <= first + 5


def _text_item(number: int) -> bytes:
    return _event(type="response.output_text.delta", output_index=number, delta="")


def _open_block(number: int) -> bytes:
    return _event(type="content_block_start", index=number, content_block={"type": "text", "text": ""})


def _signature(number: int) -> bytes:
    start = _event(type="content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
    delta = {"type": "signature_delta", "signature": "s"}
    return (b"" if number else start) + _event(type="content_block_delta", index=0, delta=delta)


HIDDEN: dict[str, tuple[type[SseAnswer], Callable[[int], bytes]]] = {
    "items without a word": (ResponsesAnswer, _text_item),
    "blocks that never end": (MessagesAnswer, _open_block),
    "signatures": (MessagesAnswer, _signature),
}
"""What makes a decoder remember something, and nobody outside notices."""


@pytest.mark.parametrize(("kind", "item"), [*CALLS.values(), *HIDDEN.values()], ids=[*CALLS, *HIDDEN])
def test_more_items_than_an_answer_can_have_break_it(
    monkeypatch: pytest.MonkeyPatch, kind: type[SseAnswer], item: Callable[[int], bytes]
) -> None:
    monkeypatch.setattr(sse, "MAX_ITEMS", 100)
    decoder, taken = kind(), 0
    while not decoder.done:
        decoder.feed(item(taken))
        taken += 1
    assert taken <= 101
    with pytest.raises(AnswerBroken, match="sent an answer of more than 100 pieces"):
        decoder.end()


@pytest.mark.parametrize(("kind", "call"), CALLS.values(), ids=CALLS)
def test_20_000_calls_break_nothing(kind: type[SseAnswer], call: Callable[[int], bytes]) -> None:
    """They are more than are run, which is not for a decoder to say."""
    decoder = kind()
    facts = decoder.feed(b"".join(call(number) for number in range(20_000)))
    assert len([fact for fact in facts if isinstance(fact, ToolCallBegun)]) == 20_000
    assert not decoder.done


def test_blocks_that_hold_much_and_never_end_break_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The input of a call may come whole with the start of its block, and is not emitted before the block ends."""
    monkeypatch.setattr(anthropic_answer, "MAX_BLOCK_BYTES", 2**20)
    decoder, taken = MessagesAnswer(), 0
    while not decoder.done:
        block = {"type": "tool_use", "id": f"c{taken}", "name": "work", "input": {"text": "x" * 1_000}}
        decoder.feed(_event(type="content_block_start", index=taken, content_block=block))
        taken += 1
    assert taken <= 1_000
    with pytest.raises(AnswerBroken, match="sent more than 1 MiB of blocks"):
        decoder.end()
