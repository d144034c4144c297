"""Whose is this request? A node of a cluster asks that before its routes; one server alone has no front door.

Here: the application as it is. At another node: passed on, one hop at most. Nobody's: it was claimed here, or somebody
has to give it up first, and the request waits. A client's token, Host and Origin are checked at the node that it speaks
to; a node believes another one that proves to be of the same cluster (`membership.py`).

What is about no workspace is answered by the node that was asked, but for what concerns all of them (`all_nodes.py`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec
from starlette.types import Receive, Scope, Send

from covey.cluster.whereabouts import Here, Nobody, Place, There, Whereabouts
from covey.protocol.errors import BadRequest, Conflict, Forbidden, Misdirected, NotFound, Unavailable
from covey.protocol.requests import NodeView
from covey.server.access import Access
from covey.server.all_nodes import AllNodes
from covey.server.direct_writer import hold_little
from covey.server.endpoint import respond, respond_error
from covey.server.incoming import Incoming, path_in, target_of
from covey.server.membership import PASSED_ON, RUN_ID, TOOLS, PassedOn, verify
from covey.server.page_sessions import REVOKED
from covey.server.passing_on import WRONG_SECRET, NotTheOwner, PassingOn
from covey.server.peer_connections import SPLICED_BYTES, PeerFailed

if TYPE_CHECKING:
    from covey.server.app import App

log = logging.getLogger(__name__)

BEYOND_LEASE_S = 3.0
"""How much longer than a lease a request waits for its owner: until others have noticed, and one has taken it up."""
FIRST_PAUSE_S = 0.03
LONGEST_PAUSE_S = 0.5
"""Between two looks for the owner."""
LEAVE_S = 5.0
"""How long a node that leaves stays for those who wait for an answer of another one."""
MOVED = "workspace_moved"
"""The code of what this node's engine says about a workspace that it does not own any more."""
W = "/v1/workspaces/"
MOST_KNOWN = 10_000
"""Workspaces whose owners are remembered."""
NODE = "/v1/node/"
"""What only nodes may ask of each other is below this."""
_JSON = (b"content-type", b"application/json")
REPEATABLE = ("/summarize", "/cancel", "/grant", "/answer", "/skip", "/current-session")
"""How the paths end of what may be posted twice: the second time finds it done. So may prompts, which have an id."""


