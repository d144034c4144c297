"""A workspace in process: the real engine, with a store, a model and a tool that do what the test says.

Nothing waits for time to pass: a test holds the disk, or a gate inside an answer, and lets go when it has looked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import msgspec

from covey.config.schema import (
    Config,
    ContextSettings,
    LimitSettings,
    ModelSettings,
    PermissionSettings,
    ProviderSettings,
)
from covey.context.prompt import Surroundings
from covey.engine.shared import Shared
from covey.engine.workspace import Workspace, open_workspace
from covey.engine.world import World
from covey.lifecycle.reply import ModelFact, Stopped, TextDelta, ToolCallBegun, ToolInputDelta
from covey.models.base import ModelRequest
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.protocol.events import Event, decode_event
from covey.protocol.messages import Message, Session
from covey.protocol.requests import Grant, PermissionAction, PermissionId, PostPrompt
from covey.protocol.runs import CancelReceipt, Mode, PromptReceipt, Run, RunComplete
from covey.store.base import Change, PutWorkspace, Store, StoredEvent, WorkspaceRow
from covey.store.journal import Journal
from covey.tools.base import ToolContext, ToolOutput
from covey.tools.registry import make_tools
from tests.support.disk import BOUND_S, Disk
from tests.support.oracle import LogEvent, Record, judge
from tests.support.tools import FakeTool

T = TypeVar("T")


def config(*, grace_s: float = 5.0, steps: int = 200, queue: int = 100, deny: tuple[str, ...] = ()) -> Config:
    return Config(
        providers={"test": ProviderSettings(type="scripted", models=(ModelSettings(id="m"),))},
        limits=LimitSettings(cancel_grace_s=grace_s, steps_per_run=steps, queue_per_session=queue),
        permissions=PermissionSettings(deny=deny),
    )


class Gate:
    """A place where something stops until the test lets it go on."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def reached(self) -> None:
        await within(self._reached.wait())

    async def pass_through(self) -> None:
        self._reached.set()
        await self._open.wait()


class Stubborn(Gate):
    """A gate that whoever stands before it does not leave, even when cancelled."""

    async def pass_through(self) -> None:
        self._reached.set()
        while not self._open.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self._open.wait()


Word = str | ModelFact | Gate | BaseException
"""What an answer is made of: text, another fact, a place to stop, or a failure."""


def call(name: str = "work", call_id: str = "c1", index: int = 0, **params: Any) -> tuple[Word, ...]:
    """A tool call, as part of an answer."""
    return (ToolCallBegun(index, call_id, name), ToolInputDelta(index, json.dumps(params)))


