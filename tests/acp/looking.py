"""What the server knows of the runs of a project, asked for directly: a command for each look would cost too much."""

from __future__ import annotations

import asyncio

from covey.client.client import Client
from covey.protocol.paths import Address
from covey.protocol.runs import Run
from tests.cli.conftest import Home


def runs(home: Home) -> tuple[Run, ...]:
    """The newest first. Not in an event loop."""
    return asyncio.run(_runs(home))


async def _runs(home: Home) -> tuple[Run, ...]:
    async with Client(Address(path=str(home.socket))) as client:
        workspace = await client.create_workspace(str(home.project))  # it may have been closed meanwhile
        found = await client.runs(workspace.id)
        await client.goodbye()
        return found


def state_of(home: Home, prompt: str) -> str:
    """How the run of this prompt is; '' if there is none yet."""
    return next((run.state for run in runs(home) if run.prompt == prompt), "")
