"""The real dispatcher, turn, journal and feed in a simulated world: a store in memory, a model and a tool on cue.

Only what touches the outside is replaced. Every await of the shell is a step of the deterministic loop, so an explored
schedule decides when a commit lands, when the model speaks and when a client's cancel comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from covey.config.schema import Config, LimitSettings, ModelSettings, ProviderSettings
from covey.engine.shared import Shared
from covey.engine.workspace import Workspace, open_workspace
from covey.engine.world import World
from covey.lifecycle.reply import ModelFact, Stopped, TextDelta, ToolCallBegun, ToolInputDelta
from covey.models.base import ModelFailed, ModelRequest
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.protocol.messages import Message
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import CancelReceipt, PromptReceipt
from covey.store.base import Change, Fenced, PutWorkspace, RunExists, WorkspaceRow
from covey.store.journal import RETRY_S, Journal, _Pending
from covey.tools.base import ToolContext, ToolOutput
from tests.support.engine import look_around, record_of
from tests.support.memory_store import MemoryStore
from tests.support.oracle import Record, judge
from tests.support.tools import FakeTool

ROW = WorkspaceRow("w", "/project", 7, 1)
CONFIG = Config(
    providers={"sim": ProviderSettings(type="scripted", models=(ModelSettings(id="m"),))},
    limits=LimitSettings(cancel_grace_s=1.0),
)


class SimJournal(Journal):
    """The journal without threads: writing a group, and each read, is a step of the loop."""

    def _start(self) -> None:
        self._waiting: list[_Pending] = []
        self._due = False
        self._readers = None  # type: ignore[assignment]

    def submit(self, pending: _Pending) -> None:
        self._waiting.append(pending)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._due = False
        again, self._stalled = self._stalled, []
        group, self._waiting = again + self._waiting, []
        self._write(group)
        if self._stalled and not self._due:
            self._due = True
            self._loop.call_later(RETRY_S, self._pump)

    def trim_events(self, workspace_id: str, keep: int) -> None:
        self._store.trim_events(workspace_id, keep)


class SimModel:
    """Answers each call with a step of `answers`; each fact comes at a step of its own. Notes every call."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.open = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        prompt = [message for message in request.messages if message.role == "user"][-1].text
        calls_made = sum(message.role == "assistant" for message in _since_last_user(request.messages))
        if calls_made == 0:
            self.calls.append(prompt)
        self.open += 1
        try:
            await asyncio.sleep(0)
            if "fail" in prompt:
                raise ModelFailed("the model is out of order")
            yield TextDelta("one ")
            await asyncio.sleep(0)
            if "tool" in prompt and calls_made == 0:
                yield ToolCallBegun(0, f"call-{prompt}", "work")
                yield ToolInputDelta(0, "{}")
                await asyncio.sleep(0)
            else:
                yield TextDelta("two")
            yield Stopped("end_turn")
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        pass


def _since_last_user(messages: Sequence[Message]) -> list[Message]:
    roles = [message.role for message in messages]
    return list(messages[len(roles) - roles[::-1].index("user") :])


class Nothing(msgspec.Struct):
    pass


class SimTool(FakeTool[Nothing]):
    """Takes a while, and knows how many of its kind are under way."""

    name = "work"
    effect = Effect.RUNS_COMMANDS
    params = Nothing

    def __init__(self) -> None:
        self.running = 0

    def intent(self, params: Nothing, context: ToolContext) -> Intent:
        return Intent(self.name, "execute", "work", harmless=True)

    async def run(self, params: Nothing, context: ToolContext) -> ToolOutput:
        self.running += 1
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return ToolOutput("worked")
        finally:
            self.running -= 1


class FencedStore(MemoryStore):
    """One that several nodes share: what was decided under an older fence is refused, as a whole group."""

    def __init__(self) -> None:
        super().__init__()
        self.fence = 0

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        if any(change.fence != self.fence for change in changes):
            raise Fenced("somebody else owns the workspace by now")
        return super().commit(changes)


