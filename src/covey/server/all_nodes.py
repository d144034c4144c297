"""What concerns all nodes of a cluster: asked of each of them, whichever was asked.

| asked | how it is answered |
|---|---|
| `GET /v1/workspaces` | the open ones of every node |
| `GET /v1/runs` | the store; of open runs what their owners say |
| `GET /v1/activity` | the streams of all nodes as one (`cluster_activity.py`) |
| `GET /v1/sessions`, `/v1/search`, `/v1/stats` | the store, by the node that was asked |
| `DELETE /v1/clients/{id}` | said to every node |
| `/v1/web/…` | the node that let a page in, which its code and its token name; lists and ends concern all |
| `POST /v1/control` with `node` | passed on to that one |
| `/metrics`, `/v1/health`, `/v1/ready`, `/v1/version`, the page | of the node that was asked |

A node that is alive by its lease and does not answer in time is left out, and named in `x-covey-missing`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from starlette.types import Receive, Scope, Send

from covey.cluster.whereabouts import There, Whereabouts
from covey.protocol.errors import ApiError, NotFound, Unavailable
from covey.server.access import bearer
from covey.server.endpoint import read_bytes, respond
from covey.server.incoming import rights_of, target_of
from covey.server.membership import Ask
from covey.server.pages import AT
from covey.server.passing_on import Passage, PassingOn
from covey.server.peer_connections import PeerFailed

if TYPE_CHECKING:
    from covey.server.app import App

log = logging.getLogger(__name__)

ANSWER_S = 5.0
"""A node that says nothing for so long is left out."""
PAGE_KNOWN_S = 60.0
"""How long a node believes what another one said of a page: when it is put out, all are told at once."""
RUNS_MAX = 1000
MISSING = b"x-covey-missing"

_Answering = Callable[["AllNodes", Scope, Receive, Send], Awaitable[None]]
_encode = msgspec.json.Encoder().encode


class Caught(NamedTuple):
    """An answer of this node's own routes."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class AllNodes:
    """This node's way to the others."""

    def __init__(self, app: App, passing: PassingOn, whereabouts: Whereabouts) -> None:
        self.app = app
        self.passing = passing
        self._whereabouts = whereabouts

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer what concerns all nodes. False: it is this node's own."""
        answering = _answering(scope["method"], scope["path"])
        if answering is None:
            return False
        await answering(self, scope, receive, send)
        return True

    async def others(self) -> list[There]:
        """The other nodes that are alive."""
        found = await self._whereabouts.nodes()
        mine = self._whereabouts.node_id
        return [There(node.id, node.name, node.address) for node in found if node.is_alive and node.id != mine]

    async def named(self, name: str) -> There | None:
        """A node that is alive, by its name; None: it is this one. Raises Unavailable, or NotFound if there is none."""
        if name == self._whereabouts.name:
            return None
        nodes = [node for node in await self._whereabouts.nodes() if node.name == name]
        for node in nodes:
            if node.is_alive:
                return There(node.id, node.name, node.address)
        if nodes:
            raise Unavailable(f"the node {name} is gone; `covey nodes` lists those that are there", "node_unreachable")
        raise NotFound(f"there is no node {name!r}; `covey nodes` lists them", "node_not_found")

    async def ask_all(self, ask: Ask) -> tuple[list[bytes], list[str]]:
        """What every other node answers with success, and the names of those that do not answer."""
        nodes = await self.others()
        said = await asyncio.gather(*(self._ask(node, ask) for node in nodes))
        missing = [node.name for node, found in zip(nodes, said, strict=True) if found is None]
        return [body for found in said if found is not None for status, body in (found,) if status < 300], missing

    async def _ask(self, node: There, ask: Ask) -> tuple[int, bytes] | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self.passing.ask(node, ask)
        except (PeerFailed, TimeoutError, ApiError) as error:
            log.warning("node %s at %s does not answer %s: %r", node.name, node.address, ask.target.decode(), error)
            return None

    async def adopt_elsewhere(self, workspace_id: str) -> None:
        """Ask one other node to take up a workspace that nobody owns. A hint: whoever looks around finds it too."""
        for node in await self._whereabouts.nodes():
            if node.is_alive and not node.draining and node.id != self._whereabouts.node_id:
                there = There(node.id, node.name, node.address)
                if await self._ask(there, Ask("POST", f"/v1/node/adopt/{workspace_id}".encode())):
                    return

    async def of_routes(self, scope: Scope, receive: Receive) -> Caught:
        """What this node alone answers. Raises ApiError as the routes do."""
        head: dict[str, Any] = {}
        pieces: list[bytes] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            else:
                pieces.append(message.get("body", b""))

        await self.app.route(scope, receive, send)
        return Caught(head["status"], list(head["headers"]), b"".join(pieces))

    async def learn_page(self, scope: Scope) -> None:
        """Before access is checked: ask the node that let a page in whether it may still come in."""
        token = next((bearer(value) for name, value in scope["headers"] if name == b"authorization"), b"").decode(
            "latin-1"
        )
        name, at, _ = token.partition(AT)
        pages = self.app.pages
        if not at or name == self._whereabouts.name or pages.is_known(token):
            return
        try:
            node = await self.named(name)
        except NotFound:
            return  # then nobody has let it in
        if node is None:
            return
        target = b"/v1/node/pages/" + hashlib.sha256(token.encode()).hexdigest().encode()
        if (found := await self._ask(node, Ask("GET", target))) is None:
            raise Unavailable(
                f"the node {name}, which let this page in, does not answer", "node_unreachable", retry_after=1
            )
        pages.learn(token, msgspec.json.decode(found[1], type=str) if found[0] == 200 else None, PAGE_KNOWN_S)


