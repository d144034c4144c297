"""This server as one of several: it says that it is alive, notices who is not, and takes up what nobody cares for.

What was lost to others is abandoned as soon as that is known; a node that was declared dead comes back with a new id.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from covey import __version__
from covey.cluster.attendance import Attendance
from covey.engine.ownership import OwnedElsewhere
from covey.protocol.errors import ApiError, Unavailable
from covey.store.base import StoreFailed, WorkspaceRow
from covey.store.everywhere import ReadsEverywhere
from covey.store.postgres.nodes import NodeRow, NodeTable, OwnerRow
from covey.store.postgres.store import PostgresStore

log = logging.getLogger(__name__)
T = TypeVar("T")

ADOPT_AT_ONCE = 8
"""Workspaces that are taken up at the same time: reading them is waiting for the most part."""
ADOPT_LOOK = 200
"""Of those that nobody cares for, how many are looked at once."""
LEFT_OUT_S = 60.0
"""A workspace that cannot be opened here is left to other nodes, and tried again after so long."""


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """How long things take. The rest follows from the lease."""

    lease_s: float = 9.0
    look_s: float = 1.0
    grace_s: float = 2.5
    """How long a node whose connection to the store is gone is given to come back."""
    drain_s: float = 600.0

    @property
    def beat_s(self) -> float:
        """Who is cut off right after a beat that still arrived is noticed a beat, a lease and a look later (N3)."""
        return self.lease_s / 5

    @property
    def retry_s(self) -> float:
        """After a beat that failed."""
        return min(0.5, self.lease_s / 10)


class Owned(Protocol):
    """What a node needs of the workspaces of its server: `engine.workspaces.Workspaces`."""

    def owned(self) -> dict[str, int]: ...

    def is_open(self, workspace_id: str) -> bool: ...

    async def adopt(self, workspace_id: str) -> None: ...

    async def abandon(self, workspace_id: str, reason: str, fence: int) -> None: ...

    async def hand_over(self, workspace_id: str, drain_s: float) -> bool: ...


def boottime() -> float:
    """A clock that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Node:
    """One node. It is the `Ownership` of its server's workspaces."""

    is_shared = True

    def __init__(
        self,
        name: str,
        address: str,
        home: str,
        store: PostgresStore,
        table: NodeTable,
        times: NodeTimes,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.name = self.node = name
        self.address = address
        self.times = times
        self.draining = False
        self._home = home
        self._store = store
        self._table = table
        self._clock = clock
        self._beaten_at = self._seen_at = -1e9
        """When this node last said that it is alive, and when it was last seen to be connected to the store."""
        self._beat_failed = False
        self._beating: asyncio.Task[None] | None = None
        self._beats = ThreadPoolExecutor(1, "covey-beat")
        self._claims = ThreadPoolExecutor(1, "covey-claim")
        self.counts: Counter[str] = Counter()
        """What has happened since the start, for /metrics."""
        self.on_look: list[Callable[[], Awaitable[None]]] = []
        """Called each time this node looks around."""
        self.on_given_away: Callable[[str], Awaitable[None]] | None = None
        """Asks another node to take up a workspace that was handed over, so that nothing waits until one looks."""
        self._workspaces: Owned | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._adopting: set[str] = set()
        self._left_out: dict[str, float] = {}
        """Workspaces that could not be opened here, until when they are left to others."""
        self._orphans: dict[str, int] = {}
        """What this node owns and has not open, as of the last beat: an answer got lost."""
        self._attendance = Attendance(times.grace_s)
        self._slots = asyncio.Semaphore(ADOPT_AT_ONCE)

    @property
    def everywhere(self) -> ReadsEverywhere:
        return self._store

    @property
    def id(self) -> str:
        """Of this life: new with each start, and after it was declared dead."""
        return self._store.owner

    # ── its life ──

    @property
    def version(self) -> int:
        return self._table.version

    async def join(self) -> None:
        await self._on(self._beats, self._join)

    def _join(self) -> None:
        began = self._clock()
        self._table.join(NodeRow(self.id, self.name, self._home, self.address, covey=__version__))
        self._beaten_at = self._seen_at = began

    def begin(self, workspaces: Owned) -> None:
        self._workspaces = workspaces
        for loop in (self._beat_on, self._look_on):
            self._spawn(loop())

    async def drain(self) -> None:
        """Give everything away in good order, and take nothing any more (N10)."""
        self.draining = True
        with suppress(StoreFailed):
            await self._on(self._beats, self._table.set_draining, self.id)
        assert self._workspaces is not None
        while owned := list(self._workspaces.owned()):
            await asyncio.gather(*map(self._hand_over, owned))
            await asyncio.sleep(0.01)  # one that is just being opened is next

    async def _hand_over(self, workspace_id: str) -> None:
        assert self._workspaces is not None
        try:
            given_away = await self._workspaces.hand_over(workspace_id, self.times.drain_s)
            if given_away and self.on_given_away:
                with suppress(StoreFailed):  # whoever looks around finds it too
                    await self.on_given_away(workspace_id)
        except Exception:
            log.exception("workspace %s was not handed over in order: another node takes it", workspace_id)
        else:
            self.counts["cluster_handovers"] += given_away

    async def leave(self) -> None:
        """The end of this life: nobody has to wait for its lease."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(StoreFailed, TimeoutError):
            await asyncio.wait_for(self._on(self._beats, self._table.declare_dead, self.id), 1.0)
        for pool in (self._beats, self._claims):
            pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._table.close)

    # ── alive ──

    def is_fresh(self) -> bool:
        """Whether nobody can have taken anything from this node yet, by its own clock.

        Its lease has not run out, and its connection was there so recently that nobody can have missed it for long.
        """
        return self.lease_left_s() > 0 and self._clock() - self._seen_at < self.times.grace_s

    def lease_left_s(self) -> float:
        """For how long nobody can take anything from this node, if it is not heard of again."""
        return max(0.0, self.times.lease_s - (self._clock() - self._beaten_at))

    async def ensure_fresh(self) -> None:
        """After a pause, beat first: what was lost meanwhile is known then. Raises Unavailable."""
        if not self.is_fresh():
            await self.beat()
        if not self.is_fresh():
            raise Unavailable("the store cannot be reached", "store_unavailable", retry_after=1.0)

    async def beat(self) -> None:
        """Say that this node is alive, and learn what it owns. Whoever asks meanwhile waits for the same beat."""
        if self._beating is None:
            self._beating = self._spawn(self._beat())
            self._beating.add_done_callback(self._beaten)
        await asyncio.shield(self._beating)

    def _beaten(self, beating: asyncio.Task[None]) -> None:
        self._beating = None

    async def _beat(self) -> None:
        began = self._clock()
        before = self._workspaces.owned() if self._workspaces else {}
        try:
            owned = await self._on(self._beats, self._table.beat, not self._beat_failed)
        except StoreFailed as error:
            if not self._beat_failed:
                log.error("this node cannot say that it is alive, trying again: %s", error)
            self._beat_failed = True
            self._attendance.forget()
            return
        if self._beat_failed:
            log.warning("the store is there again")
        self._beat_failed = False
        if owned is None:
            await self._come_back(before)
            return
        self._beaten_at = self._seen_at = began
        self._give_up({name: fence for name, fence in before.items() if owned.get(name) != fence})
        await self._release_orphans(owned)

    async def _come_back(self, lost: Mapping[str, int]) -> None:
        log.warning("this node was taken for dead: it gives up what it had, and comes back with a new id")
        self._give_up(lost)
        self._store.owner = uuid.uuid4().hex
        self._attendance.forget()
        with suppress(StoreFailed):
            await self.join()

    def _give_up(self, lost: Mapping[str, int]) -> None:
        assert self._workspaces is not None
        for workspace_id, fence in lost.items():
            self._spawn(self._workspaces.abandon(workspace_id, "another node has taken it", fence))

    async def _release_orphans(self, owned: Mapping[str, int]) -> None:
        """What this node owns and has not open at two beats: the answer to a claim, or a release, got lost."""
        assert self._workspaces is not None
        here = self._workspaces.owned()
        orphans = {name: fence for name, fence in owned.items() if name not in here}
        for workspace_id, fence in orphans.items():
            if self._orphans.get(workspace_id) == fence:
                await self.release(workspace_id, fence)
        self._orphans = orphans

    async def _beat_on(self) -> None:
        while True:
            await self.beat()
            await asyncio.sleep(self.times.retry_s if self._beat_failed else self.times.beat_s)

    # ── around ──

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(self.times.look_s)
            try:
                await self.look_around()
            except StoreFailed:
                self._attendance.forget()  # whoever is not connected now may only have lost the store, as this node has
            except Exception:
                log.exception("looking around failed")

    async def look_around(self) -> None:
        """Notice who is gone, and take up what nobody cares for: runs are open in it, and its owner is gone."""
        began = self._clock()
        present, connection = await self._on(self._beats, self._table.present)
        if self._clock() - self._seen_at < self.times.grace_s:  # else it may have been missed: the next beat tells
            self._seen_at = began
        for node_id in self._attendance.saw(present, connection, self._clock()):
            if await self._on(self._beats, self._table.declare_absent_dead, node_id):
                log.warning("the node with the id %s has left the store without a word: it counts as dead", node_id)
                self.counts["cluster_declared_dead"] += 1
        for look in self.on_look:
            await look()
        if self.draining:
            return
        now = self._clock()
        self._left_out = {name: until for name, until in self._left_out.items() if until > now}
        leave_out = [*self._adopting, *self._left_out]
        for row in await self._on(self._beats, self._table.ownerless, ADOPT_LOOK, leave_out):
            self._adopting.add(row.id)
            self._spawn(self._adopt(row))

    async def _adopt(self, row: WorkspaceRow) -> None:
        assert self._workspaces is not None
        try:
            async with self._slots:
                await self._workspaces.adopt(row.id)
        except (OwnedElsewhere, StoreFailed):
            pass
        except Exception as error:
            known = isinstance(error, ApiError)
            log.warning("%s is left to other nodes: %s", row.path, error, exc_info=None if known else error)
            self._left_out[row.id] = self._clock() + LEFT_OUT_S
        finally:
            self._adopting.discard(row.id)

    # ── the `Ownership` of its workspaces ──

    async def claim(self, workspace_id: str) -> int:
        if self.draining:
            raise OwnedElsewhere(workspace_id, "this node is about to leave")
        taken = await self._on(self._claims, self._table.take, workspace_id)
        if taken is None:
            raise OwnedElsewhere(workspace_id)
        if taken.was in ("killed", "lease", "released"):
            self.counts[f"cluster_takeovers_{taken.was}"] += 1
        return taken.fence

    async def release(self, workspace_id: str, fence: int) -> None:
        await self._on(self._claims, self._table.release, workspace_id, fence)

    async def row(self, workspace_id: str) -> WorkspaceRow | None:
        return await self._on(self._claims, self._table.row, workspace_id)

    async def row_at(self, path: str, epoch: int) -> WorkspaceRow | None:
        new = WorkspaceRow(uuid.uuid4().hex[:16], path, epoch, epoch)
        return await self._on(self._claims, self._table.row_at, new)

    async def kept(self, workspace_id: str) -> bytes:
        return await self._on(self._claims, self._table.kept, workspace_id)

    async def keep(self, workspace_id: str, fence: int, value: bytes) -> None:
        if not await self._on(self._claims, self._table.keep, workspace_id, fence, value):
            raise OwnedElsewhere(workspace_id)

    async def keep_result(self, workspace_id: str, session_id: str, name: str, content: bytes) -> None:
        await self._on(self._claims, self._table.keep_result, workspace_id, session_id, name, content)

    async def result(self, workspace_id: str, session_id: str, name: str) -> bytes | None:
        return await self._on(self._claims, self._table.result, workspace_id, session_id, name)

    # ── what others are asked about ──

    async def owners(self, workspace_ids: Collection[str]) -> dict[str, OwnerRow]:
        return await self._on(self._claims, self._table.owners, list(workspace_ids))

    async def nodes(self) -> list[NodeRow]:
        return await self._on(self._claims, self._table.nodes)

    async def forget(self, name: str) -> int:
        return await self._on(self._claims, self._table.forget, name)

    async def _on(self, pool: ThreadPoolExecutor, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, partial(call, *args))

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
