"""Routes about what was said: search over sessions and messages, and whole sessions to take away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from covey.protocol import markdown
from covey.protocol.errors import BadRequest
from covey.protocol.search import SearchResult
from covey.server.endpoint import Call, Endpoint, StreamedAnswer

if TYPE_CHECKING:
    from covey.engine.commands.sessions import Export

HITS = 50
HITS_MAX = 500
"""Of messages, and of titles, in one answer; `before` pages on."""
EXPORT_FORMATS = ("markdown", "json")

_encode = msgspec.json.Encoder().encode


async def search(call: Call, _body: None) -> SearchResult:
    workspace = await call.workspace()
    limit = call.count("limit", at_most=HITS_MAX) or HITS
    return await workspace.sessions.search(call.query.get("q", ""), limit, call.query.get("before", ""))


async def export(call: Call, _body: None) -> StreamedAnswer:
    workspace = await call.workspace()
    wanted = call.query.get("format", "markdown")
    if wanted not in EXPORT_FORMATS:
        raise BadRequest(f"format must be one of {', '.join(EXPORT_FORMATS)}, not {wanted!r}")
    exported = await workspace.sessions.export(call.path["sid"])
    if wanted == "json":
        return StreamedAnswer("application/json", _as_json(exported))
    return StreamedAnswer("text/markdown; charset=utf-8", _as_markdown(exported))


async def _as_markdown(exported: Export) -> AsyncGenerator[bytes, None]:
    yield markdown.head(exported.session).encode()
    async for page in exported.pages:
        yield "".join(map(markdown.section, page)).encode("utf-8", "replace")


async def _as_json(exported: Export) -> AsyncGenerator[bytes, None]:
    yield b'{"session":' + _encode(exported.session) + b',"messages":['
    comma = b""
    async for page in exported.pages:
        yield comma + b",".join(map(_encode, page))
        comma = b","
    yield b"]}\n"


W = "/v1/workspaces/{id}"

ENDPOINTS = (
    Endpoint(
        "GET", W + "/search", search,
        "Messages and titles of sessions with all words of `q`, the newest first; the last word may be a beginning. "
        "Archived sessions are searched too. `before`, a message id, and `limit` page.",
        answer=SearchResult,
    ),
    Endpoint(
        "GET", W + "/sessions/{sid}/export", export,
        "All of a session, as Markdown (`format=markdown`) or JSON: `{session, messages}`.",
    ),
)  # fmt: skip
