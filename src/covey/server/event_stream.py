"""GET W/events: one client's stream. What it missed, then what is in progress, then what happens.

What is sent is the workspace's to know (`engine/commands/stream.py`). A stream never waits for another, and one that
does not take what it is given is ended.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from covey.protocol.errors import BadRequest, MethodNotAllowed, Unavailable
from covey.protocol.sse import KEEP_ALIVE, preamble
from covey.server.direct_writer import DirectWriter, direct_writer_of

if TYPE_CHECKING:
    from covey.engine.commands.activity import ActivityReader, MergedActivity
    from covey.engine.commands.stream import Reader
    from covey.engine.workspace import Workspace

log = logging.getLogger(__name__)

RETRY_MS = 1000
"""How long a client is asked to wait before it connects again."""
HEARTBEAT_S = 15.0
STALLED_S = 30.0
"""A client that has taken nothing for so long is gone."""


class ActivityApp:
    """The ASGI application behind `GET /v1/activity`: what goes on in all workspaces. It attaches to none."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["covey"]
        if scope["method"] != "GET":
            raise MethodNotAllowed("the stream can only be read with GET")
        stream = Stream(state.workspaces.everywhere.activity(), send, scope.get("covey.page", ""))
        await serve_stream(state.streams, stream, "", receive)


class EventStreamApp:
    """The ASGI application behind the route."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["covey"]
        if scope["method"] != "GET":  # the router lets HEAD through, for which there would be no end
            raise MethodNotAllowed("the event stream can only be read with GET")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        client_id = client_id_of(query.get("client_id", ""))
        workspace: Workspace = await state.workspaces.get(scope["path_params"]["id"])
        session_id = query.get("session_id", "")
        if session_id:
            await workspace.sessions.read(session_id)
        headers = dict(scope["headers"])
        last_id = headers.get(b"last-event-id", b"").decode("latin-1") or query.get("last_event_id", "")
        deltas = query.get("deltas", "") in ("1", "true")
        state.workspaces.attach(workspace, client_id)
        try:
            reader = workspace.stream.open(session_id, deltas=deltas, client_id=client_id)
            stream = Stream(reader, send, scope.get("covey.page", ""))
            await serve_stream(state.streams, stream, last_id, receive)
        finally:
            state.workspaces.detach(workspace, client_id)


async def serve_stream(streams: set[AnyStream], stream: Stream, last_id: str, receive: Receive) -> None:
    """Answer with a stream, until it ends or the client leaves."""
    streams.add(stream)
    try:
        await _serve(stream, last_id, receive)
    finally:
        streams.discard(stream)
        stream.close()


async def _serve(stream: Stream, last_id: str, receive: Receive) -> None:
    gone = asyncio.create_task(_watch(receive, stream))
    try:
        await stream.run(last_id)
    except (asyncio.CancelledError, OSError):
        if not stream.aborted and not stream.is_over:  # closing waits for nobody who does not read
            raise
    except Unavailable as error:  # the answer has begun, so it can only end: the client connects again and resumes
        log.warning("an event stream ended, and its client comes back: %s", error)
    except Exception:
        log.exception("an event stream failed")
    finally:
        gone.cancel()


async def _watch(receive: Receive, stream: Stream) -> None:
    """End the stream when the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.abort()


class AnyStream(Protocol):
    """What the server knows of a stream of any kind."""

    page: str
    """The page that reads it, if it is one: it ends when that is put out."""

    def abort(self) -> None:
        """End it wherever it is."""

    def beat(self, now: float) -> None:
        """Called every now and then."""


class Stream:
    def __init__(self, reader: Reader | ActivityReader | MergedActivity, send: Send, page: str = "") -> None:
        self.page = page
        """The page that reads it, if it is one: it ends when that is put out."""
        self._reader = reader
        self._live = reader.live
        self._send = send
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self.sent_at = self._loop.time()
        """When the last bytes were handed over, or are being handed over since."""
        self.sending = False
        self.aborted = False
        self._direct: DirectWriter | None = None
        self._beat_at = self.sent_at
        self._beat_due = False

    @property
    def is_over(self) -> bool:
        """Nothing more comes, whoever ended it."""
        return self._reader.is_over

    def close(self) -> None:
        self._live.close()

    def abort(self) -> None:
        """The client is gone, or does not read: end the stream wherever it is."""
        self.aborted = True
        self.close()
        if self.sending and self._task:
            if self._direct:
                self._direct.drop()
            self._task.cancel()

    def beat(self, now: float) -> None:
        """Called every now and then for all streams at once: timers for each would cost more than the events do."""
        if self.sending and now - self.sent_at > STALLED_S:
            self.abort()
        elif now - self._beat_at > HEARTBEAT_S:
            self._beat_at = now
            self._beat_due = True
            self._live.wake()

    async def run(self, last_id: str) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._direct = direct_writer_of(self._send)
        await self._write(preamble(RETRY_MS))
        if last_id:
            async with aclosing(self._reader.missed(last_id)) as missed:
                async for data in missed:
                    await self._write(data)
        if self._reader.present:
            await self._write(self._reader.present)
        await self._follow()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self) -> None:
        live = self._live
        while True:
            if self._beat_due:
                self._beat_due = False
                await self._write(KEEP_ALIVE)
            if data := live.take():
                await self._write(data)
            elif self._reader.is_over:
                return
            else:
                await live.wait(self._push if self._direct else None)

    def _push(self) -> bool:
        """Hand over what there is without waking the task; False if only the task can go on."""
        direct, live = self._direct, self._live
        if direct is None or self._beat_due or live.closed or not direct.is_free:
            return False
        if data := live.take():
            self.sent_at = self._loop.time()
            direct.write(data)
        return live.is_up_to_date

    async def _write(self, data: bytes) -> None:
        self.sent_at = self._loop.time()
        self.sending = True
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self.sending = False


def client_id_of(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise BadRequest("client_id must be a UUID of your own making", "invalid_client_id") from None
