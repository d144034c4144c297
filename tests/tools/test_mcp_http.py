"""MCP by streamable HTTP, against a server that answers as the test says: redirects, pages, logins, cancels, breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from covey.tools.mcp import client as mcp_client
from covey.tools.mcp.client import McpClient
from covey.tools.mcp.connection import unknown_method
from covey.tools.mcp.http import HttpMcpTransport
from covey.tools.mcp.sse import SseDecoder
from covey.tools.mcp.words import ConnectionEnded, LoginNeeded, McpError

pytestmark = pytest.mark.anyio
Headers = dict[str, str]


class Site:
    """One server; `requests` has what came: method, path, headers, body."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Headers, dict[str, Any]]] = []
        self.closed_early = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def sent(self, method: str) -> list[Headers]:
        return [headers for _, _, headers, body in self.requests if body.get("method") == method]


Answer = Callable[[Site, dict[str, Any], Headers, asyncio.StreamWriter], Awaitable[None]]


def respond(writer: asyncio.StreamWriter, status: str, body: bytes = b"", **headers: str) -> None:
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def result(writer: asyncio.StreamWriter, message: dict[str, Any], **content: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": content}).encode()
    respond(writer, "200 OK", body, Content_Type="application/json")


async def opening(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
    """Answers as a modern server; false: it is something else."""
    if message.get("method") == "server/discover":
        result(writer, message, supportedVersions=["2026-07-28"], capabilities={"tools": {}})
    elif message.get("method") == "tools/list":
        result(writer, message, tools=[{"name": "t", "inputSchema": {"type": "object"}}])
    else:
        return False
    return True


@asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[Site]:
    site = Site()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = {
                    name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)
                }
                data = await reader.readexactly(int(headers.get("content-length", "0")))
                message = json.loads(data) if data else {}
                site.requests.append((method, path, headers, message))
                if method == "GET":
                    respond(writer, "405 Method Not Allowed")
                else:
                    await answer(site, message, headers, writer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


async def asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
    raise unknown_method(method)


def connect(site: Site, bearer: Any = None, **headers: str) -> McpClient:
    return McpClient(HttpMcpTransport(site.url, headers, bearer), asked, lambda what: None)


async def call(client: McpClient, **arguments: Any) -> dict[str, Any]:
    return await client.call("t", arguments, idle_s=20, total_s=20, on_progress=lambda params: None)


async def test_m22_a_redirect_is_not_followed_and_secrets_stay_where_they_belong() -> None:
    async def elsewhere(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
        respond(writer, "200 OK", b"{}", Content_Type="application/json")

    async with served(elsewhere) as other:

        async def redirect(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
            respond(writer, "307 Temporary Redirect", Location=other.url)

        async with served(redirect) as site:
            client = connect(site, authorization="Bearer s3cret")
            with pytest.raises(McpError, match="not followed"):
                await client.open(10)
            await client.close()
            assert not other.requests


async def test_m22_a_page_instead_of_an_answer_is_an_error() -> None:
    async def page(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
        respond(writer, "200 OK", b"<html>Log in</html>", Content_Type="text/html")

    async with served(page) as site:
        client = connect(site)
        with pytest.raises(McpError, match="no message"):
            await client.open(10)
        await client.close()


class Tokens:
    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.renewals = 0
        self.challenges: list[str] = []

    async def token(self) -> str:
        return self.tokens[0]

    async def renewed(self, refused: str, challenge: str) -> str:
        self.challenges.append(challenge)
        if refused == self.tokens[0]:
            self.renewals += 1
            self.tokens.pop(0)
        return self.tokens[0] if self.tokens else ""


async def guarded(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
    if headers.get("authorization") != "Bearer new":
        respond(writer, "401 Unauthorized", WWW_Authenticate="Bearer")
    elif not await opening(message, writer):
        result(writer, message, content=[])


async def test_m20_an_expired_token_is_renewed_once_for_all_that_wait() -> None:
    async with served(guarded) as site:
        tokens = Tokens("old", "new")
        client = connect(site, tokens)
        await client.open(10)
        await asyncio.gather(*(call(client) for _ in range(5)))
        assert tokens.renewals == 1
        await client.close()


async def test_m20_without_another_token_a_login_is_needed_and_nothing_hangs() -> None:
    async with served(guarded) as site:
        client = connect(site, Tokens("old", ""))
        with pytest.raises(LoginNeeded):
            await client.open(10)
        await client.close()


async def test_a_call_that_the_token_is_not_enough_for_is_made_again_with_a_better_one_or_wants_a_login() -> None:
    challenge = 'Bearer error="insufficient_scope", scope="write"'

    async def strict(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
        if await opening(message, writer):
            return
        if headers.get("authorization") == "Bearer new":
            result(writer, message, content=[])
        else:
            respond(writer, "403 Forbidden", b"{}", Content_Type="application/json", WWW_Authenticate=challenge)

    async with served(strict) as site:
        better, none = Tokens("old", "new"), Tokens("old", "")
        for tokens in (better, none):
            client = connect(site, tokens)
            await client.open(10)
            if tokens is none:
                with pytest.raises(LoginNeeded, match="allows more"):
                    await call(client)
            else:
                await call(client)
            assert tokens.challenges == [challenge]
            await client.close()


async def test_m8_a_cancelled_call_closes_its_stream() -> None:
    gone = asyncio.Event()

    async def slow(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
        if await opening(message, writer):
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n")
        await writer.drain()
        site.closed_early.set()
        while not writer.is_closing():
            with suppress(ConnectionError):
                writer.write(b": still here\n\n")
                await writer.drain()
            await asyncio.sleep(0.01)
        gone.set()

    async with served(slow) as site:
        client = connect(site)
        await client.open(10)
        task = asyncio.create_task(call(client))
        await asyncio.wait_for(site.closed_early.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 10)
        assert [body.get("method") for *_, body in site.requests] == ["server/discover", "tools/call"]
        await client.close()


async def test_m1_m2_an_older_server_is_initialized_and_keeps_its_session() -> None:
    async def older(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
        if message.get("method") == "server/discover":
            refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}'
            respond(writer, "400 Bad Request", refusal, Content_Type="application/json")
        elif message.get("method") == "initialize":
            answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "o"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}).encode()
            respond(writer, "200 OK", body, Content_Type="application/json", Mcp_Session_Id="s1")
        elif "id" not in message:
            respond(writer, "202 Accepted")
        else:
            result(writer, message, content=[])

    async with served(older) as site:
        client = connect(site)
        facts = await client.open(10)
        await call(client)
        assert (facts.era, facts.version) == ("legacy", "2025-06-18")
        [headers] = site.sent("tools/call")
        assert headers["mcp-session-id"] == "s1" and headers["mcp-protocol-version"] == "2025-06-18"
        assert "mcp-method" not in headers
        await client.close()
        assert site.requests[-1][0] == "DELETE"


async def test_a_modern_request_repeats_in_headers_what_its_body_says() -> None:
    async def modern(site: Site, message: dict[str, Any], headers: Headers, writer: asyncio.StreamWriter) -> None:
        if not await opening(message, writer):
            result(writer, message, content=[])

    async with served(modern) as site:
        client = connect(site)
        await client.open(10)
        await client.list("tools", 10)
        await call(client)
        [headers] = site.sent("tools/call")
        assert headers["mcp-method"] == "tools/call" and headers["mcp-name"] == "t"
        assert headers["mcp-protocol-version"] == "2026-07-28" and "mcp-session-id" not in headers
        await client.close()


async def test_a_server_that_cannot_be_reached_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_client, "SILENCE_S", 10)
    site = Site()
    site.port = 9
    client = connect(site)
    with pytest.raises(McpError, match="cannot be reached"):
        await client.open(10)
    await client.close()


def test_m16_an_event_without_an_end_is_bounded_and_pieces_do_not_matter() -> None:
    decoder = SseDecoder()
    text = b'id: 1\r\ndata: {"a":1}\r\n\r\nretry: 5\ndata: b\ndata: c\n\n'
    events = [event for at in range(len(text)) for event in decoder.feed(text[at : at + 1])]
    assert [(event.id, event.data) for event in events] == [("1", '{"a":1}'), (None, "b\nc")]
    with pytest.raises(ConnectionEnded, match="8 MiB"):
        for _ in range(200):
            decoder.feed(b"x" * 65536)
