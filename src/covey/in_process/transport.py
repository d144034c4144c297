"""Carries a client's requests to an application in the same event loop: the same answers, without a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from covey.client.errors import Closed
from covey.client.transport import Response, TransportFailed

AHEAD_BYTES = 256 * 1024
"""What an answer may be ahead of its reader; then the application waits, as it does for a slow connection."""

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
"""As ASGI has it."""


class InProcessTransport:
    """The way to one application. Any number of clients may share it."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._open: set[InProcessAnswer] = set()
        self._is_closed = False

    async def request(
        self, method: str, target: str, body: bytes = b"", *, headers: Mapping[str, str], timeout_s: float
    ) -> Response:
        answer = await self.open(method, target, body, headers=headers, timeout_s=timeout_s)
        return Response(answer.status, answer.headers, await answer.read_all(timeout_s))

    async def open(
        self, method: str, target: str, body: bytes = b"", *, headers: Mapping[str, str], timeout_s: float
    ) -> InProcessAnswer:
        if self._is_closed:
            raise Closed("This Covey has ended: it was shut down, or its `async with covey.open()` block was left.")
        answer = InProcessAnswer(body)
        self._open.add(answer)
        answer.begin(self._application, _scope(method, target, body, headers), self._open.discard)
        try:
            await answer.wait_for_head(timeout_s)
        except BaseException:
            answer.close()
            raise
        return answer

    async def aclose(self) -> None:
        """Nothing is kept between requests."""

    async def end(self) -> None:
        """Take no more requests, and wait for those that are under way: their clients have left."""
        self._is_closed = True
        for answer in list(self._open):
            answer.close()
        while self._open:
            await asyncio.wait([answer.work for answer in self._open])


class InProcessAnswer:
    """The answer to one request, while the application gives it. Both ends of it: a reader's, and ASGI's."""

    work: asyncio.Task[None]

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._body: bytes | None = body
        self._chunks: deque[bytes] = deque()
        self._ahead = 0
        self._is_complete = False
        self._has_left = asyncio.Event()
        self._given = asyncio.Event()
        self._taken = asyncio.Event()

    def begin(self, application: Application, scope: Message, on_end: Callable[[InProcessAnswer], None]) -> None:
        self.work = asyncio.ensure_future(application(scope, self._receive, self._send))
        self.work.add_done_callback(lambda _: on_end(self))
        self.work.add_done_callback(lambda _: self._given.set())

    # ── the reader's end ──

    async def wait_for_head(self, timeout_s: float) -> None:
        await self._wait(lambda: bool(self.status), timeout_s)

    async def read(self, timeout_s: float) -> bytes:
        """The next bytes of the body, as soon as there are any; empty at its end."""
        await self._wait(lambda: bool(self._chunks) or self._is_complete, timeout_s)
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._ahead = 0
        self._taken.set()
        return data

    async def read_all(self, timeout_s: float) -> bytes:
        chunks = []
        while chunk := await self.read(timeout_s):
            chunks.append(chunk)
        return b"".join(chunks)

    def close(self) -> None:
        """The client leaves, unless the answer is complete."""
        self._has_left.set()
        self._taken.set()

    async def _wait(self, is_there: Callable[[], bool], timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not is_there():
                    if self._has_left.is_set():
                        raise TransportFailed("it is closed")
                    if self.work.done():
                        raise TransportFailed("the server ended it")
                    self._given.clear()
                    await self._given.wait()
        except TimeoutError:
            self.close()
            raise TransportFailed("nothing was heard for too long") from None

    # ── the application's end ──

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
            self.status = message["status"]
        else:
            await self._send_body(message.get("body", b""), more=message.get("more_body", False))
        self._given.set()

    async def _send_body(self, data: bytes, *, more: bool) -> None:
        if data and not self._has_left.is_set():
            self._chunks.append(data)
            self._ahead += len(data)
        self._is_complete = not more
        self._given.set()
        while more and self._ahead > AHEAD_BYTES and not self._has_left.is_set():
            self._taken.clear()
            await self._taken.wait()


def _scope(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Message:
    path, _, query = target.partition("?")
    fields = {"host": "localhost", **{name.lower(): value for name, value in headers.items()}}
    if body or method in ("POST", "PUT", "PATCH"):
        fields["content-length"] = str(len(body))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()],
        "client": None,
        "server": None,
    }
