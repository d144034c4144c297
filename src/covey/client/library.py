"""What `import covey` offers for a server that runs, or is started: a client of it, and a single question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Unpack

from covey.client.answer import Answer
from covey.client.connect import connected, environment, find_server, user_name
from covey.client.prompt_stream import PromptOptions
from covey.client.sync import SyncClient
from covey.client.workspace_client import AnyPath, WorkspaceClient


@asynccontextmanager
async def connect(
    path: AnyPath = ".",
    *,
    host: str | None = None,
    data_dir: AnyPath | None = None,
    token_file: AnyPath | None = None,
    autostart: bool = True,
    name: str = "",
) -> AsyncIterator[WorkspaceClient]:
    """A client of the user's own server, which is started if need be, or of the one at `host`.

    It has joined the workspace of the directory `path`. `data_dir` and `token_file` are as on the command line.
    """
    home = Path(data_dir) if data_dir else None
    address, token = find_server(host, home, Path(token_file) if token_file else None)
    client = WorkspaceClient(address, token=token, name=name or user_name())
    async with connected(client, home, autostart=autostart):
        await client.join(path, environment(address))
        yield client


async def ask(
    prompt: str,
    path: AnyPath = ".",
    *,
    host: str | None = None,
    data_dir: AnyPath | None = None,
    token_file: AnyPath | None = None,
    **options: Unpack[PromptOptions],
) -> Answer:
    """One prompt in the workspace of a directory, and how its run ended. Never waits for a person."""
    async with connect(path, host=host, data_dir=data_dir, token_file=token_file) as client:
        return await client.ask(prompt, **options)


def ask_sync(
    prompt: str,
    path: AnyPath = ".",
    *,
    host: str | None = None,
    data_dir: AnyPath | None = None,
    token_file: AnyPath | None = None,
    **options: Unpack[PromptOptions],
) -> Answer:
    """`ask` for a program that is not asynchronous."""
    with SyncClient(connect(path, host=host, data_dir=data_dir, token_file=token_file)) as client:
        return client.ask(prompt, **options)
