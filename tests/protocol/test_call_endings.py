"""How calls and answers ended, in words that are in the stores of people: they can be read back for ever."""

from __future__ import annotations

from typing import get_args

import pytest

from covey.protocol.endings import AnswerEnd, CallEnd, answer_end, call_end, closing_result
from covey.protocol.messages import Finish, FinishReason, ToolCall, ToolResult

CALL = ToolCall(id="c1", name="edit", input="{}", finished=True)

CUT_OFF = {
    CallEnd.CANCELLED: "The call was cancelled before it finished. It may have had effects.",
    CallEnd.INTERRUPTED: "The server stopped before the call finished. It may have had effects.",
    CallEnd.RUN_FAILED: "The call did not finish, because the run failed. It may have had effects.",
    CallEnd.NOT_BEGUN: "The run ended before the call began. It had no effects.",
}
ANSWERS: dict[AnswerEnd, tuple[FinishReason, str]] = {
    AnswerEnd.STOPPED: ("canceled", "Stopped by the user"),
    AnswerEnd.SHUT_DOWN: ("canceled", "Stopped by a shutdown"),
    AnswerEnd.FAILED: ("error", "The run failed"),
    AnswerEnd.INTERRUPTED: ("error", "The run was interrupted"),
    AnswerEnd.RETRIED: ("error", "Too long"),
    AnswerEnd.REJECTED: ("error", "Does not fit the schema"),
    AnswerEnd.HELD: ("end_turn", "Held by a hook"),
}


def stored(content: str, *, is_error: bool) -> ToolResult:
    return ToolResult(tool_call_id="c1", name="edit", content=content, metadata="", is_error=is_error)


def test_the_stored_sentences_of_calls_never_change() -> None:
    assert {end: end.words for end in CallEnd} == {CallEnd.ANSWERED: "", CallEnd.FAILED: "", **CUT_OFF}


@pytest.mark.parametrize(("end", "words"), CUT_OFF.items())
def test_a_call_that_was_cut_off_is_written_and_read_back(end: CallEnd, words: str) -> None:
    assert closing_result(CALL, end) == stored(words, is_error=True)
    assert call_end(stored(words, is_error=True)) is end


@pytest.mark.parametrize("content", ["", "No such file.", f"{CUT_OFF[CallEnd.CANCELLED]} And more."])
def test_a_result_with_content_of_its_own_answered_or_failed(content: str) -> None:
    assert call_end(stored(content, is_error=False)) is CallEnd.ANSWERED
    assert call_end(stored(content, is_error=True)) is CallEnd.FAILED


@pytest.mark.parametrize("words", CUT_OFF.values())
def test_an_answer_that_quotes_such_a_sentence_is_an_answer(words: str) -> None:
    assert call_end(stored(words, is_error=False)) is CallEnd.ANSWERED


def test_the_stored_words_of_answers_never_change() -> None:
    assert {end: (end.reason, end.words) for end in AnswerEnd} == ANSWERS


@pytest.mark.parametrize("end", AnswerEnd)
def test_how_an_answer_ended_is_read_back(end: AnswerEnd) -> None:
    assert answer_end(Finish(reason=end.reason, time=1, message=end.words)) is end


@pytest.mark.parametrize("reason", get_args(FinishReason))
@pytest.mark.parametrize("words", [None, "", "Something else", *(words for _, words in ANSWERS.values())])
def test_unknown_words_count_by_their_reason(reason: FinishReason, words: str | None) -> None:
    """As answers of older versions, and of a damaged store, always were read."""
    if words == "Too long":
        expected: AnswerEnd | None = AnswerEnd.RETRIED
    elif words == "Does not fit the schema":
        expected = AnswerEnd.REJECTED
    elif words == "Held by a hook":
        expected = AnswerEnd.HELD
    elif reason not in ("canceled", "error"):
        expected = None
    elif words == "Stopped by a shutdown":
        expected = AnswerEnd.SHUT_DOWN
    elif words == "The run was interrupted":
        expected = AnswerEnd.INTERRUPTED
    else:
        expected = AnswerEnd.STOPPED if reason == "canceled" else AnswerEnd.FAILED
    assert answer_end(Finish(reason=reason, time=1, message=words)) is expected


def test_an_answer_that_is_not_finished_has_not_ended() -> None:
    assert answer_end(None) is None
