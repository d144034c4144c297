"""Path → workspace: opened once for each directory, kept while somebody needs it, released when nobody does (R17)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from covey.config.schema import Config, ConfigError
from covey.engine.everywhere import Everywhere
from covey.engine.shared import KnownClients, Shared, check_directory, config_stamp, load_config, load_engine, resolve
from covey.protocol.errors import BadRequest, Conflict, NotFound, Unavailable
from covey.protocol.who import Who
from covey.store.base import Change, PutWorkspace, StoreFailed, WorkspaceRow

if TYPE_CHECKING:
    from covey.config.stamp import Stamp
    from covey.engine.workspace import Workspace

log = logging.getLogger(__name__)

DRAIN_S = 6.0
"""How long closing waits for runs to end and to be written: longer than a cancelled turn may take, and short enough
that a server whose disk is full is gone after ten seconds all the same."""
VISITOR = ""
"""Who holds a workspace that was asked for by its id, without a claim, after a restart."""


class Workspaces:
    """All open workspaces of a server. A lock for each path: nobody is handed a workspace that is going away."""

    def __init__(self, shared: Shared, on_idle: Callable[[], None], idle_exit_s: float) -> None:
        self._shared = shared
        self._ownership = shared.ownership
        self._fences: dict[str, int] = {}
        """Of the workspaces that are open here, or being opened: under which number each of them is owned."""
        self._leaving: set[asyncio.Task[None]] = set()
        self._on_idle = on_idle
        self._idle_exit_s = idle_exit_s
        self._open: dict[str, Workspace] = {}
        self._rows: dict[str, WorkspaceRow] = {}
        self._row_of: dict[str, WorkspaceRow] = {}
        """The same by path."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._clients = KnownClients()
        self._released: set[str] = set()
        """Ids of workspaces that were released, and that nobody has asked for since."""
        self._loop = asyncio.get_running_loop()
        self._idle_since = self._loop.time()
        self._look = asyncio.Event()
        self._touched: set[str] = set()
        """Ids of workspaces in which something has changed that may decide whether they are still needed."""
        self._deadlines: dict[str, float] = {}
        """When each of them next has something to give up by itself."""
        self._reaper: asyncio.Task[None] | None = None
        self.everywhere = Everywhere(shared, self._rows, self._open)
        self.closing = False

    async def start(self) -> None:
        """Take up every workspace that has open runs, then watch over claims.

        A node of a cluster takes up what nobody else has when it looks around: see `adopt`.
        """
        self._reaper = asyncio.create_task(self._reap(), name="claims")
        if self._ownership.is_shared:
            await asyncio.to_thread(self._shared.end_jobs_of_node, self._ownership.node)
            return
        store, read = self._shared.store, self._shared.journal.read
        for row in await read(store.workspaces):
            self._know(row)
        if self._rows:  # jobs of a workspace may be left, also where no run was open
            await asyncio.to_thread(self._shared.end_jobs, list(self._rows))
        for row in self._rows.values():
            if await read(store.open_runs, row.id):
                await self._take_up(row)

    async def _take_up(self, row: WorkspaceRow) -> None:
        async with self._lock(row.path):
            try:
                await self._reopen(row)
            except Exception:  # it must not keep the others from being served; whoever asks for it tries again
                log.exception("%s could not be opened again: its runs wait", row.path)

    @property
    def store_refuses(self) -> bool:
        return bool(self._shared.journal.refusal)

    def all(self) -> list[Workspace]:
        return list(self._open.values())

    def is_open(self, workspace_id: str) -> bool:
        return workspace_id in self._open

    def owned(self) -> dict[str, int]:
        """The ids of what is open here, or being opened, each with its fence."""
        return dict(self._fences)

    def check_not_released(self, workspace_id: str) -> None:
        """Raise NotFound for a workspace that was released: looking whether it is there must not open it again."""
        if workspace_id in self._released:
            raise NotFound(
                "the workspace was released; open it again with POST /v1/workspaces and its path", "workspace_released"
            )

    async def get(self, workspace_id: str) -> Workspace:
        """An open workspace; one that is only in the store is opened again for whoever still knows its id."""
        workspace = self._open.get(workspace_id)
        if workspace:
            return workspace
        row = self._rows.get(workspace_id) or await self._ownership.row(workspace_id)
        if row is None:
            raise NotFound(
                f"there is no workspace {workspace_id!r}; create it with POST /v1/workspaces", "workspace_not_found"
            )
        async with self._lock(row.path):
            self._check_serving()
            if workspace_id not in self._open:
                check_directory(row.path)
                workspace = await self._reopen(row)
                workspace.clients.create(Who(client_id=VISITOR), self._loop.time())
                self._touch(workspace_id)
                self._check_serving()
            return self._open[workspace_id]

    def who(self, client_id: str) -> Who:
        """A client as it said it is; one that said nothing has its id alone."""
        return self._clients.who(client_id)

    def check_data_dir(self, asked: str) -> None:
        """Raise BadRequest for a data directory that is not ours. A client that joins again names the one it saw."""
        mine = self._shared.data_dir
        if self._ownership.is_shared:
            return  # each node has its own, and a client may have seen that of another
        if asked and Path(asked).expanduser().absolute() != mine.absolute():
            raise BadRequest(
                f"this server keeps its data in {mine}; start another one with --data-dir", "other_data_dir"
            )

    async def create(self, path: str, who: Who, *, yolo: bool, env: Mapping[str, str]) -> Workspace:
        """Open the workspace of a directory, or join it."""
        resolved, client_id = resolve(path), who.client_id
        async with self._lock(resolved):
            self._check_serving()
            self._clients.check_not_retired(client_id)
            row = self._row_of.get(resolved) or await self._ownership.row_at(resolved, self._shared.world.now_s())
            if row is None or row.id not in self._open:
                row = row or await self._new_row(resolved)
                self._open[row.id] = await self._opened(row, yolo=yolo, env=env)
            workspace = self._open[row.id]
            self._released.discard(row.id)
            self._clients.remember(who)
            workspace.clients.create(who, self._loop.time())
            self._touch(row.id)
            self._check_serving()
            return workspace

    async def _new_row(self, path: str) -> WorkspaceRow:
        now = self._shared.world.now_s()
        row = WorkspaceRow(self._shared.world.new_id(), path, epoch=now, created_at=now)
        await self._shared.journal.write(Change(row.id, (PutWorkspace(row),)))
        self._know(row)
        return row

    def _know(self, row: WorkspaceRow) -> None:
        self._rows[row.id] = self._row_of[row.path] = row

    async def _reopen(self, row: WorkspaceRow) -> Workspace:
        """Open without a client."""
        workspace = self._open[row.id] = await self._opened(row)
        self._released.discard(row.id)
        self._touch(row.id)
        return workspace

    async def _opened(
        self,
        row: WorkspaceRow,
        *,
        yolo: bool | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Workspace:
        """Claim it, then open it: nobody reads what somebody else is still writing."""
        config, warnings, stamp = await self._configuration(row.path, env)
        await load_engine()
        from covey.engine.workspace import open_workspace

        fence = self._fences[row.id] = await self._ownership.claim(row.id)
        try:
            if self._ownership.is_shared:  # a claim after a failover of the store begins a new epoch
                row = await self._ownership.row(row.id) or row
            return await open_workspace(
                row,
                self._shared,
                config,
                warnings,
                stamp=stamp,
                yolo=yolo,
                env=env,
                on_quiet=lambda: self._touch(row.id),
                on_event=self.everywhere.note,
                fence=fence,
                on_lost=lambda: self._lost(row.id, fence),
            )
        except BaseException:
            await self._let_go(row.id)
            raise

    async def _configuration(self, path: str, env: Mapping[str, str] | None) -> tuple[Config, Sequence[str], Stamp]:
        """What its files say, with warnings, and as they were before they were read.

        A mistake in them keeps nobody from what needs no model, and no run from ending.
        """
        stamp = await config_stamp(self._shared, path, env)
        try:
            config, warnings = await load_config(self._shared, path, env)
        except ConfigError as error:
            log.warning("%s: nothing that needs a model is begun: %s", path, error)
            return Config(mistake=error.message), (), ()  # whoever needs a model tries again
        return config, warnings, stamp

    def _lost(self, workspace_id: str, fence: int) -> None:
        """A change of it was refused, as others own it."""
        self._shared.counts["cluster_fenced"] += 1
        leaving = asyncio.create_task(self.abandon(workspace_id, "a change of it was refused", fence))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _let_go(self, workspace_id: str) -> None:
        """It is not open any more: somebody else may have it. If the store is away, the next beat sees to it."""
        with contextlib.suppress(StoreFailed):
            await self._ownership.release(workspace_id, self._fences.pop(workspace_id, 0))

    # ── other nodes ──

    async def adopt(self, workspace_id: str) -> None:
        """Take up a workspace that nobody else cares for, if its directory is here. Raises OwnedElsewhere."""
        row = await self._ownership.row(workspace_id)
        if row is None or workspace_id in self._open:
            return
        async with self._lock(row.path):
            self._check_serving()
            if workspace_id not in self._open:
                check_directory(row.path)
                await self._reopen(row)

    async def abandon(self, workspace_id: str, reason: str, fence: int) -> None:
        """Somebody else has what was owned under this fence: let go of it at once, and write nothing any more (N4)."""
        workspace = self._open.get(workspace_id)
        if workspace is None or self._fences.get(workspace_id) != fence:
            return
        del self._open[workspace_id], self._fences[workspace_id]
        log.warning("%s is given up: %s", workspace.path, reason)
        self._shared.counts["cluster_abandoned"] += 1
        workspace.cut_off()
        async with self._lock(workspace.path):
            await workspace.abandon()

    async def hand_over(self, workspace_id: str, drain_s: float) -> bool:
        """Give a workspace away in good order: turns under way end first, and what waits is left to the next owner.

        Whether that was done: it may not be open any more, or not be written whole.
        """
        workspace = self._open.get(workspace_id)
        if workspace is None:
            return False
        deadline = self._loop.time() + drain_s
        await workspace.come_to_rest(drain_s)
        async with self._lock(workspace.path):
            if self._open.get(workspace_id) is not workspace:
                return False
            del self._open[workspace_id]
            is_written = await workspace.give_away(deadline - self._loop.time())
            if is_written:
                await self._let_go(workspace_id)
            else:  # others get it when this node is gone
                del self._fences[workspace_id]
            await workspace.end()
            return is_written

    # ── claims ──

    def attach(self, workspace: Workspace, client_id: str) -> None:
        """A client opened an event stream."""
        self._clients.check_not_retired(client_id)
        if workspace.closing:
            raise Conflict("the workspace is closing", "workspace_closing")
        workspace.clients.attach(self.who(client_id))

    def detach(self, workspace: Workspace, client_id: str) -> None:
        workspace.clients.detach(client_id, self._loop.time())
        self._touch(workspace.id)

    def release(self, workspace: Workspace, client_id: str) -> None:
        workspace.clients.release(client_id)
        self._touch(workspace.id)

    def retire(self, client_id: str) -> None:
        """The client says goodbye for good."""
        self._clients.retire(client_id)
        for workspace in self._open.values():
            workspace.clients.drop(client_id)
        self._touch(*self._open)

    async def _reap(self) -> None:
        """Release what nobody needs; sleep until the next deadline, or until something changes."""
        while True:
            self._look.clear()
            now = self._loop.time()
            for workspace in self._due(now):
                await self._tend(workspace, now)
            if self._open or self._is_opening:
                self._idle_since = self._loop.time()
            elif self._idle_exit_s and now >= self._idle_since + self._idle_exit_s:
                self._on_idle()
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), self._pause())

    def _touch(self, *workspace_ids: str) -> None:
        """Something has changed in these workspaces: look whether they are still needed."""
        self._touched.update(workspace_ids)
        self._look.set()

    def _due(self, now: float) -> list[Workspace]:
        """Those in which something has changed, or whose time has come. What it costs does not depend on the others."""
        due = self._touched | {workspace_id for workspace_id, when in self._deadlines.items() if when <= now}
        self._touched = set()
        return [self._open[workspace_id] for workspace_id in due if workspace_id in self._open]

    async def _tend(self, workspace: Workspace, now: float) -> None:
        workspace.expire(now)
        if self._is_idle(workspace):
            await self._release(workspace)
        deadline = workspace.next_deadline() if workspace.id in self._open else None
        if deadline is None:
            self._deadlines.pop(workspace.id, None)
        else:
            self._deadlines[workspace.id] = deadline

    def _pause(self) -> float | None:
        """How long nothing can happen by itself."""
        deadlines = list(self._deadlines.values())
        if not self._open and self._idle_exit_s:
            deadlines.append(self._idle_since + self._idle_exit_s)
        return max(0.0, min(deadlines) - self._loop.time()) if deadlines else None

    async def _release(self, workspace: Workspace) -> None:
        async with self._lock(workspace.path):
            if self._is_idle(workspace) and workspace.id in self._open:
                del self._open[workspace.id]
                self._released.add(workspace.id)
                await _close(workspace)
                await self._let_go(workspace.id)
                self._idle_since = self._loop.time()

    # ── closing ──

    @property
    def is_idle(self) -> bool:
        return not self._is_opening and all(self._is_idle(workspace) for workspace in self._open.values())

    def _is_idle(self, workspace: Workspace) -> bool:
        return not (workspace.clients.have_claims or workspace.is_busy or workspace.jobs.hold(self._loop.time()))

    @property
    def _is_opening(self) -> bool:
        """Somebody is about to get a workspace: the server must not go away under their hands."""
        return any(lock.locked() for lock in self._locks.values())

    async def close(self) -> None:
        """Close every workspace, all at once (R13)."""
        self.closing = True
        if self._reaper:
            self._reaper.cancel()
        for lock in list(self._locks.values()):  # a workspace that is just being opened is closed with the others
            async with lock:
                pass
        await asyncio.gather(*(_close(workspace) for workspace in self.all()))
        await self.everywhere.aclose()
        if embedded := sys.modules.get("covey.models.embedded_child"):  # only where such a model was used
            await embedded.end_all()

    def _lock(self, path: str) -> asyncio.Lock:
        return self._locks.setdefault(path, asyncio.Lock())

    def _check_serving(self) -> None:
        if self.closing:
            raise Unavailable("the server is shutting down")


async def _close(workspace: Workspace) -> None:
    try:
        await workspace.close(DRAIN_S)
    except Exception:  # the others, and the journal behind all of them, must be closed too
        log.exception("%s was not closed in order", workspace.path)
