"""What a turn does between its written prompt and its last words: step after step. Only this part can be stopped.

It may be stopped wherever it waits, and its public state is then what is needed to close the turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import structs

from covey.context.freedom import Freedom
from covey.context.prompt import last_word_prompt, summary_prompt
from covey.engine.recorder import Batch
from covey.engine.turns.beginnings import Beginnings
from covey.engine.turns.call_outputs import CallOutputs
from covey.engine.turns.expected_output import ExpectedOutput
from covey.engine.turns.file_versions import cause_of, owning_turn, record_changes
from covey.engine.turns.looking_back import request_about, room_of
from covey.engine.turns.messages import tool_message
from covey.engine.turns.parts import TurnParts
from covey.engine.turns.reception import Refused
from covey.engine.turns.speaker import Speaker
from covey.engine.turns.summary import only_words, summary_focus, with_hooks, with_requests, with_words
from covey.engine.turns.title import titled
from covey.lifecycle import history
from covey.lifecycle.budget import LoopGuard, Purse, SummaryGuard, is_too_long
from covey.lifecycle.fitting import tokens_of
from covey.lifecycle.history import Conversation
from covey.lifecycle.hooks import StopGuard
from covey.lifecycle.reply import Reply
from covey.models.base import ModelFailed, ToolSpec
from covey.protocol.endings import AnswerEnd
from covey.protocol.messages import FinishReason, Message, ToolCall, ToolResult
from covey.protocol.runs import Run

log = logging.getLogger(__name__)

TOO_LONG = "The conversation is too long for the model; it is summarised now."


class TurnFailed(Exception):
    """The turn cannot go on; the text is for people."""


class BoundReached(TurnFailed):
    """The turn may not go on, though it could: the model may still say where it stands."""


FoldInto = Callable[[str, Batch], list[Message]]
"""Adds what joins the turn of a run at this step to a change; gives the prompts, and what the model sees with them."""


class TurnBody:
    """The steps of one turn. `is_stopped`: a cancel was asked for, and nothing new may begin."""

    def __init__(
        self,
        run: Run,
        parts: TurnParts,
        speaker: Speaker,
        purse: Purse,
        outputs: CallOutputs,
        fold_into: FoldInto,
        is_stopped: Callable[[], bool],
    ) -> None:
        self.open_calls: dict[str, ToolCall] = {}
        """The calls of the last answer that have no result yet, by their id."""
        self.beginnings = Beginnings(run, parts.sessions, parts.recorder)
        self.summary: Message | None = None
        """The answer of a run that only summarises."""
        self.expected = ExpectedOutput(run.effective_options.output_schema)
        self._run = run
        self._parts = parts
        self._speaker = speaker
        self._purse = purse
        self._outputs = outputs
        self._fold_into = fold_into
        self._is_stopped = is_stopped
        self._written: asyncio.Future[None] | None = None
        self._requests: list[Message] = []
        """What this turn works on: the prompt, and those that were folded into it."""
        self._seen: Conversation
        """What the model reads next; there is one as soon as the body runs."""
        self._stops = StopGuard()
        """How often in a row hooks have kept the turn from ending."""
        self._has_begun = False
        """The model was asked for a step: there may be something to say about what was done."""
        self._loop = ""
        """The tool that is called again and again, if there is one."""
        self._system = ""
        self._freedom = Freedom()
        self._tools: Sequence[ToolSpec] = ()

    async def run(self) -> None:
        parts, run = self._parts, self._run
        parts.hooks.tell(run, await parts.refresh(1))
        self._choose_model()
        await self._instruct()
        session = parts.sessions.find(run.session_id)
        summary_message_id = session.summary_message_id if session else ""
        messages = await parts.read_messages(run.session_id, summary_message_id)
        mine = [message for message in messages if message.role == "user" and message.run_id == run.run_id]
        beginning = await parts.hooks.begin(run, is_new=len(messages) == len(mine), mode=self._freedom.mode)
        self._requests = await self._received(mine, beginning)
        received = {message.id: message for message in self._requests}
        messages = [received.get(message.id, message) for message in messages]
        self._seen = Conversation(messages, summary_message_id)
        parts.tool_calls.recall(run.session_id, messages)
        await parts.tool_calls.long_results.bring(messages)
        await parts.tool_calls.take_in(run, self._requests)
        self._check_bounds()
        if run.effective_options.summarize:
            await self._summarise(going_on=False)
            return
        async with titled(run, parts.agent, parts.sessions, parts.recorder, parts.world, self._speaker):
            try:
                await self._steps()
            except BoundReached as bound:
                await self._last_word(str(bound))
                raise

    async def _received(self, prompts: Sequence[Message], beginning: str = "") -> list[Message]:
        self._parts.hooks.announce("UserPromptSubmit", self._speaker.wait_on)
        try:
            return await self._parts.reception.receive(self._run, prompts, self._freedom.mode, beginning=beginning)
        except Refused as refused:
            raise TurnFailed(str(refused)) from None

    async def _instruct(self, *, again: bool = False) -> None:
        """What the model reads about itself, its tools and what it may do: the same while the mode is."""
        parts, run, model = self._parts, self._run, self._speaker.model
        self._freedom, delegate = parts.tool_calls.freedom_of(run), parts.sessions.is_child(run.session_id)
        self._system = await parts.agent.system_prompt(
            run.session_id, model, self._freedom, delegate=delegate, again=again, agent=run.effective_options.agent
        )
        self._equip()

    def _equip(self) -> None:
        """The tools of a step: those of extensions may be others than in the step before."""
        parts, run = self._parts, self._run
        self._tools = parts.agent.tool_specs(
            run.session_id,
            self._speaker.model,
            self._freedom,
            delegate=parts.sessions.is_child(run.session_id),
            agent=run.effective_options.agent,
        )

    async def _steps(self) -> None:
        """Step after step, until the model asks for no more tools."""
        limit = self._run.effective_options.max_steps or self._parts.limits.steps_per_run
        calls, summaries = LoopGuard(), SummaryGuard()
        fresh = False
        """Nothing was said since the last summary: another one would not help."""
        for _ in range(limit):
            self._go_on()
            if reason := self._parts.hooks.stopped(self._run.run_id):
                raise TurnFailed(f"stopped by a hook: {reason}")
            self._check_bounds()
            self._choose_model()
            if self._freedom.mode != self._parts.tool_calls.mode_of(self._run):
                await self._instruct(again=True)
            else:
                self._equip()
            if not fresh and self._seen.has_past and self._is_too_long():
                await self._make_room(summaries)
            await self._begin_step()
            try:
                answer = await self._step(list(self._seen.messages))  # a request never changes
            except ModelFailed as failure:
                if fresh or not self._seen.has_past or not failure.overflow or not self._nothing_said:
                    raise
                await self._make_room(summaries, overflown=True)
                fresh = True
                continue
            fresh = False
            summaries.stepped()
            if answer.tool_calls:
                self._stops = StopGuard()
                self._seen.add([answer, *await self._run_tools(answer, calls)])
            elif await self.expected.is_given(answer):
                self._parts.hooks.announce("Stop", self._speaker.wait_on)
                if not (reason := await self._parts.hooks.stop(self._run, self._stops, answer, self._freedom.mode)):
                    return
                self._stops = self._stops.block()
                self._seen.add([self._speaker.hold(answer, reason)])
            else:
                self._seen.add([self._speaker.reject(answer, self.expected.problem)])
        steps = "1 step" if limit == 1 else f"{limit} steps"
        bound = "max_steps of this run" if self._run.effective_options.max_steps else "limits.steps_per_run"
        raise BoundReached(f"stopped after {steps} ({bound}){self.expected.remark}")

    async def _begin_step(self) -> None:
        """Take in what is folded, then open the answer to it: one change.

        The model sees a folded prompt only when that is on disk: after a crash it would be asked once more.
        """
        self._has_begun = True
        batch = Batch()
        folded = self._fold_into(self._run.run_id, batch)
        self._speaker.open_answer(batch)
        written = self._parts.recorder.write(batch)
        if folded:
            await written
            folded = await self._received(folded)
            await self._parts.tool_calls.take_in(self._run, folded)
            self._requests += [message for message in folded if not message.is_command]
            self._seen.add(folded)

    async def _step(self, visible: list[Message]) -> Message:
        """One model call. Gives the finished answer: written, unless it is the last one of the turn."""
        speaker, expected = self._speaker, self.expected
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
        for group in self.beginnings.of_answer(answer.id, self._parts.tool_calls.groups(answer.tool_calls)):
            self._go_on()
            if results and self._parts.awaits_results and self._written:
                await self._written
            done = await self._run_together(group)
            results += done
            for call, message in zip(group, done, strict=True):
                if guard.saw(call.name, call.input, message.tool_results[0].content):
                    self._loop = call.name
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
        speaker = self._speaker
        speaker.wait_on(f"tool:{call.name}")
        assert self._speaker.reply is not None  # the answer with the call
        with self._outputs.of_call(self._speaker.reply.message_id, call.id) as output:
            done = await self._parts.tool_calls.run(
                call,
                self._run,
                speaker.wait_on,
                output.open_sink,
                self.beginnings,
                sees=speaker.model.sees_images,
                offered=[tool.name for tool in self._tools],
            )
        speaker.live()
        self.beginnings.ended(call)
        message = tool_message(self._with_note(done.result), self._run, self._parts.world)
        batch = Batch()
        batch.add_message(message)
        owner = owning_turn(self._run, self._parts.sessions)
        record_changes(batch, done.changes, cause_of(message, owner), self._parts.world)
        self._written = self._parts.recorder.write(batch)
        self.open_calls.pop(call.id, None)
        return message

    def _with_note(self, result: ToolResult) -> ToolResult:
        """The last result of a step tells the model of the calls that were dropped, if there were too many."""
        reply = self._speaker.reply
        if reply is None or not reply.dropped_calls or result.tool_call_id != reply.last_call_id:
            return result
        log.warning("run %s: %d tool calls beyond the bound were dropped", self._run.run_id, reply.dropped_calls)
        return structs.replace(result, content=f"{result.content}\n\n{history.dropped_calls(reply.dropped_calls)}")

    # ── what it may use ──

    def _choose_model(self) -> None:
        self._speaker.choose(self._parts.model_of(self._run))

    def _check_bounds(self) -> None:
        if refusal := self._purse.refusal():
            # Those who work for a run spend its money: one last word is enough, and it is that run's.
            raise TurnFailed(refusal) if self._purse.owner else BoundReached(refusal)
        if self._loop:
            raise BoundReached(f"stopped: {self._loop} was called again and again with the same input and result")

    async def _last_word(self, why: str) -> None:
        """One more answer, in which no tool is run: what was done, and what is left."""
        speaker = self._speaker
        if not self._has_begun or speaker.model.is_tiny:  # nothing was done, or nothing would be understood
            return
        batch = Batch()
        speaker.open_answer(batch)
        self._parts.recorder.write(batch)
        try:
            reply = await self._look_back(last_word_prompt(why))
        except ModelFailed as error:
            log.warning("run %s has no last word: %s", self._run.run_id, error)
            return
        answer = speaker.finish(reply, _final(reply.stopped))
        self.open_calls = {call.id: call for call in answer.tool_calls}

    async def _look_back(self, words: str, *, overflown: bool = False) -> Reply:
        """Ask about the conversation, as much of it as the model can read: once more with half, if it refuses that.

        `overflown`: it has refused all of it. What it answers has no calls to be run.
        """
        speaker, parts, seen = self._speaker, self._parts, self._seen.messages
        room = room_of(speaker.model, self._system, self._tools)
        if overflown:
            room = min(filter(None, (room, self._seen.tokens // 2)))
        request = request_about(seen, room, words, self._run, parts.world)
        try:
            return await speaker.speak_in_words(self._system, request, self._tools)
        except ModelFailed as failure:
            if not failure.overflow or not self._nothing_said:
                raise
            speaker.shorten(failure)
        request = request_about(seen, tokens_of(request) // 2, words, self._run, parts.world)
        return await speaker.speak_in_words(self._system, request, self._tools)

    def _is_too_long(self) -> bool:
        """By what the provider counted in the last step, or by a guess where that is more."""
        if self._speaker.model.is_tiny:  # it would not understand; the latest messages that fit are all it sees
            return False
        last = self._speaker.last_usage
        tokens = max(last.prompt_tokens + last.completion_tokens, self._seen.tokens)
        return is_too_long(tokens, self._speaker.model.context_window, self._parts.limits.summarize_at)

    # ── summarise and go on (R8: the run keeps its id, its place and its cancel scope) ──

    @property
    def _nothing_said(self) -> bool:
        return self._speaker.reply is None or self._speaker.reply.is_empty

    async def _make_room(self, guard: SummaryGuard, *, overflown: bool = False) -> None:
        """Go on with a summary. `overflown`: the model refused the conversation as too long."""
        if overflown:
            self._close_refused()
        await self._summarise(overflown=overflown)
        if guard.summarised():
            raise BoundReached(
                "stopped: the conversation had to be summarised after each single step. The model's context window of "
                f"{self._speaker.model.context_window or 'unknown'} tokens is too small for this work: choose a model "
                "with a larger one, or set its real context_window in the configuration"
            )

    def _close_refused(self) -> None:
        """Close the empty answer to a conversation that was too long."""
        assert self._speaker.reply is not None
        now = self._parts.world.now_s()
        self._speaker.reply.finish(AnswerEnd.RETRIED.reason, now, AnswerEnd.RETRIED.words, TOO_LONG)
        self._speaker.write(self._speaker.reply.message(now))

    async def _summarise(self, *, going_on: bool = True, overflown: bool = False) -> None:
        """Replace the conversation, as the model sees it, by a summary."""
        speaker, parts, session_id = self._speaker, self._parts, self._run.session_id
        focus = summary_focus(self._run)
        refusal = await parts.hooks.compact(self._run, manual=not going_on, focus=focus, mode=self._freedom.mode)
        if refusal and not going_on:
            raise TurnFailed(f"a hook forbids to summarise: {refusal}")
        told = await parts.hooks.begin_again(self._run, self._freedom.mode)  # here, as nothing may wait once it is said
        batch = Batch()
        speaker.open_answer(batch, is_summary=True)
        parts.recorder.write(batch)
        reply = await self._look_back(summary_prompt(focus), overflown=overflown)
        whole = speaker.finish(reply, _final(reply.stopped))
        answer = only_words(whole)
        if not answer.text.strip():
            self.open_calls = {call.id: call for call in whole.tool_calls}
            raise TurnFailed("the model was asked for a summary and gave none")
        answer = with_hooks(with_words(answer, self._seen.messages, self._requests), told)
        if going_on:
            answer = with_requests(answer, self._requests)
        speaker.forget_length(history.estimated_tokens(answer))
        batch = Batch()
        if session := parts.sessions.change(session_id, summary_message_id=answer.id):
            batch.update_session(session)
        self._written = speaker.write(answer, batch)
        speaker.reply = None  # a cancel from here on is no word about the summary
        self.summary = None if going_on else answer
        self._seen = Conversation([answer], answer.id)
        parts.tool_calls.forget_skills(session_id)

    def _go_on(self) -> None:
        """Begin nothing new once a cancel was asked for: the wake-up that came with it may have been swallowed."""
        if self._is_stopped():
            raise asyncio.CancelledError


def _final(reason: FinishReason | None) -> FinishReason:
    """A model that says `tool_use` without a tool call is simply done."""
    return "end_turn" if reason in (None, "tool_use") else reason