class FrontDoor:
    """All requests of a node come in here."""

    def __init__(self, app: App, whereabouts: Whereabouts, lease_s: float) -> None:
        self.whereabouts = whereabouts
        self.passing = PassingOn(app, whereabouts.secret, whereabouts.name)
        self.nodes = AllNodes(app, self.passing, whereabouts)
        app.pages.node = whereabouts.name
        self._app = app
        self._wait_s = lease_s + BEYOND_LEASE_S
        self._known: dict[str, There] = {}
        """Where requests went last, so that not each of them asks the store: who is asked in vain says so."""
        self._looking: set[asyncio.Task[None]] = set()
        self._is_leaving = False
        whereabouts.on_moved(self._on_moved)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered. Raises ApiError as the routes do."""
        for name, value in scope["headers"]:
            if name == PASSED_ON:
                await self._from_node(scope, receive, send, value)
                return
        await self.nodes.learn_page(scope)
        access: Access = scope["covey.access"]
        access.check(scope)
        path: str = scope["path"]
        if path.startswith(W):
            workspace_id, _, rest = path.removeprefix(W).partition("/")
            if self.whereabouts.is_here(workspace_id):
                await self._here_or_elsewhere(scope, receive, send, workspace_id, rest)
            else:
                await self._look(Incoming(scope, receive, send), workspace_id, rest)
        elif path == "/v1/workspaces" and scope["method"] == "POST":
            await self._open(Incoming(scope, receive, send))
        elif not await self.nodes.answer(scope, receive, send):
            await self._app.route(scope, receive, send)

    async def leave(self) -> None:
        """This node is about to go: who reads through it does so through another one from now on.

        Who waits for something may still get it, for a moment: the next owner has just begun.
        """
        self.passing.end("this node is about to leave", is_stream=True)
        await self.passing.quiet(LEAVE_S)
        self._is_leaving = True
        self.passing.end("this node is about to leave", is_stream=False)

    def close(self) -> None:
        for task in self._looking:
            task.cancel()
        self.passing.close()

    # ── for routes ──

    def why_not_ready(self) -> str:
        """Why requests should not be sent here; empty if they may."""
        return self.whereabouts.why_not_ready()

    async def forget(self, name: str) -> None:
        """Raises NotFound or Conflict."""
        if not await self.whereabouts.forget(name):
            if any(node.name == name for node in await self.whereabouts.nodes()):
                raise Conflict(
                    f"the node {name} is alive: `covey nodes drain {name}` has it leave in good order", "busy"
                )
            raise NotFound(f"there is no node {name!r}; `covey nodes` lists them", "node_not_found")

    async def list_nodes(self) -> list[NodeView]:
        mine = self.whereabouts.node_id
        return [
            NodeView(
                name=node.name,
                address=node.address,
                state="gone" if not node.is_alive else "draining" if node.draining else "ready",
                workspaces=node.owned,
                lease_s=round(node.lease_left_s, 1),
                version=node.version,
                id=node.id,
                is_asked=node.id == mine,
            )
            for node in await self.whereabouts.nodes()
        ]

    # ── from clients ──

    async def _here_or_elsewhere(
        self, scope: Scope, receive: Receive, send: Send, workspace_id: str, rest: str
    ) -> None:
        request = Incoming(scope, receive, send)
        try:
            await self._app.route(scope, request.receive, send)
        except Unavailable as error:
            if error.code != MOVED:
                raise
            await self._look(request, workspace_id, rest)  # it was taken from us in this very moment

    async def _look(self, request: Incoming, workspace_id: str, rest: str) -> None:
        """Find the owner, and have it answer; wait for one as long as there may be one soon."""
        may_claim = _may_claim(request.scope["method"], rest)
        waiting = OwnerWait(self._wait_s)
        while True:
            found = self._known.pop(workspace_id, None) or await self.whereabouts.find(workspace_id, claim=may_claim)
            if isinstance(found, Nobody) and not may_claim and not found.retry_after:
                raise NotFound(
                    "the workspace was released; open it again with POST /v1/workspaces and its path",
                    "workspace_released",
                )
            if await self._is_answered(request, found, workspace_id, rest):
                return
            await self._pause(waiting, found)

    async def _open(self, request: Incoming) -> None:
        """Open the workspace of a directory: at its owner, if it has one."""
        body = await request.body()
        path = path_in(body)
        waiting = OwnerWait(self._wait_s)
        while True:
            try:
                workspace_id, found = await self.whereabouts.find_path(path)
            except BadRequest:  # this node's routes say what is wrong with it
                workspace_id, found = "", Here()
            if await self._is_answered(request, found, workspace_id, ""):
                return
            await self._pause(waiting, found)

    async def _pause(self, waiting: OwnerWait, found: Place) -> None:
        if self._is_leaving:
            raise Unavailable("this node is about to leave: ask another one, or again in a moment", retry_after=1)
        await waiting.pause(found)

    async def _is_answered(self, request: Incoming, found: Place, workspace_id: str, rest: str) -> bool:
        """False: somebody else has it by now, or will have it soon."""
        if isinstance(found, Here):
            try:
                await self._app.route(request.scope, request.replay(), request.send)
            except Unavailable as error:
                if error.code != MOVED:
                    raise
                return False
            return True
        if isinstance(found, There):
            return await self._is_answered_there(request, found, workspace_id, rest)
        return False

    async def _is_answered_there(self, request: Incoming, there: There, workspace_id: str, rest: str) -> bool:
        passage = await request.passage(workspace_id, rest)
        self._know(workspace_id, there)
        may_repeat = _is_repeatable(passage.ask.method, rest)
        try:
            await self.passing.carry(passage, there, is_fresh=not may_repeat)
        except NotTheOwner:
            self._known.pop(workspace_id, None)
            return False
        except PeerFailed as failure:
            self._known.pop(workspace_id, None)
            if not request.has_failed:  # said once, not at each attempt
                log.info("%s %s at node %s: %s", passage.ask.method, request.scope["path"], there.name, failure)
            request.has_failed = True
            if failure.was_sent and not may_repeat:
                raise Unavailable(
                    f"the node {there.name}, which has this workspace, went away before it answered: "
                    "look whether this was done before you ask for it again",
                    "outcome_unknown",
                ) from None
            return False
        return True

    def _know(self, workspace_id: str, there: There) -> None:
        self._known[workspace_id] = there
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _on_moved(self, workspace_id: str) -> None:
        self._known.pop(workspace_id, None)
        task = asyncio.create_task(self._end_what_is_elsewhere(workspace_id))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _end_what_is_elsewhere(self, workspace_id: str) -> None:
        try:
            found = await self.whereabouts.find(workspace_id, claim=False)
        except Exception:  # the store is away: whoever reads there comes back and looks again
            found = Nobody(0.0)
        self.passing.moved(workspace_id, found.node_id if isinstance(found, There) else "")

    # ── from other nodes ──

    async def _from_node(self, scope: Scope, receive: Receive, send: Send, header: bytes) -> None:
        headers = dict(scope["headers"])
        run_id = headers.get(RUN_ID, b"").decode("latin-1")
        try:
            said = verify(self.whereabouts.secret, scope["method"], target_of(scope), header, run_id)
        except Forbidden as error:
            log.warning("%s %s: %s", scope["method"], scope["path"], error.message)
            await respond_error(send, error, [(WRONG_SECRET, b"1")])
            return
        request = Incoming(scope, receive, send)
        if headers.get(b"content-length", b"0") != b"0" and not said.is_body(await request.body()):
            raise Forbidden("the body of this request is not the one that was passed on", "wrong_cluster_secret")
        scope["covey.passed_on"] = True
        scope["covey.run_id"] = said.run_id
        scope["covey.page"] = said.page
        scope["covey.is_tool"] = said.rights == TOOLS
        await self._check_ours(scope, said, request)
        if scope["path"].endswith("/events"):
            hold_little(send, SPLICED_BYTES)
        if scope["path"].startswith(NODE):
            await self._between_nodes(scope, send)
            return
        try:
            await self._app.route(scope, request.replay(), send)
        except Unavailable as error:
            if error.code != MOVED:
                raise
            raise _not_ours() from None

    async def _check_ours(self, scope: Scope, said: PassedOn, request: Incoming) -> None:
        """Raise Misdirected unless this node is the one that is meant, and has the workspace."""
        if said.receiver != self.whereabouts.node_id:
            raise Misdirected("this node has started again since it was looked up")
        path: str = scope["path"]
        found: Place = Here()
        if path.startswith(W):
            workspace_id, _, rest = path.removeprefix(W).partition("/")
            if not self.whereabouts.is_here(workspace_id):
                found = await self.whereabouts.find(workspace_id, claim=_may_claim(scope["method"], rest))
        elif path == "/v1/workspaces" and scope["method"] == "POST":
            _, found = await self.whereabouts.find_path(path_in(await request.body()))
        if not isinstance(found, Here):
            raise _not_ours()

    async def _between_nodes(self, scope: Scope, send: Send) -> None:
        """What only nodes ask of each other."""
        what, _, about = scope["path"].removeprefix(NODE).partition("/")
        if scope["method"] == "GET" and what == "pages":
            page = self._app.pages.sessions.find_hash(about)
            await respond(send, 200 if page and page != REVOKED else 404, msgspec.json.encode(page), [_JSON])
        elif scope["method"] == "POST" and what == "adopt":
            await self._app.workspaces.adopt(about)
            await respond(send, 200, b"", [(b"content-length", b"0")])
        else:
            raise NotFound(f"nodes do not ask each other for {scope['path']}")


class OwnerWait:
    """For an owner: a little longer each time, until nobody can be expected to take the workspace up any more."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._pause_s = FIRST_PAUSE_S

    async def pause(self, found: Place) -> None:
        if self._loop.time() >= self._until:
            who = f"the node {found.name} at {found.address}" if isinstance(found, There) else "a node"
            raise Unavailable(
                f"{who} has this workspace and does not answer; ask again in a moment",
                "owner_unreachable",
                retry_after=1,
            )
        asked = found.retry_after if isinstance(found, Nobody) else 0.0
        await asyncio.sleep(max(self._pause_s, min(asked, LONGEST_PAUSE_S)))
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)


def _may_claim(method: str, rest: str) -> bool:
    """Looking whether a workspace is there, or leaving it, must not open it again."""
    return bool(rest) or method not in ("GET", "DELETE")


def _is_repeatable(method: str, rest: str) -> bool:
    """Whether asking twice does what asking once does."""
    if method in ("GET", "HEAD", "PUT"):
        return True
    return method == "POST" and (rest in ("", "agent") or f"/{rest}".endswith(REPEATABLE))


def _not_ours() -> Misdirected:
    return Misdirected("this node does not have the workspace: look again who does")
