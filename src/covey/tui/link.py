"""The way to the server: finds or starts it, joins the workspace, and follows it for as long as the face runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.client.follower import Follower
from covey.client.view.view import View
from covey.protocol.errors import ApiError
from covey.tui.door import Door
from covey.tui.face.facts import Said

if TYPE_CHECKING:
    from covey.tui.app import FaceApp
LOOK_S = 0.02
"""More often nobody could see it."""


class ServerLink:
    def __init__(self, app: FaceApp, door: Door) -> None:
        self._app = app
        self._door = door
        self.client: Client | None = None
        self.follower: Follower | None = None
        self.root = ""
        """Of the workspace, once it is joined."""
        self.is_ready = asyncio.Event()
        """A workspace was joined: commands may be sent."""

    @property
    def workspace_id(self) -> str:
        assert self.follower is not None, "it is asked for when the link is ready"
        return self.follower.workspace_id

    async def run(self) -> None:
        """Raises what no waiting will change: a server that does not start, a token that is refused."""
        face = self._app.face
        face.state = replace(face.state, is_starting="starting")
        async with self._door.connect(lambda text: self._app.feed(Said(text, "warning"))) as client:
            self.client = client
            workspace = await self._door.join(client)
            self.root = workspace.path
            session_id = await self._door.choose(client, workspace.id)
            async with Follower(client, workspace.id, session_id=session_id, on_step=self._app.stepped) as follower:
                self.follower = follower
                face.client_id = client.client_id
                self._carry_over(follower.view)
                face.state = replace(face.state, is_starting="")
                self._app.joined(workspace.path)
                self.is_ready.set()
                await self._follow(follower)

    def _carry_over(self, view: View) -> None:
        """The follower's view takes the place of the empty one."""
        face = self._app.face
        face.view, face.state = view, face.state.joined(view.current)

    async def _follow(self, follower: Follower) -> None:
        seen, was_lost = -1, False
        while True:
            seen = await follower.changed(seen) if seen >= 0 else follower.revision
            self._app.looked()
            is_lost = follower.view.link.state == "lost"
            if was_lost and not is_lost:
                await self._introduce(follower)
            was_lost = is_lost
            # Whatever else comes before the next frame is looked at once.
            await asyncio.sleep(LOOK_S)

    async def _introduce(self, follower: Follower) -> None:
        """A server that was started anew knows neither our name nor that we need the workspace."""
        with suppress(ServerUnreachable, ApiError):
            await follower.client.rejoin(follower.workspace_id)
