"""How a turn is closed: the same for a turn that ended by itself, was stopped, failed, or was cut off by a crash.

Whatever happened, the answer gets a finish reason and every tool call a result (R6, R12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from msgspec import structs

from covey.engine.messages import empty_answer, tool_message
from covey.engine.recorder import Batch
from covey.engine.world import World
from covey.lifecycle import history
from covey.lifecycle.runs import Outcome
from covey.protocol.events import AgentEvent, created
from covey.protocol.messages import (
    BinaryPart,
    Finish,
    FinishPart,
    FinishReason,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)
from covey.protocol.runs import Run, RunComplete, Usage

INTERRUPTED = "The server stopped while this run was active."

_WHY: dict[Outcome, str] = {
    Outcome.CANCELLED: history.CANCELLED,
    Outcome.INTERRUPTED: history.INTERRUPTED,
    Outcome.FAILED: history.FAILED,
    Outcome.COMPLETED: history.FAILED,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended, and what is left to close."""

    run: Run
    outcome: Outcome
    error: str = ""
    auth: bool = False
    """The provider refused the key."""
    answer: Message | None = None
    """The last assistant message; None if the turn ended before there was one."""
    model: str = ""
    provider: str = ""
    """Who would have given the answer that there is none of; empty if that is not known."""
    open_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    session_title: str = ""


def close_turn(ending: Ending, batch: Batch, world: World) -> tuple[Run, RunComplete]:
    """Add a turn's last words to `batch`; gives the ended run and its terminal event, which come last."""
    run = ending.run
    answer = _finished(ending, world)
    if ending.answer is None:
        batch.add_message(answer)
    else:
        batch.update_message(answer)
    for call in ending.open_calls:
        result = history.closing_result(call, _WHY[ending.outcome])
        batch.add_message(tool_message(result, run, world))
    if notice := _notice(ending):
        batch.events.append(created(notice))
    return _terminal(ending, answer, world)


def cut_off(ending: Ending, messages: Sequence[Message]) -> Ending:
    """A turn that a crash cut off: its half-written answer is kept, its tool calls are closed."""
    answers = [message for message in messages if message.role == "assistant" and not _is_whole_summary(message)]
    return replace(
        ending,
        error=INTERRUPTED if ending.outcome is Outcome.INTERRUPTED else "",
        answer=answers[-1] if answers else None,
        open_calls=history.open_calls(messages),
    )


def _is_whole_summary(message: Message) -> bool:
    """It stands for itself: the end of its run is no word about it."""
    return message.is_summary_message and message.finish is not None


def _finished(ending: Ending, world: World) -> Message:
    """The answer with a finish reason that tells how the turn ended."""
    now = world.now_s()
    answer = ending.answer or empty_answer(ending.run, world, model=ending.model, provider=ending.provider)
    if ending.outcome is Outcome.COMPLETED:
        return answer
    reason: FinishReason = "canceled" if ending.outcome is Outcome.CANCELLED else "error"
    words = history.finish_words(ending.outcome.value, ending.run.cancelled_by)
    finish = Finish(reason=reason, time=now, message=words, details=ending.error or None)
    until = None if ending.outcome is Outcome.INTERRUPTED else now  # nobody saw when a crash ended a thought
    parts = tuple(_closed(part, until) for part in answer.parts if not isinstance(part, FinishPart))
    return structs.replace(answer, parts=(*parts, FinishPart(data=finish)), updated_at=now)


def _closed(part: Part, until: int | None) -> Part:
    """The part, which will not grow any more since `until`."""
    match part:
        case ToolCallPart(data=call):
            return ToolCallPart(data=structs.replace(call, finished=True))
        case ReasoningPart(data=thought):
            is_open = thought.started_at is not None and thought.finished_at is None
            return ReasoningPart(data=structs.replace(thought, finished_at=until)) if is_open else part
        case TextPart() | ToolResultPart() | ImageUrlPart() | BinaryPart() | ShellCommandPart() | FinishPart():
            return part
        case _:
            assert_never(part)


def _notice(ending: Ending) -> AgentEvent | None:
    """What v1 clients show people. A cancel is not an error (R5), and an interruption is told by the terminal event."""
    run = ending.run
    title = ending.session_title or None
    match ending.outcome:
        case Outcome.COMPLETED:
            return AgentEvent(type="agent_finished", session_id=run.session_id, run_id=run.run_id, session_title=title)
        case Outcome.FAILED:
            return AgentEvent(
                type="re_authenticate" if ending.auth else "error",
                session_id=run.session_id,
                run_id=run.run_id,
                session_title=title,
                error=ending.error,
            )
        case Outcome.CANCELLED | Outcome.INTERRUPTED:
            return None
        case _:
            assert_never(ending.outcome)


def _terminal(ending: Ending, answer: Message, world: World) -> tuple[Run, RunComplete]:
    run = ending.run
    text = answer.text if ending.outcome is Outcome.COMPLETED else (answer.text or None)
    ended = structs.replace(
        run,
        state=ending.outcome.value,
        ended_at=world.now(),
        waiting_on=None,
        last_progress_at=None,
        message_id=answer.id,
        text=text,
        error=ending.error or None,
    )
    terminal = RunComplete(
        session_id=run.session_id,
        run_id=run.run_id,
        message_id=answer.id,
        text=text,
        error=ending.error or None,
        cancelled=ending.outcome is Outcome.CANCELLED,
        interrupted=ending.outcome is Outcome.INTERRUPTED,
        usage=ending.usage,
    )
    return ended, terminal


def drop(run: Run, world: World) -> tuple[Run, RunComplete]:
    """A queued run that never began: it leaves no messages, only its terminal event."""
    ended = structs.replace(run, state="cancelled", ended_at=world.now())
    return ended, RunComplete(session_id=run.session_id, run_id=run.run_id, message_id="", cancelled=True)


def end_folded(run: Run, host: RunComplete | None, world: World) -> tuple[Run, RunComplete]:
    """A run that joined another's turn ends as that one did. None: a crash has parted it from that end."""
    host = host or RunComplete(
        session_id=run.session_id, run_id=run.folded_into or "", message_id="", error=INTERRUPTED, interrupted=True
    )
    ended = structs.replace(
        run, ended_at=world.now(), message_id=host.message_id, text=host.text, error=host.error, folded_into=host.run_id
    )
    terminal = structs.replace(host, run_id=run.run_id, folded_into=host.run_id, usage=None)
    return ended, terminal
