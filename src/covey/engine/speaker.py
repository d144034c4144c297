"""The model calls of one turn: each fills one answer, which grows in front of everybody and is saved now and then.

What is said to the model, and what follows from its answer, is the business of `Turn`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from covey.engine.agent import Agent, ReadyModel
from covey.engine.recorder import Batch, Recorder
from covey.engine.world import World
from covey.lifecycle.reply import ModelFact, Reply, Structure, UsageReported
from covey.models.base import ModelFailed, ModelRequest, Retry, ToolSpec
from covey.protocol.events import AgentEvent, MessageDelta, created
from covey.protocol.messages import FinishReason, Message
from covey.protocol.runs import Run, Usage
from covey.store.base import AppendText

CHECKPOINT_S = 0.25
"""How much of a streamed text a crash may cost."""


class Speaker:
    """Speaks for one run, with the model that was chosen for it or, if that cannot be reached, with another."""

    def __init__(self, run: Run, world: World, recorder: Recorder, agent: Agent) -> None:
        self.reply: Reply | None = None
        """The answer in progress, or the last one."""
        self.usage = Usage()
        self.last_usage = Usage()
        self.waiting_on = "start"
        self.last_progress_at = world.now()
        self._run = run
        self._world = world
        self._recorder = recorder
        self._agent = agent
        self._wanted = ""
        self._model: ReadyModel | None = None
        self._tried: list[str] = []
        self._checkpoint: asyncio.TimerHandle | None = None
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
        batch.add_message(self.reply.message(now))

    async def speak(self, system: str, messages: list[Message], tools: Sequence[ToolSpec]) -> Reply:
        """One model call. Gives the open answer, filled; it is not finished, and its last words are not written."""
        reply = self.reply
        assert reply is not None
        while True:
            try:
                await self._listen(self._request(system, messages, tools), reply)
                break
            except ModelFailed as failure:
                if not (failure.busy and reply.is_empty and self._change_model(failure, reply)):
                    raise
        self.live()
        return reply

    def finish(self, reply: Reply, reason: FinishReason) -> Message:
        """The answer as a whole, not yet written."""
        now = self._world.now_s()
        reply.finish(reason, now)
        return reply.message(now)

    def write(self, answer: Message, batch: Batch | None = None) -> asyncio.Future[None]:
        """Write a whole answer, with all that belongs to it."""
        assert self.reply is not None
        self.reply.unsaved()  # the whole message is written now
        batch = batch or Batch()
        batch.update_message(answer)
        return self._recorder.write(batch)

    def close(self) -> None:
        """Nothing that is said from now on counts: the run ends."""
        self._over = True
        if self._checkpoint:
            self._checkpoint.cancel()

    def live(self) -> None:
        """Nothing that an abandoned body still does may be told: the run has ended."""
        if self._over:
            raise asyncio.CancelledError

    def wait_on(self, what: str) -> None:
        self.waiting_on = what
        self.last_progress_at = self._world.now()

    def spend(self, usage: Usage) -> None:
        """Somebody else has worked for this run."""
        self.usage += usage

    def forget_length(self, tokens: int) -> None:
        """The conversation is short again: this is what the model reads next time."""
        self.last_usage = Usage(prompt_tokens=tokens)

    def _request(self, system: str, messages: list[Message], tools: Sequence[ToolSpec]) -> ModelRequest:
        model = self.model
        return ModelRequest(
            model=model.model_id,
            system=system,
            messages=messages,
            tools=list(tools),
            max_tokens=model.max_tokens,
            effort=model.effort,
            sees_images=model.sees_images,
            on_retry=self._on_retry,
            on_connected=lambda: self.wait_on("model"),
        )

    async def _listen(self, request: ModelRequest, reply: Reply) -> None:
        """Whatever ends it, what was used is paid for, at the price of whoever used it."""
        self.wait_on("model")
        try:
            async for fact in self.model.client.stream(request):
                self._take(fact, reply)
        finally:
            used = self.model.price.usage(reply.usage)
            self.usage += used
            if used.prompt_tokens or used.completion_tokens:
                self.last_usage = used
            reply.usage = UsageReported(0, 0)

    def _take(self, fact: ModelFact, reply: Reply) -> None:
        self.live()
        self.last_progress_at = self._world.now()
        change = reply.take(fact, int(self.last_progress_at))
        if isinstance(change, MessageDelta):
            self._recorder.grow(change)
            if self._checkpoint is None:
                loop = asyncio.get_running_loop()
                self._checkpoint = loop.call_later(CHECKPOINT_S, self._save_growth)
        elif change is Structure.CHANGED:
            reply.unsaved()  # the whole message is written now
            batch = Batch()
            batch.update_message(reply.message(self._world.now_s()))
            self._recorder.write(batch, durable=False)

    def _save_growth(self) -> None:
        self._checkpoint = None
        if self.reply and not self._over and (pieces := self.reply.unsaved()):
            self._recorder.write(Batch([AppendText(self.reply.message_id, tuple(pieces))]), durable=False)

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

    def _on_retry(self, retry: Retry) -> None:
        self.live()
        self.wait_on("retry")
        event = AgentEvent(
            type="retry",
            session_id=self._run.session_id,
            run_id=self._run.run_id,
            error=retry.error,
            attempt=retry.attempt,
            retry_at=self._world.now() + retry.delay_s,
        )
        self._recorder.write(Batch(events=[created(event)]))
