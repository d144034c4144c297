"""What only Gemini's answers have: signatures in odd places, calls without ids, own reasons. See the fixtures."""

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
from covey.models.google_answer import GeminiAnswer
from covey.models.trouble import AnswerBroken, Trouble
from tests.models.fixtures import ROOT, fed


def facts_of(name: str) -> list[ModelFact]:
    facts = fed(GeminiAnswer(), (ROOT / "google" / f"{name}.sse").read_bytes())
    return [fact for fact in facts if not isinstance(fact, UsageReported | Stopped)]


def chunk(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": 0}
    return b"data: " + json.dumps({"candidates": [candidate]} | more).encode() + b"\n\n"


def test_the_signature_of_a_call_comes_right_before_it() -> None:
    assert facts_of("tool_call") == [
        ReasoningDelta("I look."),
        ReasoningDelta("", "c:c2lnbmF0dXJlLW9mLWEtY2FsbA==\n"),
        ToolCallBegun(0, "fc8f2b1a", "bash"),
        ToolInputDelta(0, '{"command":"ls -la \\"ä\\"","timeout_s":5}'),
    ]


def test_the_signature_of_text_says_how_much_it_signs() -> None:
    assert facts_of("signed_text")[-1] == ReasoningDelta("", "p7:c2lnbmVkIHdvcmRz\n")
    assert facts_of("thoughts")[-1] == ReasoningDelta("", "p0:c2lnbmF0dXJlLW9mLXRoZS1lbmQ=\n")


def test_a_signed_thought_is_signed_itself() -> None:
    body = chunk({"text": "Hm.", "thought": True, "thoughtSignature": "S"}, {"text": "Yes."}, finish="STOP")
    assert fed(GeminiAnswer(), body) == [
        ReasoningDelta("Hm."),
        ReasoningDelta("", "t:S\n"),
        TextDelta("Yes."),
        Stopped("end_turn"),
    ]


def test_calls_without_an_id_get_one_each() -> None:
    one = {"functionCall": {"name": "ls", "args": {"path": "a"}}}
    facts = fed(GeminiAnswer(), chunk(one, one) + chunk({"functionCall": {"name": "ls"}}, finish="STOP"))
    calls = [fact for fact in facts if isinstance(fact, ToolCallBegun)]
    assert [call.index for call in calls] == [0, 1, 2]
    assert len({call.call_id for call in calls}) == 3 and all(call.call_id for call in calls)
    assert [fact.text for fact in facts if isinstance(fact, ToolInputDelta)] == ['{"path":"a"}'] * 2
    assert facts[-1] == Stopped("tool_use")


def test_thoughts_count_as_part_of_the_answer() -> None:
    body = (ROOT / "google" / "text.sse").read_bytes()
    reports = [fact for fact in fed(GeminiAnswer(), body) if isinstance(fact, UsageReported)]
    assert reports[-1] == UsageReported(10, 29, cached_tokens=4)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("STOP", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("LANGUAGE", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("OTHER", "unknown"),
        ("SOMETHING_NEW", "unknown"),
    ],
)
def test_reasons_for_stopping(finish: str, reason: str) -> None:
    assert fed(GeminiAnswer(), chunk({"text": "x"}, finish=finish))[-1] == Stopped(reason)  # type: ignore[arg-type]


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
def test_a_call_that_nobody_can_read_is_worth_another_try(finish: str) -> None:
    answer = GeminiAnswer()
    answer.feed(chunk(finish=finish))
    with pytest.raises(AnswerBroken, match=finish) as broken:
        answer.end()
    assert broken.value.trouble is Trouble.BUSY


def test_an_unspecified_reason_is_no_end() -> None:
    answer = GeminiAnswer()
    answer.feed(chunk({"text": "x"}, finish="FINISH_REASON_UNSPECIFIED"))
    with pytest.raises(AnswerBroken, match="cut off"):
        answer.end()


def test_only_the_first_candidate_counts() -> None:
    candidates = [
        {"content": {"parts": [{"text": "no"}]}, "index": 1},
        {"content": {"parts": [{"text": "yes"}]}, "finishReason": "STOP"},
    ]
    body = b"data: " + json.dumps({"candidates": candidates}).encode() + b"\n\ndata: [DONE]\n\n"
    answer = GeminiAnswer()
    assert fed(answer, body) == [TextDelta("yes"), Stopped("end_turn")] and answer.done


@pytest.mark.parametrize("event", ['{"choices": []}', "[]", '"hello"'])
def test_nothing_of_other_servers_is_taken_for_an_answer(event: str) -> None:
    answer = GeminiAnswer()
    answer.feed(f"data: {event}\n\n".encode())
    with pytest.raises(AnswerBroken):
        answer.end()
