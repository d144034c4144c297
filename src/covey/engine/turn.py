"""One turn: what the agent does for a run. A bracket: opening and closing always happen, only the body can be stopped.

The prompt is written before the body starts, and the last words after it has ended, by the dispatcher. A cancel is a
fact in the lane; waking the body is only a hint, given by `stop`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from covey.config.schema import ConfigError
from covey.engine.agent import Agent, ReadyModel
from covey.engine.last_words import Ending
from covey.engine.messages import tool_message
from covey.engine.recorder import Batch, Recorder
from covey.engine.sessions import SessionBook
from covey.engine.tool_calls import ToolCalls
from covey.engine.world import World
from covey.lifecycle import history
from covey.lifecycle.budget import LoopGuard
from covey.lifecycle.reply import ModelFact, Reply, Structure
from covey.lifecycle.runs import Outcome
from covey.models.base import ModelFailed, ModelRequest, Retry
from covey.protocol.events import AgentEvent, MessageDelta, created
from covey.protocol.messages import FinishReason, Message, ToolCall
from covey.protocol.runs import Run, Usage
from covey.store.base import AppendText

log = logging.getLogger(__name__)

CHECKPOINT_S = 0.25
"""How much of a streamed text a crash may cost."""


class TurnFailed(Exception):
    """The turn cannot go on; the text is for people."""


class StepOpener(Protocol):
    """The dispatcher, as a turn sees it."""

    async def begin_step(self, turn: Turn) -> list[Message]:
        """Fold what may be folded, write it together with the new answer, and give the folded prompts."""
        ...


@dataclass(frozen=True, slots=True)
class TurnParts:
    """What the turns of a workspace share."""

    world: World
    recorder: Recorder
    sessions: SessionBook
    agent: Agent
    tool_calls: ToolCalls
    read_messages: Callable[[str], Awaitable[list[Message]]]
    cancel_grace_s: float
    steps_per_run: int


class Turn:
    """The turn of one run. Its public state is what the dispatcher needs to close it, at any moment."""

    def __init__(self, run: Run, parts: TurnParts, opener: StepOpener) -> None:
        self.run_id = run.run_id
        self.reply: Reply | None = None
        self.open_calls: list[ToolCall] = []
        self.usage = Usage()
        self.last_usage = Usage()
        self.error = ""
        self.auth_failed = False
        self.waiting_on = "start"
        self.last_progress_at = parts.world.now()
        self._run = run
        self._parts = parts
        self._opener = opener
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._model: ReadyModel | None = None
        self._written: asyncio.Future[None] | None = None
        self._checkpoint: asyncio.TimerHandle | None = None
        self._over = False

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
            self._over = True
            if self._checkpoint:
                self._checkpoint.cancel()

    async def _race(self) -> Outcome:
        """The body against the cancel. A body that does not stop in time is abandoned: its words count no more."""
        body = asyncio.create_task(self._body(), name=f"turn {self.run_id}")
        await asyncio.wait({body, self._stop}, return_when=asyncio.FIRST_COMPLETED)
        if not body.done():
            body.cancel()
            await asyncio.wait({body}, timeout=self._parts.cancel_grace_s)
        if not body.done():
            log.error("run %s did not stop within %s s and was abandoned", self.run_id, self._parts.cancel_grace_s)
            body.add_done_callback(_let_go)
            return Outcome.CANCELLED
        if body.cancelled():
            self.error = "" if self._stop.done() else "the turn was stopped from inside"
            return Outcome.CANCELLED if self._stop.done() else Outcome.FAILED
        return self._outcome(body.exception())

    def _outcome(self, error: BaseException | None) -> Outcome:
        if error is None:
            return Outcome.COMPLETED
        if isinstance(error, ModelFailed | TurnFailed | ConfigError):
            self.error = str(error)
            self.auth_failed = isinstance(error, ModelFailed) and error.auth
        else:
            log.error("run %s failed", self.run_id, exc_info=error)
            self.error = f"internal error: {type(error).__name__}: {error}"
        return Outcome.FAILED

    def ending(self, ending: Ending) -> Ending:
        """Complete `ending` with what this turn has to be closed."""
        answer = self.reply.message(self._parts.world.now_s()) if self.reply else None
        cut_short = answer is not None and not answer.finish
        return replace(
            ending,
            error="" if ending.outcome is Outcome.CANCELLED else self.error,
            auth=self.auth_failed,
            answer=answer,
            open_calls=answer.tool_calls if answer and cut_short else tuple(self.open_calls),
            usage=self.usage,
        )

    # ── the body ──

    async def _body(self) -> None:
        self._model = self._parts.agent.model()
        messages = await self._parts.read_messages(self._run.session_id)
        guard = LoopGuard()
        for _ in range(self._parts.steps_per_run):
            self._go_on()
            messages += await self._opener.begin_step(self)
            answer = await self._step(messages)
            messages.append(answer)
            if not answer.tool_calls:
                return
            messages += await self._run_tools(answer, guard)
        raise TurnFailed(f"stopped after {self._parts.steps_per_run} steps (limits.steps_per_run)")

    def open_answer(self, batch: Batch) -> None:
        """A step begins with an empty answer, so that everything the model says has its place."""
        model = self._model
        assert model is not None
        self.reply = Reply(
            message_id=self._parts.world.new_id(),
            session_id=self._run.session_id,
            run_id=self.run_id,
            model=model.model_id,
            provider=model.provider_id,
            now=self._parts.world.now_s(),
        )
        batch.add_message(self.reply.message(self._parts.world.now_s()))

    async def _step(self, messages: list[Message]) -> Message:
        """One model call. Gives the finished answer: written, unless it is the last one of the turn."""
        model, reply = self._model, self.reply
        assert model is not None and reply is not None
        request = ModelRequest(
            model=model.model_id,
            system=self._parts.agent.system_prompt(),
            messages=history.for_model(messages),
            tools=self._parts.agent.tool_specs,
            max_tokens=model.max_tokens,
            on_retry=self._on_retry,
            on_connected=lambda: self._wait_on("model"),
        )
        self._wait_on("model")
        async for fact in model.client.stream(request):
            self._take(fact, reply)
        self._live()
        self.last_usage = model.price.usage(reply.usage)
        self.usage += self.last_usage
        now = self._parts.world.now_s()
        reply.finish("tool_use" if reply.has_calls else _final(reply.stopped), now)
        answer = reply.message(now)
        if answer.tool_calls:
            self.open_calls = list(answer.tool_calls)
            reply.unsaved()  # the whole message is written now
            batch = Batch()
            batch.update_message(answer)
            self._written = self._parts.recorder.write(batch)
        return answer

    def _take(self, fact: ModelFact, reply: Reply) -> None:
        self._live()
        self.last_progress_at = self._parts.world.now()
        change = reply.take(fact)
        if isinstance(change, MessageDelta):
            self._parts.recorder.grow(change)
            if self._checkpoint is None:
                loop = asyncio.get_running_loop()
                self._checkpoint = loop.call_later(CHECKPOINT_S, self._save_growth)
        elif change is Structure.CHANGED:
            reply.unsaved()  # the whole message is written now
            batch = Batch()
            batch.update_message(reply.message(self._parts.world.now_s()))
            self._parts.recorder.write(batch, durable=False)

    def _save_growth(self) -> None:
        self._checkpoint = None
        if self.reply and not self._over and (pieces := self.reply.unsaved()):
            self._parts.recorder.write(Batch([AppendText(self.reply.message_id, tuple(pieces))]), durable=False)

    async def _run_tools(self, answer: Message, guard: LoopGuard) -> list[Message]:
        """Run the calls of a step, one after the other. They are on disk before the first one has effects."""
        if self._written:
            await self._written
        results = []
        for call in answer.tool_calls:
            self._go_on()
            self._wait_on(f"tool:{call.name}")
            result = await self._parts.tool_calls.run(call, self._run, self._wait_on)
            self._live()
            message = tool_message(result, self._run, self._parts.world)
            batch = Batch()
            batch.add_message(message)
            self._parts.recorder.write(batch)
            self.open_calls.remove(call)
            results.append(message)
            if guard.saw(call.name, call.input, result.content):
                raise TurnFailed(f"stopped: {call.name} was called again and again with the same input and result")
        return results

    def _on_retry(self, retry: Retry) -> None:
        self._live()
        self._wait_on("retry")
        event = AgentEvent(
            type="retry",
            session_id=self._run.session_id,
            run_id=self.run_id,
            error=retry.error,
            attempt=retry.attempt,
            retry_at=self._parts.world.now() + retry.delay_s,
        )
        self._parts.recorder.write(Batch(events=[created(event)]))

    def _wait_on(self, what: str) -> None:
        self.waiting_on = what
        self.last_progress_at = self._parts.world.now()

    def _go_on(self) -> None:
        """Begin nothing new once a cancel was asked for: the wake-up that came with it may have been swallowed."""
        if self._stop.done():
            raise asyncio.CancelledError

    def _live(self) -> None:
        """Nothing that an abandoned body still does may be told: the run has ended."""
        if self._over:
            raise asyncio.CancelledError


def _let_go(body: asyncio.Task[None]) -> None:
    """An abandoned body has ended after all. Whatever it has to say, its run has ended before."""
    if not body.cancelled() and (error := body.exception()):
        log.warning("an abandoned turn ended with %r", error)


def _final(reason: FinishReason | None) -> FinishReason:
    """A model that says `tool_use` without a tool call is simply done."""
    return "end_turn" if reason in (None, "tool_use") else reason
