"""People at work while everything breaks: prompts of all kinds, queues, folds, cancels, and streams that are watched.

Everybody goes to a random node each time, and some to two at once. What a node has acknowledged is noted, and what a
stream has shown: that is what the verdict is about (`judge.py`).
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.chaos.client import ASK_S, BROKEN, ask, events
from tests.support.fake_model import Call, Recorded, Reply

Kind = Literal["quick", "slow", "tool"]
TRY_AGAIN = frozenset({409, 421, 429, 500, 502, 503, 504})
"""What a node in trouble may answer: the same run id is posted again, at whichever node."""


@dataclass(frozen=True)
class Posted:
    run_id: str
    kind: Kind
    place: str
    """The path of its workspace in the API."""


@dataclass
class Watcher:
    """What one stream has shown of a workspace, however often it was broken off and resumed."""

    last_id: str = ""
    seq: int = 0
    epoch: str = ""
    resumed: int = 0


@dataclass
class Place:
    """A workspace, its sessions, and how many of its runs are open as far as is known."""

    path: str
    sessions: list[str]
    open: dict[str, Posted] = field(default_factory=dict)
    watchers: list[Watcher] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]


class Load:
    def __init__(self, ports: Sequence[int], directory: Path, chance: random.Random, open_runs: int) -> None:
        self._ports = ports
        self._directory = directory
        self._chance = chance
        self._open_runs = open_runs
        """How many runs each workspace has open, at most."""
        self.places: list[Place] = []
        self.accepted: dict[str, Posted] = {}
        self.cancelled: set[str] = set()
        """Runs that a cancel has covered, as its answer said."""
        self.ended: dict[str, tuple[float, str]] = {}
        """When the end of a run was first seen by a watcher, and its outcome."""
        self.findings: list[str] = []
        self.disordered: list[str] = []
        """What streams have shown twice, too late or not at all."""
        self.called: set[str] = set()
        """Runs whose prompt the model has answered with a call of a tool."""
        self.counts: Counter[str] = Counter()
        self.is_posting = True
        self.is_watching = True
        self._number = 0

    def answer(self, request: Recorded) -> Reply:
        """What the model says; the prompt says which kind it is."""
        kind, _, run_id = request.prompt.rpartition("\n")[2].partition(" ")  # the last one of several that were folded
        if kind == "slow":
            return Reply(text="word ", chunks=20 + int(run_id.partition("-")[2]) % 40, delay_ms=100)
        if kind == "tool" and request.call_number == 0:
            self.called.add(run_id)
            command = f"echo once >> {run_id}; sleep 0.3; echo ran {run_id}"
            return Reply(text="", tools=(Call(name="bash", input={"command": command}, id=f"call-{run_id}"),))
        return Reply(text=f"done {run_id}")

    @property
    def open_count(self) -> int:
        return sum(len(place.open) for place in self.places)

    def effects(self, run_id: str) -> int:
        """How often the tool of a run has done what it does."""
        return sum(len(file.read_text().splitlines()) for file in self._directory.glob(f"project-*/{run_id}"))

    # ── places ──

    async def furnish(self, workspaces: int, sessions: int) -> None:
        for number in range(workspaces):
            project = self._directory / f"project-{number}"
            project.mkdir()
            body = {"path": str(project), "client_id": f"00000000-0000-4000-8000-{number:012}"}
            found = await self._surely("POST", "/v1/workspaces", body, port=self._ports[number % len(self._ports)])
            path = f"/v1/workspaces/{found['id']}"
            made = [await self._surely("POST", f"{path}/sessions", {"title": f"s{n}"}) for n in range(sessions)]
            self.places.append(Place(path, [session["id"] for session in made]))

    async def _surely(self, method: str, path: str, body: Any, port: int = 0) -> Any:
        for _ in range(200):
            try:
                status, value = await ask(port or self._anywhere(), method, path, body)
            except BROKEN:
                await asyncio.sleep(0.2)
                continue
            if status < 300:
                return value
            assert status in TRY_AGAIN, (method, path, status, value)
            await asyncio.sleep(0.2)
        raise AssertionError(f"{method} {path} was never answered")

    def _anywhere(self) -> int:
        return self._chance.choice(self._ports)

    # ── people ──

    async def work(self, place: Place) -> None:
        """Keep some runs open in a workspace, and now and then cancel, until posting is over."""
        while self.is_posting:
            if len(place.open) < self._open_runs:
                await self._post(place)
            else:
                await asyncio.sleep(self._chance.uniform(0.05, 0.3))
            if self._chance.random() < 0.03:
                await self._cancel_session(place)
            elif self._chance.random() < 0.04 and place.open:
                await self._cancel_run(place, self._chance.choice(list(place.open)))

    async def _post(self, place: Place) -> None:
        self._number += 1
        kind: Kind = self._chance.choices(("quick", "slow", "tool"), (2, 6, 2))[0]
        run = Posted(f"run-{self._number}", kind, place.path)
        mode = self._chance.choices(("own_turn", "fold", "interrupt"), (12, 6, 1))[0]
        body = {"session_id": self._chance.choice(place.sessions), "prompt": f"{kind} {run.run_id}"}
        body |= {"run_id": run.run_id, "mode": mode}
        if self._chance.random() < 0.03:
            await self._cancel_run(place, run.run_id)  # too early: it must be cancelled when it comes
        if self._chance.random() < 0.15:
            await asyncio.gather(self._accept(place, run, body), self._accept(place, run, body))
        else:
            await self._accept(place, run, body)

    async def _accept(self, place: Place, run: Posted, body: Any) -> None:
        """Post until it is acknowledged, with the same id each time."""
        while True:
            try:
                began = time.monotonic()
                status, value = await ask(self._anywhere(), "POST", f"{place.path}/agent", body)
            except BROKEN:
                self.counts["posts that broke"] += 1
                if time.monotonic() - began > ASK_S - 1:
                    self.counts["posts that hung"] += 1
            else:
                if status == 202:
                    self.counts["acknowledged"] += 1
                    self.accepted[run.run_id] = run
                    if run.run_id not in self.ended:
                        place.open[run.run_id] = run
                    return
                self.counts[f"posts answered {status}"] += 1
                if status not in TRY_AGAIN:
                    self.findings.append(f"a prompt was refused with {status}: {value}")
                    return
            await asyncio.sleep(self._chance.uniform(0.1, 0.6))

    async def _cancel_session(self, place: Place) -> None:
        session = self._chance.choice(place.sessions)
        await self._cancel(f"{place.path}/agent/sessions/{session}/cancel")

    async def _cancel_run(self, place: Place, run_id: str) -> None:
        if await self._cancel(f"{place.path}/runs/{run_id}/cancel"):
            self.counts["cancels"] += 1

    async def _cancel(self, path: str) -> bool:
        try:
            status, value = await ask(self._anywhere(), "POST", path)
        except BROKEN:
            return False
        if status != 200:
            return False
        for covered in value["covered"]:
            if covered["state_found"] != "folded":
                self.cancelled.add(covered["run_id"])
        return True

    # ── streams ──

    async def watch(self, place: Place, *, deltas: bool) -> None:
        """Follow a workspace, at one node after the other, and see that each event comes once and in order."""
        watcher = Watcher()
        place.watchers.append(watcher)
        while self.is_watching:
            path = f"{place.path}/events?client_id=00000000-0000-4000-8000-{self._chance.randrange(10**12):012}"
            path += "&deltas=1" if deltas else ""
            leave_after = self._chance.randrange(200, 3000)
            try:
                async for event_id, value in events(self._anywhere(), path, watcher.last_id):
                    self._seen(place, watcher, event_id, value)
                    leave_after -= 1
                    if not leave_after or not self.is_watching:
                        break
            except BROKEN:
                pass
            watcher.resumed += 1
            await asyncio.sleep(self._chance.uniform(0.05, 0.4))

    def _seen(self, place: Place, watcher: Watcher, event_id: str, value: Any) -> None:
        self.counts["events seen"] += 1
        if value["type"] == "gap":
            self.disordered.append(f"{place.path}: a stream was told of a gap after {watcher.last_id}: {value}")
        if event_id:
            epoch, seq = event_id.split(".")
            if watcher.epoch and epoch != watcher.epoch:
                self.disordered.append(f"{place.path}: the epoch changed from {watcher.epoch} to {epoch}")
            if watcher.seq and int(seq) != watcher.seq + 1 and epoch == watcher.epoch:
                self.disordered.append(f"{place.path}: event {seq} came after {watcher.seq}")
            watcher.epoch, watcher.seq, watcher.last_id = epoch, int(seq), event_id
        if value["type"] == "run_complete":
            self._saw_end(place, value["payload"]["payload"])

    def _saw_end(self, place: Place, end: Any) -> None:
        run_id = end["run_id"]
        if run_id not in self.ended:
            is_special = "interrupted" if end.get("interrupted") else "cancelled" if end.get("cancelled") else ""
            self.ended[run_id] = (time.monotonic(), is_special or ("failed" if end.get("error") else "completed"))
        place.open.pop(run_id, None)


def asked(request: Recorded) -> list[str]:
    """The runs whose prompts a request is the first to be about: they stand after whatever was answered last."""
    after: list[str] = []
    for role, text in request.turns:
        after = [*after, text] if role == "user" else []
    return re.findall(r"^(?:quick|slow|tool) (run-\d+)$", "\n".join(after), re.MULTILINE)


async def until(condition: Callable[[], bool], bound_s: float) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + bound_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True
