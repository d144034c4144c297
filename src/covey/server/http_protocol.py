"""uvicorn's HTTP protocol with a bound on the head of a request. Bodies are bounded where they are read."""

from __future__ import annotations

import asyncio

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from covey.server.peers import peer_pid

MAX_HEAD_BYTES = 64 * 1024
"""Four times what browsers send at most. Anybody on this machine can connect, and the token comes after the head."""


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    _in_head = False
    _peer = 0
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response(f"The head of a request may have at most {MAX_HEAD_BYTES} bytes.")

    def send_400_response(self, msg: str) -> None:
        """In the shape of every other error: uvicorn would send plain text."""
        body = msgspec.json.encode({"message": msg, "code": "bad_http"})
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % len(body)
        )
        self.transport.write(head + body)
        self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        self._peer = peer_pid(connection) if connection else 0

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()
        self.scope["covey.peer"] = self._peer  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()
