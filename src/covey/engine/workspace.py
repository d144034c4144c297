"""What one directory needs, opened and closed as one: its sessions, their lanes, the feed, the agent, the claims."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from covey.config.schema import Config, ConfigError
from covey.engine import intake, summary
from covey.engine.agent import Agent
from covey.engine.dispatcher import Dispatcher, check_same_content
from covey.engine.host import EngineHost
from covey.engine.lanes import Lanes
from covey.engine.permissions import PermissionDesk
from covey.engine.questions import QuestionDesk
from covey.engine.recorder import Batch, Recorder, confirmed
from covey.engine.run_waiters import RunWaiters
from covey.engine.sessions import SessionBook
from covey.engine.shared import Shared, load_config, own_directories
from covey.engine.tool_calls import ToolCalls
from covey.engine.turn import Turn, TurnParts
from covey.engine.undo import Undos
from covey.feed.feed import Feed
from covey.lifecycle.claims import Claims
from covey.lifecycle.runs import EarlyCancels
from covey.permissions.judge import Rules, Wish, session_rule
from covey.protocol.errors import BadRequest, Conflict, NotFound, QueueFull
from covey.protocol.events import Event, Presence, created, deleted, updated
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.protocol.runs import CancelReceipt, Covered, PromptReceipt, Run, RunComplete, RunOptions
from covey.store.base import (
    DropSession,
    PutEarlyCancel,
    PutSession,
    RunExists,
    StoreFailed,
    WorkspaceRow,
)
from covey.store.journal import WorkspaceJournal

log = logging.getLogger(__name__)

REREADS = 10
"""How often messages are read again: once is enough, unless the disk refuses the end of one of them."""
EARLY_CANCEL_S = 60.0
"""How long a cancel waits for a prompt that it has overtaken."""


class Workspace:
    """One open workspace. Made by `open_workspace`; `close` ends everything that it started."""

    def __init__(
        self,
        row: WorkspaceRow,
        shared: Shared,
        feed: Feed,
        journal: WorkspaceJournal,
        agent: Agent,
        sessions: SessionBook,
        *,
        yolo: bool,
        on_quiet: Callable[[], None],
    ) -> None:
        self.id = row.id
        self.path = row.path
        self.shared = shared
        self.feed = feed
        self.agent = agent
        self.claims = Claims()
        self.closing = False
        self.sessions = sessions
        self._world = shared.world
        self._recorder = Recorder(journal, sessions, self.view)
        self._early = EarlyCancels()
        self.waiters = RunWaiters(self._look_up)
        self.permissions = PermissionDesk(
            journal, row.id, self._rules(), sessions, self._recorder, skip=yolo, always=self._allow_always
        )
        self.questions = QuestionDesk(journal, shared.world)
        host = EngineHost(self, sessions, self._recorder, self.questions, shared.world)
        spill_dir = shared.data_dir / "spill" / row.id
        self.tool_calls = ToolCalls(agent, self.permissions, shared.world, row.id, host, spill_dir)
        self._parts = TurnParts(
            world=shared.world,
            recorder=self._recorder,
            sessions=sessions,
            agent=agent,
            tool_calls=self.tool_calls,
            read_messages=lambda *of: shared.journal.read(shared.store.messages_since, row.id, *of),
            read_run=lambda *of: shared.journal.read(shared.store.messages_of_run, row.id, *of),
        )
        self.lanes = Lanes(self._parts, on_quiet)
        self.undos = Undos(row.id, row.path, shared, self._recorder, sessions, self.view, self.lanes, self._check_open)
        feed.on_event = self._on_event

    # ── sessions ──

    def view(self, session: Session) -> Session:
        """A session with the facts of the moment."""
        busy = self.lanes.is_busy_in(session.id)
        return msgspec.structs.replace(session, is_busy=busy, attached_clients=self.claims.watching(session.id))

    async def create_session(self, title: str) -> Session:
        self._check_open()
        return await self._record(self.sessions.create(title))

    async def create_child(self, parent_session_id: str, title: str) -> Session:
        """A session in which an agent works for another one, with the same model."""
        self._check_open()
        parent = self.sessions.get(parent_session_id)
        return await self._record(self.sessions.create(title, parent.id, parent.model))

    async def _record(self, session: Session) -> Session:
        try:
            await asyncio.shield(self._recorder.write(Batch([PutSession(session)], [created(session)]), patient=False))
        except StoreFailed:
            self.sessions.remove(session.id)
            self.sessions.forget(session.id)
            raise
        return session

    async def update_session(self, session_id: str, update: UpdateSession) -> Session:
        self.sessions.get(session_id)
        names = ("title", "todos", "model")
        fields = {name: value for name in names if (value := getattr(update, name)) is not msgspec.UNSET}
        if reference := fields.get("model"):
            self.agent.choice(reference)  # refuses one that nobody knows
        session = self.sessions.change(session_id, **fields)
        assert session is not None
        await confirmed(self._recorder.write(Batch([PutSession(session)], [updated(session)])))
        return self.view(session)

    async def delete_session(self, session_id: str) -> None:
        """End its runs, then remove it with those in which agents worked for it.

        Each run gets its terminal event first, and nothing more is accepted meanwhile.
        """
        removed = [self.sessions.remove(leaving) for leaving in self.sessions.family(session_id)]
        leaving = [session.id for session in removed]
        drains = [drained for each in leaving for drained in self.lanes.close("session_delete", each)]
        await asyncio.gather(*drains)
        await asyncio.gather(*(self.agent.jobs.end_session(each) for each in leaving))
        for each in leaving:
            self.sessions.forget(each)
            self.lanes.forget(each)
        batch = Batch([DropSession(each) for each in leaving], [deleted(session) for session in removed])
        await confirmed(self._recorder.write(batch))
        for each in leaving:
            await asyncio.to_thread(shutil.rmtree, self.tool_calls.spill_dir(each), ignore_errors=True)

    async def messages(self, session_id: str, after: str, limit: int) -> list[Message]:
        """The stored messages, those in progress as the feed has told them so far."""
        self.sessions.get(session_id)
        for _ in range(REREADS):
            stored = await self._read_messages(session_id, after, limit)
            if all(m.id in self.feed.live or m.role != "assistant" or m.finish for m in stored):
                break  # else one of them began or ended while it was being read
        live = self.feed.live
        return [live[m.id].message() if m.id in live else m for m in stored]

    async def _read_messages(self, session_id: str, after: str, limit: int) -> list[Message]:
        return await self.shared.journal.read(self.shared.store.messages, self.id, session_id, after, limit)

    # ── runs ──

    async def post_prompt(self, request: PostPrompt) -> PromptReceipt:
        """Accept a prompt (R1), or refuse it before anything is recorded."""
        self._check_open()
        intake.check(request)
        self.sessions.get(request.session_id)
        try:
            if request.model:
                self.agent.choice(request.model)  # refuses one that nobody knows
            mentioned = await intake.mentioned(request.prompt, self.agent.root)
            return await self._accept(request, request.options, mentioned)
        except (BadRequest, QueueFull):  # which is no answer to who only lost the 202 of a run that there is
            if posted := await self._posted_before(request, request.options):
                return posted
            raise

    async def post_for_agent(self, request: PostPrompt) -> PromptReceipt:
        """A prompt that a model wrote: it mentions no files, since that would be a way around permissions."""
        self._check_open()
        return await self._accept(request, msgspec.structs.replace(request.options, delegate=True))

    async def summarize(self, session_id: str) -> PromptReceipt:
        """Accept a run that replaces the session's conversation by a summary of it."""
        self._check_open()
        self.sessions.get(session_id)
        request = PostPrompt(session_id=session_id, prompt=summary.PROMPT, mode="own_turn")
        return await self._accept(request, RunOptions(summarize=True))

    async def _accept(
        self, request: PostPrompt, options: RunOptions, mentioned: tuple[Attachment, ...] = ()
    ) -> PromptReceipt:
        if self._model_missing() or self.agent.key_refused:
            await self.reload()  # perhaps somebody has followed the advice below, or has a new key
            if self._model_missing():
                raise BadRequest(self.agent.no_model, "no_model")
        self._check_open()  # meanwhile it may have begun to close, or the session be gone
        self.sessions.get(request.session_id)
        dispatcher = self.lanes.open(request.session_id)
        self.lanes.newest_seq += 1
        row = intake.accepted(request, options, mentioned, self.lanes.newest_seq, self._world)
        if self._early.covers(row.run.run_id, self._world.now()):
            run = msgspec.structs.replace(row.run, cancelled_by="run_cancel")
            row = msgspec.structs.replace(row, run=run)
        try:
            limit = self.agent.config.limits.queue_per_session
            mode = intake.mode_of(request, options)
            return await dispatcher.post(row, mode=mode, limit=limit)
        except RunExists:
            posted = await self._posted_before(request, options)
            assert posted is not None
            return posted

    def _model_missing(self) -> bool:
        try:
            return self.agent.choice() is None
        except ConfigError:
            return False  # one is named, and cannot be built: the run fails with what is wrong, and everybody sees it

    async def _posted_before(self, request: PostPrompt, options: RunOptions) -> PromptReceipt | None:
        """The answer for a run id whose run is in the store, if the content is the same (R14); None: there is none."""
        known = await self.shared.journal.read(self.shared.store.run, self.id, request.run_id)
        if known is None:
            return None
        check_same_content(known, intake.digest(request, options), intake.mode_of(request, options))
        run = known.run
        return PromptReceipt(run_id=run.run_id, session_id=run.session_id, seq=run.seq, state=run.state)

    def dispatcher(self, session_id: str) -> Dispatcher:
        """The lane of an existing session, to cancel in it."""
        self.sessions.get(session_id)
        return self.lanes.open(session_id)

    def queued(self, session_id: str) -> list[str]:
        """The prompts that wait in a session."""
        self.sessions.get(session_id)
        return self.lanes.look(session_id).queued_prompts()

    async def cancel_run(self, run_id: str) -> CancelReceipt:
        """Cancel one run. An id that nobody has posted yet is remembered, so that a cancel may overtake its prompt."""
        if dispatcher := self.lanes.of_run(run_id):
            return await dispatcher.cancel_run(run_id)
        if await self.shared.journal.read(self.shared.store.run, self.id, run_id):
            return CancelReceipt(covered=(), mark=0)
        if dispatcher := self.lanes.of_run(run_id):  # it was posted while we looked
            return await dispatcher.cancel_run(run_id)
        now = self._world.now()
        self._early = self._early.remember(run_id, now, EARLY_CANCEL_S)
        await self._recorder.write(Batch([PutEarlyCancel(run_id, now + EARLY_CANCEL_S)]), patient=False)
        return CancelReceipt(covered=(Covered(run_id=run_id, state_found="unknown"),), mark=0)

    async def run(self, run_id: str, wait_s: float = 0.0) -> Run:
        """A run; with `wait_s`, as soon as it has ended, or as it is then."""
        return await self.waiters.run(run_id, wait_s)

    async def _look_up(self, run_id: str) -> Run:
        """A run as it is now. One whose end is decided but not written yet is as the store still has it: open."""
        dispatcher = self.lanes.of_run(run_id)
        now = dispatcher.run(run_id) if dispatcher else None
        if dispatcher and now and not dispatcher.is_new(run_id):
            return now
        row = await self.shared.journal.read(self.shared.store.run, self.id, run_id)
        run = row.run if row else now
        if run:
            return run
        raise NotFound(f"there is no run {run_id!r} in this workspace", "run_not_found")

    async def runs(self, session_id: str, state: str, limit: int) -> list[Run]:
        stored = await self.shared.journal.read(self.shared.store.runs, self.id, session_id, state, limit)
        now = {run.run_id: run for run in self.open_runs()}
        return [run if run.ended else now.get(run.run_id, run) for run in stored]

    def open_runs(self) -> list[Run]:
        return self.lanes.open_runs()

    def turn_of(self, run_id: str) -> Turn | None:
        """The turn of an active run."""
        return self.lanes.turn_of(run_id)

    def _on_event(self, event: Event) -> None:
        if isinstance(event.payload, RunComplete):
            self.shared.counts[f"runs_ended_{event.payload.outcome}"] += 1
            self.waiters.ended(event.payload)

    # ── being open ──

    @property
    def is_busy(self) -> bool:
        return self.lanes.is_busy

    def look_at(self, client_id: str, session_id: str) -> None:
        """A client looks at this session now ('' for none)."""
        if session_id:
            self.sessions.get(session_id)
        claims = self.claims.look_at(client_id, session_id)
        if claims is None:
            raise Conflict("open the event stream first: only attached clients have a current session", "not_attached")
        self.claims = claims
        self.feed.announce(updated(Presence(client_id=client_id, session_id=session_id, attached=True)))

    def _check_open(self) -> None:
        if self.closing:
            raise Conflict("the workspace is closing", "workspace_closing")

    async def reload(self) -> None:
        """Read the configuration again. Turns under way keep what they have."""
        self.agent.reload(*await load_config(self.shared, self.path, self.agent.client_env))
        self.permissions.rules = self._rules()
        if not self.lanes.is_busy:
            await self.agent.close_retired()

    def _rules(self) -> Rules:
        permissions = self.agent.config.permissions
        return Rules(permissions.allow, permissions.deny, permissions.ask, self.path, own_directories(self.shared))

    async def _allow_always(self, wish: Wish) -> None:
        """Write down a rule that grants this wish from now on in this directory, and read it."""
        from covey.config.edit import add_permission_rule  # late: seldom needed

        rules = session_rule(wish, self.permissions.rules)
        if not rules:
            raise BadRequest("no rule can say exactly this; it is allowed for this session", "no_rule")
        await asyncio.to_thread(add_permission_rule, self.shared.environ, Path(self.path), "allow", rules)
        await self.reload()

    async def close(self, drain_s: float) -> None:
        """Refuse, cancel, wait, flush, release: in this order (R13). Waiting and flushing share `drain_s`."""
        self.closing = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + drain_s
        drains = [asyncio.ensure_future(drained) for drained in self.lanes.close("shutdown")]
        drains += [asyncio.ensure_future(self.undos.drained()), asyncio.ensure_future(self.agent.jobs.close())]
        _, late = await asyncio.wait(drains, timeout=drain_s)
        for drain in late:
            drain.cancel()
        await asyncio.wait({self._recorder.write(Batch())}, timeout=max(0.0, deadline - loop.time()))
        self.feed.close()
        await self.agent.aclose()

    async def recover(self) -> None:
        """Take up what was open when the server stopped (R15)."""
        await self.undos.recover()
        store, read = self.shared.store, self.shared.journal.read
        self.lanes.newest_seq = await read(store.last_run_seq, self.id)
        early = await read(store.early_cancels, self.id)
        self._early = EarlyCancels(tuple((cancel.run_id, cancel.until) for cancel in early))
        rows = await read(store.open_runs, self.id)
        marks = {session.session.id: session.mark for session in await read(store.sessions, self.id)}
        for session_id in dict.fromkeys(row.run.session_id for row in rows):
            mine = [row for row in rows if row.run.session_id == session_id]
            active = next((row.run.run_id for row in mine if row.run.state == "active"), None)
            if active:
                await asyncio.to_thread(self.shared.end_processes, self.tool_calls.process_tag(active))
            leftover = await self._parts.read_run(session_id, active) if active else []
            dispatcher = self.lanes.open(session_id)
            dispatcher.recover(mine, marks.get(session_id, 0), self.lanes.newest_seq, leftover)


async def open_workspace(
    row: WorkspaceRow,
    shared: Shared,
    config: Config,
    warnings: Sequence[str] = (),
    *,
    yolo: bool = False,
    env: Mapping[str, str] | None = None,
    on_quiet: Callable[[], None],
) -> Workspace:
    """Open a workspace whose row is in the store, and go on where it stopped."""
    read, store = shared.journal.read, shared.store
    shared.world.start_after(await read(store.newest_id, row.id))
    bounds = await read(store.log_bounds, row.id)
    sessions = [entry.session for entry in await read(store.sessions, row.id)]
    feed = Feed(row.epoch, bounds.last)
    journal = shared.journal.for_workspace(row.id, feed, config.limits.events_kept)
    workspace = Workspace(
        row,
        shared,
        feed,
        journal,
        Agent(row.id, Path(row.path), config, env or {}, warnings, shared.environ),
        SessionBook(sessions, shared.world),
        yolo=yolo,
        on_quiet=on_quiet,
    )
    await workspace.recover()
    return workspace
