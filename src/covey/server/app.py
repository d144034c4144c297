"""The ASGI application: access first, then the route table, and one place where errors become answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route, Router
from starlette.types import Receive, Scope, Send

from covey.engine.workspaces import Workspaces
from covey.protocol.errors import ApiError, MethodNotAllowed, NotFound, TooLarge
from covey.server.access import Access
from covey.server.endpoint import ClientGone, Endpoint, respond, respond_error
from covey.server.event_stream import ActivityApp, AnyStream, EventStreamApp
from covey.server.pages import Pages
from covey.server.routes import (
    custom,
    everywhere,
    extensions,
    files,
    jobs,
    permissions,
    questions,
    runs,
    service,
    session_texts,
    sessions,
    shell,
    undo,
    v1_config,
    v1_files,
    v1_lsp,
    v1_mcp,
    web,
    workspaces,
)

if TYPE_CHECKING:
    from covey.server.front_door import FrontDoor

log = logging.getLogger(__name__)

BEAT_S = 2.5
"""How often all streams are looked at: a keep-alive is late by at most this much."""

ENDPOINTS: tuple[Endpoint, ...] = (
    *runs.ENDPOINTS,
    *sessions.ENDPOINTS,
    *session_texts.ENDPOINTS,
    *undo.ENDPOINTS,
    *files.ENDPOINTS,
    *custom.ENDPOINTS,
    *workspaces.ENDPOINTS,
    *permissions.ENDPOINTS,
    *questions.ENDPOINTS,
    *extensions.ENDPOINTS,
    *shell.ENDPOINTS,
    *jobs.ENDPOINTS,
    *everywhere.ENDPOINTS,
    *web.ENDPOINTS,
    *service.ENDPOINTS,
)
"""The ones that are called most stand first: routes are tried in order."""

V1_ENDPOINTS: tuple[Endpoint, ...] = (
    *v1_files.ENDPOINTS,
    *v1_config.ENDPOINTS,
    *v1_mcp.ENDPOINTS,
    *custom.V1_ENDPOINTS,
    *v1_lsp.ENDPOINTS,
)
"""For v1 clients alone, which know them: /openapi.json does not describe them."""


class App:
    """The server as uvicorn sees it."""

    def __init__(
        self, workspaces: Workspaces, access: Access, counts: dict[str, int], stop: Callable[[], None]
    ) -> None:
        self.workspaces = workspaces
        self.cluster: FrontDoor | None = None
        self.cluster_metrics: Callable[[], Iterable[str]] | None = None
        """Of a node: requests come in there, and go on to whoever owns their workspace."""
        self.streams: set[AnyStream] = set()
        self.stop = stop
        self.access = access
        self.pages = access.pages or Pages(None)
        self.counts = counts
        self._router = Router(
            [
                Route("/v1/workspaces/{id}/events", EventStreamApp(), methods=["GET"]),
                Route("/v1/activity", ActivityApp(), methods=["GET"]),
                *(Route(e.path, e, methods=[e.method]) for e in (*ENDPOINTS, *V1_ENDPOINTS)),
                Route("/metrics", self._metrics, methods=["GET"]),
                Route("/openapi.json", _OpenApi(), methods=["GET"]),
                Route("/", _Page(), methods=["GET"]),
                Route("/web/{hash}/{path:path}", _Page(), methods=["GET"]),
            ],
            redirect_slashes=False,
            default=_not_found,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["covey"] = scope["app"] = self
        access = scope.setdefault("covey.access", self.access)
        try:
            if self.cluster is not None:
                await self.cluster.serve(scope, receive, send)
            else:
                access.check(scope)
                await self._router(scope, receive, send)
        except MethodNotAllowed as error:
            await respond_error(send, error, [self._allow(scope)])
        except TooLarge as error:
            await respond_error(send, error, [(b"connection", b"close")], receive)
        except ApiError as error:
            await respond_error(send, error)
        except HTTPException as error:
            refusal = MethodNotAllowed(f"{scope['method']} is not for this path: {error.detail}")
            await respond_error(send, refusal, [self._allow(scope)])
        except ClientGone:
            pass
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await respond_error(send, ApiError("an error of ours; the server's log has the details"))

    async def route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer here, what was checked before. Raises ApiError."""
        await self._router(scope, receive, send)

    def _allow(self, scope: Scope) -> tuple[bytes, bytes]:
        """What a 405 has to name: the methods of this path. HEAD is left out."""
        routes = [route for route in self._router.routes if route.matches(scope)[0] is not Match.NONE]
        methods = {method for route in routes if isinstance(route, Route) for method in route.methods or ()}
        return b"allow", ", ".join(sorted(methods - {"HEAD"})).encode()

    async def beat(self) -> None:
        """Keep quiet streams alive and end the stalled ones, until cancelled."""
        while True:
            await asyncio.sleep(BEAT_S)
            now = asyncio.get_running_loop().time()
            for stream in list(self.streams):
                stream.beat(now)

    async def _metrics(self, request: Any) -> Any:
        from starlette.responses import Response

        from covey.server import metrics

        more = self.cluster_metrics() if self.cluster_metrics else ()
        text = metrics.render(self.workspaces, self.counts, len(self.streams), more)
        return Response(text, media_type="text/plain; version=0.0.4")


class Gate:
    """The same application at another address, with the rules of that one."""

    def __init__(self, app: App, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["covey.access"] = self._access
        await self._app(scope, receive, send)


class _Page:
    """The files of the page. They hold no data, and need no token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from covey.server.page_files import HEADERS, page_files

        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("the page can only be read")
        page, asked = await asyncio.to_thread(page_files), scope["path_params"]
        file = page.index if not asked else page.files.get(asked["path"]) if asked["hash"] == page.hash else None
        if file is None:
            raise NotFound("there is no such file of the page; reload it, as Covey may have been updated")
        headers = [(b"content-type", file.content_type), (b"cache-control", file.cache), *HEADERS]
        headers.append((b"vary", b"accept-encoding"))
        is_packed = any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])
        if is_packed:
            headers.append((b"content-encoding", b"gzip"))
        await respond(send, 200, file.packed if is_packed else file.data, headers)


class _OpenApi:
    def __init__(self) -> None:
        self._document = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._document:
            from covey.server import openapi

            self._document = msgspec.json.encode(openapi.describe(ENDPOINTS))
        await respond(send, 200, self._document, [(b"content-type", b"application/json")])


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound(f"there is no {scope['path']}; /openapi.json lists what there is")
