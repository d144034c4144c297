"""What tools ask of the server: the list of things to do, a question to people, an agent that works for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from covey.context.catalogue import named
from covey.context.custom_agents import CustomAgent, custom_agent
from covey.engine.agent import Agent
from covey.engine.asks.questions import QuestionDesk
from covey.engine.command_changes import Changes
from covey.engine.recorder import Batch, Recorder
from covey.engine.session_book import SessionBook
from covey.engine.skills import Skills
from covey.engine.world import World
from covey.lifecycle.budget import Purse
from covey.protocol.errors import ApiError
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import CancelReceipt, PromptReceipt, RunComplete, RunOptions
from covey.tools.base import Question, Todo, ToolContext, ToolFailed, ToolOutput
from covey.tools.files import name_for
from covey.tools.lsp.complaints import Complaint, describe

TITLE_LENGTH = 60


class Working(Protocol):
    """A turn, as those see it who work for it."""

    purse: Purse
    agents_at_once: asyncio.Semaphore

    @property
    def options(self) -> RunOptions: ...


class AgentSessions(Protocol):
    """The sessions of a workspace, for an agent that works in one of its own."""

    async def create_child(self, parent_session_id: str, title: str) -> Session: ...


class AgentRuns(Protocol):
    """The runs of a workspace, for whoever sends an agent."""

    async def post_for_agent(self, request: PostPrompt, writes_for: str, agent: str = "") -> PromptReceipt: ...

    async def cancel(self, run_id: str) -> CancelReceipt: ...

    def turn_of(self, run_id: str) -> Working | None: ...

    def terminal(self, run_id: str) -> asyncio.Future[RunComplete]: ...

    def forget(self, run_id: str) -> None: ...


class AgentWorkspace(Protocol):
    """The workspace, as far as agents need it."""

    @property
    def sessions(self) -> AgentSessions: ...

    @property
    def runs(self) -> AgentRuns: ...


class Languages(Protocol):
    """The language servers of a workspace, as far as its calls need them."""

    async def complaints(self, path: Path) -> list[Complaint] | None: ...

    def files_changed(self, paths: Iterable[Path]) -> None: ...


class EngineHost:
    """The host of all tools of a workspace."""

    def __init__(
        self,
        workspace: AgentWorkspace,
        sessions: SessionBook,
        recorder: Recorder,
        questions: QuestionDesk,
        world: World,
        agent: Agent,
        languages: Languages,
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._languages = languages
        self.skills = Skills(agent)
        self._world = world
        self._sessions = sessions
        self._recorder = recorder
        self._questions = questions
        self._purses: dict[str, Purse] = {}
        """For each run of an agent, the money of the run that sent it."""
        self._principals: dict[str, tuple[str, str]] = {}
        """For each run of an agent, the session and the run that it works for."""

    def set_todos(self, session_id: str, todos: Sequence[Todo]) -> None:
        if session := self._sessions.change(session_id, todos=tuple(msgspec.to_builtins(todo) for todo in todos)):
            batch = Batch()
            batch.update_session(session)
            self._recorder.write(batch)

    async def ask(self, context: ToolContext, questions: Sequence[Question]) -> list[str] | None:
        """In the session that people watch: an agent's questions are asked in the name of who sent it."""
        session_id, run_id = self.principal(context)
        return await self._questions.ask(replace(context, session_id=session_id, run_id=run_id), questions)

    async def skill(self, context: ToolContext, name: str, file: str) -> ToolOutput:
        return await self.skills.give(context.session_id, name, file)

    async def diagnostics(self, context: ToolContext, path: Path) -> str:
        """The errors alone: what else language servers find wrong, a model can ask for."""
        complaints = await self._languages.complaints(path)
        return describe(name_for(context, path), complaints, min_severity="error") if complaints else ""

    def files_changed(self, changes: Changes) -> None:
        """A call has changed files: language servers learn of it."""
        if changes.files:
            self._languages.files_changed([file.path for file in changes.files])

    # ── agents ──

    def purse_of_principal(self, run_id: str) -> Purse | None:
        """The money that a run spends beside its own: that of the run which sent it."""
        return self._purses.get(run_id)

    def is_delegate(self, session_id: str) -> bool:
        """Whether what happens in a session is on behalf of another one."""
        return self._sessions.is_child(session_id)

    def principal(self, context: ToolContext) -> tuple[str, str]:
        """The session and the run in whose name a call asks: people watch those, not the ones of their agents."""
        return self._principals.get(context.run_id, (context.session_id, context.run_id))

    async def delegate(self, context: ToolContext, prompt: str, *, writes: bool = False, agent: str = "") -> str:
        """Run the prompt as a run of its own in a child session. Cancelling this cancels it, and waits for its end."""
        turn = self._workspace.runs.turn_of(context.run_id)
        if turn is None:
            raise ToolFailed("No agent could be sent: the run has ended.")
        custom = self._custom(context.session_id, agent) if agent else None
        try:
            async with turn.agents_at_once:
                terminal = await self._delegate(context, prompt, turn, custom, writes=writes)
        except ApiError as error:  # the workspace is closing, or the disk is full
            raise ToolFailed(f"No agent could be sent: {error}.") from None
        if terminal.text and terminal.outcome == "completed":
            return terminal.text
        raise ToolFailed(f"The agent gave no answer: {terminal.error or f'it was {terminal.outcome}'}.")

    def _custom(self, session_id: str, name: str) -> CustomAgent:
        agents = self._agent.texts_of(session_id).all("agent")
        file = next((file for file in agents if file.name == name), None)
        if file is None:
            raise ToolFailed(f"There is no agent {name!r}. There are: {named(agents)}.")
        return custom_agent(file)

    async def _delegate(
        self, context: ToolContext, prompt: str, turn: Working, custom: CustomAgent | None, *, writes: bool
    ) -> RunComplete:
        """With the model, the freedom and the money of whoever sends it, or less, where a custom agent says so."""
        writes = writes and not (custom and custom.only_looks)
        if turn.purse.is_empty:
            raise ToolFailed("There is no money left for an agent: go on without one.")
        title = prompt.strip().partition("\n")[0][:TITLE_LENGTH]
        child = await self._workspace.sessions.create_child(context.session_id, title)
        request = PostPrompt(
            session_id=child.id,
            prompt=prompt,
            run_id=self._world.new_id(),
            plan=not writes,
            model=(custom and custom.model) or turn.options.model,
            max_steps=custom.max_steps if custom else 0,
            yolo=turn.options.yolo,
            allow=turn.options.allow,
            accept_edits=turn.options.accept_edits,
            sandbox=turn.options.sandbox,
            unattended=turn.options.unattended,
        )
        run_id = request.run_id
        self._principals[run_id], self._purses[run_id] = self.principal(context), turn.purse
        ended = self._workspace.runs.terminal(run_id)
        try:
            name = custom.name if custom else ""
            return await self._ended(request, ended, context.run_id if writes else "", name)
        finally:
            self._workspace.runs.forget(run_id)
            del self._principals[run_id], self._purses[run_id]

    async def _ended(
        self, request: PostPrompt, ended: asyncio.Future[RunComplete], writes_for: str, agent: str
    ) -> RunComplete:
        posting = asyncio.ensure_future(self._workspace.runs.post_for_agent(request, writes_for, agent))
        try:
            await asyncio.shield(posting)
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            await self._workspace.runs.cancel(request.run_id)
            await asyncio.wait({posting})
            if not posting.exception():  # else it was never accepted
                await asyncio.shield(ended)
            raise
