"""What tools ask of the server: the list of things to do, a question to people, an agent that looks into something."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from covey.engine.endings import Endings
from covey.engine.questions import QuestionDesk
from covey.engine.recorder import Batch, Recorder
from covey.engine.sessions import SessionBook
from covey.engine.world import World
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import CancelReceipt, PromptReceipt, RunComplete, RunOptions
from covey.tools.base import Question, Todo, ToolContext, ToolFailed

DELEGATES_AT_ONCE = 4
"""Agents of one run at the same time; further ones wait. Each of them calls the model on its own."""
TITLE_LENGTH = 60


class Working(Protocol):
    """A turn, as those see it who work for it."""

    @property
    def wished(self) -> RunOptions: ...

    def left_to_spend(self) -> float | None:
        """Dollars that whoever works for this run may cost; None: there is no bound."""
        ...

    def pay(self, dollars: float) -> None:
        """Somebody has worked for this run."""
        ...


class Lanes(Protocol):
    """The workspace, as far as an agent needs it that works in a session of its own."""

    endings: Endings

    async def create_child(self, parent_session_id: str, title: str) -> Session: ...

    async def post_for_agent(self, request: PostPrompt) -> PromptReceipt: ...

    async def cancel_run(self, run_id: str) -> CancelReceipt: ...

    def turn_of(self, run_id: str) -> Working | None: ...


class EngineHost:
    """The host of all tools of a workspace."""

    def __init__(
        self, lanes: Lanes, sessions: SessionBook, recorder: Recorder, questions: QuestionDesk, world: World
    ) -> None:
        self._lanes = lanes
        self._world = world
        self._sessions = sessions
        self._recorder = recorder
        self._questions = questions
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._delegates: Counter[str] = Counter()
        self._principals: dict[str, tuple[str, str]] = {}
        """For each run of an agent, the session and the run that it works for."""

    def set_todos(self, session_id: str, todos: Sequence[Todo]) -> None:
        if session := self._sessions.change(session_id, todos=tuple(msgspec.to_builtins(todo) for todo in todos)):
            batch = Batch()
            batch.update_session(session)
            self._recorder.write(batch)

    async def ask(self, context: ToolContext, questions: Sequence[Question]) -> list[str] | None:
        return await self._questions.ask(context, questions)

    async def diagnostics(self, context: ToolContext, path: Path) -> str:
        """Nothing knows about files yet: language servers will."""
        return ""

    # ── agents ──

    def has_delegates(self, run_id: str) -> bool:
        """Whether agents work for a run right now."""
        return run_id in self._delegates

    def is_delegate(self, session_id: str) -> bool:
        """Whether what happens in a session is on behalf of another one."""
        return self._sessions.is_child(session_id)

    def principal(self, context: ToolContext) -> tuple[str, str]:
        """The session and the run in whose name a call asks: people watch those, not the ones of their agents."""
        return self._principals.get(context.run_id, (context.session_id, context.run_id))

    async def delegate(self, context: ToolContext, prompt: str) -> str:
        """Run the prompt as a run of its own in a child session. Cancelling this cancels it, and waits for its end."""
        slots = self._slots.setdefault(context.run_id, asyncio.Semaphore(DELEGATES_AT_ONCE))
        self._delegates[context.run_id] += 1
        try:
            async with slots:
                terminal = await self._delegate(context, prompt)
        finally:
            self._delegates[context.run_id] -= 1
            if not self._delegates[context.run_id]:
                del self._delegates[context.run_id], self._slots[context.run_id]
        if terminal.text and not terminal.error:
            return terminal.text
        raise ToolFailed(f"The agent gave no answer: {terminal.error or f'it was {terminal.outcome}'}.")

    async def _delegate(self, context: ToolContext, prompt: str) -> RunComplete:
        turn = self._lanes.turn_of(context.run_id)
        request = self._request(prompt, turn)
        child = await self._lanes.create_child(context.session_id, prompt.strip().partition("\n")[0][:TITLE_LENGTH])
        request = msgspec.structs.replace(request, session_id=child.id)
        self._principals[request.run_id] = self.principal(context)
        ended = self._lanes.endings.terminal(request.run_id)
        try:
            return await self._ended(request, ended)
        finally:
            self._lanes.endings.forget(request.run_id)
            del self._principals[request.run_id]
            if turn and ended.done() and not ended.cancelled() and (usage := ended.result().usage):
                turn.pay(usage.cost)

    def _request(self, prompt: str, turn: Working | None) -> PostPrompt:
        """An agent only looks, with the model, the freedom and the money of whoever sends it."""
        left = turn.left_to_spend() if turn else None
        if left is not None and left <= 0:
            raise ToolFailed("There is no money left for an agent: go on without one.")
        request = PostPrompt(prompt=prompt, run_id=self._world.new_id(), plan=True, max_cost=left or 0.0)
        if turn is None:
            return request
        return msgspec.structs.replace(request, model=turn.wished.model, yolo=turn.wished.yolo)

    async def _ended(self, request: PostPrompt, ended: asyncio.Future[RunComplete]) -> RunComplete:
        try:
            await self._lanes.post_for_agent(request)
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            covered = (await self._lanes.cancel_run(request.run_id)).covered
            if any(run.state_found != "unknown" for run in covered):  # else it was never accepted, and will not be
                await asyncio.shield(ended)
            raise
