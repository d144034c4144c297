"""Clients behind a bad network, and what each of them has a right to: every event once, in order, and the true text."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.transcript import Transcript
from covey.protocol.events import Event, Gap, MessageDelta, Presence
from covey.protocol.messages import Message
from covey.protocol.paths import Address
from covey.protocol.runs import Run, RunComplete
from covey.protocol.sse import EventId
from tests.support.fault_proxy import FaultProxy, Link, Plan
from tests.support.server import Server, Workspace

FIRST_DELAY_S = 0.001
"""Nobody waits for a server that is there: the cuts are what takes time."""


def place(server: Server, directory: Path, **fields: Any) -> Workspace:
    """A workspace of its own: its event ids are nobody else's business."""
    directory.mkdir(parents=True, exist_ok=True)
    return server.workspace(directory, **fields)


def client_of(number: int) -> str:
    """The id of a client, from which the proxy can read what is to happen to it."""
    return str(uuid.UUID(int=number))


def number_of(link: Link) -> int:
    """Which client a connection belongs to; -1 if it does not say so."""
    _, found, rest = link.head.partition(b"client_id=")
    return uuid.UUID(rest[:36].decode()).int if found else -1


def is_stream(link: Link) -> bool:
    return b"/events?" in link.head.partition(b"\r\n")[0]


def is_prompt(link: Link) -> bool:
    """A post of a prompt: who posts it stands in the query."""
    method, _, rest = link.head.partition(b" ")
    return method == b"POST" and rest.partition(b" ")[0].partition(b"?")[0].endswith(b"/agent")


@dataclass
class Script:
    """For each client, what happens to its first, second, third stream; later ones are not disturbed.

    A stream that ended before its fault struck does not count: on a busy machine a client may give it up before that.
    """

    streams: dict[int, list[Plan]] = field(default_factory=dict)
    _last: dict[int, Link] = field(default_factory=dict)

    def __call__(self, link: Link) -> Plan:
        number = number_of(link)
        plans = self.streams.get(number) if is_stream(link) else None
        if not plans:
            return Plan()
        if number in self._last and self._last[number].struck:
            plans.pop(0)
        self._last[number] = link
        return plans[0] if plans else Plan()


def through(proxy: FaultProxy, server: Server, number: int = 0, **options: Any) -> Client:
    address = Address(host="127.0.0.1", port=proxy.port)
    return Client(address, token=server.token, client_id=client_of(number) if number else "", **options)


class Watcher:
    """Reads a stream as a terminal does. Whatever the network does, no durable event is missed or sent twice."""

    def __init__(self, stream: EventStream) -> None:
        self.transcript = Transcript()
        self.durable: list[tuple[str, Event]] = []
        self._stream = stream
        self.known = EventId.parse(stream.last_event_id)
        assert self.known, "a watcher starts at a known place"

    async def until_end(self, run_id: str) -> RunComplete:
        async for event in self._stream:
            self._check_id(event)
            change = self.transcript.apply(event)
            assert change is None or change.kind not in ("hole", "reset"), f"{change} by {event}"
            if isinstance(event.payload, RunComplete) and event.payload.run_id == run_id:
                return event.payload
        raise AssertionError("an event stream has no end")

    def _check_id(self, event: Event) -> None:
        assert self.known
        now = EventId.parse(self._stream.last_event_id)
        following = EventId(self.known.epoch, self.known.seq + 1)
        assert not isinstance(event.payload, Gap), event
        if isinstance(event.payload, MessageDelta | Presence):
            assert now == self.known, event
        elif isinstance(event.payload, Message | Run):  # in progress: sent again, or what it waits on; without an id
            assert now in (self.known, following), event
        else:
            assert now == following, f"{now} after {self.known}: {event}"
        if now == following:
            self.known = now
            self.durable.append((str(now), event))


def same_bytes(transcript: Transcript, stored: Any) -> None:
    """The transcript is byte for byte what the server has."""
    assert msgspec.json.encode(tuple(transcript)) == msgspec.json.encode(stored)
