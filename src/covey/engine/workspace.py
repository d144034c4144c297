"""What one directory needs, opened and closed as one. The door to it: whoever is outside uses its commands alone.

The commands stand together by what they are about, in `engine/commands`: sessions, runs, asks, jobs, shell, the
event stream, the clients and the settings. What is behind them (the feed, the lanes, the agent, the journal) is nobody
else's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from covey import __version__
from covey.config.schema import Config
from covey.config.stamp import Stamp
from covey.context.snapshots import Snapshots
from covey.engine.admission import Admission
from covey.engine.agent import Agent
from covey.engine.asks.approvals import ApprovalDesk
from covey.engine.asks.permissions import PermissionDesk
from covey.engine.asks.questions import QuestionDesk
from covey.engine.asks.text_approvals import TextApprovals
from covey.engine.command_changes import CommandChanges
from covey.engine.commands.asks import Asks
from covey.engine.commands.clients import Clients
from covey.engine.commands.custom import CustomCommands
from covey.engine.commands.extensions import WorkspaceExtensions
from covey.engine.commands.files import WorkspaceFiles
from covey.engine.commands.jobs import WorkspaceJobs
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.commands.retention import Retention
from covey.engine.commands.runs import Runs
from covey.engine.commands.sessions import Sessions
from covey.engine.commands.settings import WorkspaceSettings, rules_of
from covey.engine.commands.shell import Shell
from covey.engine.commands.stream import Streams
from covey.engine.confining import Confining, Permit
from covey.engine.extensions.extensions import Extensions
from covey.engine.extensions.hook_host import HookHost
from covey.engine.extensions.kind import ExtensionParts
from covey.engine.extensions.lsp import LspHost
from covey.engine.extensions.mcp import McpHost
from covey.engine.keeping import Keeping
from covey.engine.lanes.lanes import Lanes
from covey.engine.recorder import Batch, Recorder, patiently
from covey.engine.session_book import SessionBook
from covey.engine.shared import Shared, own_directories
from covey.engine.turns.hooks import TurnHooks
from covey.engine.turns.host import EngineHost
from covey.engine.turns.long_results import LongResults
from covey.engine.turns.parts import TurnParts
from covey.engine.turns.reception import Reception
from covey.engine.turns.tool_calls import ToolCalls
from covey.engine.turns.watching import Watching
from covey.engine.undo.undo import Undos
from covey.feed.feed import Feed
from covey.machine.names import workspace_tag
from covey.permissions.judge import Intent
from covey.permissions.reach import Reach
from covey.protocol.errors import Unavailable
from covey.protocol.events import Event
from covey.protocol.messages import Session
from covey.protocol.requests import WorkspaceView
from covey.store.base import WorkspaceRow
from covey.store.journal import WorkspaceJournal
from covey.tools.job_records import JobRecords
from covey.tools.walk import ALWAYS_IGNORED

END_S = 6.0
"""How long everything may take to end in a workspace that others own by now."""


class Workspace:
    """One open workspace. Made by `open_workspace`; `close` ends everything that it started."""

    def __init__(
        self,
        row: WorkspaceRow,
        shared: Shared,
        feed: Feed,
        journal: WorkspaceJournal,
        agent: Agent,
        book: SessionBook,
        *,
        keeping: Keeping,
        stamp: Stamp | None,
        on_quiet: Callable[[], None],
        on_event: Callable[[Workspace, Event], None],
    ) -> None:
        self.id = row.id
        self.path = row.path
        admission = self._admission = Admission(row.id)
        self._journal = journal
        recorder = Recorder(journal, book, self._view)
        questions, approvals = QuestionDesk(journal, shared.world), ApprovalDesk(journal)
        self._confining = _confining(row, shared, agent)
        self._extensions = _extensions(row, shared, feed, agent, approvals, self._confining)
        self._keeping = keeping
        rules = rules_of(agent.config, row.path, shared, keeping.allow)
        permissions = PermissionDesk(journal, row.id, rules, book, recorder, skip=keeping.yolo, always=self._always)
        host = EngineHost(self, book, recorder, questions, shared.world, agent, self._extensions.languages)
        changes = _command_changes(row, shared)
        watching = Watching(changes, agent.jobs, recorder, shared.world)
        long_results = LongResults(shared.data_dir, row.id, shared.ownership)
        hooks = _turn_hooks(row, self._extensions.hooks, agent, book, recorder)
        tool_calls = ToolCalls(
            agent, permissions, shared.world, row.id, host, long_results, self._confining, book, watching, hooks
        )
        turns = _turn_parts(row.id, shared, feed, recorder, book, agent, tool_calls, hooks, approvals, self._refresh)
        lanes = Lanes(turns, on_quiet)
        self._parts = WorkspaceParts(
            row.id, shared, feed, agent, book, recorder, turns, lanes, self._view, changes, admission
        )
        touching = changes.touching
        self._undos = Undos(
            row.id, row.path, shared, recorder, book, self._view, lanes, admission.check_open, agent.effects, touching
        )
        self.clients = Clients(feed, self._parts.session)
        self.settings: WorkspaceSettings = WorkspaceSettings(
            row.id, row.path, shared, agent, permissions, lanes, recorder, self._extensions, keeping, stamp
        )
        self.sessions = Sessions(self._parts, self._undos)
        self.runs = Runs(self._parts, self.settings.reload, on_quiet)
        self.asks = Asks(permissions, questions, approvals, keeping)
        self.extensions = WorkspaceExtensions(self._extensions, approvals)
        self.shell = Shell(self._parts)
        self.jobs = WorkspaceJobs(agent.jobs, on_quiet)
        self.stream = Streams(self._parts, self.asks, self.clients)
        self.files, self.custom = WorkspaceFiles(agent), CustomCommands(agent, shared)
        self._retention = Retention(self._parts, self.sessions)
        self._on_event = on_event
        feed.on_event = self._published

    @property
    def closing(self) -> bool:
        """Nothing new is taken any more."""
        return self._admission.closing

    @property
    def is_busy(self) -> bool:
        """A run is open in one of its sessions, or about to be."""
        return self._parts.lanes.is_busy or self.runs.is_accepting

    def describe(self) -> WorkspaceView:
        """The workspace, as clients see it."""
        return WorkspaceView(
            id=self.id,
            path=self.path,
            yolo=self.asks.skips(),
            data_dir=str(self._parts.shared.data_dir),
            version=__version__,
            config=self.settings.config(),
            warnings=self.settings.warnings(),
            clients=tuple(self.clients.present()),
        )

    async def recover(self) -> None:
        """Take up what was open when the server stopped (R15): the undos first.

        Before that it is learnt which extensions there are: no run goes on without the hooks that watch it.
        """
        parts = self._parts
        await parts.agent.jobs.restore(JobRecords(parts.shared.data_dir / "jobs" / self.id))
        await self._extensions.reload()
        await self._undos.recover()
        await self.runs.recover()

    async def close(self, drain_s: float) -> None:
        """Refuse, cancel, wait, flush, release: in this order (R13). Waiting and flushing share `drain_s`."""
        self._admission.closing = True
        await self._retention.aclose()
        self.stream.close()
        parts = self._parts
        loop = asyncio.get_running_loop()
        deadline = loop.time() + drain_s
        drains = [asyncio.ensure_future(drained) for drained in parts.lanes.close("shutdown")]
        endings = (self._undos.drained(), parts.agent.jobs.close(), self.shell.close(), self._extensions.close())
        for drain in endings:
            drains.append(asyncio.ensure_future(drain))
        _, late = await asyncio.wait(drains, timeout=drain_s)
        for unfinished in late:
            unfinished.cancel()
        await asyncio.wait({parts.recorder.write(Batch())}, timeout=max(0.0, deadline - loop.time()))
        parts.feed.close()
        with suppress(Unavailable):  # what nobody is asked about lasts for as long as somebody is here
            await self._keeping.set_yolo(False)
        await self.files.aclose()
        await parts.agent.aclose()
        await self._confining.close()
        await parts.changes.aclose()

    # ── other nodes ──

    def cut_off(self) -> None:
        """Somebody else owns it: from now on nothing is written, and whoever asks is told so."""
        self._admission.move()
        self._journal.cut_off()
        self.runs.moved()

    async def abandon(self) -> None:
        """End everything without last words: they are the new owner's. After `cut_off`."""
        self._parts.feed.close()
        self._extensions.hooks.last_words = list
        await asyncio.gather(*self._parts.lanes.abandon(), return_exceptions=True)
        await self.end()

    async def come_to_rest(self, drain_s: float) -> None:
        """Begin no more turns, and wait for those under way; after `drain_s` they are cancelled (N10)."""
        await self._parts.lanes.come_to_rest(drain_s)

    async def give_away(self, within_s: float) -> bool:
        """Write what is left, and take nothing more: what waits is the next owner's. After `come_to_rest`.

        Whether all of it is written in time: a store that is away is waited for, since a run whose end is not written
        would be interrupted by the next owner. What it has started is still to be ended, by `end`.
        """
        self._admission.move()
        await self._undos.drained()
        await asyncio.gather(self._parts.agent.jobs.close(), self.shell.close())
        written = self._parts.recorder.write(Batch())
        await asyncio.wait({written}, timeout=max(END_S, within_s))
        self._journal.cut_off()
        self.runs.moved()
        self._parts.feed.close()
        return written.done() and not written.exception()

    async def end(self) -> None:
        """End what was started here: processes, and what waits for them."""
        await self._retention.aclose()
        self.stream.close()
        parts = self._parts
        endings = (parts.agent.jobs.close(), self.shell.close(), self._extensions.close())
        await asyncio.wait([asyncio.ensure_future(ending) for ending in endings], timeout=END_S)
        await self.files.aclose()
        await parts.agent.aclose()
        await self._confining.close()
        await parts.changes.aclose()

    async def _refresh(self, beginning: int) -> Sequence[str]:
        return await self.settings.refresh(beginning)

    async def _always(self, intent: Intent, reach: Reach, by_prefix: bool) -> None:
        await self.settings.allow_always(intent, reach, by_prefix)

    def start_upkeep(self) -> None:
        """Begin to throw away what the settings say is outdated."""
        self._retention.start()

    def expire(self, now: float) -> None:
        """Give up what only lasted until now: claims of clients that are gone, and what they have parked."""
        self.clients.expire(now)
        self.runs.unpark_left(now, self.clients.is_here)

    def next_deadline(self) -> float | None:
        """When `expire` next has something to do."""
        deadlines = (self.clients.next_deadline(), self.runs.next_deadline(), self.jobs.next_deadline())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def _published(self, event: Event) -> None:
        self.runs.on_event(event)
        self._parts.turns.hooks.on_event(event)
        self._on_event(self, event)

    def _view(self, session: Session) -> Session:
        """A session as it is sent: with the facts of the moment, and without what is for the server alone."""
        busy, watching = self._parts.lanes.is_busy_in(session.id), self.clients.watching(session.id)
        return session.as_sent(is_busy=busy, attached_clients=watching)