class Model:
    """A model client: each call gets the next answer; when there is none left, the word "done"."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.open_streams = 0
        self.closed = False
        self._answers: deque[Sequence[Word]] = deque()

    def answer(self, *words: Word) -> None:
        self._answers.append(words)

    @property
    def prompts(self) -> list[list[str]]:
        """For each call, the texts of the user messages that it showed the model."""
        return [[message.text for message in request.messages if message.role == "user"] for request in self.requests]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        self.requests.append(request)
        self.open_streams += 1
        try:
            words = self._answers.popleft() if self._answers else ("done",)
            for word in words:
                match word:
                    case str():
                        yield TextDelta(word)
                    case Gate():
                        await word.pass_through()
                    case BaseException():
                        raise word
                    case fact:
                        yield fact
            if not any(isinstance(word, Stopped) for word in words):
                yield Stopped("end_turn")
        finally:
            self.open_streams -= 1

    async def aclose(self) -> None:
        self.closed = True


class WorkParams(msgspec.Struct):
    subject: str = ""


class Work(FakeTool[WorkParams]):
    """A tool that does what the test puts into `act`."""

    name = "work"
    effect = Effect.RUNS_COMMANDS
    params = WorkParams

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.context: ToolContext | None = None
        """That of the last call."""
        self.harmless = True
        self.act: Callable[[], Awaitable[ToolOutput]] = self._work

    async def _work(self) -> ToolOutput:
        return ToolOutput("worked")

    def intent(self, params: WorkParams, context: ToolContext) -> Intent:
        return Intent("work", "execute", params.subject, harmless=self.harmless)

    async def run(self, params: WorkParams, context: ToolContext) -> ToolOutput:
        self.calls.append(params.subject)
        self.context = context
        return await self.act()


async def within(awaitable: Awaitable[T]) -> T:
    """What must happen soon: a test that would hang fails instead."""
    return await asyncio.wait_for(awaitable, BOUND_S)


async def look_around(
    root: Path,
    settings: ContextSettings,
    env: Mapping[str, str],
    tools: Sequence[str],
    model: str,
    known: Surroundings | None,
) -> Surroundings:
    """Nothing of this machine, and no thread: the same every time."""
    return Surroundings(root=root, platform="Test", date="2026-01-01", tools=tuple(tools), model=model)


class Engine:
    """One open workspace with one session, and everything that was published of it."""

    def __init__(
        self, store: Store, model: Model, directory: Path, settings: Config, project: Path | None = None
    ) -> None:
        self.store = store
        self.model = model
        self.tool = Work()
        self.events: list[Event] = []
        self.session_id = ""
        self.quiet = 0
        self._changed = asyncio.Event()
        self._settings = settings
        self.journal = Journal(store)
        self._project = project
        environ = {"PATH": os.environ["PATH"], "HOME": str(directory)} if project else {}
        self.shared = Shared(
            store, self.journal, World(), directory, None, environ, end_processes=lambda tag: 0, end_jobs=lambda ids: 0
        )

    @property
    def disk(self) -> Disk:
        assert isinstance(self.store, Disk)
        return self.store

    async def open(self) -> None:
        rows = await self.journal.read(self.store.workspaces)
        row = rows[0] if rows else WorkspaceRow("w", str(self._project or "/project"), 7, 1)
        if not rows:
            await self.journal.write(Change("w", (PutWorkspace(row),)))
        self.workspace: Workspace = await open_workspace(row, self.shared, self._settings, on_quiet=self._on_quiet)
        on_event = self.workspace._parts.feed.on_event

        def note(event: Event) -> None:
            on_event(event)
            self.events.append(event)
            self._changed.set()

        self.workspace._parts.feed.on_event = note
        found = self.sessions()
        self.session_id = found[0].id if found else (await self.workspace.sessions.create("")).id
        await self.workspace.sessions.read(self.session_id)

    def sessions(self) -> list[Session]:
        """All that the store has, the last changed first."""
        return [row.session for row in self.store.sessions("w")]

    def _on_quiet(self) -> None:
        self.quiet += 1

    async def close(self) -> None:
        if not self.workspace.closing:
            await within(self.workspace.close(BOUND_S))

    # ── what clients do ──

    async def post(self, prompt: str, run_id: str = "", mode: Mode | None = None) -> PromptReceipt:
        request = PostPrompt(session_id=self.session_id, prompt=prompt, run_id=run_id, mode=mode)
        return await within(self.workspace.runs.post(request))

    async def cancel(self) -> CancelReceipt:
        return await within(self.workspace.runs.cancel_session(self.session_id))

    async def grant(self, request_id: str, action: PermissionAction, reason: str = "", **further: bool) -> bool:
        """Answer a permission request. `further`: `network`, `unsandboxed`."""
        answer = Grant(permission=PermissionId(id=request_id), action=action, reason=reason, **further)
        return await within(self.workspace.asks.grant(answer))

    async def soon(self, awaitable: Awaitable[T]) -> asyncio.Task[T]:
        """Start a request and let it go as far as it can while the disk is held."""
        task = asyncio.ensure_future(awaitable)
        await asyncio.sleep(0)
        assert not task.done(), "it did not have to wait for the disk"
        return task

    async def ended(self, run_id: str) -> Run:
        run = await within(self.workspace.runs.get(run_id, BOUND_S))
        assert run.ended, run
        return run

    async def until(self, condition: Callable[[], object]) -> None:
        """Until an event has made the condition true."""

        async def wait() -> None:
            while not condition():
                self._changed.clear()
                await self._changed.wait()

        await within(wait())

    async def is_quiet(self) -> None:
        """Until no session is busy any more, and all that was said of them is written."""

        async def wait() -> None:
            while not self.quiet:
                await asyncio.sleep(0)  # it is reported by a call, not by an event

        await within(wait())

    async def told_state(self, run_id: str, state: str) -> None:
        await self.until(lambda: state in [run.state for run in self.of_type(Run) if run.run_id == run_id])

    # ── what is there afterwards ──

    def of_type(self, kind: type[T]) -> list[T]:
        return [event.payload for event in self.events if isinstance(event.payload, kind)]

    def terminals(self) -> dict[str, RunComplete]:
        """By run; two for one run are a fault."""
        found: dict[str, RunComplete] = {}
        for terminal in self.of_type(RunComplete):
            assert terminal.run_id not in found, f"two terminal events for {terminal.run_id}"
            found[terminal.run_id] = terminal
        return found

    def messages(self) -> list[Message]:
        return self.store.messages("w", self.session_id, "", 0)

    def transcript(self) -> list[tuple[str, str, str]]:
        """Role, text and finish reason of each stored message."""
        return [(m.role, m.text, m.finish.reason if m.finish else "") for m in self.messages()]

    def log(self) -> list[Event]:
        """The durable events, as the store has them."""
        return [event for entry in stored_events(self.store) if (event := decode_event(entry.encoded))]

    def check(self) -> None:
        """Every promise that can be read off the store; all runs have ended."""
        faults = judge(self._record(), all_ended=True)
        assert not faults, "\n".join(faults)
        assert self.model.open_streams == 0, "a model stream is still open"
        assert not self.workspace._parts.feed.live, "a message is still in progress"

    def _record(self) -> Record:
        record = record_of(self.store)
        record.undone = {run_id for row in self.store.undos("w", pending=False) for run_id in row.run_ids}
        if isinstance(self.store, Disk):
            record.growing = set(self.store._tails)
        return record


def record_of(store: Store) -> Record:
    """What the oracle needs of the workspace "w": its log, and what the tables say."""
    record = Record("w")
    for seq, encoded in stored_events(store):
        value = json.loads(encoded)
        inner = value["payload"]
        record.events.append(LogEvent(seq, value["type"], inner["type"], inner["payload"]))
    for run in store.runs("w", "", "", 1000):
        record.runs[run.run_id] = json.loads(msgspec.json.encode(run))
        record.run_columns[run.run_id] = (run.seq, run.state, run.ended)
    for row in store.sessions("w"):
        record.sessions[row.session.id] = json.loads(msgspec.json.encode(row.session))
        for message in store.messages("w", row.session.id, "", 0):
            record.messages[message.id] = json.loads(msgspec.json.encode(message))
    return record


def stored_events(store: Store) -> Iterator[StoredEvent]:
    """The whole log, which a store gives out in pages."""
    after = 0
    while page := store.events("w", after, sys.maxsize, "", 1000):
        yield from page
        after = page[-1].seq


@contextlib.asynccontextmanager
async def running(
    directory: Path,
    *,
    store: Store | None = None,
    model: Model | Mapping[str, Model] | None = None,
    settings: Config | None = None,
    project: Path | None = None,
) -> AsyncIterator[Engine]:
    """An open workspace. It is closed at the end, whatever is still under way, and then everything is checked.

    `model`: the one that always answers, or one for each provider. `project`: a directory, for which there are the real
    tools; else there is none, and one tool that does what the test says.
    """
    models = model if isinstance(model, Mapping) else {}
    only = model if isinstance(model, Model) else next(iter(models.values()), Model())
    engine = Engine(store or Disk(), only, directory, settings or config(), project)
    tools = make_tools if project else lambda *made_of: {"work": engine.tool.value}
    with (
        mock.patch("covey.engine.agent.open_client", lambda provider_id, settings: models.get(provider_id, only)),
        mock.patch("covey.engine.agent.make_tools", tools),
        mock.patch("covey.engine.agent.look_around", look_around),
    ):
        await engine.open()
        try:
            yield engine
        finally:
            if isinstance(engine.store, Disk):
                engine.store.full = False
                engine.store.release()
            await engine.close()
            failing = sys.exc_info()[0] is not None
            if not failing:
                engine.check()
            await within(engine.journal.aclose(BOUND_S))
