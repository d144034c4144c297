"""The agent's side of ACP, version 1: which method does what. Everything that lasts is on the server.

A run outlives the editor, and other windows see it. Ids of sessions are the server's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from covey import __version__
from covey.acp.content import Json
from covey.acp.directory import SessionDirectory, listed
from covey.acp.open_session import OpenSession
from covey.acp.passed import not_used, servers_of
from covey.acp.prompts import prompt_of
from covey.acp.settings import MODES
from covey.client.client import Client
from covey.client.connect import environment
from covey.client.errors import ServerUnreachable
from covey.client.prompt import new_run_id
from covey.protocol.errors import ApiError, NotFound
from covey.protocol.requests import UpdateSession
from covey.rpc.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Id,
    Notification,
    Params,
    Request,
    RpcError,
)
from covey.rpc.peer import AnsweredThen, Peer

PROTOCOL_VERSION = 1
REQUEST_CANCELLED = -32800
RESOURCE_NOT_FOUND = -32002
MOST_SESSIONS = 32
"""Open at once in one editor: each is a connection."""
CAPABILITIES: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
}

Connect = Callable[[str], AbstractAsyncContextManager[Client]]
"""A client of the server, by the name of the editor."""


class Bridge:
    """For one editor. Give it to a `Peer`, and that to `attach`."""

    def __init__(self, connect: Connect, *, default_cwd: str) -> None:
        self._connect = connect
        self._editor = ""
        self._client_can: Json = {}
        self._sessions: dict[str, OpenSession] = {}
        self._runs: dict[Id, tuple[OpenSession, str]] = {}
        """Requests that are prompts: their session and run."""
        self._stack = AsyncExitStack()
        self._directory = SessionDirectory(self._base, default_cwd)
        self._connecting = asyncio.Lock()
        self._client: Client | None = None
        self._peer: Peer | None = None
        self._methods: dict[str, Callable[[Request], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": lambda request: self._open_known(request, replays=True),
            "session/resume": lambda request: self._open_known(request, replays=False),
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def attach(self, peer: Peer) -> None:
        self._peer = peer

    async def close(self) -> None:
        """The editor has gone. Its runs go on."""
        sessions = list(self._sessions.values())
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        await self._stack.aclose()

    # ── what the editor says ──

    async def request(self, request: Request) -> Any:
        method = self._methods.get(request.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"{request.method[:100]} is not known here")
        return await method(request)

    def notification(self, notification: Notification) -> None:
        params = notification.params
        match notification.method:
            case "session/cancel":
                if session := self._sessions.get(str(params.get("sessionId"))):
                    session.cancel()
            case "$/cancel_request":
                self._take_back(params.get("requestId"))

    def internal(self, error: Exception) -> RpcError:
        match error:
            case NotFound():
                return RpcError(RESOURCE_NOT_FOUND, error.message)
            case ApiError() if error.status < 500:
                return RpcError(INVALID_PARAMS, error.message)
            case ApiError() | ServerUnreachable():
                return RpcError(INTERNAL_ERROR, str(error))
        return RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}")

    def _take_back(self, id: Any) -> None:
        """Of a prompt its run is cancelled, and its answer says so when it has ended."""
        if not isinstance(id, str | int):
            return
        if prompt := self._runs.get(id):
            session, run_id = prompt
            session.cancel(run_id)
        elif self._peer:
            self._peer.stop(id, RpcError(REQUEST_CANCELLED, "cancelled"))

    # ── methods ──

    async def _initialize(self, request: Request) -> Json:
        capabilities = request.params.get("clientCapabilities")
        self._client_can = capabilities if isinstance(capabilities, dict) else {}
        info = request.params.get("clientInfo")
        if isinstance(info, dict):
            self._editor = str(info.get("title") or info.get("name") or "")
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": CAPABILITIES,
            "agentInfo": {"name": "covey", "title": "Covey", "version": __version__},
            "authMethods": [],
        }

    async def _authenticate(self, request: Request) -> Json:
        raise RpcError(INVALID_PARAMS, "there is nothing to log in to here; keys are set with `covey login`")

    async def _new(self, request: Request) -> AnsweredThen:
        root = _directory(request.params)
        self._check_room()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._connect(self._editor))
            workspace = await client.create_workspace(root, env=environment(client.address))
            created = await client.create_session(workspace.id)
            session = await self._enter(stack, client, workspace.id, root, created.id)
        session.skip_history()
        return await self._opened(session, request.params, {"sessionId": session.id, **session.state()})

    async def _open_known(self, request: Request, *, replays: bool) -> AnsweredThen:
        root, session_id = _directory(request.params), _text(request.params, "sessionId")
        session = self._sessions.get(session_id)
        if session:
            await session.stop_telling()
        else:
            self._check_room()
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._connect(self._editor))
                workspace = await client.create_workspace(root, env=environment(client.address))
                await client.session(workspace.id, session_id)
                session = await self._enter(stack, client, workspace.id, root, session_id)
        session.adopt()
        try:
            if replays:
                await session.replay()
            else:
                session.skip_history()
            return await self._opened(session, request.params, session.state())
        except BaseException:
            session.begin_telling()  # whoever asked has given up, and other requests about it have not
            raise

    async def _enter(
        self, stack: AsyncExitStack, client: Client, workspace_id: str, root: str, session_id: str
    ) -> OpenSession:
        assert self._peer
        session = OpenSession(self._peer, stack, client, workspace_id, root, session_id)
        await session.enter(
            notices=_has(self._client_can, "session", "notices"),
            can_ask_questions=_has(self._client_can, "elicitation", "form"),
        )
        session.keep(stack.pop_all())
        self._sessions[session_id] = session
        self._directory.remember(session_id, root)
        return session

    async def _opened(self, session: OpenSession, params: Params, result: Json) -> AnsweredThen:
        servers, left_out = servers_of(params.get("mcpServers"))
        if left_out:
            session.updates.tell(not_used(left_out))
        await session.bring(servers)
        return AnsweredThen(result, session.begin_telling)

    async def _list(self, request: Request) -> Json:
        cwd, cursor = request.params.get("cwd"), request.params.get("cursor")
        page = await self._directory.page(
            cwd if isinstance(cwd, str) else "", cursor if isinstance(cursor, str) else ""
        )
        result: Json = {"sessions": [listed(session, root) for root, session in page.sessions]}
        return {**result, "nextCursor": page.next_cursor} if page.next_cursor else result

    async def _close(self, request: Request) -> Json:
        session = self._open_session(request.params)
        session.cancel()
        await session.settled()
        await session.bring(())
        self._sessions.pop(session.id, None)
        await session.close()
        return {}

    async def _delete(self, request: Request) -> Json:
        session_id = _text(request.params, "sessionId")
        await self._directory.delete(session_id)
        if session := self._sessions.pop(session_id, None):
            await session.settled()
            await session.close()
        return {}

    async def _prompt(self, request: Request) -> Json:
        session = self._open_session(request.params)
        prompt = prompt_of(request.params.get("prompt"), session.id, session.root)
        command, _, rest = prompt.prompt.strip().partition(" ")
        if command == "/summarize" and not prompt.attachments:
            return await session.summarize(rest.strip())
        run_id = new_run_id()
        self._runs[request.id] = (session, run_id)
        try:
            return await session.prompt(prompt, run_id)
        finally:
            del self._runs[request.id]

    async def _set_mode(self, request: Request) -> Json:
        await self._change_mode(self._open_session(request.params), request.params.get("modeId"))
        return {}

    async def _set_option(self, request: Request) -> Json:
        session, value = self._open_session(request.params), request.params.get("value")
        match request.params.get("configId"):
            case "mode":
                await self._change_mode(session, value)
            case "model" if isinstance(value, str) and value:
                await session.change(UpdateSession(model=value))
            case other:
                raise RpcError(INVALID_PARAMS, f"there is no option {str(other)[:100]!r} with such a value")
        return {"configOptions": session.state()["configOptions"]}

    async def _change_mode(self, session: OpenSession, mode: Any) -> None:
        known = next((id for id in MODES if id == mode), None)
        if known is None:
            raise RpcError(INVALID_PARAMS, f"there is no mode {str(mode)[:100]!r}; there are {', '.join(MODES)}")
        await session.change(UpdateSession(mode=known))

    # ── inside ──

    async def _base(self) -> Client:
        """The connection for what belongs to no session."""
        async with self._connecting:
            if self._client is None:
                self._client = await self._stack.enter_async_context(self._connect(self._editor))
            else:
                await self._client.revive()  # a server that nobody has needed for a while has left
        return self._client

    def _check_room(self) -> None:
        if len(self._sessions) >= MOST_SESSIONS:
            raise RpcError(INVALID_PARAMS, f"{MOST_SESSIONS} sessions are open: close one first")

    def _open_session(self, params: Params) -> OpenSession:
        session_id = _text(params, "sessionId")
        session = self._sessions.get(session_id)
        if session is None:
            raise RpcError(RESOURCE_NOT_FOUND, f"the session {session_id[:100]} is not open here; load it first")
        return session


def _directory(params: Params) -> str:
    cwd = _text(params, "cwd")
    if not cwd.startswith("/"):
        raise RpcError(INVALID_PARAMS, "cwd is an absolute path")
    return cwd.rstrip("/") or "/"


def _text(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise RpcError(INVALID_PARAMS, f"{name} is missing")
    return value


def _has(capabilities: Json, *names: str) -> bool:
    found: Any = capabilities
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found is not None and found is not False
