"""`covey.open`: a server in this very process, and a client of it.

    async with covey.open(".") as client:
        print((await client.ask("What does this project do?")).text)

It is the server that `covey serve` runs, without a socket: the same routes, rules, events and files. It takes the same
lock, so that a data directory never has two.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from covey.client.connect import own_environment, user_name
from covey.client.errors import Closed
from covey.client.workspace_client import AnyPath, WorkspaceClient
from covey.in_process.transport import InProcessTransport
from covey.protocol.paths import Address, DataDirInUse, default_data_dir, default_socket

if TYPE_CHECKING:
    from covey.server.data_dir import Announce
    from covey.server.listener import Listener
    from covey.server.service import Service
    from covey.server.serving import Serving

HERE = Address(host="in-process")
"""What stands in messages where others have the address of a server."""


class Opened(AbstractAsyncContextManager[WorkspaceClient]):
    """What `covey.open` returns: to be entered once. Leaving it shuts down as a server does, and loses nothing."""

    def __init__(
        self, path: AnyPath, data_dir: AnyPath | None, *, temporary: bool, config_file: AnyPath | None, name: str
    ) -> None:
        assert not (temporary and data_dir), "a temporary data directory has no name of your choice"
        self._path = path
        self._data_dir = Path(data_dir).expanduser().absolute() if data_dir else default_data_dir()
        self._is_temporary = temporary
        self._config_file = Path(config_file).expanduser().absolute() if config_file else None
        self._name = name
        self._stack = AsyncExitStack()
        self._transport: InProcessTransport | None = None
        self._service: Service | None = None
        self._listener: Listener | None = None
        self._serving: Serving | None = None
        self._announce: Announce | None = None
        self._closing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> WorkspaceClient:
        if self._closing is not None:
            raise Closed("It is entered once: call `covey.open` again.")
        async with AsyncExitStack() as stack:
            transport = await self._start(stack)
            client = WorkspaceClient(HERE, name=self._name or user_name(), transport=transport)
            await client.join(self._path, own_environment())
            self._stack = stack.pop_all()
        return client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        assert self._closing is not None
        await asyncio.shield(self._closing)

    async def serve(self) -> str:
        """Listen on the unix socket of the data directory too, and give its address.

        From then on `covey run`, `covey status` and any other client of this user can attach.
        """
        if self._service is None or self._announce is None or self._closing is not None:
            raise Closed("Only an open Covey can listen: call `serve` inside of its `async with` block.")
        from covey.server.listener import Listener
        from covey.server.serving import Serving

        if self._listener is None:
            self._listener = Listener(self._address)
            self._serving = Serving(self._service.app, self._listener)
            self._announce(self._address)
        return str(self._address)

    @property
    def _address(self) -> Address:
        return Address(path=str(default_socket(self._data_dir)))

    # ── inside ──

    async def _start(self, stack: AsyncExitStack) -> InProcessTransport:
        """What was begun is on the stack, the last first, as it must be closed."""
        from covey.server.access import Access
        from covey.server.data_dir import make_data_dir, owned
        from covey.server.service import Service, ServiceOptions

        if self._is_temporary:
            self._data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="covey-")))
        make_data_dir(self._data_dir)
        try:
            self._announce = stack.enter_context(owned(self._data_dir))
        except DataDirInUse as error:
            raise _in_words(self._data_dir, error) from None
        self._announce(None)
        sockets = (Path(self._address.path),)
        options = ServiceOptions(self._data_dir, self._config_file, dict(os.environ), sockets)
        self._service = service = await Service.start(options, Access(), self._stop)
        stack.push_async_callback(service.close)
        self._transport = transport = InProcessTransport(service.app)
        stack.push_async_callback(transport.end)
        stack.push_async_callback(self._stop_listening)
        stack.push_async_callback(service.drain)
        return transport

    def _stop(self) -> None:
        """By leaving the block, or because a client asked for the end."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._stack.aclose())

    async def _stop_listening(self) -> None:
        if self._serving is not None and self._listener is not None:
            await self._serving.close()
            self._listener.close()


def _in_words(data_dir: Path, error: DataDirInUse) -> DataDirInUse:
    if error.pid == os.getpid():
        text = f"This program has opened {data_dir} already: use `client.another()` for a second client of it."
    elif error.address:
        text = (
            f"A server (pid {error.pid}) uses {data_dir}: use covey.connect() to work with it, "
            "or open another data directory with `data_dir=` or `temporary=True`."
        )
    else:
        who = f"another program (pid {error.pid})" if error.pid else "somebody else"
        text = f"{data_dir} is in use by {who}: open another one with `data_dir=` or `temporary=True`."
    return DataDirInUse(text, pid=error.pid, address=error.address)


def open(
    path: AnyPath = ".",
    *,
    data_dir: AnyPath | None = None,
    temporary: bool = False,
    config_file: AnyPath | None = None,
    name: str = "",
) -> Opened:
    """Covey in this process, at the directory `path`: enter it with `async with` to get a client.

    Sessions are kept in `data_dir`, by default the user's own, which no server may be using at the same time;
    `temporary`: nowhere, for tests. `config_file` is added to the user's own configuration.
    """
    return Opened(path, data_dir, temporary=temporary, config_file=config_file, name=name)
