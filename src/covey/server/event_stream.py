"""GET W/events: one client's stream. What it missed, then what is in progress, then what happens.

The client is subscribed first, and everything before that moment is read from the store: nothing falls in between,
nothing is sent twice. A stream never waits for another, and one that does not take what it is given is ended.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from covey.engine.workspace import Workspace
from covey.feed.feed import Subscription
from covey.protocol.errors import BadRequest, MethodNotAllowed
from covey.protocol.events import Gap, PermissionRequest, QuestionBatchRequest, created, encode_event, updated
from covey.protocol.sse import KEEP_ALIVE, EventId, frame, preamble
from covey.server.direct_writer import DirectWriter, direct_writer_of

log = logging.getLogger(__name__)

RETRY_MS = 1000
"""How long a client is asked to wait before it connects again."""
HEARTBEAT_S = 15.0
STALLED_S = 30.0
"""A client that has taken nothing for so long is gone."""
REPLAY_PAGE = 500
"""Events read from the store at once during a replay."""
LARGE_BYTES = 2 * 1024 * 1024
LARGE_REPLAYS = 2
"""So many clients at once are replayed something that large: one event may have 30 MB, and a hundred may ask for it."""
NOT_KEPT = "the events after this id are not kept any more"


class EventStreamApp:
    """The ASGI application behind the route."""

    def __init__(self) -> None:
        self._large = asyncio.Semaphore(LARGE_REPLAYS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["covey"]
        if scope["method"] != "GET":  # the router lets HEAD through, for which there would be no end
            raise MethodNotAllowed("the event stream can only be read with GET")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        client_id = client_id_of(query.get("client_id", ""))
        workspace: Workspace = await state.workspaces.get(scope["path_params"]["id"])
        session_id = query.get("session_id", "")
        if session_id:
            workspace.sessions.get(session_id)
        headers = dict(scope["headers"])
        last_id = headers.get(b"last-event-id", b"").decode("latin-1") or query.get("last_event_id", "")
        deltas = query.get("deltas", "") in ("1", "true")
        state.workspaces.attach(workspace, client_id)
        subscription = workspace.feed.subscribe(deltas=deltas, session_id=session_id)
        stream = Stream(workspace, subscription, send, self._large)
        state.streams.add(stream)
        gone = asyncio.create_task(_watch(receive, stream))
        try:
            await stream.run(last_id)
        except (asyncio.CancelledError, OSError):
            if not stream.aborted and not workspace.feed.closed:  # closing waits for nobody who does not read
                raise
        except Exception:  # the answer has begun, so it can only end: the client connects again and resumes
            log.exception("an event stream failed")
        finally:
            gone.cancel()
            state.streams.discard(stream)
            subscription.close()
            state.workspaces.detach(workspace, client_id)


async def _watch(receive: Receive, stream: Stream) -> None:
    """End the stream when the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.abort()


class Stream:
    def __init__(self, workspace: Workspace, subscription: Subscription, send: Send, large: asyncio.Semaphore) -> None:
        self._workspace = workspace
        self._subscription = subscription
        self._send = send
        self._large = large
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self.sent_at = self._loop.time()
        """When the last bytes were handed over, or are being handed over since."""
        self.sending = False
        self.aborted = False
        self._direct: DirectWriter | None = None
        self._beat_at = self.sent_at
        self._beat_due = False

    def abort(self) -> None:
        """The client is gone, or does not read: end the stream wherever it is."""
        self.aborted = True
        self._subscription.close()
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
            self._subscription.wake()

    async def run(self, last_id: str) -> None:
        present, upto = self._present(), self._workspace.feed.last_seq  # as of the moment of subscribing
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._direct = direct_writer_of(self._send)
        await self._write(preamble(RETRY_MS))
        if last_id:
            async with aclosing(self._replay(last_id, upto)) as replay:
                async for data in replay:
                    await self._write(data)
        if present:
            await self._write(present)
        await self._follow()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self) -> None:
        subscription, feed = self._subscription, self._workspace.feed
        while True:
            if self._beat_due:
                self._beat_due = False
                await self._write(KEEP_ALIVE)
            if data := subscription.take():
                await self._write(data)
            elif subscription.closed or feed.closed:
                return
            else:
                await subscription.wait(self._push if self._direct else None)

    def _push(self) -> bool:
        """Hand over what there is without waking the task; False if only the task can go on."""
        direct, subscription = self._direct, self._subscription
        if direct is None or self._beat_due or subscription.closed or not direct.is_free:
            return False
        if data := subscription.take():
            self.sent_at = self._loop.time()
            direct.write(data)
        return subscription.is_up_to_date

    async def _write(self, data: bytes) -> None:
        self.sent_at = self._loop.time()
        self.sending = True
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self.sending = False

    def _present(self) -> bytes:
        """What a client that attaches now must know: messages in progress, and who waits for an answer."""
        session_id = self._subscription.session_id
        messages = [updated(message) for message in self._workspace.feed.in_progress(session_id)]
        workspace = self._workspace
        waiting: list[PermissionRequest | QuestionBatchRequest]
        waiting = [*workspace.permissions.pending, *workspace.questions.pending]
        requests = [created(request) for request in waiting if session_id in ("", request.session_id)]
        return b"".join(frame(encode_event(event)) for event in (*messages, *requests))

    async def _replay(self, last_id: str, upto: int) -> AsyncGenerator[bytes, None]:
        """The durable events after `last_id`, or a gap if they are not there any more."""
        workspace, feed = self._workspace, self._workspace.feed
        store, read = workspace.shared.store, workspace.shared.journal.read
        known = EventId.parse(last_id)
        bounds = await read(store.log_bounds, workspace.id)
        if known is None or known.epoch != feed.epoch or not bounds.floor <= known.seq <= upto:
            reason = "the event id is unknown" if known is None else NOT_KEPT
            yield _gap(reason, EventId(feed.epoch, upto))
            return
        after = known.seq
        while after < upto:
            wanted = (workspace.id, after, upto, self._subscription.session_id)
            is_large = await read(store.next_size, *wanted) > LARGE_BYTES
            async with self._large if is_large else nullcontext():
                page = await read(store.events, *wanted, REPLAY_PAGE)
                if (await read(store.log_bounds, workspace.id)).floor > after:  # the log was trimmed under our hands
                    yield _gap(NOT_KEPT, EventId(feed.epoch, upto))
                    return
                if not page:
                    return
                after = page[-1].seq
                yield b"".join(frame(event.encoded, EventId(feed.epoch, event.seq)) for event in page)
                if is_large:
                    del page
                    await self._write(b"")  # waits until most of it was taken: only then is there room for another


def _gap(reason: str, resume_from: EventId) -> bytes:
    return frame(encode_event(created(Gap(reason=reason, resume_from=str(resume_from)))))


def client_id_of(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise BadRequest("client_id must be a UUID of your own making", "invalid_client_id") from None
