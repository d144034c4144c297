"""A face for programs that are not asynchronous. Works where an event loop runs already, as in a notebook.

with covey.SyncClient(covey.connect(".")) as client:
    print(client.ask("What does this project do?").text)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Self, TypeVar, Unpack

from covey.client.answer import Answer
from covey.client.prompt_stream import PromptOptions, PromptStream
from covey.client.workspace_client import WorkspaceClient
from covey.protocol.events import Event
from covey.protocol.runs import CancelReceipt

T = TypeVar("T")


class SyncClient:
    """What `covey.connect` or `covey.open` gives, used from one thread while its event loop runs in another."""

    def __init__(self, opening: AbstractAsyncContextManager[WorkspaceClient]) -> None:
        self._opening = opening
        self._opened: concurrent.futures.Future[WorkspaceClient] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="covey-sync", daemon=True)
        self._failed: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._opened.result()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self._failed and error is None:
            raise self._failed

    @property
    def client(self) -> WorkspaceClient:
        """The asynchronous client underneath; give what its methods return to `wait`."""
        return self._opened.result(0)

    def wait(self, answer: Awaitable[T]) -> T:
        """The result of any call of the asynchronous client: `wait(c.client.sessions(c.client.workspace_id))`.

        If this is interrupted, as by Ctrl-C, the call is cancelled. A run goes on: see `WorkspaceClient.cancel_run`.
        """

        async def await_it() -> T:
            return await answer

        assert self._loop is not None, "use it in a `with` block"
        waiting = asyncio.run_coroutine_threadsafe(await_it(), self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def ask(self, prompt: str, **options: Unpack[PromptOptions]) -> Answer:
        """Post a prompt and wait for its end. Functions among the options are called in the other thread."""
        return self.wait(self.client.ask(prompt, **options))

    def stream(self, prompt: str, **options: Unpack[PromptOptions]) -> SyncStream:
        """The events of a prompt until it has ended. Leaving the loop early leaves the run alone."""
        return SyncStream(self, self.client.stream(prompt, **options))

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        """Entered and left by one task, as a context manager may expect."""
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self._opening as client:
                self._opened.set_result(client)
                await self._closing.wait()
        except BaseException as error:
            if self._opened.done():
                self._failed = error
            else:
                self._opened.set_exception(error)

    def _close(self) -> None:
        if self._loop is not None and self._closing is not None:
            with suppress(RuntimeError):  # it could not be opened, so its loop has ended already
                self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()


class SyncStream(Iterator[Event]):
    """The events of one prompt, and how it ended."""

    def __init__(self, client: SyncClient, stream: PromptStream) -> None:
        self._client = client
        self._stream = stream
        self._events = aiter(stream)

    def __next__(self) -> Event:
        event = self._client.wait(anext(self._events, None))
        if event is None:
            raise StopIteration
        return event

    @property
    def run_id(self) -> str:
        return self._stream.run_id

    @property
    def result(self) -> Answer:
        """How the run ended, once the stream has."""
        return self._stream.result

    def cancel(self) -> CancelReceipt:
        """Cancel the run. The stream goes on to its end, which comes soon."""
        return self._client.wait(self._stream.cancel())
