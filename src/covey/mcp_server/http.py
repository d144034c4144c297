"""Serves agents over streamable HTTP, at `/mcp`, in both eras.

A request is one POST. Its answer is JSON or, where the caller wants to hear of progress, a stream that ends with the
answer. In the older era a caller has an id (`Mcp-Session-Id`), by which it can take back its own calls and nobody
else's; in the newer one it takes a call back by closing the connection. There is no stream of our own to listen to.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import assert_never

import msgspec
from starlette.types import Receive, Scope, Send

from covey.mcp_server import eras
from covey.mcp_server.service import McpService, Teller, internal
from covey.protocol.errors import CoveyError, Unauthorized
from covey.rpc.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Id,
    NoMessage,
    Notification,
    Params,
    Request,
    RpcAnswer,
    RpcError,
    as_json,
    decode,
)

PATH = "/mcp"
BODY_BYTES = 8 * 1024 * 1024
MOST_CALLERS = 64
"""Of the older era, that are remembered: whoever has been silent the longest is forgotten."""
PING_S = 15.0
"""Between comments on a stream, so that nobody in between takes it for dead."""
_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    eras.HEADER_MISMATCH: 400,
    eras.UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""For the newer era; in the older one an error is an answer like any other."""

Check = Callable[[Scope], None]
"""Raises CoveyError unless the request may pass: token, Host, Origin."""


@dataclass(slots=True)
class _Caller:
    """Somebody of the older era."""

    working: dict[Id, asyncio.Task[Params]] = field(default_factory=dict)


