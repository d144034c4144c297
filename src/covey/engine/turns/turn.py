"""One turn: what the agent does for a run. A bracket: opening and closing always happen, only the body can be stopped.

The prompt is written before the body starts, and the last words after it has ended, by the dispatcher. A cancel is a
fact in the lane; waking the body is only a hint, given by `stop`.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from msgspec import structs

from covey.config.schema import ConfigError
from covey.engine.turns.body import BoundReached, FoldInto, TurnBody, TurnFailed
from covey.engine.turns.call_outputs import CallOutputs
from covey.engine.turns.file_versions import owning_turn
from covey.engine.turns.last_words import LastWords
from covey.engine.turns.parts import TurnParts
from covey.engine.turns.speaker import Speaker
from covey.lifecycle.budget import Purse
from covey.lifecycle.decisions import Outcome
from covey.lifecycle.output_check import DoesNotFit
from covey.lifecycle.reply import Reply
from covey.models.base import ModelFailed
from covey.protocol.runs import Run, RunOptions, Usage

log = logging.getLogger(__name__)

AGENTS_AT_ONCE = 4
"""Agents of one run at the same time; further ones wait. Each of them calls the model on its own."""


class Turn:
    """The turn of one run. Its public state is what the dispatcher needs to close it, at any moment."""

    def __init__(self, run: Run, parts: TurnParts, fold_into: FoldInto) -> None:
        self.run_id = run.run_id
        self.purse = Purse(lambda: parts.bounds_of(run), owner=parts.tool_calls.purse_of_principal(run.run_id))
        self.agents_at_once = asyncio.Semaphore(AGENTS_AT_ONCE)
        self.speaker = Speaker(run, parts.world, parts.recorder, parts.agent, self.purse, parts.trace_of(run))
        self.error = ""
        self.auth_failed = False
        self._is_at_bound = False
        self._run = run
        self._parts = parts
        self._outputs = CallOutputs(run, parts.feed)
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._body = TurnBody(run, parts, self.speaker, self.purse, self._outputs, fold_into, self._stop.done)

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
            outcome = await self._race()
            if outcome is not Outcome.CANCELLED:
                await self._parts.tool_calls.watching.end_jobs(self._run, owning_turn(self._run, self._parts.sessions))
            return outcome
        except Exception as error:
            log.exception("run %s failed", self.run_id)
            self.error = f"internal error: {type(error).__name__}: {error}"
            return Outcome.FAILED
        finally:
            self.speaker.close()
            self._outputs.close()
            self._parts.tool_calls.watching.forget(self.run_id)

    async def _race(self) -> Outcome:
        """The body against the cancel. A body that does not stop in time is abandoned: its words count no more."""
        body = asyncio.create_task(self._body.run(), name=f"turn {self.run_id}")
        try:
            await asyncio.wait({body, self._stop}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # others own the workspace: it ends without last words
            body.cancel()
            await asyncio.wait({body}, timeout=self._parts.limits.cancel_grace_s)
            raise
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
            self._is_at_bound = isinstance(error, BoundReached)
            self._parts.agent.key_refused |= self.auth_failed
        else:
            log.error("run %s failed", self.run_id, exc_info=error)
            self.error = f"internal error: {type(error).__name__}: {error}"
        return Outcome.FAILED

    def last_words(self, known: LastWords) -> LastWords:
        """Complete what is known with what this turn has to be closed."""
        answer = self.reply.message(self._parts.world.now_s()) if self.reply else None
        if known.outcome is Outcome.COMPLETED:
            answer = self._body.summary or answer
        cut_short = answer is not None and not answer.finish
        open_calls = answer.tool_calls if answer and cut_short else tuple(self._body.open_calls.values())
        return replace(
            known,
            error="" if known.outcome is Outcome.CANCELLED else self.error,
            auth=self.auth_failed,
            at_bound=self._is_at_bound and known.outcome is Outcome.FAILED,
            answer=answer,
            open_calls=open_calls,
            not_begun={call.id for call in open_calls} - self._body.beginnings.begun,
            outputs=self._outputs.cut_off,
            usage=self.usage,
            output=self._body.expected.value if known.outcome is Outcome.COMPLETED else None,
        )

    @property
    def usage(self) -> Usage:
        """The tokens of this run, and what it has cost with all that worked for it."""
        return structs.replace(self.speaker.usage, cost=self.purse.spent)


def _log_abandoned(body: asyncio.Task[None]) -> None:
    """An abandoned body has ended after all. Whatever it has to say, its run has ended before."""
    if not body.cancelled() and (error := body.exception()):
        log.warning("an abandoned turn ended with %r", error)
