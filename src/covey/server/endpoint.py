"""One route: what it takes, what it gives, and the function behind it. The same definition serves and documents it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from covey.engine.workspaces import Workspaces
from covey.protocol.errors import ApiError, BadRequest, ErrorBody, TooLarge, WrongType
from covey.protocol.requests import MAX_BODY_BYTES
from covey.protocol.who import May, Who

if TYPE_CHECKING:
    from covey.engine.workspace import Workspace
    from covey.server.event_stream import AnyStream
    from covey.server.front_door import FrontDoor
    from covey.server.pages import Pages

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")
_PRIVATE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Of every answer: a browser keeps none of it, and takes it for nothing else than it is."""
_NOTHING = (b"", [(b"content-length", b"0")])


LINGER_BYTES = 8 * MAX_BODY_BYTES
LINGER_S = 10.0
"""How much of a body that is too large is still taken, and how long, so that its sender gets to read the answer."""


class ClientGone(Exception):
    """The connection ended before the request was complete: nobody is there to be answered."""


@dataclass(slots=True)
class Call:
    """One request, as a handler sees it."""

    workspaces: Workspaces
    path: dict[str, str]
    query: dict[str, str]
    stop: Callable[[], None]
    """Ask the server to shut down."""
    pages: Pages
    streams: set[AnyStream]
    page: str = ""
    """The page that asks, if it is one."""
    cluster: FrontDoor | None = None
    """None: this server is no node."""
    run_id: str = ""
    """What another node has chosen for a prompt without an id."""

    async def workspace(self) -> Workspace:
        return await self.workspaces.get(self.path["id"])

    @property
    def who(self) -> Who:
        """Whoever makes the request, as far as it says: its id stands in the query, its name came with the create."""
        return self.workspaces.who(self.query.get("client_id", ""))

    def number(self, name: str, *, at_most: float = 1e9) -> float:
        """A number of the query, 0 if it is not there."""
        text = self.query.get(name, "")
        try:
            value = float(text or 0)
        except ValueError:
            value = -1.0
        if not 0 <= value <= at_most:
            raise BadRequest(f"{name} must be a number from 0 to {at_most:g}, not {text!r}")
        return value

    def count(self, name: str, *, at_most: int) -> int:
        """A whole number of the query, 0 if it is not there."""
        value = self.number(name, at_most=at_most)
        if not value.is_integer():
            raise BadRequest(f"{name} must be a whole number, not {value:g}")
        return int(value)


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """An answer that is sent while it is made: for what may be too long to be in memory."""

    content_type: str
    data: AsyncGenerator[bytes, None]


Handler = Callable[[Call, Any], Awaitable[Any]]


