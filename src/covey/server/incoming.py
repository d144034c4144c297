"""A request as it came in at a node, for whoever may have to ask it more than once, here or elsewhere."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from covey.server.access import Access
from covey.server.endpoint import read_bytes
from covey.server.membership import ALL as ALL_RIGHTS
from covey.server.membership import PAGE, TOOLS, Ask
from covey.server.passing_on import Passage
from covey.server.peers import is_from_our_tools


class Incoming:
    """A request that may have to be asked more than once: what was read of it is kept."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.send = send
        self.has_failed = False
        """Another node that was asked did not answer."""
        self._receive = receive
        self._read: list[Any] = []
        self._body: bytes | None = None
        self._run_id = ""

    async def receive(self) -> Any:
        """As the server gives it, and kept."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._read.append(message)
        return message

    def replay(self) -> Receive:
        """From the start."""
        kept, self._read = self._read, []

        async def receive() -> Any:
            if not kept:
                return await self.receive()
            message = kept.pop(0)
            self._read.append(message)
            return message

        return receive

    async def body(self) -> bytes:
        """All of it. Raises TooLarge."""
        if self._body is None:
            self._body = await read_bytes(self.scope, self.replay())
        return self._body

    async def passage(self, workspace_id: str, rest: str) -> Passage:
        method = self.scope["method"]
        body = b"" if method in ("GET", "HEAD") else await self.body()
        if method == "POST" and (rest == "agent" or rest.endswith("/summarize")):
            self._run_id = self._run_id or secrets.token_hex(8)
        ask = Ask(method, target_of(self.scope), body, self._run_id, rights_of(self.scope))
        is_stream = method == "GET" and rest == "events"
        return Passage(self.scope, self._receive, self.send, ask, workspace_id, is_stream)


def target_of(scope: Scope) -> bytes:
    """Path and query as the client wrote them."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return path + b"?" + query if query else path


def rights_of(scope: Scope) -> str:
    """In whose name a request is passed on."""
    if page := scope.get("covey.page"):
        return PAGE + str(page)
    access: Access = scope["covey.access"]
    return TOOLS if access.is_socket and is_from_our_tools(scope.get("covey.peer", 0)) else ALL_RIGHTS


class _Opening(msgspec.Struct):
    path: str = ""


def path_in(body: bytes) -> str:
    """What directory is asked for; '' if the body cannot be read: the route says what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=_Opening).path
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
