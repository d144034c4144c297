"""A small face for scripts that are not asynchronous.

    from covey.client.sync import ask
    print(ask("What does this project do?", cwd=".").text)

For more than one question, `SyncClient` keeps the connection and the session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from covey.client.client import Client
from covey.client.connect import connect, environment
from covey.client.prompt import new_run_id, run_prompt
from covey.protocol.messages import Message
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete

T = TypeVar("T")


def ask(prompt: str, cwd: str = ".", *, output_schema: dict[str, Any] | None = None, **connection: Any) -> RunComplete:
    """One prompt in a new session of the workspace at `cwd`. `connection` is what `connect` takes, such as `host`.

    With an `output_schema`, a JSON Schema, a run that completes has the JSON that fits it as `output`.
    """
    with SyncClient(cwd, **connection) as client:
        return client.ask(prompt, output_schema=output_schema)


class SyncClient:
    """A workspace and one session in it, for one thread."""

    def __init__(self, cwd: str = ".", *, session_id: str = "", **connection: Any) -> None:
        self.session_id = session_id
        self.workspace_id = ""
        self._path = os.path.abspath(cwd)
        self._connection = connection
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._client: Client | None = None

    def __enter__(self) -> Self:
        try:
            self._runner.run(self._open())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self._stack.aclose())
        finally:
            self._runner.close()

    @property
    def client(self) -> Client:
        """The asynchronous client underneath; give what its methods return to `wait`."""
        assert self._client is not None, "use it in a `with` statement"
        return self._client

    def wait(self, answer: Awaitable[T]) -> T:
        """The result of any call of the asynchronous client: `wait(c.client.sessions(c.workspace_id))`."""

        async def await_it() -> T:
            return await answer

        return self._runner.run(await_it())

    def ask(self, prompt: str, *, output_schema: dict[str, Any] | None = None) -> RunComplete:
        """The terminal event of this prompt. A failed run is an answer too: look at `error`."""
        request = PostPrompt(session_id=self.session_id, prompt=prompt, run_id=new_run_id())
        return self.wait(run_prompt(self.client, self.workspace_id, request, output_schema=output_schema))

    def messages(self) -> tuple[Message, ...]:
        return self.wait(self.client.messages(self.workspace_id, self.session_id))

    async def _open(self) -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect(**self._connection))
            self.workspace_id = (await client.create_workspace(self._path, env=environment(client.address))).id
            if not self.session_id:
                self.session_id = (await client.create_session(self.workspace_id)).id
            self._client = client
            self._stack = stack.pop_all()