def _confining(row: WorkspaceRow, shared: Shared, agent: Agent) -> Confining:
    own = [Path(path) for path in own_directories(shared)]
    return Confining(
        Path(row.path),
        shared.data_dir / "tmp" / row.id,
        [*own, *shared.sockets],
        lambda: agent.env,
        lambda: agent.config.permissions.sandbox,
    )


def _command_changes(row: WorkspaceRow, shared: Shared) -> CommandChanges:
    directory = shared.data_dir / "snapshots" / row.id
    return CommandChanges(Path(row.path), Snapshots(directory, shared.environ, ALWAYS_IGNORED))


def _extensions(
    row: WorkspaceRow,
    shared: Shared,
    feed: Feed,
    agent: Agent,
    desk: ApprovalDesk,
    confining: Confining,
) -> Extensions:
    """Nothing of them is started."""
    parts = ExtensionParts(
        row.id,
        Path(row.path),
        shared,
        agent.processes,
        desk,
        lambda: agent.config,
        lambda: agent.environ,
        lambda payload: feed.announce(Event("updated", payload, "")),
        lambda: confining.confinement(Permit(approved=True, reach=Reach.NETWORK), None, shared.data_dir / "no results"),
    )
    extensions = Extensions(McpHost(parts), LspHost(parts, agent.reads), HookHost(parts))
    agent.more_tools, agent.untold, agent.prompts = extensions.tools, extensions.untold, extensions.prompts
    return extensions