@dataclass(slots=True, eq=False)
class Endpoint:
    """An ASGI application for one method of one path."""

    method: str
    path: str
    handler: Handler
    summary: str
    body: Any = None
    """What the request must decode to; None: nothing is needed, and what is sent all the same is only checked."""
    answer: Any = None
    """The type of the answer; None: an empty one, unless the handler gives `StreamedAnswer`."""
    status: int = 200
    optional_body: bool = False
    ends_with_client: bool = False
    """The handler is cancelled if the client leaves before it is answered."""
    needs: May | None = None
    """What whoever calls it must be allowed to do; None: to read for GET, else to prompt."""
    needs_for: Callable[[Any], May | None] | None = None
    """What whoever sends this body must be allowed to do besides."""
    _decoder: msgspec.json.Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = msgspec.json.Decoder(Any if self.body is None else self.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["covey"]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        access = scope["covey.access"]
        access.require(scope, self.needs or ("read" if self.method == "GET" else "prompt"))
        page = scope.get("covey.page", "")
        call = Call(state.workspaces, scope["path_params"], query, state.stop, state.pages, state.streams, page)
        if state.cluster is not None:
            call.cluster, call.run_id = state.cluster, scope.get("covey.run_id", "")
        # One that nobody needs is read all the same: it must be JSON, and who sends it is hung up on else.
        sent = await read_body(scope, receive) if self.body is not None or _announces_body(scope) else b""
        body = self._decode(sent)
        if self.needs_for and (more := self.needs_for(body)):
            access.require(scope, more)
        working = self.handler(call, body)
        answer = await (_unless_gone(working, receive) if self.ends_with_client else working)
        if isinstance(answer, StreamedAnswer):
            await _respond_in_pieces(send, self.status, answer)
            return
        data, headers = (_encode(answer), [_JSON]) if self.answer is not None else _NOTHING
        await respond(send, self.status, data, headers)

    def _decode(self, data: bytes) -> Any:
        if not data:
            if self.optional_body or self.body is None:
                return None
            raise BadRequest("a JSON body is required")
        try:
            decoded = self._decoder.decode(data)
            return decoded if self.body is not None else None
        except msgspec.ValidationError as error:
            return self._without_nulls(data, error)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(f"the body is not valid: {error}") from None

    def _without_nulls(self, data: bytes, error: msgspec.ValidationError) -> Any:
        """A field that is null counts as one that is not given: many clients write it that way."""
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            fields = msgspec.json.decode(data)
            if (given := _given(fields)) != fields:
                return msgspec.convert(given, self.body)
        raise BadRequest(f"the body is not valid: {error}")


def _announces_body(scope: Scope) -> bool:
    """Whether a request that changes something comes with a body. Without one there is nothing to wait for."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    return scope["method"] != "GET" and (length != b"0" or b"transfer-encoding" in headers)


async def _unless_gone(working: Awaitable[Any], receive: Receive) -> Any:
    """The answer. Raises ClientGone, once the work has been cancelled, if the connection ends before."""
    work, left = asyncio.ensure_future(working), asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientGone
        return work.result()
    finally:
        left.cancel()
        work.cancel()
        await asyncio.wait({work, left})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _given(value: Any) -> Any:
    """Without the fields that are null, however deep."""
    if isinstance(value, dict):
        return {name: _given(field) for name, field in value.items() if field is not None}
    return [_given(each) for each in value] if isinstance(value, list) else value


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body, if it is JSON and not too large."""
    data = await read_bytes(scope, receive)
    content_type = dict(scope["headers"]).get(b"content-type", b"").split(b";")[0].strip().lower()
    if data and content_type != b"application/json":
        raise WrongType("the body must be sent as application/json")
    return data


async def read_bytes(scope: Scope, receive: Receive) -> bytes:
    """The whole body, whatever it is, if it is not too large."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise TooLarge(f"a body may have at most {MAX_BODY_BYTES} bytes")
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise TooLarge(f"a body may have at most {MAX_BODY_BYTES} bytes")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def respond(
    send: Send, status: int, data: bytes, headers: list[tuple[bytes, bytes]], unread: Receive | None = None
) -> None:
    """`unread`: a body that is still coming. It is taken and dropped before the connection is closed."""
    if data:
        headers = [*headers, (b"content-length", b"%d" % len(data))]
    if not any(name == b"cache-control" for name, _ in headers):
        headers = [*headers, *_PRIVATE]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": unread is not None})
    if unread:
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await _drop(unread)
        await send({"type": "http.response.body", "body": b""})


async def _respond_in_pieces(send: Send, status: int, answer: StreamedAnswer) -> None:
    """Sending waits for the client. What fails once it has begun can only cut it off: who reads it sees that."""
    content_type = (b"content-type", answer.content_type.encode())
    async with aclosing(answer.data) as pieces:
        first = await anext(pieces, b"")
        await send({"type": "http.response.start", "status": status, "headers": [content_type, *_PRIVATE]})
        await send({"type": "http.response.body", "body": first, "more_body": True})
        try:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except Exception as error:
            log.warning("an answer could not be completed: %r", error)
            raise ClientGone from error
        await send({"type": "http.response.body", "body": b""})


async def _drop(unread: Receive) -> None:
    """Closed while the client is still sending, a connection takes the answer with it before the client reads it."""
    left = LINGER_BYTES
    while left > 0:
        message = await unread()
        left -= len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


async def respond_error(
    send: Send, error: ApiError, more: Sequence[tuple[bytes, bytes]] = (), unread: Receive | None = None
) -> None:
    body = ErrorBody(message=error.message, code=error.code, retry_after=error.retry_after)
    headers = [_JSON, *more]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(error.retry_after))))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await respond(send, error.status, _encode(body), headers, unread)