@dataclass
class Shell:
    """One workspace, what its clients were promised, and a check of all of it at the end."""

    store: FencedStore = field(default_factory=FencedStore)
    model: SimModel = field(default_factory=SimModel)
    tool: SimTool = field(default_factory=SimTool)
    accepted: list[PromptReceipt] = field(default_factory=list)
    cancelled: dict[str, str] = field(default_factory=dict)
    """By run: the state in which an acknowledged cancel found it."""
    lives: int = 0
    given_up: dict[Workspace, asyncio.Task[None]] = field(default_factory=dict)

    def begin_next_life(self) -> None:
        """The server was killed. Of the old one only the store is left, and what the model was asked."""
        self.lives += 1
        asked = self.model.calls
        self.model, self.tool = SimModel(), SimTool()
        self.model.calls = asked

    async def open(self) -> Workspace:
        loop = asyncio.get_running_loop()
        journal = SimJournal(self.store)
        world = World(lambda: 2_000_000_000.0 + loop.time() + self.lives * 1000)
        shared = Shared(
            self.store, journal, world, Path("/data"), None, {}, end_processes=lambda tag: 0, end_jobs=lambda ids: 0
        )
        if not self.store.workspaces():
            self.store._write("w", PutWorkspace(ROW))
        self.store.fence += 1
        self.workspace = workspace = await open_workspace(
            ROW, shared, CONFIG, on_quiet=lambda: None, fence=self.store.fence, on_lost=lambda: self.lost(workspace)
        )
        self.workspace._parts.agent._clients["sim"] = self.model
        self.workspace._parts.agent.tools = {"work": self.tool.value}
        self.workspace._parts.agent.look_around = look_around
        return self.workspace

    def lost(self, workspace: Workspace) -> None:
        """A change of it was refused: it is given up, as `Workspaces.abandon` does."""
        if workspace not in self.given_up:
            workspace.cut_off()
            self.given_up[workspace] = asyncio.create_task(workspace.abandon())

    async def take_over(self) -> None:
        """Another node takes the workspace, while this one believes that it is its own."""
        await asyncio.sleep(0)
        self.lives += 1
        await self.open()

    async def hand_over(self) -> None:
        """This node gives it away in good order, and another one takes it up."""
        workspace = self.workspace
        await workspace.come_to_rest(60.0)
        assert await workspace.give_away(0.0)
        self.lives += 1
        await self.open()
        await workspace.end()

    async def session(self) -> str:
        return (await self.workspace.sessions.create("")).id

    async def post(self, session_id: str, prompt: str, **fields: Any) -> PromptReceipt:
        receipt = await self.workspace.runs.post(PostPrompt(session_id=session_id, prompt=prompt, **fields))
        self.accepted.append(receipt)
        return receipt

    async def cancel(self, session_id: str) -> None:
        self._note(await self.workspace.runs.cancel_session(session_id))

    async def cancel_run(self, run_id: str) -> None:
        self._note(await self.workspace.runs.cancel(run_id))

    def _note(self, receipt: CancelReceipt) -> None:
        for covered in receipt.covered:
            self.cancelled.setdefault(covered.run_id, covered.state_found)

    async def settle(self) -> None:
        """Wait until every accepted run has ended, close, and check everything."""
        known = [receipt.run_id for receipt in self.accepted]
        known += [row.run.run_id for row in self.store.open_runs("w")]
        for run_id in known:
            run = await self.workspace.runs.get(run_id, wait_s=60)
            assert run.ended, f"{run} never ended"
        await self.workspace.close(5.0)
        self.check()

    def check(self) -> None:
        faults = judge(self.record(), all_ended=True)
        assert not faults, "\n".join(faults)
        assert self.model.open == 0, "a model stream is still open"
        assert self.tool.running == 0, "a tool still runs"
        runs = {run.run_id: run for run in self.store.runs("w", "", "", 1000)}
        for run_id, found in self.cancelled.items():
            run = runs.get(run_id)
            if run and found != "folded":
                assert run.state == "cancelled", f"{run_id} was found {found} by a cancel, but is {run.state}"
        assert len(self.model.calls) == len(set(self.model.calls)), f"a prompt ran twice: {self.model.calls}"
        live = self.workspace._parts.feed.live
        assert not live, f"messages are still in progress: {live}"

    def record(self) -> Record:
        return record_of(self.store)
