"""One turn: what the agent does for a run. A bracket: opening and closing always happen, only the body can be stopped.

The prompt is written before the body starts, and the last words after it has ended, by the dispatcher. A cancel is a
fact in the lane; waking the body is only a hint, given by `stop`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from covey.config.schema import ConfigError, LimitSettings
from covey.engine.agent import Agent
from covey.engine.recorder import Batch, Recorder
from covey.engine.session_book import SessionBook
from covey.engine.turns.call_outputs import CallOutputs
from covey.engine.turns.expected_output import ExpectedOutput
from covey.engine.turns.file_versions import record_files
from covey.engine.turns.last_words import LastWords
from covey.engine.turns.messages import tool_message
from covey.engine.turns.speaker import Speaker
from covey.engine.turns.summary import only_words, summary_request, with_requests
from covey.engine.turns.title import titled
from covey.engine.turns.tool_calls import ToolCalls
from covey.engine.world import World
from covey.feed.feed import Feed
from covey.lifecycle import history
from covey.lifecycle.budget import Bounds, LoopGuard, Purse, is_too_long
from covey.lifecycle.decisions import Outcome
from covey.lifecycle.history import Conversation
from covey.lifecycle.output_check import DoesNotFit
from covey.lifecycle.reply import Reply
from covey.models.base import ModelFailed, ToolSpec
from covey.protocol.endings import AnswerEnd
from covey.protocol.messages import FinishReason, Message, ToolCall, ToolResult
from covey.protocol.runs import Run, RunOptions, Usage

log = logging.getLogger(__name__)

AGENTS_AT_ONCE = 4
"""Agents of one run at the same time; further ones wait. Each of them calls the model on its own."""
TOO_LONG = "The conversation is too long for the model; it is summarised now."


class TurnFailed(Exception):
    """The turn cannot go on; the text is for people."""


FoldInto = Callable[[str, Batch], list[Message]]
"""Adds what joins the turn of a run at this step to a change; gives the prompts, and what the model sees with them."""


@dataclass(frozen=True, slots=True)
class TurnParts:
    """What the turns of a workspace share."""

    world: World
    recorder: Recorder
    sessions: SessionBook
    agent: Agent
    tool_calls: ToolCalls
    feed: Feed
    """For what running calls print, and for nothing that is written."""
    read_messages: Callable[[str, str], Awaitable[list[Message]]]
    """Those of a session that decide what a model sees from a summary on ('': from the beginning)."""
    read_run: Callable[[str, str], Awaitable[list[Message]]]
    """The messages of one run in a session."""

    @property
    def limits(self) -> LimitSettings:
        return self.agent.config.limits

    def model_of(self, run: Run) -> str:
        """The model that a run asks for, or its session does; '' for the configured one."""
        session = self.sessions.find(run.session_id)
        return run.effective_options.model or (session and session.model) or ""

    def bounds_of(self, run: Run) -> tuple[Bounds, float]:
        """What a run and its session may cost, and what the session had cost before."""
        session = self.sessions.find(run.session_id)
        bounds = Bounds(run.effective_options.max_cost or self.limits.cost_per_run, self.limits.cost_per_session)
        return bounds, session.cost if session else 0.0


class Turn:
    """The turn of one run. Its public state is what the dispatcher needs to close it, at any moment."""

    def __init__(self, run: Run, parts: TurnParts, fold_into: FoldInto) -> None:
        self.run_id = run.run_id
        self.purse = Purse(lambda: parts.bounds_of(run), owner=parts.tool_calls.purse_of_principal(run.run_id))
        self.agents_at_once = asyncio.Semaphore(AGENTS_AT_ONCE)
        self.speaker = Speaker(run, parts.world, parts.recorder, parts.agent, self.purse)
        self.open_calls: dict[str, ToolCall] = {}
        """The calls of the last answer that have no result yet, by their id."""
        self.error = ""
        self.auth_failed = False
        self._run = run
        self._parts = parts
        self._outputs = CallOutputs(run, parts.feed)
        self._expected = ExpectedOutput(self.options.output_schema)
        self._fold_into = fold_into
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._written: asyncio.Future[None] | None = None
        self._requests: list[Message] = []
        """What this turn works on: the prompt, and those that were folded into it."""
        self._summary: Message | None = None
        """The answer of a run that only summarises."""
        self._system = ""
        self._plan = False
        self._tools: Sequence[ToolSpec] = ()

    @property
    def options(self) -> RunOptions:
        return self._run.effective_options

    @property
    def reply(self) -> Reply | None:
        return self.speaker.reply

    def stop(self) -> None:
        if not self._stop.done():
            self._stop.set_result(None)

    async def run(self, begun: asyncio.Future[None]) -> Outcome:
        """From the written prompt to the moment when only the last words are missing. Raises nothing."""
        try:
            await begun
            if self._stop.done():
                return Outcome.CANCELLED
            return await self._race()
        except Exception as error:
            log.exception("run %s failed", self.run_id)
            self.error = f"internal error: {type(error).__name__}: {error}"
            return Outcome.FAILED
        finally:
            self.speaker.close()
            self._outputs.close()

    async def _race(self) -> Outcome:
        """The body against the cancel. A body that does not stop in time is abandoned: its words count no more."""
        body = asyncio.create_task(self._body(), name=f"turn {self.run_id}")
        await asyncio.wait({body, self._stop}, return_when=asyncio.FIRST_COMPLETED)
        # An agent has half the time, so that whoever waits for it can end after it and still in time.
        grace_s = self._parts.limits.cancel_grace_s / (1 + self.options.delegate)
        if not body.done():
            body.cancel()
            await asyncio.wait({body}, timeout=grace_s)
        if not body.done():
            log.error("run %s did not stop within %s s and was abandoned", self.run_id, grace_s)
            body.add_done_callback(_log_abandoned)
            return Outcome.CANCELLED
        if body.cancelled():
            self.error = "" if self._stop.done() else "the turn was stopped from inside"
            return Outcome.CANCELLED if self._stop.done() else Outcome.FAILED
        return self._outcome(body.exception())

    def _outcome(self, error: BaseException | None) -> Outcome:
        if error is None:
            return Outcome.COMPLETED
        if isinstance(error, ModelFailed | TurnFailed | ConfigError | DoesNotFit):
            self.error = str(error)
            self.auth_failed = isinstance(error, ModelFailed) and error.auth
            self._parts.agent.key_refused |= self.auth_failed
        else:
            log.error("run %s failed", self.run_id, exc_info=error)
            self.error = f"internal error: {type(error).__name__}: {error}"
        return Outcome.FAILED

    def last_words(self, known: LastWords) -> LastWords:
        """Complete what is known with what this turn has to be closed."""
        answer = self.reply.message(self._parts.world.now_s()) if self.reply else None
        if known.outcome is Outcome.COMPLETED:
            answer = self._summary or answer
        cut_short = answer is not None and not answer.finish
        return replace(
            known,
            error="" if known.outcome is Outcome.CANCELLED else self.error,
            auth=self.auth_failed,
            answer=answer,
            open_calls=answer.tool_calls if answer and cut_short else tuple(self.open_calls.values()),
            usage=self.usage,
            output=self._expected.value if known.outcome is Outcome.COMPLETED else None,
        )

    @property
    def usage(self) -> Usage:
        """The tokens of this run, and what it has cost with all that worked for it."""
        return structs.replace(self.speaker.usage, cost=self.purse.spent)

    # ── the body ──

    async def _body(self) -> None:
        parts, run = self._parts, self._run
        self._choose_model()
        await self._instruct()
        session = parts.sessions.find(run.session_id)
        summary_message_id = session.summary_message_id if session else ""
        messages = await parts.read_messages(run.session_id, summary_message_id)
        seen = Conversation(messages, summary_message_id)
        self._requests = [message for message in messages if message.role == "user" and message.run_id == run.run_id]
        self._check_cost()
        if run.effective_options.summarize:
            await self._summarise(seen, going_on=False)
            return
        async with titled(run, parts.agent, parts.sessions, parts.recorder, parts.world, self.speaker.spend):
            await self._steps(seen)

    async def _instruct(self) -> None:
        """What the model reads about itself and its tools: the same until the session begins or leaves plan mode."""
        parts, run, model = self._parts, self._run, self.speaker.model
        self._plan = parts.tool_calls.mode_of(run) == "plan"
        plan, delegate = self._plan, parts.sessions.is_child(run.session_id)
        self._tools = parts.agent.tool_specs(model, plan=plan, delegate=delegate)
        self._system = await parts.agent.system_prompt(run.session_id, model, plan=plan, delegate=delegate)

    async def _steps(self, seen: Conversation) -> None:
        """Step after step, until the model asks for no more tools."""
        limit = self._run.effective_options.max_steps or self._parts.limits.steps_per_run
        guard = LoopGuard()
        fresh = False
        """Nothing was said since the last summary: another one would not help."""
        for _ in range(limit):
            self._go_on()
            self._check_cost()
            self._choose_model()
            if self._plan != (self._parts.tool_calls.mode_of(self._run) == "plan"):
                await self._instruct()
            if not fresh and seen.has_past and self._is_too_long(seen):
                seen = await self._summarise(seen)
            folded = await self._begin_step()
            if folded:
                self._requests += [message for message in folded if not message.is_command]
                seen.add(folded)
            try:
                answer = await self._step(list(seen.messages))  # a request never changes
            except ModelFailed as failure:
                if fresh or not seen.has_past or not failure.overflow or not self._nothing_said:
                    raise
                seen = await self._after_overflow(seen)
                fresh = True
                continue
            fresh = False
            if answer.tool_calls:
                seen.add([answer, *await self._run_tools(answer, guard)])
            elif await self._expected.is_given(answer):
                return
            else:
                seen.add([self.speaker.reject(answer, self._expected.problem)])
        raise TurnFailed(f"stopped after {limit} steps (limits.steps_per_run){self._expected.remark}")

    async def _begin_step(self) -> list[Message]:
        """Take in what is folded, then open the answer to it: one change.

        The model sees a folded prompt only when that is on disk: after a crash it would be asked once more.
        """
        batch = Batch()
        folded = self._fold_into(self.run_id, batch)
        self.speaker.open_answer(batch)
        written = self._parts.recorder.write(batch)
        if folded:
            await written
        return folded

    async def _step(self, visible: list[Message]) -> Message:
        """One model call. Gives the finished answer: written, unless it is the last one of the turn."""
        speaker = self.speaker
        expected = self._expected
        reply = await speaker.speak(self._system + expected.instruction, visible, self._tools, expected.schema)
        answer = speaker.finish(reply, "tool_use" if reply.has_calls else _final(reply.stopped))
        if answer.tool_calls:
            self.open_calls = {call.id: call for call in answer.tool_calls}
            self._written = speaker.write(answer)
        return answer

    async def _run_tools(self, answer: Message, guard: LoopGuard) -> list[Message]:
        """Run the calls of a step in order; neighbours that do not mind run together. They are on disk before that."""
        if self._written:
            await self._written
        results: list[Message] = []
        for group in self._parts.tool_calls.groups(answer.tool_calls):
            self._go_on()
            done = await self._run_together(group)
            results += done
            for call, message in zip(group, done, strict=True):
                if guard.saw(call.name, call.input, message.tool_results[0].content):
                    raise TurnFailed(f"stopped: {call.name} was called again and again with the same input and result")
        return results

    async def _run_together(self, group: Sequence[ToolCall]) -> list[Message]:
        """Cancelling this cancels all of them, and returns when the last one has stopped."""
        if len(group) == 1:
            return [await self._run_tool(group[0])]
        results = await asyncio.gather(*(self._run_tool(call) for call in group), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, Message)]

    async def _run_tool(self, call: ToolCall) -> Message:
        speaker = self.speaker
        speaker.wait_on(f"tool:{call.name}")
        assert self.reply is not None  # the answer with the call
        with self._outputs.of_call(self.reply.message_id, call.id) as output:
            done = await self._parts.tool_calls.run(
                call, self._run, speaker.wait_on, output.open_sink, sees=speaker.model.sees_images
            )
        speaker.live()
        message = tool_message(self._with_note(done.result), self._run, self._parts.world)
        batch = Batch()
        batch.add_message(message)
        record_files(batch, done.files, message, self._parts.world)
        self._parts.recorder.write(batch)
        self.open_calls.pop(call.id, None)
        return message

    def _with_note(self, result: ToolResult) -> ToolResult:
        """The last result of a step tells the model of the calls that were dropped, if there were too many."""
        reply = self.reply
        if reply is None or not reply.dropped_calls or result.tool_call_id != reply.last_call_id:
            return result
        log.warning("run %s: %d tool calls beyond the bound were dropped", self.run_id, reply.dropped_calls)
        return structs.replace(result, content=f"{result.content}\n\n{history.dropped_calls(reply.dropped_calls)}")

    # ── what it may use ──

    def _choose_model(self) -> None:
        self.speaker.choose(self._parts.model_of(self._run))

    def _check_cost(self) -> None:
        if refusal := self.purse.refusal():
            raise TurnFailed(refusal)

    def _is_too_long(self, seen: Conversation) -> bool:
        """By what the provider counted in the last step, or by a guess where that is more."""
        if self.speaker.model.is_tiny:  # it would not understand; the latest messages that fit are all it sees
            return False
        last = self.speaker.last_usage
        tokens = max(last.prompt_tokens + last.completion_tokens, seen.tokens)
        return is_too_long(tokens, self.speaker.model.context_window, self._parts.limits.summarize_at)

    # ── summarise and go on (R8: the run keeps its id, its place and its cancel scope) ──

    @property
    def _nothing_said(self) -> bool:
        return self.reply is None or self.reply.is_empty

    async def _after_overflow(self, seen: Conversation) -> Conversation:
        """The model refused the conversation as too long: close the empty answer, and go on with a summary."""
        assert self.reply is not None
        now = self._parts.world.now_s()
        self.reply.finish(AnswerEnd.RETRIED.reason, now, AnswerEnd.RETRIED.words, TOO_LONG)
        self.speaker.write(self.reply.message(now))
        return await self._summarise(seen, overflown=True)

    async def _summarise(self, seen: Conversation, *, going_on: bool = True, overflown: bool = False) -> Conversation:
        """Replace the conversation, as the model sees it, by a summary. Gives what is left of it."""
        speaker, parts, session_id = self.speaker, self._parts, self._run.session_id
        batch = Batch()
        speaker.open_answer(batch, is_summary=True)
        parts.recorder.write(batch)
        window = speaker.model.context_window
        request = summary_request(seen.messages, window, overflown=overflown, run=self._run, world=parts.world)
        reply = await speaker.speak(self._system, request, self._tools)
        whole = speaker.finish(reply, _final(reply.stopped))
        answer = only_words(whole)
        if not answer.text.strip():
            self.open_calls = {call.id: call for call in whole.tool_calls}
            raise TurnFailed("the model was asked for a summary and gave none")
        if going_on:
            answer = with_requests(answer, self._requests)
        speaker.forget_length(history.estimated_tokens(answer))
        batch = Batch()
        if session := parts.sessions.change(session_id, summary_message_id=answer.id):
            batch.update_session(session)
        self._written = speaker.write(answer, batch)
        speaker.reply = None  # a cancel from here on is no word about the summary
        self._summary = None if going_on else answer
        return Conversation([answer], answer.id)

    def _go_on(self) -> None:
        """Begin nothing new once a cancel was asked for: the wake-up that came with it may have been swallowed."""
        if self._stop.done():
            raise asyncio.CancelledError


def _log_abandoned(body: asyncio.Task[None]) -> None:
    """An abandoned body has ended after all. Whatever it has to say, its run has ended before."""
    if not body.cancelled() and (error := body.exception()):
        log.warning("an abandoned turn ended with %r", error)


def _final(reason: FinishReason | None) -> FinishReason:
    """A model that says `tool_use` without a tool call is simply done."""
    return "end_turn" if reason in (None, "tool_use") else reason
