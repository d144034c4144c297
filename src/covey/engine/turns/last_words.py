"""How a turn is closed: the same for a turn that ended by itself, was stopped, failed, or was cut off by a crash.

Whatever happened, the answer gets a finish reason and every tool call a result (R6, R12).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never

from msgspec import structs

from covey.engine.command_changes import Changes
from covey.engine.recorder import Batch
from covey.engine.turns.beginnings import not_begun
from covey.engine.turns.file_versions import Cause, owning_turn, record_changes
from covey.engine.turns.messages import empty_answer, tool_message
from covey.engine.world import World
from covey.lifecycle import history
from covey.lifecycle.decisions import Outcome
from covey.protocol.effects import Effect
from covey.protocol.endings import closing_result
from covey.protocol.events import AgentEvent, created
from covey.protocol.messages import (
    BinaryPart,
    Finish,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    Session,
    ShellCommandPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)
from covey.protocol.runs import Run, RunComplete, Usage
from covey.store.spending import AddSpending

if TYPE_CHECKING:
    from covey.engine.turns.parts import TurnParts
    from covey.engine.turns.turn import Turn

log = logging.getLogger(__name__)

DAY_S = 86_400
INTERRUPTED = "The server stopped while this run was active."
AGENT_CUT_OFF = "an agent was cut off while it worked"


@dataclass(frozen=True, slots=True)
class LastWords:
    """How a turn ended, and what is left to close."""

    run: Run
    outcome: Outcome
    error: str = ""
    auth: bool = False
    """The provider refused the key."""
    at_bound: bool = False
    """It reached a bound: of steps or costs, or it went round in circles."""
    answer: Message | None = None
    """The last assistant message; None if the turn ended before there was one."""
    model: str = ""
    provider: str = ""
    """Who would have given the answer that there is none of; empty if that is not known."""
    open_calls: Sequence[ToolCall] = ()
    not_begun: Collection[str] = ()
    """The ids of such calls that certainly had no effects. A crash leaves little trace of which were begun."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """By the id of such a call: the end of what it had printed."""
    usage: Usage | None = None
    session_title: str = ""
    output: Any = None


def compose(
    run: Run, outcome: Outcome, turn: Turn | None, leftover: Sequence[Message], batch: Batch, parts: TurnParts
) -> tuple[Run, RunComplete]:
    """Last words: of the turn under way, of one that a crash cut off, or of one cancelled on entry."""
    try:
        words = _filled(known_of(run, outcome, parts), turn, leftover, batch, parts)
    except Exception as error:  # a bug of ours must not keep a run from ending
        log.exception("the last words of run %s could not be composed", run.run_id)
        outcome = outcome if outcome is Outcome.CANCELLED else Outcome.FAILED
        answer = turn.reply.message(parts.world.now_s()) if turn and turn.reply else None
        text = "" if outcome is Outcome.CANCELLED else f"internal error: {error!r}"
        words = LastWords(run, outcome, error=text, answer=answer)
    _note_agents_calls(words, batch, parts)
    return close_turn(words, batch, parts.world)


def _note_agents_calls(words: LastWords, batch: Batch, parts: TurnParts) -> None:
    """What an agent's calls changed that were cut off is not known: so is then what the turn did that sent it."""
    effects = parts.agent.effects() if words.run.effective_options.writes_for else {}
    for call in words.open_calls if effects else ():
        if call.id not in words.not_begun and not effects.get(call.name, Effect.RUNS_COMMANDS).leaves_nothing_to_undo:
            owner = owning_turn(words.run, parts.sessions)
            cause = Cause(owner.session_id, owner.run_id, parts.world.new_id())
            record_changes(batch, Changes(missed=AGENT_CUT_OFF, label=call.name), cause, parts.world)


def known_of(run: Run, outcome: Outcome, parts: TurnParts) -> LastWords:
    """How a run ended, before anything is known of its answer but who would have given it."""
    choice = parts.agent.known_choice(parts.model_of(run))
    return (
        LastWords(run, outcome, model=choice.model.id, provider=choice.provider_id)
        if choice
        else LastWords(run, outcome)
    )


def _filled(
    words: LastWords, turn: Turn | None, leftover: Sequence[Message], batch: Batch, parts: TurnParts
) -> LastWords:
    if turn:
        words = turn.last_words(words)
        session = parts.sessions.spend(words.run.session_id, turn.speaker.last_usage, turn.usage)
        batch.writes.append(_spending(words, turn.speaker.usage, parts.world))
        if session:
            batch.update_session(session)
            words = replace(words, session_title=session.title)
        return words
    if session := parts.sessions.find(words.run.session_id):
        batch.update_session(session)  # with the count of what is added to it here
    return cut_off(words, leftover, session) if words.run.state == "active" else words


