"""What befalls a cluster: each fault strikes a node or the store, lasts a while, and is over."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import asyncpg

from tests.chaos.cluster import ANY, Cluster, Member
from tests.chaos.links import Cut, Link

HANG_UP = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'covey%'"
GIVE_UP_S = 60.0
"""After this long a run that did not end counts as late; whether it is lost is judged at the end."""


@dataclass
class Fault:
    """One that has happened."""

    kind: str
    node: str
    seconds: float
    began: float = 0.0
    """By the clock on the wall, as `over`."""
    over: float = 0.0
    is_single: bool = True
    orphaned: int = 0
    """Active runs of the node when it was struck."""
    noticed: float | None = None
    """Seconds until all its workspaces had another owner; None: they did not need one."""
    ended: float | None = None
    """Seconds until all those runs had ended."""
    stuck: list[str] = field(default_factory=list)
    """Of those runs the ones that were still active a minute later."""
    open_runs: int = 0
    """How many there were in all when it struck."""
    interrupts: bool = False
    """Whether others may take the node for dead, so that its active runs end as interrupted."""
    broken: str = ""
    """What went wrong with the fault itself: a node that did not leave in order."""

    def __str__(self) -> str:
        return f"{self.kind} {self.node} for {self.seconds:.1f} s"


class Blows:
    """Strikes, and measures how long the others take to notice and to end what was active."""

    def __init__(
        self, cluster: Cluster, chance: random.Random, lease_s: float, loaded: Callable[[], Awaitable[int]]
    ) -> None:
        self._cluster = cluster
        self._loaded = loaded
        """Waits until enough runs are open, and says how many."""
        self._chance = chance
        self._lease_s = lease_s
        self.faults: list[Fault] = []
        self._store_is_struck = False

    def _kinds(self) -> dict[str, tuple[int, Callable[[Member], Awaitable[Fault]]]]:
        """How often each happens, compared with the others."""
        return {
            "kill": (5, self._kill),
            "freeze": (4, self._freeze),
            "cut off from the store": (4, self._cut_store),
            "cut off from its peers": (2, self._cut_peers),
            "cut off from its clients": (2, self._cut_clients),
            "the store restarts": (3, self._restart_store),
            "out of connections": (2, self._use_up),
            "hand-over": (3, self._hand_over),
        }

    async def one(self, kinds: tuple[str, ...] = ()) -> list[Fault]:
        return [await self._strike(self._pick_kind(kinds), is_single=True)]

    async def two(self, kinds: tuple[str, ...] = ()) -> list[Fault]:
        """Two that overlap, on two nodes, or on a node and the store."""
        first = asyncio.create_task(self._strike(self._pick_kind(kinds), is_single=False))
        await asyncio.sleep(self._chance.uniform(0.0, 3.0))
        second = await self._strike(self._pick_kind(kinds), is_single=False)
        return [await first, second]

    def _pick_kind(self, kinds: tuple[str, ...]) -> str:
        known = {name: weight for name, (weight, _) in self._kinds().items() if not kinds or name in kinds}
        if self._store_is_struck and len(known) > 1:
            known.pop("the store restarts", None)
        return self._chance.choices(list(known), list(known.values()))[0]

    async def _strike(self, kind: str, *, is_single: bool) -> Fault:
        open_runs = await self._loaded()
        member = await self._victim()
        strike = self._kinds()[kind][1]
        member.is_struck = True
        began = time.time()
        watching = asyncio.create_task(self._measure(member, time.monotonic()))
        try:
            fault = await strike(member)
        finally:
            member.is_struck = False
        fault.began, fault.over, fault.is_single, fault.open_runs = began, time.time(), is_single, open_runs
        fault.orphaned, fault.noticed, fault.ended, fault.stuck = await watching
        self.faults.append(fault)
        return fault

    async def _victim(self) -> Member:
        """One that runs and is not struck yet; rather one with active runs."""
        members = self._cluster.members
        while not (free := [member for member in members if not member.is_struck and member.node.is_running]):
            await asyncio.sleep(0.1)
        sight = self._cluster.sight
        busy = {sight.owners[workspace][0] for workspace in sight.active if workspace in sight.owners}
        loaded = [member for member in free if member.node.name in busy]
        return self._chance.choice(loaded or free)

    # ── kinds ──

    async def _kill(self, member: Member) -> Fault:
        """kill -9; started again at once, or when others have taken over."""
        away = self._chance.choice((0.0, self._chance.uniform(2.0, 8.0)))
        await self._cluster.run(member.node.kill)
        await asyncio.sleep(away)
        await self._cluster.run(member.node.start)
        return Fault("kill", member.node.name, away, interrupts=True)

    async def _freeze(self, member: Member) -> Fault:
        seconds = self._chance.choice((self._lease_s * 0.4, self._lease_s * self._chance.uniform(1.2, 2.0)))
        member.node.freeze()
        await asyncio.sleep(seconds)
        member.node.thaw()
        return Fault("freeze", member.node.name, seconds, interrupts=seconds > self._lease_s / 2)

    async def _cut(self, member: Member, link: Link, how: tuple[Cut, ...], kind: str) -> Fault:
        seconds = self._chance.choice((0.3, self._lease_s * 0.3, self._lease_s * self._chance.uniform(1.2, 1.8)))
        link.cut(self._chance.choice(how))
        await asyncio.sleep(seconds)
        link.mend()
        is_lost = link is member.to_store and seconds > 1.0  # whose connections are gone for longer counts as dead
        return Fault(kind, member.node.name, seconds, interrupts=is_lost)

    async def _cut_store(self, member: Member) -> Fault:
        ways: tuple[Cut, ...] = ("reset", "silence", "swallow")
        return await self._cut(member, member.to_store, ways, "cut off from the store")

    async def _cut_peers(self, member: Member) -> Fault:
        return await self._cut(member, member.from_peers, ("reset", "silence"), "cut off from its peers")

    async def _cut_clients(self, member: Member) -> Fault:
        return await self._cut(member, member.from_clients, ("reset", "silence"), "cut off from its clients")

    async def _restart_store(self, member: Member) -> Fault:
        """In order or by a crash; for a moment, or for longer than a lease."""
        if self._store_is_struck:  # two at once would be one
            await asyncio.sleep(1.0)
            return Fault("the store restarts", "", 1.0)
        self._store_is_struck = True
        try:
            seconds = self._chance.choice((0.0, 2.0, self._lease_s * 1.3))
            mode = self._chance.choice(("fast", "immediate"))
            await self._cluster.run(self._cluster.postgres.stop, mode)
            await asyncio.sleep(seconds)
            await self._cluster.run(self._cluster.postgres.start)
        finally:
            self._store_is_struck = False
        return Fault("the store restarts", "", seconds)

    async def _use_up(self, member: Member) -> Fault:
        """Somebody else takes every connection that the database has, also those of all nodes, which lose them."""
        seconds = self._chance.choice((2.0, self._lease_s * 1.3))
        over = time.monotonic() + seconds
        taken: list[asyncpg.Connection[asyncpg.Record]] = []
        try:
            while time.monotonic() < over:
                try:
                    taken.append(await asyncpg.connect(self._cluster.url, timeout=3))
                except (asyncpg.PostgresError, OSError, TimeoutError):  # all of them are taken
                    with contextlib.suppress(Exception):  # whatever a connection says that is cut off as well
                        await taken[0].execute(HANG_UP, timeout=3)
                    await asyncio.sleep(0.02)
        finally:
            for connection in taken:
                connection.terminate()
        return Fault("out of connections", ANY, seconds, interrupts=True)

    async def _hand_over(self, member: Member) -> Fault:
        """SIGTERM, and started again: an upgrade."""
        began = time.monotonic()
        code = await self._cluster.run(member.node.stop)
        await self._cluster.run(member.node.start)
        # One that has only just been started knows nothing of signals yet, and has nothing to hand over either.
        broken = "" if code in (0, -signal.SIGTERM) else f"its exit code was {code}"
        return Fault("hand-over", member.node.name, time.monotonic() - began, broken=broken)

    # ── times ──

    async def _measure(self, member: Member, began: float) -> tuple[int, float | None, float | None, list[str]]:
        """Watch the workspaces that the node owns now, until others own them and what was active has ended."""
        sight = self._cluster.sight
        mine = {w: fence for w, (name, fence) in sight.owners.items() if name == member.node.name}
        active = {run for workspace in mine for run in sight.active.get(workspace, ())}
        noticed: float | None = None
        while time.monotonic() - began < GIVE_UP_S:
            await asyncio.sleep(0.05)
            now = self._cluster.sight
            if now.at <= began:
                continue
            if noticed is None and all(now.owners.get(w, ("", 0))[1] > fence for w, fence in mine.items()):
                noticed = now.at - began
            left = active & {run for runs in now.active.values() for run in runs}
            if not left:  # only where others took over do the times say anything
                return len(active), noticed, now.at - began if noticed is not None else None, []
        left = active & {run for runs in self._cluster.sight.active.values() for run in runs}
        return len(active), noticed, None, sorted(left)