def _turn_hooks(row: WorkspaceRow, host: HookHost, agent: Agent, book: SessionBook, recorder: Recorder) -> TurnHooks:
    hooks = TurnHooks(host, row.id, agent.tag, Path(row.path), book, recorder)
    host.last_words = hooks.last_words
    return hooks


def _turn_parts(
    workspace_id: str,
    shared: Shared,
    feed: Feed,
    recorder: Recorder,
    book: SessionBook,
    agent: Agent,
    tool_calls: ToolCalls,
    hooks: TurnHooks,
    approvals: ApprovalDesk,
    refresh: Callable[[int], Awaitable[Sequence[str]]],
) -> TurnParts:
    read, store = shared.journal.read, shared.store
    return TurnParts(
        world=shared.world,
        recorder=recorder,
        sessions=book,
        agent=agent,
        tool_calls=tool_calls,
        reception=Reception(agent, recorder, hooks, TextApprovals(approvals, agent.root, shared.environ)),
        hooks=hooks,
        feed=feed,
        refresh=refresh,
        read_messages=lambda *of: patiently(lambda: read(store.messages_since, workspace_id, *of)),
        read_run=lambda *of: patiently(lambda: read(store.messages_of_run, workspace_id, *of)),
        data_dir=shared.data_dir,
        awaits_results=shared.ownership.is_shared,
    )


