"""The whole server but its socket: requests go straight into the ASGI application, answers are caught."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from covey.config.schema import Config
from covey.engine.shared import Shared
from covey.engine.workspace import Workspace
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.protocol.sse import FrameDecoder
from covey.protocol.who import Who
from covey.server.access import Access
from covey.server.app import App
from covey.store.journal import Journal
from tests.support.disk import BOUND_S, Disk
from tests.support.engine import Model, Work, config, look_around, within

CLIENT = str(uuid.UUID(int=1))


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The stable code of an error."""
        assert set(self.value) <= {"message", "code", "retry_after"}
        assert self.value["message"]
        return str(self.value["code"])


class Site:
    """A server in process. `chunks` of a body arrive one by one; None means that the client goes away instead."""

    def __init__(self, directory: Path, access: Access) -> None:
        self.directory = directory
        self.store = Disk()
        self.model = Model()
        self.tool = Work()
        self.stopped = False
        self.settings = config()
        self.counts: Counter[str] = Counter()
        self.journal = Journal(self.store)
        shared = Shared(
            self.store,
            self.journal,
            World(),
            directory,
            None,
            {},
            self.counts,
            end_processes=lambda tag: 0,
            end_jobs=lambda ids: 0,
        )
        self.workspaces = Workspaces(shared, lambda: None, 0.0)
        self.app = App(self.workspaces, access, self.counts, self._stop)

    def _stop(self) -> None:
        self.stopped = True

    async def load(self, shared: Shared, path: str, env: object = None) -> tuple[Config, Sequence[str]]:
        return self.settings, ()

    async def request(
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        chunks: list[bytes | None] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        if chunks is None:
            chunks = [json.dumps(value).encode()] if value is not None else [b""]
            headers = {"content-type": "application/json", **(headers or {})}
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await within(self.app(scope(method, path, headers or {}), _receive(chunks), send))
        if not sent:
            return Answer(0, {}, b"")
        start, *bodies = sent
        found = {name.decode(): content.decode() for name, content in start["headers"]}
        return Answer(start["status"], found, b"".join(body["body"] for body in bodies))

    async def workspace(self, client_id: str = CLIENT) -> Workspace:
        return await self.workspaces.create(str(self.directory), Who(client_id=client_id), yolo=False, env={})


def scope(method: str, path: str, headers: dict[str, str]) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), content.encode()) for name, content in headers.items()],
        "root_path": "",
    }


def _receive(chunks: list[bytes | None]) -> Callable[[], Any]:
    left = list(chunks)

    async def receive() -> Any:
        if not left:
            await asyncio.Event().wait()
        chunk = left.pop(0)
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    return receive


class Watcher:
    """A client of the event stream. `hold` makes it a client that does not read."""

    def __init__(self, site: Site, path: str, headers: dict[str, str] | None = None) -> None:
        self.status = 0
        self.data = b""
        self.frames: list[tuple[str, Any]] = []
        self.ended = False
        self._decoder = FrameDecoder()
        self._changed = asyncio.Event()
        self._left = asyncio.Event()
        self._reading = asyncio.Event()
        self._reading.set()
        self.task = asyncio.create_task(site.app(scope("GET", path, headers or {}), self._receive, self._send))

    async def _receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            await self._reading.wait()
            self.data += message["body"]
            for frame in self._decoder.feed(message["body"]):
                self.frames.append((frame.id, json.loads(frame.data)))
            self.ended = not message["more_body"] if "more_body" in message else True
        self._changed.set()

    def hold(self) -> None:
        self._reading.clear()

    def leave(self) -> None:
        self._left.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async def wait() -> None:
            while not condition():
                self._changed.clear()
                await self._changed.wait()

        await within(wait())

    async def until_end(self) -> None:
        await within(asyncio.wait({self.task}))
        self.task.result()

    def of_type(self, kind: str) -> list[Any]:
        return [value["payload"]["payload"] for _, value in self.frames if value["type"] == kind]

    @property
    def types(self) -> list[str]:
        return [value["type"] for _, value in self.frames]

    @property
    def ids(self) -> list[str]:
        return [event_id for event_id, _ in self.frames if event_id]


@contextlib.asynccontextmanager
async def serving(directory: Path, access: Access | None = None) -> AsyncIterator[Site]:
    site = Site(directory, access or Access())
    with (
        mock.patch("covey.engine.workspaces.load_config", site.load),
        mock.patch("covey.engine.commands.settings.load_config", site.load),
        mock.patch("covey.engine.agent.open_client", return_value=site.model),
        mock.patch("covey.engine.agent.make_tools", return_value={"work": site.tool.value}),
        mock.patch("covey.engine.agent.look_around", look_around),
    ):
        await site.workspaces.start()
        try:
            yield site
        finally:
            site.store.full = False
            site.store.release()
            await within(site.workspaces.close())
            await within(site.journal.aclose(BOUND_S))