class HttpApp:
    """An ASGI application."""

    def __init__(self, service: McpService, check: Check) -> None:
        self._service = service
        self._check = check
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            self._check(scope)
        except CoveyError as refusal:
            await _refuse(send, 401 if isinstance(refusal, Unauthorized) else 403, str(refusal))
            return
        if scope["path"] != PATH:
            await _refuse(send, 404, f"everything is at {PATH}")
        elif scope["method"] == "DELETE":
            known = self._callers.pop(_headers(scope).get("mcp-session-id", ""), None)
            await _plain(send, 200 if known else 404)
        elif scope["method"] != "POST":
            await _plain(send, 405, (b"allow", b"POST, DELETE"))
        else:
            await self._post(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            await _refuse(send, 413, f"a message has at most {BODY_BYTES} bytes")
            return
        headers = _headers(scope)
        found = decode(body)
        match found:
            case Request() as request:
                await self._request(request, headers, receive, send)
            case Notification() as notification:
                self._notification(notification, headers)
                await _plain(send, 202)
            case RpcAnswer():
                await _plain(send, 202)
            case NoMessage(id, error):
                await _answer(send, RpcAnswer(id, error=error), 400)
            case _:
                assert_never(found)

    # ── what is asked ──

    async def _request(self, request: Request, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        is_modern = _is_modern(request, headers)
        try:
            new_caller = self._admit(request, headers, is_modern=is_modern)
        except RpcError as error:
            await _answer(send, RpcAnswer(request.id, error=error), _STATUSES.get(error.code, 400))
            return
        except LookupError:
            await _refuse(send, 404, "this session is not known any more: initialize again")
            return
        exchange = _Exchange(request, send, can_stream="text/event-stream" in headers.get("accept", ""))
        exchange.headers = [(b"mcp-session-id", new_caller.encode())] if new_caller else []
        work = asyncio.create_task(self._service.answer(request.method, request.params, exchange.teller))
        caller = None if is_modern else self._callers.get(new_caller or headers.get("mcp-session-id", ""))
        if caller and request.id not in caller.working:
            caller.working[request.id] = work
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await exchange.run(work, gone, is_modern=is_modern)
        finally:
            if caller and caller.working.get(request.id) is work:
                del caller.working[request.id]
            for task in (work, gone):
                task.cancel()
            await asyncio.wait({work, gone})

    def _admit(self, request: Request, headers: Mapping[str, str], *, is_modern: bool) -> str:
        """Raise unless such a request may come; gives the id of a new caller of the older era, or ''."""
        if is_modern:
            eras.check_complete(request.params)
            eras.check_headers(request.method, request.params, headers)
            return ""
        version = headers.get("mcp-protocol-version", "")
        if version and version not in eras.HANDSHAKE_VERSIONS:
            eras.check_version(version)
        if request.method == "initialize":
            return self._new_caller()
        known = headers.get("mcp-session-id", "")
        if not known:
            raise RpcError(INVALID_REQUEST, "initialize first, and send the Mcp-Session-Id that you get")
        self._callers.move_to_end(known)  # KeyError, which is a LookupError: not known
        return ""

    def _new_caller(self) -> str:
        id = secrets.token_urlsafe(24)
        self._callers[id] = _Caller()
        if len(self._callers) > MOST_CALLERS:
            self._callers.popitem(last=False)
        return id

    def _notification(self, notification: Notification, headers: Mapping[str, str]) -> None:
        """A caller of the older era takes back a call of its own."""
        caller = self._callers.get(headers.get("mcp-session-id", ""))
        id = notification.params.get("requestId")
        if notification.method == "notifications/cancelled" and caller and isinstance(id, str | int):
            task = caller.working.get(id)
            if task:
                task.cancel()


class _Exchange:
    """One request and its answer: JSON at once, or a stream as soon as there is progress to tell."""

    def __init__(self, request: Request, send: Send, *, can_stream: bool) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self._request = request
        self._send = send
        self._can_stream = can_stream
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.teller = Teller(request.params, self._progress)

    def _progress(self, progress: Params) -> None:
        if self._can_stream:
            message = as_json(Notification("notifications/progress", progress))
            self._lines.put_nowait(b"event: message\ndata: " + msgspec.json.encode(message) + b"\n\n")

    async def run(self, work: asyncio.Task[Params], gone: asyncio.Task[None], *, is_modern: bool) -> None:
        """Until there is an answer, or the caller has gone, which ends the work in the newer era alone."""
        is_streaming = False
        while not work.done():
            line = asyncio.create_task(self._lines.get())
            waiting = {work, line} if gone.done() else {work, line, gone}
            await asyncio.wait(waiting, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
            piece = line.result() if line.done() else b": ping\n\n"
            line.cancel()
            if gone.done() and is_modern:
                return
            if work.done() or gone.done() or not self._can_stream:
                continue
            if not is_streaming:
                is_streaming = True
                await self._begin_stream()
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        if not gone.done():
            await self._end(work, is_streaming=is_streaming, is_modern=is_modern)

    async def _begin_stream(self) -> None:
        kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]
        await self._send({"type": "http.response.start", "status": 200, "headers": [*self.headers, *kind]})

    async def _end(self, work: asyncio.Task[Params], *, is_streaming: bool, is_modern: bool) -> None:
        answer = _answer_of(self._request.id, work)
        if answer is None:  # it was taken back: no answer follows
            if is_streaming:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                await _plain(self._send, 202)
        elif is_streaming:
            left = b"".join(self._lines.get_nowait() for _ in range(self._lines.qsize()))
            last = left + b"event: message\ndata: " + msgspec.json.encode(as_json(answer)) + b"\n\n"
            await self._send({"type": "http.response.body", "body": last, "more_body": False})
        else:
            status = _STATUSES.get(answer.error.code, 200) if answer.error and is_modern else 200
            await _answer(self._send, answer, status, self.headers)


def _answer_of(id: Id, work: asyncio.Task[Params]) -> RpcAnswer | None:
    if work.cancelled():
        return None
    error = work.exception()
    if error is None:
        return RpcAnswer(id, work.result())
    if isinstance(error, RpcError):
        return RpcAnswer(id, error=error)
    return RpcAnswer(id, error=internal(error if isinstance(error, Exception) else RuntimeError(str(error))))


def _is_modern(request: Request, headers: Mapping[str, str]) -> bool:
    return eras.is_modern(request.method, request.params) or (
        headers.get("mcp-protocol-version") in eras.MODERN_VERSIONS and request.method != "initialize"
    )


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in scope["headers"]}


async def _body(receive: Receive) -> bytes | None:
    """None: it is too long."""
    pieces: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        pieces.append(message.get("body", b""))
        length += len(pieces[-1])
        if length > BODY_BYTES:
            return None
        if not message.get("more_body"):
            return b"".join(pieces)


async def _disconnected(receive: Receive) -> None:
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass


async def _plain(send: Send, status: int, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, status: int, sentence: str) -> None:
    more = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await _answer(send, RpcAnswer(None, error=RpcError(INVALID_REQUEST, sentence)), status, more)


async def _answer(send: Send, answer: RpcAnswer, status: int, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    body = msgspec.json.encode(as_json(answer))
    known = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*(headers or ()), *known]})
    await send({"type": "http.response.body", "body": body})
