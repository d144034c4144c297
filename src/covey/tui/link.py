"""The way to the server: finds or starts it, joins the workspace, and follows it for as long as the face runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from covey.client.client import Client
from covey.client.follower import Follower
from covey.client.view.view import View
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
        seen = -1
        while True:
            seen = await follower.changed(seen) if seen >= 0 else follower.revision
            self._app.looked()
            # Whatever else comes before the next frame is looked at once.
            await asyncio.sleep(LOOK_S)
