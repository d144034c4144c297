"""What tools ask of the server: the list of things to do, a question to people, an agent that looks into something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from covey.engine.endings import Endings
from covey.engine.questions import QuestionDesk
from covey.engine.recorder import Batch, Recorder
from covey.engine.sessions import SessionBook
from covey.engine.world import World
from covey.protocol.errors import CoveyError
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

    @property
    def cost(self) -> float:
        """Dollars, up to now."""
        ...

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
        self._delegates: dict[str, set[str]] = {}
        """For each run, those that work for it right now, or wait for their turn to."""
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

    def cost_of_delegates(self, run_id: str) -> float:
        """What those have cost that work for a run right now. What the others did is paid."""
        turns = (self._lanes.turn_of(delegate) for delegate in self._delegates.get(run_id, ()))
        return sum(turn.cost for turn in turns if turn)

    def is_poor(self, run_id: str) -> bool:
        """Whether a run works for one that has spent what it may."""
        _, principal = self._principals.get(run_id, ("", ""))
        turn = self._lanes.turn_of(principal) if principal else None
        left = turn.left_to_spend() if turn else None
        return left is not None and left <= 0

    def is_delegate(self, session_id: str) -> bool:
        """Whether what happens in a session is on behalf of another one."""
        return self._sessions.is_child(session_id)

    def principal(self, context: ToolContext) -> tuple[str, str]:
        """The session and the run in whose name a call asks: people watch those, not the ones of their agents."""
        return self._principals.get(context.run_id, (context.session_id, context.run_id))

    async def delegate(self, context: ToolContext, prompt: str) -> str:
        """Run the prompt as a run of its own in a child session. Cancelling this cancels it, and waits for its end."""
        run_id, delegate = context.run_id, self._world.new_id()
        slots = self._slots.setdefault(run_id, asyncio.Semaphore(DELEGATES_AT_ONCE))
        self._delegates.setdefault(run_id, set()).add(delegate)
        try:
            async with slots:
                terminal = await self._delegate(context, prompt, delegate)
        except CoveyError as error:  # the workspace is closing, or the disk is full
            raise ToolFailed(f"No agent could be sent: {error}.") from None
        finally:
            self._delegates[run_id].discard(delegate)
            if not self._delegates[run_id]:
                del self._delegates[run_id], self._slots[run_id]
        if terminal.text and terminal.outcome == "completed":
            return terminal.text
        raise ToolFailed(f"The agent gave no answer: {terminal.error or f'it was {terminal.outcome}'}.")

    async def _delegate(self, context: ToolContext, prompt: str, run_id: str) -> RunComplete:
        turn = self._lanes.turn_of(context.run_id)
        left = turn.left_to_spend() if turn else None
        if left is not None and left <= 0:
            raise ToolFailed("There is no money left for an agent: go on without one.")
        child = await self._lanes.create_child(context.session_id, prompt.strip().partition("\n")[0][:TITLE_LENGTH])
        request = PostPrompt(session_id=child.id, prompt=prompt, run_id=run_id, plan=True)
        if turn:  # with the model and the freedom of whoever sends it
            request = msgspec.structs.replace(request, model=turn.wished.model, yolo=turn.wished.yolo)
        self._principals[run_id] = self.principal(context)
        ended = self._lanes.endings.terminal(run_id)
        try:
            return await self._ended(request, ended)
        finally:
            self._lanes.endings.forget(run_id)
            del self._principals[run_id]
            if turn and ended.done() and not ended.cancelled() and (usage := ended.result().usage):
                turn.pay(usage.cost)

    async def _ended(self, request: PostPrompt, ended: asyncio.Future[RunComplete]) -> RunComplete:
        posting = asyncio.ensure_future(self._lanes.post_for_agent(request))
        try:
            await asyncio.shield(posting)
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            await self._lanes.cancel_run(request.run_id)
            await asyncio.wait({posting})
            if not posting.exception():  # else it was never accepted
                await asyncio.shield(ended)
            raise
