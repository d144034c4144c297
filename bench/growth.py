"""Whether what there is makes anything cost more: messages, sessions and workspaces that nobody looks at.

The store is filled before the server starts. Both sides of a ratio are measured by turns, in one server.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.processes import Process, covey_server, scratch
from bench.report import Figure
from bench.rig import Options
from bench.wire import Caller
from covey.protocol.messages import Finish, FinishPart, Message, Session, Text, TextPart
from covey.store.base import Change, PutMessage, PutSession, PutWorkspace, WorkspaceRow
from covey.store.sqlite import SqliteStore

ALLOWED = 1.5
FEW_MESSAGES, MANY_MESSAGES = 100, 10_000
FEW_SESSIONS, MANY_SESSIONS = 200, 10_000
FEW_HERE, MANY_HERE = 3, 300
"""Sessions of a workspace that is opened."""
OPENED = 20
"""So many workspaces of each kind are opened: one alone is too little to measure."""
FEW_OPEN, MANY_OPEN = 3, 300
SHORT, LONG = "0000001", "0000002"
"""Ids are those of long ago: the server gives out none before the newest that it finds."""
PAGE = 50
ROUNDS = 5
WORDS = "what is said in a message of the usual length, which is a few lines " * 4
NOWHERE = "http://127.0.0.1:9/v1"
"""No model is asked."""


def measure(options: Options) -> Iterator[Figure]:
    rounds, requests = options.size(ROUNDS, 2), options.size(100, 20)
    with scratch() as place:
        _fill(place)
        with covey_server(place, NOWHERE, options.server) as server, _caller(server) as caller:
            yield from _pages(place, server, caller, rounds, requests)
        with covey_server(place, NOWHERE, options.server) as server, _caller(server) as caller:
            yield from _sessions_here(place, server, caller)
        with covey_server(place, NOWHERE, options.server) as server, _caller(server) as caller:
            yield from _workspaces(place, server, caller, options.size(MANY_OPEN, 60))


@contextlib.contextmanager
def _caller(server: Process) -> Iterator[Caller]:
    caller = Caller(server.port)
    yield caller
    caller.close()


# ── pages ──


def _pages(place: Path, server: Process, caller: Caller, rounds: int, requests: int) -> Iterator[Figure]:
    few, many = (_open(place, caller, name) for name in ("few", "many"))

    def messages(session_id: str) -> Callable[[], None]:
        path = f"/v1/workspaces/{few}/sessions/{session_id}/messages?before=&limit={PAGE}"
        return lambda: _ask(caller, path, requests)

    def sessions(workspace_id: str) -> Callable[[], None]:
        return lambda: _ask(caller, f"/v1/workspaces/{workspace_id}/sessions?limit={PAGE}", requests)

    for name, short, long in (
        (f"last {PAGE} of {MANY_MESSAGES:,} messages / of {FEW_MESSAGES}", messages(SHORT), messages(LONG)),
        (f"page of {PAGE} of {MANY_SESSIONS:,} sessions / of {FEW_SESSIONS}", sessions(few), sessions(many)),
    ):
        costs = [(_cpu(server, short), _cpu(server, long)) for _ in range(rounds)]
        first, last = (min(each) for each in zip(*costs, strict=True))
        note = f"{first * 1e3 / requests:.2f} -> {last * 1e3 / requests:.2f} ms"
        yield Figure(f"growth: {name}, CPU", last / first, "x", ALLOWED, note=note)


def _ask(caller: Caller, path: str, requests: int) -> None:
    for _ in range(requests):
        found = caller.call("GET", path)
        assert len(found) == PAGE


# ── workspaces ──


def _sessions_here(place: Path, server: Process, caller: Caller) -> Iterator[Figure]:
    for number in range(OPENED):  # what the first ones cost is not about their sessions
        _open(place, caller, f"warm{number}")
    cost = {}
    for kind in ("few", "many"):
        memory = server.memory_mb()
        used = _cpu(server, lambda kind=kind: _open_all(place, caller, f"{kind}_here", OPENED))  # type: ignore[misc]
        cost[kind] = (used * 1e3 / OPENED, (server.memory_mb() - memory) / OPENED)
    name = f"growth: workspace with {MANY_HERE} sessions / with {FEW_HERE}"
    (first, few_mb), (last, many_mb) = cost["few"], cost["many"]
    yield Figure(f"{name}, CPU to open", last / first, "x", ALLOWED, note=f"{first:.2f} -> {last:.2f} ms")
    base = server.memory_mb() - OPENED * (few_mb + many_mb)
    ratio = (base + many_mb) / (base + few_mb)
    yield Figure(f"{name}, memory of the server", ratio, "x", ALLOWED, note=f"+{few_mb:.2f} -> +{many_mb:.2f} MB each")


def _workspaces(place: Path, server: Process, caller: Caller, many: int) -> Iterator[Figure]:
    _open_all(place, caller, "warm", OPENED)
    memory = server.memory_mb()
    first = _cpu(server, lambda: _open_all(place, caller, "few_open", FEW_OPEN)) / FEW_OPEN
    _open_all(place, caller, "between", many - 2 * FEW_OPEN)
    last = _cpu(server, lambda: _open_all(place, caller, "many_open", FEW_OPEN)) / FEW_OPEN
    each_mb = (server.memory_mb() - memory) / many
    name = f"growth: {many} open workspaces / {FEW_OPEN}"
    note = f"{first * 1e3:.2f} -> {last * 1e3:.2f} ms"
    yield Figure(f"{name}, CPU to open one more", last / first, "x", ALLOWED, note=note)
    yield Figure("growth: memory of an open workspace", each_mb, "MB", 0.5)


def _open_all(place: Path, caller: Caller, name: str, count: int) -> None:
    for number in range(count):
        _open(place, caller, f"{name}{number}")


def _open(place: Path, caller: Caller, name: str) -> str:
    folder = place / "workspaces" / name
    folder.mkdir(parents=True, exist_ok=True)
    return str(caller.call("POST", "/v1/workspaces", {"path": str(folder), "client_id": str(uuid.uuid4())})["id"])


def _cpu(server: Process, act: Callable[[], None]) -> float:
    before = server.cpu_s()
    act()
    return server.cpu_s() - before


# ── filling the store ──


def _fill(place: Path) -> None:
    (place / "data").mkdir(mode=0o700)
    store = SqliteStore(place / "data" / "covey.db")
    counts = {"few": FEW_SESSIONS, "many": MANY_SESSIONS}
    counts |= {f"few_here{number}": FEW_HERE for number in range(OPENED)}
    counts |= {f"many_here{number}": MANY_HERE for number in range(OPENED)}
    for name, count in counts.items():
        row = WorkspaceRow(name, str(place.resolve() / "workspaces" / name), 1, 1)
        sessions = [PutSession(_session(f"{number + 10:07}", number)) for number in range(count)]
        store.commit([Change(name, (PutWorkspace(row), *sessions))])
    for session_id, count, first in ((SHORT, FEW_MESSAGES, 100_000), (LONG, MANY_MESSAGES, 200_000)):
        messages = [PutMessage(_message(session_id, first + number)) for number in range(count)]
        store.commit([Change("few", (PutSession(_session(session_id, 1)), *messages))])
    store.close()


def _session(session_id: str, at: int) -> Session:
    return Session(
        id=session_id,
        parent_session_id="",
        title=f"about {session_id}",
        message_count=2,
        prompt_tokens=100,
        completion_tokens=10,
        summary_message_id="",
        cost=0.01,
        created_at=at,
        updated_at=at,
        is_busy=False,
        attached_clients=0,
    )


def _message(session_id: str, number: int) -> Message:
    parts = (TextPart(data=Text(text=WORDS)), FinishPart(data=Finish(reason="end_turn", time=1)))
    return Message(
        id=f"{number:07}",
        role="user" if number % 2 == 0 else "assistant",
        session_id=session_id,
        parts=parts if number % 2 else parts[:1],
        model="m",
        provider="p",
        created_at=number,
        updated_at=number,
    )
