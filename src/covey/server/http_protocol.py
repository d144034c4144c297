"""uvicorn's HTTP protocol with bounds on what a request may take: bytes for its head, time, and places.

Anybody on this machine can connect, and the token comes only with the head. So a connection without a request under way
costs next to nothing: it has a deadline, and when there are too many of them, the oldest one goes.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from covey.server.peers import peer_pid

MAX_HEAD_BYTES = 64 * 1024
"""Four times what browsers send at most."""
_MOST_WAITING = 512
"""More than a crowd of terminals and editors keeps open for its next request."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What connections may take before they are closed."""

    head_s: float = 20.0
    """For the head of a request, from its first byte; for the first one, from the connection on."""
    body_s: float = 300.0
    """For a body, however large: the largest needs 110 KB a second."""
    waiting: int = 0
    """Connections that have no request under way; 0: as many as the limit on open files allows."""


class Waiting:
    """The connections of a server that have no request under way, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._connections: dict[HttpProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: HttpProtocol) -> None:
        """The oldest one gives up its place if there is none left."""
        self.remove(connection)
        self._connections[connection] = None
        if len(self._connections) > self._most:
            oldest = next(iter(self._connections))
            self.remove(oldest)
            oldest.transport.close()

    def remove(self, connection: HttpProtocol) -> None:
        self._connections.pop(connection, None)


class HttpProtocol(HttpToolsProtocol):
    """One connection. `bounded` gives the class for one server."""

    bounds = ConnectionBounds()
    waiting = Waiting(_MOST_WAITING)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_body = False
        self._head_bytes = 0
        """Of the head under way, as far as it has come."""
        self._head_is_whole = False
        """The parser has seen the end of a head since it was last given something."""
        self._refusal = ""
        """Why we do not take a head that the parser would take."""
        self._deadline: asyncio.TimerHandle | None = None
        """For the head or the body that is under way."""
        self._peer = 0
        """The process at the other end of a unix socket."""

    # ── the connection ──

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        self._peer = peer_pid(connection) if connection else 0
        self.waiting.add(self)
        self._expect_within(self.bounds.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.remove(self)
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head is given to the parser as far as it may go, and not a byte further."""
        while data and not self.transport.is_closing():
            room = len(data) if self._in_body else MAX_HEAD_BYTES - self._head_bytes
            piece, data = data[:room], data[room:]
            self._head_is_whole = self._in_body
            super().data_received(piece)
            self._head_bytes = 0 if self._head_is_whole else self._head_bytes + len(piece)
            if self._head_bytes >= MAX_HEAD_BYTES:
                self.send_400_response(_TOO_LONG)
        if self._head_bytes and self._deadline is None and not self._is_answering:
            self._expect_within(self.bounds.head_s)

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and not cycle.response_complete

    # ── what the parser says ──

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["covey.peer"] = self._peer  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._refusal = self._why_not()
        if self._refusal:
            raise ValueError(self._refusal)  # ends the parser, and comes back as `send_400_response`
        self.waiting.remove(self)
        self._head_is_whole = self._in_body = True
        self._expect_within(self.bounds.body_s)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._expect_nothing()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self._is_answering and not self.pipeline:
            self.waiting.add(self)
            if self._head_bytes and not self._in_body:
                self._expect_within(self.bounds.head_s)

    def _why_not(self) -> str:
        """Why the head that is complete now is not taken; empty if it is."""
        # After another request in the same packet, a head was not counted byte by byte.
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            return _TOO_LONG
        scheme, is_absolute, rest = self.url.partition(b"://")
        if not is_absolute or scheme.lower() not in (b"http", b"https"):
            return ""
        named = rest.replace(b"?", b"/").partition(b"/")[0].lower()
        if [named] != [value.strip().lower() for name, value in self.headers if name == b"host"]:
            return "The address of a request and its Host header must name the same server."
        return ""

    # ── deadlines ──

    def _expect_within(self, seconds: float) -> None:
        self._expect_nothing()
        self._deadline = self.loop.call_later(seconds, self._on_deadline)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self) -> None:
        """What was begun is answered; who never said a word, or was answered already, is only hung up on."""
        self._deadline = None
        if self.transport.is_closing():
            return
        answered = self._in_body and self.cycle.response_started
        if answered or not (self._in_body or self._head_bytes):
            self.transport.close()
        else:
            self._refuse(b"408 Request Timeout", "The request took too long to arrive.")

    # ── refusals ──

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", self._refusal or msg)

    def _refuse(self, status: bytes, why: str) -> None:
        """In the shape of every other error: uvicorn would send plain text."""
        body = msgspec.json.encode({"message": why, "code": "bad_http"})
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)
        self.transport.close()


_TOO_LONG = f"The head of a request may have at most {MAX_HEAD_BYTES} bytes."


def bounded(bounds: ConnectionBounds = HttpProtocol.bounds) -> type[HttpProtocol]:
    """The protocol of one server: its connections know of each other."""
    return type("BoundedHttp", (HttpProtocol,), {"bounds": bounds, "waiting": Waiting(bounds.waiting or _places())})


def _places() -> int:
    """A quarter of the files that may be open: the rest is for requests under way, the store and models."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_WAITING if limit == resource.RLIM_INFINITY else max(4, min(_MOST_WAITING, limit // 4))
