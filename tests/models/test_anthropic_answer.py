"""What only Anthropic's answers have: signed thoughts, tokens of a cache, errors with a type. See also the fixtures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.models.anthropic_answer import MessagesAnswer, trouble_of
from covey.models.trouble import AnswerBroken, Trouble
from tests.models.fixtures import ROOT, fed


def facts_of(name: str) -> list[ModelFact]:
    return fed(MessagesAnswer(), (ROOT / "anthropic" / f"{name}.sse").read_bytes())


def events(*values: dict[str, Any]) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(value).encode() + b"\n\n" for value in values)


def test_a_signature_comes_behind_the_thought_that_it_signs() -> None:
    thought, signature, text = [fact for fact in facts_of("thinking") if not isinstance(fact, UsageReported | Stopped)]
    assert isinstance(thought, ReasoningDelta) and thought.text.startswith("Let me see.") and not thought.signature
    assert isinstance(signature, ReasoningDelta) and not signature.text
    assert signature.signature.startswith("t:EqQB") and signature.signature.endswith("\n")
    assert text == TextDelta("They are in tests/.")


def test_the_prompt_counts_what_came_out_of_a_cache_and_went_into_it() -> None:
    reports = [fact for fact in facts_of("thinking") if isinstance(fact, UsageReported)]
    assert reports[-1] == UsageReported(2325, 89, cached_tokens=2000, cache_write_tokens=300)


def test_the_prompt_is_counted_as_soon_as_the_answer_begins() -> None:
    begun = events({"type": "message_start", "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 3}}})
    assert MessagesAnswer().feed(begun) == [UsageReported(10, 0, 3)]


def test_input_that_comes_whole_at_the_start_counts() -> None:
    block = {"type": "tool_use", "id": "a", "name": "ls", "input": {"path": "x"}}
    answer = MessagesAnswer()
    assert answer.feed(
        events(
            {"type": "message_start", "message": {}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0},
        )
    ) == [ToolCallBegun(0, "a", "ls"), ToolInputDelta(0, '{"path":"x"}')]


def test_an_id_that_was_used_before_is_replaced() -> None:
    body = (ROOT / "anthropic" / "parallel_tools.sse").read_bytes()
    ids = [fact.call_id for fact in fed(MessagesAnswer(["toolu_01A"]), body) if isinstance(fact, ToolCallBegun)]
    assert ids[0] not in ("toolu_01A", "toolu_01B") and ids[1:] == ["toolu_01B", "toolu_01C"]


def test_a_call_without_a_name_is_no_call() -> None:
    answer = MessagesAnswer()
    answer.feed(events({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a"}}))
    with pytest.raises(AnswerBroken, match="without a name"):
        answer.end()


def test_nothing_of_other_servers_is_taken_for_an_event() -> None:
    answer = MessagesAnswer()
    answer.feed(b'data: {"choices": []}\n\n')
    with pytest.raises(AnswerBroken, match="unknown form"):
        answer.end()


@pytest.mark.parametrize(
    ("kind", "trouble"),
    [
        ("authentication_error", Trouble.AUTH),
        ("permission_error", Trouble.AUTH),
        ("billing_error", Trouble.SPENT),
        ("request_too_large", Trouble.OVERFLOW),
        ("rate_limit_error", Trouble.BUSY),
        ("overloaded_error", Trouble.BUSY),
        ("api_error", Trouble.BUSY),
        ("timeout_error", Trouble.BUSY),
        ("not_found_error", Trouble.REFUSED),
        ("invalid_request_error", Trouble.REFUSED),
        ("something_new", Trouble.REFUSED),
    ],
)
def test_errors_within_an_answer_are_known_by_their_type(kind: str, trouble: Trouble) -> None:
    answer = MessagesAnswer()
    answer.feed(events({"type": "error", "error": {"type": kind, "message": "so it is"}}))
    with pytest.raises(AnswerBroken, match="reported an error: so it is") as broken:
        answer.end()
    assert broken.value.trouble is trouble


def test_an_error_of_an_unknown_type_is_known_by_its_status() -> None:
    assert trouble_of("something_new", 529, b"{}") is Trouble.BUSY
    assert trouble_of("", 401, b"<html>") is Trouble.AUTH
