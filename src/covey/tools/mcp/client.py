"""One MCP server, whichever era of the protocol it speaks: opening, lists, calls, prompts, resources.

The era is found once, by the first telling answer, and then no request of the other one is sent. What a server asks
back (a question to a person, the roots) goes to `Asked`; in the modern era that is a result, and the call is repeated
with the answers under a new number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from covey import __version__
from covey.tools.mcp.connection import McpConnection, McpTransport, OnProgress, unknown_method
from covey.tools.mcp.http import HttpMcpTransport, header_paths
from covey.tools.mcp.words import (
    ITEMS_LIMIT,
    LEGACY,
    META,
    METHOD_NOT_FOUND,
    MODERN,
    MODERN_CODES,
    PAGES_LIMIT,
    ROUNDS_LIMIT,
    SKILLS,
    UNSUPPORTED_VERSION,
    Era,
    McpError,
    ServerRefused,
)

SILENCE_S = 3.0
"""How long a server may be silent before it is also asked in the older way. Both answers count."""

Listed = Literal["tools", "prompts", "resources", "resources/templates", "skills"]
Asked = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Answers `elicitation/create` and `roots/list`. Raises ServerRefused for anything else."""
CLIENT = {"name": "covey", "version": __version__}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": False}}


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says about itself. Untrusted text."""

    era: Era
    version: str
    capabilities: Mapping[str, Any]
    instructions: str = ""
    name: str = ""

    def has(self, what: Listed) -> bool:
        """Whether it says that it has such a list. Skills are an extension of the protocol."""
        if what == "skills":
            extensions = self.capabilities.get("extensions")
            return isinstance(extensions, dict) and SKILLS in extensions
        return what.partition("/")[0] in self.capabilities


@dataclass(slots=True)
class ListResult:
    items: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class McpClient:
    """A conversation with one server. `open` first; whoever made it calls `close`."""

    def __init__(
        self, transport: McpTransport, asked: Asked, on_change: Callable[[Listed], None], known: Era | None = None
    ) -> None:
        self._transport = transport
        self._asked = asked
        self._on_change = on_change
        self._known = known
        self._connection = McpConnection(transport, self._server_asks, self._server_tells)
        self._facts: ServerFacts | None = None
        self._listening: asyncio.Task[None] | None = None

    @property
    def facts(self) -> ServerFacts:
        assert self._facts is not None, "open it first"
        return self._facts

    @property
    def transport(self) -> McpTransport:
        return self._transport

    @property
    def ended(self) -> asyncio.Future[Exception]:
        """Done, with why, once the server is gone."""
        return self._connection.ended

    async def close(self) -> None:
        if self._listening:
            self._listening.cancel()
        await self._connection.close()

    # ── opening ──

    async def open(self, within_s: float) -> ServerFacts:
        """Find out which era it speaks, and say hello. Raises McpError."""
        try:
            async with asyncio.timeout(within_s):
                self._facts = await self._find_era()
        except TimeoutError:
            raise McpError(f"it did not answer within {within_s:g} s after its start") from None
        if isinstance(self._transport, HttpMcpTransport):
            self._transport.agreed(self._facts.era, self._facts.version)
        if self._facts.era == "legacy":
            self._connection.notify("notifications/initialized")
        elif self._wants_to_listen():
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        return self._facts

    async def _find_era(self) -> ServerFacts:
        if self._known == "legacy":
            return await self._initialized_or_modern()
        discovering = asyncio.ensure_future(self._discovered())
        try:
            await asyncio.wait([discovering], timeout=SILENCE_S)
            if discovering.done():
                return await self._by_answer(discovering)
            return await self._first_telling(discovering)
        finally:
            discovering.cancel()

    async def _initialized_or_modern(self) -> ServerFacts:
        """It was an older one when it was last seen: it may have been updated since."""
        try:
            return await self._initialized()
        except ServerRefused as refusal:
            if refusal.code != UNSUPPORTED_VERSION:
                raise
            return await self._discovered()

    async def _by_answer(self, discovering: asyncio.Future[ServerFacts]) -> ServerFacts:
        """A modern error is an answer, too; any other is the sign of an older server."""
        try:
            return discovering.result()
        except ServerRefused as refusal:
            if refusal.code not in MODERN_CODES:
                return await self._initialized()
            supported = refusal.data.get("supported") if isinstance(refusal.data, dict) else None
            if isinstance(supported, list) and MODERN in supported:
                return await self._discovered()
            if isinstance(supported, list) and set(LEGACY).intersection(map(str, supported)):
                return await self._initialized()
            raise McpError(f"it speaks none of our versions of the protocol: {refusal}") from None

    async def _first_telling(self, discovering: asyncio.Future[ServerFacts]) -> ServerFacts:
        """Both were asked: whichever answer says what the server is."""
        initializing = asyncio.ensure_future(self._initialized_or_modern())
        try:
            await asyncio.wait([discovering, initializing], return_when=asyncio.FIRST_COMPLETED)
            if discovering.done() and not discovering.exception():
                return discovering.result()
            return await initializing  # discover was refused, as an older server does, or is still unanswered
        finally:
            initializing.cancel()

    async def _discovered(self) -> ServerFacts:
        result = await self._connection.request("server/discover", self._modern({}), idle_s=None)
        versions = result.get("supportedVersions")
        if not isinstance(versions, list) or MODERN not in versions:
            raise ServerRefused(METHOD_NOT_FOUND, "it knows discover, and not the version of the protocol that has it")
        return _facts("modern", MODERN, result)

    async def _initialized(self) -> ServerFacts:
        hello = {"protocolVersion": LEGACY[0], "capabilities": CAPABILITIES, "clientInfo": CLIENT}
        result = await self._connection.request("initialize", hello, idle_s=None)
        version = result.get("protocolVersion")
        if version not in LEGACY:
            raise McpError(f"it speaks version {str(version)[:40]!r} of the protocol, which is not known here")
        return _facts("legacy", version, result)

    def _modern(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a modern request: each says who asks, and in which version."""
        meta = {
            f"{META}protocolVersion": MODERN,
            f"{META}clientCapabilities": CAPABILITIES,
            f"{META}clientInfo": CLIENT,
        }
        return {**params, "_meta": {**params.get("_meta", {}), **meta}}

    # ── requests ──

    async def request(self, method: str, params: Mapping[str, Any], **bounds: Any) -> dict[str, Any]:
        """One request, in the server's era. A result that asks for input is answered, and the request repeated."""
        if self.facts.era == "legacy":
            return await self._connection.request(method, params, **bounds)
        given: dict[str, Any] = {}
        for _ in range(ROUNDS_LIMIT):
            result = await self._connection.request(method, self._modern({**params, **given}), **bounds)
            match result.get("resultType", "complete"):
                case "complete":
                    return result
                case "input_required":
                    given = await self._given(result)
                case other:
                    raise McpError(f"the answer to {method} is of a kind that is not known: {str(other)[:40]!r}")
        raise McpError(f"{method} asked for input more than {ROUNDS_LIMIT} times")

    async def _given(self, result: dict[str, Any]) -> dict[str, Any]:
        """What a repeated request adds: the answers by their keys, and the very same state."""
        requests = result.get("inputRequests")
        answers: dict[str, Any] = {}
        for key, wanted in requests.items() if isinstance(requests, dict) else ():
            if not isinstance(wanted, dict):
                raise McpError("it asks for input in a form that is not known")
            params = wanted.get("params")
            try:
                answers[key] = await self._asked(str(wanted.get("method")), params if isinstance(params, dict) else {})
            except ServerRefused as refusal:
                raise McpError(f"it asks for {wanted.get('method')}, which it does not get: {refusal}") from None
        given: dict[str, Any] = {"inputResponses": answers} if answers else {}
        if isinstance(state := result.get("requestState"), str):
            given["requestState"] = state
        if not given:
            raise McpError("it asks for input, and does not say which")
        return given

    async def list(self, what: Listed, idle_s: float) -> ListResult:
        """All items of a list. A transport that has headers to set learns what tools want repeated in them."""
        found = await self._pages(what, idle_s)
        if what == "tools" and isinstance(self._transport, HttpMcpTransport):
            named = ((str(item.get("name")), item.get("inputSchema")) for item in found.items)
            self._transport.tool_headers = {name: header_paths(schema) for name, schema in named}
        return found

    async def _pages(self, what: Listed, idle_s: float) -> ListResult:
        """All items of a list, page by page, within bounds. Raises McpError if the first page cannot be had."""
        found, seen = ListResult(), set[str]()
        params: dict[str, Any] = {}
        key = "resourceTemplates" if what == "resources/templates" else what
        for page in range(PAGES_LIMIT):
            result = await self.request(f"{what}/list", params, idle_s=idle_s)
            items = result.get(key)
            found.items += [item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict)]
            if len(found.items) > ITEMS_LIMIT:
                found.items = found.items[:ITEMS_LIMIT]
                found.warnings.append(f"it has more than {ITEMS_LIMIT} {key}; the rest is left out")
                return found
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return found
            if cursor in seen:
                found.warnings.append(f"its list of {key} begins again after page {page + 1}")
                return found
            seen.add(cursor)
            params = {"cursor": cursor}
        found.warnings.append(f"its list of {key} has more than {PAGES_LIMIT} pages; the rest is left out")
        return found

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, idle_s: float, total_s: float, on_progress: OnProgress
    ) -> dict[str, Any]:
        """Have the server run a tool. Raises McpError."""
        params = {"name": tool, "arguments": arguments}
        return await self.request("tools/call", params, idle_s=idle_s, total_s=total_s, on_progress=on_progress)

    # ── what the server asks and tells ──

    async def _server_asks(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "ping":
            return {}
        if self._facts and self._facts.era == "modern":
            raise unknown_method(method)  # it has another way to ask
        return await self._asked(method, params)

    def _server_tells(self, method: str, params: dict[str, Any]) -> None:
        changed: dict[str, Listed] = {
            "notifications/tools/list_changed": "tools",
            "notifications/prompts/list_changed": "prompts",
            "notifications/resources/list_changed": "resources",
        }
        if method in changed:
            self._on_change(changed[method])

    def _wants_to_listen(self) -> bool:
        lists = (self.facts.capabilities.get(what) for what in ("tools", "prompts", "resources"))
        return any(isinstance(each, dict) and each.get("listChanged") is True for each in lists)

    async def _listen(self) -> None:
        """Have a modern server tell of changes, for as long as it keeps the stream. One that cannot is left alone."""
        wanted = {f"{what}ListChanged": True for what in ("tools", "prompts", "resources")}
        with suppress(McpError):
            await self._connection.request("subscriptions/listen", self._modern({"notifications": wanted}), idle_s=None)


def _facts(era: Era, version: str, result: Mapping[str, Any]) -> ServerFacts:
    capabilities, info = result.get("capabilities"), result.get("serverInfo")
    instructions = result.get("instructions")
    return ServerFacts(
        era,
        version,
        capabilities if isinstance(capabilities, dict) else {},
        instructions if isinstance(instructions, str) else "",
        str(info.get("name", "")) if isinstance(info, dict) else "",
    )
