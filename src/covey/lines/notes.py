"""Sentences about a run beside its answer: how it ended, why it is cut off, tried again, or goes on from a summary."""

from __future__ import annotations

from typing import assert_never

from covey.lines.line import Style
from covey.lines.plain_text import one_line
from covey.lines.words import called
from covey.protocol.endings import AnswerEnd, answer_end
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Finish
from covey.protocol.runs import Run

CUT_SHORT = {
    "max_tokens": "the answer is cut off: the model has reached the longest answer that it may give (max_tokens).",
    "content_filter": "the answer is cut off by the provider's content filter.",
}
KEY_REFUSED = "The provider has refused the key: give a valid one, in the configuration or with `covey login`."

Note = tuple[str, str, Style]
"""A mark, a sentence, and how it looks."""


def retry_note(retry: AgentEvent, now: float) -> str:
    """Why and when a model is asked again."""
    why = (retry.reason or retry.error or "The model failed").rstrip(".")
    seconds = round(retry.retry_at - now) if retry.retry_at else 0
    when = f" in {seconds} s" if seconds > 0 else ""
    return f"{why} (attempt {retry.attempt}); trying again{when}."


def summary_note(run: Run | None) -> str:
    """The conversation goes on from a summary, which `run` has written: why, unless it was asked for."""
    why = "" if run and run.effective_options.summarize else "became long, and "
    return f"The conversation {why}goes on from a summary of it."


def ending_note(finish: Finish, run: Run | None, *, me: str = "", key_refused: bool = False) -> Note | None:
    """How an answer ended, if it did not end well. `run` is what is known of its run."""
    if cut := CUT_SHORT.get(finish.reason):
        return "!", cut, "warning"
    end = answer_end(finish)
    details = one_line(finish.details or (run.error if run and run.error else ""))
    match end:
        case None:
            return None
        case AnswerEnd.STOPPED:
            return "■", _cancelled(run, me), "warning"
        case AnswerEnd.SHUT_DOWN:
            return "■", "cancelled: the server was stopped", "warning"
        case AnswerEnd.INTERRUPTED:
            return "■", _with("interrupted", details), "error"
        case AnswerEnd.FAILED:
            return "✗", _with("failed", f"{details} {KEY_REFUSED}" if key_refused else details), "error"
        case AnswerEnd.RETRIED:
            return "·", "too long for the model: asked again after a summary", "dim"
        case AnswerEnd.REJECTED:
            return "·", "does not fit the schema: asked again", "dim"
        case AnswerEnd.HELD:
            return "·", _with("a hook wants it to go on", details), "dim"
        case _:
            assert_never(end)


def _cancelled(run: Run | None, me: str) -> str:
    if run is None or not run.cancelled_by_client:
        return "cancelled"
    by = called(run.cancelled_by_client, me)
    if run.cancelled_by == "interrupt":
        return f"cancelled: the next prompt, by {by}, took its place"
    return f"cancelled by {by}"


def _with(word: str, details: str) -> str:
    return f"{word}: {details}" if details else word