def _spending(words: LastWords, used: Usage, world: World) -> AddSpending:
    """What the turn itself has used: agents that worked for it have turns of their own."""
    said = words.answer
    provider, model = (said.provider, said.model) if said else (words.provider, words.model)
    return AddSpending(world.now_s() // DAY_S, f"{provider}/{model}" if model else "", used)


def close_turn(words: LastWords, batch: Batch, world: World) -> tuple[Run, RunComplete]:
    """Add a turn's last words to `batch`; gives the ended run and its terminal event, which come last."""
    run = words.run
    answer = _finished(words, world)
    if words.answer is None:
        batch.add_message(answer)
    else:
        batch.update_message(answer)
    for call in words.open_calls:
        end = history.open_call_end(words.outcome.value, began=call.id not in words.not_begun)
        result = closing_result(call, end, words.outputs.get(call.id, ""))
        batch.add_message(tool_message(result, run, world))
    if notice := _notice(words):
        batch.events.append(created(notice))
    return _terminal(words, answer, world)


def cut_off(words: LastWords, messages: Sequence[Message], session: Session | None = None) -> LastWords:
    """A turn that a crash cut off: its half-written answer is kept, its tool calls are closed.

    `session`: as it was when it was cut off, with what is known of calls that had not begun.
    """
    answers = [message for message in messages if message.role == "assistant" and not _is_whole_summary(message)]
    answer = answers[-1] if answers else None
    kept_back: Collection[str] = ()
    if answer:  # a tool is run only after its whole answer is on disk
        kept_back = not_begun(answer, session) if answer.finish else {call.id for call in answer.tool_calls}
    return replace(
        words,
        error=INTERRUPTED if words.outcome is Outcome.INTERRUPTED else "",
        answer=answer,
        open_calls=history.open_calls(messages),
        not_begun=kept_back,
    )


def _is_whole_summary(message: Message) -> bool:
    """It stands for itself: the end of its run is no word about it."""
    return message.is_summary_message and message.finish is not None


def _finished(words: LastWords, world: World) -> Message:
    """The answer with a finish reason that tells how the turn ended."""
    now = world.now_s()
    answer = words.answer or empty_answer(words.run, world, model=words.model, provider=words.provider)
    end = history.last_answer_end(words.outcome.value, words.run.cancelled_by)
    if end is None:
        return answer
    finish = Finish(reason=end.reason, time=now, message=end.words, details=words.error or None)
    until = None if words.outcome is Outcome.INTERRUPTED else now  # nobody saw when a crash ended a thought
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


def _notice(words: LastWords) -> AgentEvent | None:
    """What v1 clients show people. A cancel is not an error (R5), and the terminal event reports an interruption."""
    run = words.run
    title = words.session_title or None
    match words.outcome:
        case Outcome.COMPLETED:
            return AgentEvent(type="agent_finished", session_id=run.session_id, run_id=run.run_id, session_title=title)
        case Outcome.FAILED:
            return AgentEvent(
                type="re_authenticate" if words.auth else "error",
                session_id=run.session_id,
                run_id=run.run_id,
                session_title=title,
                error=words.error,
            )
        case Outcome.CANCELLED | Outcome.INTERRUPTED:
            return None
        case _:
            assert_never(words.outcome)


def _terminal(words: LastWords, answer: Message, world: World) -> tuple[Run, RunComplete]:
    run = words.run
    text = answer.text if words.outcome is Outcome.COMPLETED else (answer.text or None)
    ended = structs.replace(
        run,
        state=words.outcome.value,
        ended_at=world.now(),
        waiting_on=None,
        last_progress_at=None,
        message_id=answer.id,
        text=text,
        error=words.error or None,
        output=words.output,
        at_bound=words.at_bound,
    )
    terminal = RunComplete(
        session_id=run.session_id,
        run_id=run.run_id,
        message_id=answer.id,
        text=text,
        error=words.error or None,
        cancelled=words.outcome is Outcome.CANCELLED,
        interrupted=words.outcome is Outcome.INTERRUPTED,
        usage=words.usage,
        output=words.output,
        at_bound=words.at_bound,
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
        run,
        ended_at=world.now(),
        message_id=host.message_id,
        text=host.text,
        error=host.error,
        folded_into=host.run_id,
        at_bound=host.at_bound,
    )
    terminal = structs.replace(host, run_id=run.run_id, folded_into=host.run_id, usage=None)
    return ended, terminal
