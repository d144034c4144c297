"""Passes one request on to the node that owns its workspace, and its answer back.

Ordinary requests are read whole, which is bounded, so that they can be sent again where twice is the same as once.
Answers go back as they are. After the head of an event stream its bytes are not looked at any more: `Splice`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from starlette.types import Receive, Scope, Send

from covey.protocol.errors import Unavailable
from covey.server.direct_writer import DirectWriter, direct_writer_of
from covey.server.endpoint import ClientGone
from covey.server.membership import PASSED_ON, RUN_ID, Ask, sign
from covey.server.peer_connections import BUFFERED_BYTES, Head, PeerConnection, PeerConnections, PeerFailed

if TYPE_CHECKING:
    from covey.cluster.whereabouts import There
    from covey.server.app import App

log = logging.getLogger(__name__)

STALLED_S = 30.0
"""A client that has taken nothing for so long is gone."""
WRONG_SECRET = b"x-covey-wrong-secret"
"""In an answer: the node that was asked does not believe that we are one of its cluster."""

_OF_THE_HOP = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"expect", b"content-length"}
    | {b"proxy-connection", b"proxy-authorization", b"host", b"authorization", PASSED_ON, RUN_ID}
)
"""Headers that are the first node's business: the token too, which no other node needs to see."""
_OF_OUR_ANSWER = frozenset({b"date", b"connection", b"keep-alive", WRONG_SECRET})


class NotTheOwner(Exception):
    """The node that was asked does not have the workspace: look again."""


@dataclass(slots=True)
class Passage:
    """One request of a client, while it is passed on."""

    scope: Scope
    receive: Receive
    send: Send
    ask: Ask
    workspace_id: str = ""
    is_stream: bool = False

    @property
    def page(self) -> str:
        return str(self.scope.get("covey.page", ""))


class _Flight(NamedTuple):
    """A request under way at a node."""

    connection: PeerConnection
    use: int
    node_id: str
    is_look: bool
    """It changes nothing: whoever asks may ask again."""
    is_stream: bool

    def end(self, why: str) -> None:
        """Unless the connection is at work for somebody else already."""
        if self.connection.use == self.use:
            self.connection.abort(why)