async def _lists(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    """One list of all nodes' lists."""
    mine = await nodes.of_routes(scope, receive)
    others, missing = await nodes.ask_all(Ask("GET", scope["path"].encode()))
    lists = [msgspec.json.decode(body, type=list[msgspec.Raw]) for body in (mine.body, *others)]
    await _respond_list(send, [entry for found in lists for entry in found], missing)


class _Placed(msgspec.Struct):
    workspace_id: str
    run_id: str
    accepted_at: float
    seq: int


async def _runs(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    """The owners' word counts for what is open, and the store's for the rest."""
    query = scope["query_string"]
    mine = await nodes.of_routes(scope, receive)
    others, missing = await nodes.ask_all(Ask("GET", b"/v1/runs?" + query + b"&open=1"))
    found: dict[tuple[str, str], tuple[_Placed, msgspec.Raw]] = {}
    for body in (mine.body, *others):
        for raw in msgspec.json.decode(body, type=list[msgspec.Raw]):
            run = msgspec.json.decode(raw, type=_Placed)
            found[run.workspace_id, run.run_id] = run, raw
    newest = sorted(found.values(), key=lambda each: (each[0].accepted_at, each[0].seq), reverse=True)
    limit = int(float((parse_qs(query.decode("latin-1")).get("limit") or ["0"])[0])) or RUNS_MAX
    await _respond_list(send, [raw for _, raw in newest[:limit]], missing)


async def _told_to_all(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    """Each node does it; this one answers."""
    mine = await nodes.of_routes(scope, receive)
    _, missing = await nodes.ask_all(Ask(scope["method"], scope["path"].encode()))
    await respond(send, mine.status, mine.body, [*mine.headers, *_missing(missing)])


async def _revoked(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    """A page is known to one node, and may be read by others: all are told, and it must be known to one of them."""
    page_id = scope["path"].rpartition("/")[2]
    try:
        mine: Caught | None = await nodes.of_routes(scope, receive)
    except NotFound:
        mine = None
    nodes.app.pages.forget(page_id)
    said, missing = await nodes.ask_all(Ask("DELETE", scope["path"].encode()))
    if mine is None and not said:
        raise NotFound(f"there is no page {page_id!r}; `covey web --sessions` lists them", "page_not_found")
    await respond(send, 200, b"", [(b"content-length", b"0"), *_missing(missing)])


async def _signed_out(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    """The page that asks puts itself out, wherever it was let in."""
    page = scope.get("covey.page", "")
    await respond(send, 200, b"", [(b"content-length", b"0")]) if not page else await _revoked(
        nodes, {**scope, "method": "DELETE", "path": f"/v1/web/sessions/{page}", "covey.page": ""}, receive, send
    )


class _Named(msgspec.Struct):
    code: str = ""
    node: str = ""


async def _redeemed(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    """A code is good at the node that made it."""
    await _at_node(nodes, scope, receive, send, lambda said: said.code.partition(AT)[0] if AT in said.code else "")


async def _controlled(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    await _at_node(nodes, scope, receive, send, lambda said: said.node)


async def _at_node(
    nodes: AllNodes, scope: Scope, receive: Receive, send: Send, name_of: Callable[[_Named], str]
) -> None:
    body = await read_bytes(scope, receive)
    try:
        name = name_of(msgspec.json.decode(body, type=_Named))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        name = ""  # the route says what is wrong with it
    node = await nodes.named(name) if name else None
    if node is None:
        await nodes.app.route(scope, _again(body), send)
        return
    ask = Ask(scope["method"], target_of(scope), body, rights=rights_of(scope))
    try:
        await nodes.passing.carry(Passage(scope, receive, send, ask), node, is_fresh=True)
    except PeerFailed as failure:
        raise Unavailable(f"the node {node.name} does not answer: {failure}", "node_unreachable") from None


async def _activity(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    from covey.server.cluster_activity import serve_activity

    await serve_activity(nodes, scope, receive, send)


_EXACTLY: dict[tuple[str, str], _Answering] = {
    ("GET", "/v1/workspaces"): _lists,
    ("GET", "/v1/runs"): _runs,
    ("GET", "/v1/activity"): _activity,
    ("GET", "/v1/web/sessions"): _lists,
    ("POST", "/v1/web/sessions"): _redeemed,
    ("POST", "/v1/web/sign-out"): _signed_out,
    ("POST", "/v1/control"): _controlled,
}
_BELOW: tuple[tuple[str, str, _Answering], ...] = (
    ("DELETE", "/v1/clients/", _told_to_all),
    ("DELETE", "/v1/web/sessions/", _revoked),
)


def _answering(method: str, path: str) -> _Answering | None:
    exact = _EXACTLY.get((method, path))
    return exact or next((found for verb, start, found in _BELOW if verb == method and path.startswith(start)), None)


def _missing(names: Sequence[str]) -> list[tuple[bytes, bytes]]:
    return [(MISSING, ", ".join(names).encode())] if names else []


async def _respond_list(send: Send, entries: Sequence[msgspec.Raw], missing: Sequence[str]) -> None:
    await respond(send, 200, _encode(entries), [(b"content-type", b"application/json"), *_missing(missing)])


def _again(body: bytes) -> Receive:
    """A body that was read, to be read again."""

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
