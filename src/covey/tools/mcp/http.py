"""The way to a server by streamable HTTP: one POST for each message, whose answer is a message or a stream of them.

Redirects are not followed, and headers go to the one URL that was configured: they may hold secrets. Where somebody has
to log in, that is said (`LoginNeeded`); no browser is opened here.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from covey.tools.mcp.connection import OnMessage
from covey.tools.mcp.sse import SseDecoder
from covey.tools.mcp.words import (
    LINE_LIMIT,
    META,
    MODERN_CODES,
    ConnectionEnded,
    Era,
    LoginNeeded,
    McpError,
    Message,
)

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 10.0
RESUMED_TIMES = 3
"""How often a stream that broke off is taken up again."""
RETRY_MS = 1_000
"""Before that, unless the server says otherwise."""
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What a modern request repeats in a header."""


class Bearer(Protocol):
    """Whoever has a token for the server."""

    async def token(self) -> str:
        """The token to send now; empty: there is none."""
        ...

    async def renewed(self, refused: str, challenge: str) -> str:
        """Another token than this one, which was refused with these words; empty: somebody has to log in."""
        ...


class HttpMcpTransport:
    """Messages to and from a URL."""

    def __init__(self, url: str, headers: Mapping[str, str], bearer: Bearer | None = None) -> None:
        import httpx2  # late: a workspace without such a server does not need it

        self._url = url
        self._headers = dict(headers)
        self._bearer = bearer
        timeout = httpx2.Timeout(None, connect=CONNECT_S)
        self._client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False, limits=httpx2.Limits())
        self._error = httpx2.HTTPError
        self._era: Era | None = None
        self._version = ""
        self._session = ""
        self._posts: dict[Any, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._said: asyncio.Task[None] | None = None
        """The newest message that is no request: what follows it must not overtake it."""
        self._is_closed = False
        self.tool_headers: dict[str, dict[tuple[str, ...], str]] = {}
        """For each tool the parameters that a modern request repeats in headers: their path, and the header's name."""

    def start(self, on_message: OnMessage, on_end: Callable[[Exception], None]) -> None:
        self._on_message, self._on_end = on_message, on_end

    def agreed(self, era: Era, version: str) -> None:
        """Which era it is, and which version: said with every request from now on."""
        self._era, self._version = era, version
        if era == "legacy":
            self._spawn(self._listen())

    def send(self, message: Message) -> None:
        if self._is_closed:
            raise ConnectionEnded("the connection was closed")
        task = asyncio.get_running_loop().create_task(self._post(message, self._said))
        if "method" in message and "id" in message:
            self._posts[message["id"]] = task
            task.add_done_callback(lambda _: self._posts.pop(message["id"], None))
        else:
            self._said = task
            self._keep(task)

    def abandon(self, request_id: int, method: str) -> None:
        if (post := self._posts.pop(request_id, None)) is not None:
            post.cancel()
        if self._era == "legacy" and method != "initialize" and not self._is_closed:
            cancelled = {"requestId": request_id, "reason": "nobody waits for it any more"}
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        tasks = {*self._posts.values(), *self._others}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._session:
            with suppress(self._error, TimeoutError, LoginNeeded):
                async with asyncio.timeout(2):
                    await self._client.delete(self._url, headers=await self._head())
        await self._client.aclose()

    def _spawn(self, work: Any) -> None:
        self._keep(asyncio.get_running_loop().create_task(work))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # ── sending ──

    async def _head(self, token: str | None = None) -> dict[str, str]:
        head = {**self._headers, "accept": "application/json, text/event-stream", "content-type": "application/json"}
        if self._bearer and (token := await self._bearer.token() if token is None else token):
            head["authorization"] = f"Bearer {token}"
        if self._session:
            head["mcp-session-id"] = self._session
        if self._version:
            head["mcp-protocol-version"] = self._version
        return head

    async def _post(self, message: Message, after: asyncio.Task[None] | None) -> None:
        if after and not after.done():
            await asyncio.wait([after])
        number = message.get("id") if "method" in message else None
        try:
            await self._exchange(message, number)
        except McpError as error:
            self._fail(number, error)
        except self._error as error:
            self._fail(number, ConnectionEnded(f"it cannot be reached: {type(error).__name__} {error}".strip()))

    def _fail(self, number: Any, error: McpError) -> None:
        """Whoever waits for this request learns of it; if nobody does, it concerns the connection."""
        if isinstance(error, LoginNeeded) or number is None:
            self._on_end(error)
        else:
            code = -32000
            self._on_message({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": str(error)}})

    async def _exchange(self, message: Message, number: Any) -> None:
        head = {**await self._head(), **self._modern_headers(message)}
        if message.get("method") == "initialize":
            head.pop("mcp-session-id", None)
            head.pop("mcp-protocol-version", None)
        body = msgspec.json.encode(message)
        response = await self._open("POST", head, body)
        try:
            challenge = response.headers.get("www-authenticate", "")
            if self._bearer and (response.status_code == 401 or _lacks_scope(response)):
                refused = head.get("authorization", "").removeprefix("Bearer ")
                if token := await self._bearer.renewed(refused, challenge):
                    await response.aclose()
                    response = await self._open("POST", {**head, "authorization": f"Bearer {token}"}, body)
            await self._take(response, number)
        finally:
            await response.aclose()

    async def _open(self, method: str, head: Mapping[str, str], body: bytes = b"") -> httpx2.Response:
        request = self._client.build_request(method, self._url, headers=dict(head), content=body or None)
        return await self._client.send(request, stream=True)

    def _modern_headers(self, message: Message) -> dict[str, str]:
        params = message.get("params", {})
        version = params.get("_meta", {}).get(f"{META}protocolVersion") if isinstance(params, dict) else None
        if not version:
            return {}
        method = message["method"]
        headers = {"mcp-protocol-version": version, "mcp-method": method}
        if key := _NAMED.get(method):
            headers["mcp-name"] = _header_value(str(params.get(key, "")))
        if method == "tools/call":
            for path, name in self.tool_headers.get(params.get("name", ""), {}).items():
                if (value := _at(params.get("arguments"), path)) is not None:
                    headers[f"mcp-param-{name}"] = _header_value(value)
        return headers

    # ── receiving ──

    async def _take(self, response: httpx2.Response, number: Any) -> None:
        status = response.status_code
        if status in (401, 403) and not _is_json(response):
            raise _login_needed(response)
        if 300 <= status < 400:
            raise McpError(
                f"it leads to {response.headers.get('location', 'another place')[:200]}, which is not followed"
            )
        if session := response.headers.get("mcp-session-id"):
            self._session = session
        if status == 404 and self._session and self._era == "legacy":
            raise ConnectionEnded("it has forgotten this session")
        if response.headers.get("content-type", "").startswith("text/event-stream") and status < 300:
            await self._stream(response, number)
        elif status == 202 or number is None:
            return
        else:
            await self._whole(response, number)

    async def _whole(self, response: httpx2.Response, number: Any) -> None:
        data = bytearray()
        async for piece in response.aiter_bytes():
            data += piece
            if len(data) > LINE_LIMIT:
                raise ConnectionEnded(f"it sent a message of more than {LINE_LIMIT // 1024 // 1024} MiB")
        try:
            message = msgspec.json.decode(bytes(data))
        except (msgspec.DecodeError, RecursionError):
            message = None
        error = message.get("error") if isinstance(message, dict) else None
        if response.status_code in (401, 403) and not (isinstance(error, dict) and error.get("code") in MODERN_CODES):
            raise _login_needed(response)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise McpError(f"it answered with HTTP status {response.status_code} and something that is no message")
        self._on_message({**message, "id": number} if message.get("id") is None else message)

    async def _stream(self, response: httpx2.Response, number: Any, resumed: int = 0) -> None:
        """Messages until the answer is among them. A stream that breaks off before is taken up again, if it can be."""
        last_id, retry_ms = "", RETRY_MS
        decoder = SseDecoder()
        with suppress(self._error):
            async for piece in response.aiter_bytes():
                for event in decoder.feed(piece):
                    last_id, retry_ms = event.id or last_id, event.retry_ms or retry_ms
                    if event.data and self._deliver(event.data, number):
                        return
        if number is None:
            return
        if not last_id or resumed >= RESUMED_TIMES or self._era == "modern":
            raise ConnectionEnded("its answer broke off")
        await response.aclose()
        await asyncio.sleep(retry_ms / 1000)
        again = await self._open("GET", {**await self._head(), "accept": "text/event-stream", "last-event-id": last_id})
        try:
            if again.status_code != 200:
                raise ConnectionEnded("its answer broke off, and could not be taken up again")
            await self._stream(again, number, resumed + 1)
        finally:
            await again.aclose()

    def _deliver(self, data: str, number: Any) -> bool:
        """Whether this was the answer that was waited for."""
        try:
            message = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return False
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return False
        self._on_message(message)
        return "method" not in message and message.get("id") == number and number is not None

    async def _listen(self) -> None:
        """What an older server tells by itself comes on a stream of its own, if it has one."""
        last_id, attempts = "", 0
        while attempts < RESUMED_TIMES:
            head = {**await self._head(), "accept": "text/event-stream"}
            head.pop("content-type", None)
            if last_id:
                head["last-event-id"] = last_id
            retry_ms = RETRY_MS
            with suppress(self._error, McpError):
                response = await self._open("GET", head)
                try:
                    if response.status_code != 200:
                        return
                    decoder = SseDecoder()
                    async for piece in response.aiter_bytes():
                        for event in decoder.feed(piece):
                            last_id, retry_ms, attempts = event.id or last_id, event.retry_ms or retry_ms, 0
                            if event.data:
                                self._deliver(event.data, None)
                finally:
                    await response.aclose()
            attempts += 1
            await asyncio.sleep(retry_ms / 1000)


def _is_json(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith("application/json")


def _lacks_scope(response: httpx2.Response) -> bool:
    """The token is good, and not for what was asked."""
    return response.status_code == 403 and "insufficient_scope" in response.headers.get("www-authenticate", "")


def _login_needed(response: httpx2.Response) -> LoginNeeded:
    what = "it wants a login that allows more" if _lacks_scope(response) else "it wants a login"
    return LoginNeeded(what, response.headers.get("www-authenticate", ""))


def _header_value(value: Any) -> str:
    """A value as a header can hold it: other than plain text is wrapped."""
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments if isinstance(arguments, str | int | float | bool) else None


def header_problem(schema: Any) -> str:
    """What is wrong with the headers that a schema wants; empty if nothing is. Such a tool must not be called."""
    paths = header_paths(schema)
    names = [name.lower() for name in paths.values()]
    if _count(schema, "x-mcp-header") != len(paths):
        return "it wants a header for something that is no plain parameter"
    if len(set(names)) < len(names) or not all(_TOKEN.fullmatch(name) for name in names):
        return "it wants a header whose name is none, or two of one name"
    for path in paths:
        field: Any = schema
        for name in path:
            field = field["properties"][name]
        if field.get("type") not in ("string", "integer", "boolean"):
            return "it wants a header for something that is no text, whole number or yes and no"
    return ""


def _count(tree: Any, key: str) -> int:
    """How often a key stands in a schema; what stands in examples and the like is no schema."""
    if isinstance(tree, list):
        return sum(_count(each, key) for each in tree)
    if not isinstance(tree, dict):
        return 0
    inside = (value for name, value in tree.items() if name not in ("default", "examples", "const", "enum", key))
    return (key in tree) + sum(_count(value, key) for value in inside)


def header_paths(schema: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """The parameters that a schema wants repeated in headers (`x-mcp-header`)."""
    found: dict[tuple[str, ...], str] = {}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in properties.items() if isinstance(properties, dict) else ():
        if isinstance(field, dict):
            if isinstance(token := field.get("x-mcp-header"), str):
                found[*path, name] = token
            found |= header_paths(field, (*path, name)) if len(path) < 8 else {}
    return found
