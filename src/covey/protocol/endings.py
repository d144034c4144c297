"""How a tool call and an answer ended: values in the program, sentences in stored messages and on the wire.

A stored message has no field for this, so the sentence is the stored form. It is written and read back here alone;
changing one would make older messages unreadable. Everybody else compares values.
"""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from covey.protocol.messages import Finish, FinishReason, ToolCall, ToolResult


class CallEnd(Enum):
    """How a tool call ended."""

    ANSWERED = auto()
    FAILED = auto()
    """It came to its end and reports an error, which is its content; or it was refused, and never ran."""
    CANCELLED = auto()
    INTERRUPTED = auto()
    """The server was killed."""
    RUN_FAILED = auto()
    """The run failed while the call was under way."""
    NOT_BEGUN = auto()
    """The run ended before the tool was started: while somebody was asked, say, or behind another call."""

    @property
    def words(self) -> str:
        """What the model reads, and by which it is recognised later; '' where the result has content of its own."""
        return _CALLS.get(self, "")


class AnswerEnd(Enum):
    """How an answer ended that does not count, or not yet. All but the last three also end the turn."""

    STOPPED = auto()
    SHUT_DOWN = auto()
    FAILED = auto()
    INTERRUPTED = auto()
    RETRIED = auto()
    """It is empty, and asked for again after a summary."""
    REJECTED = auto()
    """It does not fit the schema that came with the prompt, and is asked for again."""
    HELD = auto()
    """It is whole, but a hook wants the turn to go on."""

    @property
    def words(self) -> str:
        """What people read, and by which it is recognised later."""
        return _ANSWERS[self]

    @property
    def reason(self) -> FinishReason:
        if self is AnswerEnd.HELD:
            return "end_turn"
        return "canceled" if self in (AnswerEnd.STOPPED, AnswerEnd.SHUT_DOWN) else "error"


OUTPUT_UNTIL_THEN = "\n\nIts output until then:\n"
"""In the result of a call that was cut off, between what is said of that and what it had printed."""
THE_USER_SAYS = " The user says: "
"""In the result of a call that a person has denied, before their words."""

_CALLS = {
    CallEnd.CANCELLED: "The call was cancelled before it finished. It may have had effects.",
    CallEnd.INTERRUPTED: "The server stopped before the call finished. It may have had effects.",
    CallEnd.RUN_FAILED: "The call did not finish, because the run failed. It may have had effects.",
    CallEnd.NOT_BEGUN: "The run ended before the call began. It had no effects.",
}
_ANSWERS = {
    AnswerEnd.STOPPED: "Stopped by the user",
    AnswerEnd.SHUT_DOWN: "Stopped by a shutdown",
    AnswerEnd.FAILED: "The run failed",
    AnswerEnd.INTERRUPTED: "The run was interrupted",
    AnswerEnd.RETRIED: "Too long",
    AnswerEnd.REJECTED: "Does not fit the schema",
    AnswerEnd.HELD: "Held by a hook",
}
_CALL_OF = {words: end for end, words in _CALLS.items()}
_ANSWER_OF = {words: end for end, words in _ANSWERS.items()}


def closing_result(call: ToolCall, end: CallEnd, output: str = "") -> ToolResult:
    """The result of a call that has none of its own; `output`: the end of what it had printed."""
    content = f"{end.words}{OUTPUT_UNTIL_THEN}{output}" if output else end.words
    return ToolResult(tool_call_id=call.id, name=call.name, content=content, metadata="", is_error=True)


def call_end(result: ToolResult) -> CallEnd:
    """How the call of a stored result ended."""
    said, _, _ = result.content.partition(OUTPUT_UNTIL_THEN)
    return _CALL_OF.get(said, CallEnd.FAILED) if result.is_error else CallEnd.ANSWERED


class _Facts(msgspec.Struct, frozen=True):
    """What of the metadata of a result matters here."""

    denied: str = ""
    never_ran: bool = False
    """The call was refused because of what it says: such a tool there is not, or its input cannot be read."""


def denied_by(result: ToolResult) -> str:
    """Who refused the call before it ran: `rule`, `person`, `nobody`, `sandbox` or `hook`; '' if nobody did."""
    return _facts(result).denied


def never_ran(result: ToolResult) -> bool:
    """Whether the tool certainly did nothing: it was refused, could not be called so, or was not begun."""
    facts = _facts(result)
    return bool(facts.denied) or facts.never_ran or call_end(result) is CallEnd.NOT_BEGUN


def _facts(result: ToolResult) -> _Facts:
    if not result.is_error or not result.metadata:
        return _Facts()
    try:
        return msgspec.json.decode(result.metadata, type=_Facts)
    except msgspec.MsgspecError:
        return _Facts()


def answer_end(finish: Finish | None) -> AnswerEnd | None:
    """How a stored answer ended; None if it is whole, or not finished. Unknown words count by their reason."""
    if finish is None:
        return None
    known = _ANSWER_OF.get(finish.message or "")
    if known in (AnswerEnd.RETRIED, AnswerEnd.REJECTED, AnswerEnd.HELD):
        return known
    if finish.reason not in ("canceled", "error"):
        return None
    if known in (AnswerEnd.SHUT_DOWN, AnswerEnd.INTERRUPTED):
        return known
    return AnswerEnd.STOPPED if finish.reason == "canceled" else AnswerEnd.FAILED