async def open_workspace(
    row: WorkspaceRow,
    shared: Shared,
    config: Config,
    warnings: Sequence[str] = (),
    *,
    stamp: Stamp | None = None,
    yolo: bool | None = False,
    env: Mapping[str, str] | None = None,
    on_quiet: Callable[[], None],
    on_event: Callable[[Workspace, Event], None] = lambda workspace, event: None,
    fence: int = 0,
    on_lost: Callable[[], None] = lambda: None,
) -> Workspace:
    """Open a workspace whose row is in the store, and go on where it stopped.

    `on_event` is called with all that is published in it. `fence`: under which it is owned; `on_lost` is called when a
    change is refused because others own it. `yolo`: None if whoever opens it does not say, as it is not a client.
    `stamp`: the files of the configuration before they were read; None: it came from none, and is not read again.
    """
    read, store = shared.journal.read, shared.store
    shared.world.start_after(await read(store.newest_id, row.id))
    bounds = await read(store.log_bounds, row.id)
    feed = Feed(row.epoch, bounds.last)
    journal = shared.journal.for_workspace(row.id, feed, config.limits.events_kept, fence=fence)
    journal.on_lost = on_lost
    keeping = Keeping(row.id, fence, shared.ownership, yolo=bool(yolo))
    await keeping.read(yolo=yolo)
    tag = workspace_tag(row.id, shared.ownership.node)
    workspace = Workspace(
        row,
        shared,
        feed,
        journal,
        Agent(tag, Path(row.path), config, env or {}, warnings, shared.environ),
        SessionBook(shared.world),
        keeping=keeping,
        stamp=stamp,
        on_quiet=on_quiet,
        on_event=on_event,
    )
    await workspace.recover()
    workspace.start_upkeep()
    return workspace
