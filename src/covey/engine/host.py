"""What tools ask of the server: the list of things to do, a question to people, an agent that looks into something."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from covey.engine.questions import QuestionDesk
from covey.engine.recorder import Batch, Recorder
from covey.engine.sessions import SessionBook
from covey.engine.world import World
from covey.protocol.errors import NotFound
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run
from covey.tools.base import Question, Todo, ToolContext, ToolFailed

DELEGATES_AT_ONCE = 4
"""Agents of one run at the same time; further ones wait. Each of them calls the model on its own."""
WAIT_S = 3600.0
"""How often to look whether an agent is still there. Its end is told at once."""
TITLE_LENGTH = 60


class Lanes(Protocol):
    """The workspace, as far as an agent needs it that works in a session of its own."""

    async def create_child(self, parent_session_id: str, title: str) -> Session: ...

    async def post_prompt(self, request: PostPrompt) -> PromptReceipt: ...

    async def run(self, run_id: str, wait_s: float = 0.0) -> Run: ...

    async def cancel_run(self, run_id: str) -> CancelReceipt: ...


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
        self._waiting: Counter[str] = Counter()
        self._principals: dict[str, tuple[str, str]] = {}
        """For each run of an agent, the session and the run that it works for."""
        self._costs: dict[tuple[str, str], float] = {}

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

    async def delegate(self, context: ToolContext, prompt: str) -> str:
        """Run the prompt as a run of its own in a child session. Cancelling this cancels it, and waits for its end."""
        slots = self._slots.setdefault(context.run_id, asyncio.Semaphore(DELEGATES_AT_ONCE))
        self._waiting[context.run_id] += 1
        try:
            async with slots:
                return await self._delegate(context, prompt)
        finally:
            self._waiting[context.run_id] -= 1
            if not self._waiting[context.run_id]:
                del self._waiting[context.run_id], self._slots[context.run_id]

    async def _delegate(self, context: ToolContext, prompt: str) -> str:
        title = prompt.strip().partition("\n")[0][:TITLE_LENGTH]
        child = await self._lanes.create_child(context.session_id, title)
        run_id = self._world.new_id()
        self._principals[run_id] = self.principal(context)
        try:
            await self._lanes.post_prompt(PostPrompt(session_id=child.id, prompt=prompt, run_id=run_id, plan=True))
            run = await self._ended(run_id)
        except asyncio.CancelledError:
            await self._lanes.cancel_run(run_id)
            with suppress(NotFound):  # it was not accepted yet, and will not be
                await self._ended(run_id)
            raise
        finally:
            del self._principals[run_id]
            spent = self._sessions.find(child.id)
            self._costs[context.run_id, context.call_id] = spent.cost if spent else 0.0
        if run.state == "completed" and run.text:
            return run.text
        raise ToolFailed(f"The agent gave no answer: {run.error or f'it was {run.state}'}.")

    def principal(self, context: ToolContext) -> tuple[str, str]:
        """The session and the run in whose name a call asks: people watch those, not the ones of their agents."""
        return self._principals.get(context.run_id, (context.session_id, context.run_id))

    def take_cost(self, context: ToolContext) -> float:
        """What agents have cost on behalf of a call: told once."""
        return self._costs.pop((context.run_id, context.call_id), 0.0)

    async def _ended(self, run_id: str) -> Run:
        while not (run := await self._lanes.run(run_id, WAIT_S)).ended:
            pass
        return run