class PassingOn:
    """All that this node has under way at others."""

    def __init__(self, app: App, secret: bytes, name: str) -> None:
        self.connections = PeerConnections()
        self._app = app
        self._secret = secret
        self._name = name
        self._under_way: dict[str, set[_Flight]] = {}
        """By workspace."""
        self._over: dict[bool, str] = {}
        """Why there are no more streams (True), or no more that is only looked at (False): this node leaves."""
        self._quiet = asyncio.Event()
        """Nothing is under way."""
        self._quiet.set()

    async def carry(self, passage: Passage, there: There, *, is_fresh: bool) -> None:
        """Pass the request on, and answer it. Raises NotTheOwner or PeerFailed as long as nothing was answered."""
        connection = await self.connections.get(there.address, is_fresh=is_fresh or passage.is_stream)
        async with self._flight(passage, connection, there):
            head = await self._ask(connection, passage, there)
            if passage.is_stream and head.is_event_stream:
                self._app.counts["streams_passed_on"] += 1
                await self._splice(passage, connection, head)
            else:
                self._app.counts["requests_passed_on"] += 1
                await _relay(passage, connection, head)

    async def ask(self, there: There, ask: Ask) -> tuple[int, bytes]:
        """One request of this node itself: status and body of the answer. Raises PeerFailed."""
        connection = await self.connections.get(there.address)
        try:
            head = await connection.ask(self._request(ask, there, [(b"content-type", b"application/json")], b""))
            self._check_secret(head, there)
            return head.status, b"".join([piece async for piece in connection.pieces()])
        except BaseException:
            connection.abort()
            raise

    async def open(self, there: There, ask: Ask) -> PeerConnection:
        """An event stream of another node for this node itself: its body is read by `pieces`. Raises PeerFailed."""
        connection = await self.connections.get(there.address, is_fresh=True)
        try:
            head = await connection.ask(self._request(ask, there, [], b"close"), is_parsed=True)
            self._check_secret(head, there)
            if not head.is_event_stream:
                raise PeerFailed(f"{there.name} answered {head.status}", was_sent=True)
        except BaseException:
            connection.abort()
            raise
        return connection

    def moved(self, workspace_id: str, owner_id: str) -> None:
        """The workspace has another owner: what is under way at any other node is over, answered or not."""
        for flight in list(self._under_way.get(workspace_id, ())):
            if flight.node_id != owner_id:
                flight.end("the workspace has another owner")

    def end(self, why: str, *, is_stream: bool) -> None:
        """End streams, or what is only looked at: it may be waiting for the end of a run. None begins any more."""
        self._over[is_stream] = why
        for flight in [flight for flights in self._under_way.values() for flight in flights]:
            if flight.is_look and flight.is_stream == is_stream:
                flight.end(why)

    async def quiet(self, seconds: float) -> None:
        """Until nothing is under way any more, but at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._quiet.wait()

    def close(self) -> None:
        self.connections.close()

    # ── inside ──

    @asynccontextmanager
    async def _flight(self, passage: Passage, connection: PeerConnection, there: There) -> AsyncIterator[None]:
        """As long as it lasts, the end of either side is the end of the other."""
        is_look = passage.ask.method == "GET"
        if is_look and passage.is_stream in self._over:
            connection.abort()
            raise Unavailable(f"{self._over[passage.is_stream]}: ask another one, or again in a moment", retry_after=1)
        flight = _Flight(connection, connection.use + 1, there.node_id, is_look, passage.is_stream)
        flights = self._under_way.setdefault(passage.workspace_id, set())
        flights.add(flight)
        self._quiet.clear()
        gone = asyncio.create_task(_end_if_gone(passage.receive, flight))
        try:
            yield
        except BaseException as error:
            flight.end("it was given up")
            if isinstance(error, PeerFailed) and gone.done():
                raise ClientGone from None
            raise
        finally:
            gone.cancel()
            flights.discard(flight)
            if not flights and self._under_way.get(passage.workspace_id) is flights:
                del self._under_way[passage.workspace_id]
            if not self._under_way:
                self._quiet.set()

    async def _ask(self, connection: PeerConnection, passage: Passage, there: There) -> Head:
        headers = [pair for pair in passage.scope["headers"] if pair[0] not in _OF_THE_HOP]
        request = self._request(passage.ask, there, headers, b"close" if passage.is_stream else b"")
        head = await connection.ask(request, is_head=passage.ask.method == "HEAD")
        self._check_secret(head, there)
        if head.status == 421:
            connection.abort()
            raise NotTheOwner
        return head

    def _request(self, ask: Ask, there: There, headers: list[tuple[bytes, bytes]], connection: bytes) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (ask.method.encode(), ask.target)]
        lines.append(b"host: " + there.address.partition("://")[2].rstrip("/").encode())
        lines += [name + b": " + value for name, value in headers]
        lines.append(PASSED_ON + b": " + sign(self._secret, ask, there.node_id, self._name))
        if ask.run_id:
            lines.append(RUN_ID + b": " + ask.run_id.encode())
        if ask.body or ask.method not in ("GET", "HEAD"):
            lines.append(b"content-length: %d" % len(ask.body))
        if connection:
            lines.append(b"connection: " + connection)
        return b"\r\n".join(lines) + b"\r\n\r\n" + ask.body

    def _check_secret(self, head: Head, there: There) -> None:
        if head.get(WRONG_SECRET):
            log.error(
                "node %s at %s has another cluster secret than this node: nothing can be passed on to it. "
                "Give every node the same --cluster-secret-file",
                there.name,
                there.address,
            )
            raise Unavailable(
                f"the nodes {self._name} and {there.name} have different cluster secrets: "
                "whoever runs them has to give both the same --cluster-secret-file",
                "secrets_differ",
            )

    async def _splice(self, passage: Passage, connection: PeerConnection, head: Head) -> None:
        headers = [pair for pair in head.headers if pair[0] not in _OF_OUR_ANSWER]
        await passage.send(
            {"type": "http.response.start", "status": head.status, "headers": [*headers, (b"connection", b"close")]}
        )
        client = direct_writer_of(passage.send)
        if client is None:  # a response that uvicorn has not begun: who asked has left
            raise ClientGone
        splice = Splice(connection, client, passage.page)
        self._app.streams.add(splice)
        try:
            await splice.run(passage.receive)
        finally:
            self._app.streams.discard(splice)


class Splice:
    """An event stream of another node on its way to a client of this one: to the server, a stream like any other."""

    def __init__(self, connection: PeerConnection, client: DirectWriter, page: str) -> None:
        self.page = page
        """The page that reads it, if it is one: it ends when that is put out."""
        self._connection = connection
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._stalled_at: float | None = None

    def abort(self) -> None:
        self._connection.abort()
        self._client.drop()

    def beat(self, now: float) -> None:
        """Keep-alives come from the owner. Only a client that does not read is this node's to notice."""
        if self._stalled_at is not None and now - self._stalled_at > STALLED_S:
            self.abort()

    async def run(self, receive: Receive) -> None:
        """Until either side is gone. A reader that is slow slows the owner down, and nobody else."""
        connection, client = self._connection, self._client
        connection.splice_to(client)
        while await connection.stalled_or_over():
            self._stalled_at = self._loop.time()
            await client.drain()
            self._stalled_at = None
            if client.is_gone:
                break
            connection.go_on()
        connection.abort()
        client.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STALLED_S):
                await _until_gone(receive)
        client.drop()


async def _relay(passage: Passage, connection: PeerConnection, head: Head) -> None:
    """The answer as it is. A short one is read whole first: if it is cut off, it can be asked for again."""
    pieces = connection.pieces()
    headers = [pair for pair in head.headers if pair[0] not in _OF_OUR_ANSWER]
    length = head.get(b"content-length")
    whole = b"".join([piece async for piece in pieces]) if length and int(length) <= BUFFERED_BYTES else None
    await passage.send({"type": "http.response.start", "status": head.status, "headers": headers})
    if whole is not None:
        await passage.send({"type": "http.response.body", "body": whole})
        return
    try:
        async for piece in pieces:
            await passage.send({"type": "http.response.body", "body": piece, "more_body": True})
    except PeerFailed as error:
        log.warning("an answer could not be completed: %s", error)
        raise ClientGone from error
    await passage.send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end_if_gone(receive: Receive, flight: _Flight) -> None:
    await _until_gone(receive)
    flight.end("the client is gone")
