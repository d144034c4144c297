"""The model calls of one turn: each fills one answer, which grows in front of everybody.

What is said to the model, and what follows from its answer, is the business of `Turn`; how the answer is written while
it grows, that of `AnswerWriter`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from msgspec import structs

from covey.engine.agent import Agent, ReadyModel
from covey.engine.recorder import Batch, Recorder
from covey.engine.turns.answer_writer import AnswerWriter
from covey.engine.turns.model_trace import ModelTrace
from covey.engine.world import World
from covey.lifecycle.budget import Purse
from covey.lifecycle.reply import ModelFact, Reply, UsageReported
from covey.models.base import ModelFailed, ModelRequest, Retry, ToolSpec
from covey.models.retry import delay_before_retry
from covey.protocol.endings import AnswerEnd
from covey.protocol.events import AgentEvent, created
from covey.protocol.messages import Finish, FinishPart, FinishReason, Message
from covey.protocol.runs import Run, Usage

START = "start"
"""What a run waits on before its turn has begun to ask anything."""
SILENCES = 2
"""How often a model may be silent until it is given up: each costs all of `idle_timeout_s`, minutes by default."""
NO_WORDS = "The model called tools where it was asked for words; it is asked again without any tools"
TOO_MUCH = "No model should say that much at once: ask for less in one go, or choose another model."


class Speaker:
    """Speaks for one run, with the model that was chosen for it or, if that cannot be reached, with another."""

    def __init__(
        self,
        run: Run,
        world: World,
        recorder: Recorder,
        agent: Agent,
        purse: Purse,
        trace: ModelTrace | None = None,
    ) -> None:
        self.reply: Reply | None = None
        """The answer in progress, or the last one."""
        self.usage = Usage()
        self.last_usage = Usage()
        self.heard = asyncio.Event()
        """The model has begun to answer."""
        self.waiting_on = START
        self.on_wait: Callable[[], None] = lambda: None
        """Called when it waits on something else than before."""
        self.last_progress_at = world.now()
        self._run = run
        self._world = world
        self._recorder = recorder
        self._agent = agent
        self._purse = purse
        self._wanted = ""
        self._model: ReadyModel | None = None
        self._tried: list[str] = []
        self._writer: AnswerWriter | None = None
        self._trace = trace
        self._over = False

    @property
    def model(self) -> ReadyModel:
        assert self._model is not None
        return self._model

    def choose(self, reference: str) -> None:
        """Speak with this model ('' for the configured one) from now on; one that replaces it stays until then."""
        if self._model is None or reference != self._wanted:
            self._model = self._agent.model(reference)
            self._wanted = reference
            self._tried = [self._model.reference]

    def open_answer(self, batch: Batch, *, is_summary: bool = False) -> None:
        """A step begins with an empty answer, so that everything the model says has its place."""
        now = self._world.now_s()
        self.reply = Reply(
            message_id=self._world.new_id(),
            session_id=self._run.session_id,
            run_id=self._run.run_id,
            model=self.model.model_id,
            provider=self.model.provider_id,
            now=now,
            is_summary=is_summary,
        )
        self._writer = AnswerWriter(self.reply, self._recorder, self._world)
        batch.add_message(self.reply.message(now))

    async def speak(
        self,
        system: str,
        messages: list[Message],
        tools: Sequence[ToolSpec],
        output_schema: dict[str, Any] | None = None,
        *,
        may_call: bool = True,
    ) -> Reply:
        """One model call. Gives the open answer, filled; it is not finished, and its last words are not written."""
        reply = self.reply
        assert reply is not None
        attempt = silences = 0
        while True:
            attempt += 1
            try:
                request = self._request(system, messages, tools, output_schema)
                await self._listen(replace(request, may_call=may_call), reply)
                break
            except ModelFailed as failure:
                silences += failure.silent
                if failure.broken and silences < SILENCES and await self._may_repeat(failure, attempt):
                    self._take_back(reply)
                elif failure.busy and reply.is_empty and self._change_model(failure, reply):
                    attempt = silences = 0
                elif failure.broken and attempt > 1:
                    raise ModelFailed(f"{failure} (tried {attempt} times)", broken=True) from failure
                else:
                    raise
        self.live()
        return reply

    async def speak_in_words(self, system: str, messages: list[Message], tools: Sequence[ToolSpec]) -> Reply:
        """The same, where no call would be run: words are wanted.

        Some servers do not know how to forbid calls. A model that only calls is asked once more, without any tools, if
        there is money for it.
        """
        reply = await self.speak(system, messages, tools, may_call=False)
        if not reply.has_calls or reply.message(self._world.now_s()).text.strip() or self._purse.is_empty:
            return reply
        self._on_retry(Retry(1, 0.0, NO_WORDS))
        self._take_back(reply)
        return await self.speak(system, messages, ())

    def finish(self, reply: Reply, reason: FinishReason) -> Message:
        """The answer as a whole, not yet written."""
        now = self._world.now_s()
        reply.finish(reason, now)
        return reply.message(now)

    def reject(self, answer: Message, problem: str) -> Message:
        """Write a whole answer as one that does not fit, and is asked for again; everybody sees why."""
        rejected = self._end_as(answer, AnswerEnd.REJECTED, problem)
        self._on_retry(Retry(1, 0.0, f"The answer does not fit the schema: {problem}"))
        return rejected

    def shorten(self, failure: ModelFailed) -> None:
        """A request was refused as too long, and is made once more with less in it: everybody sees why."""
        self._on_retry(Retry(1, 0.0, f"{failure}; it is asked again with less"))

    def hold(self, answer: Message, reason: str) -> Message:
        """Write a whole answer as one after which the turn goes on, because a hook wants it to."""
        held = self._end_as(answer, AnswerEnd.HELD, reason)
        self._on_warning(f"A hook does not let the turn end yet: {reason}")
        return held

    def _end_as(self, answer: Message, end: AnswerEnd, details: str) -> Message:
        finish = Finish(reason=end.reason, time=self._world.now_s(), message=end.words, details=details)
        ended = structs.replace(answer, parts=(*answer.parts[:-1], FinishPart(data=finish)))
        self.write(ended)
        return ended

    def write(self, answer: Message, batch: Batch | None = None) -> asyncio.Future[None]:
        """Write a whole answer, with all that belongs to it."""
        assert self._writer is not None
        self._writer.written()
        batch = batch or Batch()
        batch.update_message(answer)
        return self._recorder.write(batch)

    def close(self) -> None:
        """Nothing that is said from now on counts: the run ends."""
        self._over = True
        if self._trace:
            self._trace.close()
        if self._writer:
            self._writer.close()

    def live(self) -> None:
        """Nothing that an abandoned body still does may be published: the run has ended."""
        if self._over:
            raise asyncio.CancelledError

    def wait_on(self, what: str) -> None:
        changed, self.waiting_on = what != self.waiting_on, what
        self.last_progress_at = self._world.now()
        if changed and not self._over:
            self.on_wait()

    def spend(self, usage: Usage) -> None:
        """Something was asked for this run: its tokens and its cost count."""
        self.usage += usage
        self._purse.spend(usage.cost)

    def forget_length(self, tokens: int) -> None:
        """The conversation is short again: this is what the model reads next time."""
        self.last_usage = Usage(prompt_tokens=tokens)

    def _request(
        self, system: str, messages: list[Message], tools: Sequence[ToolSpec], output_schema: dict[str, Any] | None
    ) -> ModelRequest:
        model = self.model
        return ModelRequest(
            model=model.model_id,
            system=system,
            messages=messages,
            tools=list(tools),
            output_schema=output_schema,
            max_tokens=model.max_tokens,
            effort=model.effort,
            sees_images=model.sees_images,
            on_retry=self._on_retry,
            on_connected=self._on_connected,
            on_warning=self._on_warning,
            trace=self._trace,
        )

    async def _listen(self, request: ModelRequest, reply: Reply) -> None:
        """Whatever ends it, what was used is paid for, at the price of whoever used it."""
        self.wait_on("model")
        try:
            async with aclosing(self.model.client.stream(request)) as facts:  # closed at once, whatever ends it
                async for fact in facts:
                    self._take(fact, reply)
        finally:
            used = self.model.price.usage(reply.usage)
            self.spend(used)
            if used.prompt_tokens or used.completion_tokens:
                self.last_usage = used
            reply.usage = UsageReported(0, 0)

    def _take(self, fact: ModelFact, reply: Reply) -> None:
        self.live()
        self.last_progress_at = self._world.now()
        self.heard.set()
        assert self._writer is not None
        self._writer.take(fact)
        if reply.cut_off:
            raise ModelFailed(f"{self.model.provider_id}: {reply.cut_off}. {TOO_MUCH}")

    async def _may_repeat(self, failure: ModelFailed, attempt: int) -> bool:
        """Wait until an answer that broke off can be asked for once more; False: it was asked for often enough.

        None of its calls has been started: that happens when an answer is whole. Until the next one begins, what was
        said stays, so that a cancel or a crash in this pause leaves it as it leaves any half answer.
        """
        delay = delay_before_retry(attempt, self.model.max_attempts, retry_after=None, jitter=random.random())
        if delay is None:
            return False
        self._on_retry(Retry(attempt, delay, str(failure)))
        await asyncio.sleep(delay)
        return True

    def _take_back(self, reply: Reply) -> None:
        self.live()
        assert self._writer is not None
        if not reply.is_empty:
            self._writer.take_back()

    def _change_model(self, failure: ModelFailed, reply: Reply) -> bool:
        """Go on with the next model of the fallback chain; False if there is none left."""
        following = self._agent.fallback(self._tried)
        if following is None:
            return False
        self._tried.append(following.reference)
        self._model = following
        reply.answered_by(following.model_id, following.provider_id)
        self._on_retry(Retry(len(self._tried), 0.0, f"{failure}; {following.reference} is asked instead"))
        return True

    def _on_connected(self) -> None:
        self.heard.set()
        self.wait_on("model")

    def _on_retry(self, retry: Retry) -> None:
        self.live()
        self.wait_on("retry")
        event = AgentEvent(
            type="retry",
            session_id=self._run.session_id,
            run_id=self._run.run_id,
            reason=retry.error,
            attempt=retry.attempt,
            retry_at=self._world.now() + retry.delay_s,
        )
        self._recorder.write(Batch(events=[created(event)]))

    def _on_warning(self, text: str) -> None:
        self.live()
        event = AgentEvent(type="warning", session_id=self._run.session_id, run_id=self._run.run_id, reason=text)
        self._recorder.write(Batch(events=[created(event)]))
