"""A client at home in one workspace: what `covey.connect` and `covey.open` give."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

from covey.client.answer import Answer
from covey.client.client import Client
from covey.client.connect import leave
from covey.client.prompt_stream import PromptOptions, PromptStream
from covey.protocol.requests import WorkspaceView

AnyPath = str | os.PathLike[str]


class WorkspaceClient(Client):
    """All routes of the protocol, and prompts in the workspace that it has joined."""

    _home: WorkspaceView | None = None

    @property
    def home(self) -> WorkspaceView:
        """The workspace that it has joined, as it was then."""
        assert self._home is not None, "use it in an `async with` block"
        return self._home

    @property
    def workspace_id(self) -> str:
        """What the methods for routes want first."""
        return self.home.id

    async def join(self, path: AnyPath, env: Mapping[str, str] | None) -> None:
        """Open the workspace of a directory, or join it. `env`: what its tools find in their environment."""
        self._home = await self.create_workspace(_absolute(path), env=dict(env) if env is not None else None)

    def stream(self, prompt: str, **options: Unpack[PromptOptions]) -> PromptStream:
        """Post a prompt, and read what happens until it has ended: `async for event in client.stream("…")`."""
        return PromptStream(self, prompt, options)

    async def ask(self, prompt: str, **options: Unpack[PromptOptions]) -> Answer:
        """Post a prompt and wait for its end. Never waits for a person: see `on_permission` and `allow`."""
        return await self.stream(prompt, **options).read_to_end()

    @asynccontextmanager
    async def another(self, name: str = "") -> AsyncIterator[WorkspaceClient]:
        """A second client of the same server, with an id of its own: it sees all, and may answer and cancel."""
        other = WorkspaceClient(self.address, name=name or self.name, kind=self.kind, transport=self._transport)
        await other.join(self.home.path, None)
        try:
            yield other
        finally:
            await leave(other)


def _absolute(path: AnyPath) -> str:
    return os.path.abspath(os.path.expanduser(path))
