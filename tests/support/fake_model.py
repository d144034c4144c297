"""A real HTTP server that speaks every wire format and does what a test tells it to. Not a model: it only replays.

The path of a request says its format, and a reply is written in that format: `fake_formats`.

In a test, on its own thread and loop, so that it answers whatever the test's own loop is doing:

    with FakeModel() as model:
        model.on(lambda request: Reply(text="hi", gates={0: "go"}))
        ...                                      # give `model.url` to whatever is tested
        await model.until(lambda: len(model.requests) == 1)
        model.release("go")

As a process of its own it prints its address: `python -m tests.support.fake_model --port 0`. There the prompt says what
happens, as a list of replies in brackets, one for each model call since that prompt (the last one repeats):

    Please work. [[{"tools": [{"name": "bash", "input": {"command": "ls"}}]}, {"text": "word ", "chunks": 2000}]]

and `GET /requests` and `POST /release/<gate>` stand for `requests` and `release`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Self

import msgspec

from covey.context.prompt import title_prompt
from tests.support.fake_formats import FORMATS, Format
from tests.support.fake_reply import Call, Reply, delta, event, events

__all__ = ["Call", "FakeModel", "Recorded", "Reply", "delta", "directed", "event", "events"]

BOUND_S = 30.0
"""How long a test waits for what must happen here: far longer than it takes."""
TITLE = title_prompt()[:40].encode()
"""By this a request is known that no test is about: a title is looked for beside the work, at some moment."""
BATCH_BYTES = 64 * 1024
"""Without a delay, this much is sent in one write: many chunks then arrive in one read."""


@dataclass
class Recorded:
    """One request, as it was received. Times are of `time.monotonic()`."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    connection: int
    """The number of the connection that it came on."""
    path: str = "/v1/chat/completions"
    sent: int = 0
    """Events sent so far."""
    finished_at: float | None = None
    closed_early_at: float | None = None
    """When the client went away before the answer was complete."""

    @property
    def ended(self) -> bool:
        return self.finished_at is not None or self.closed_early_at is not None

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        return next((text for role, text in reversed(self.turns) if role == "user"), "")

    @property
    def call_number(self) -> int:
        """0 for the first model call after the prompt, 1 for the next one."""
        roles = [role for role, _ in reversed(self.turns)]
        return roles[: roles.index("user")].count("assistant") if "user" in roles else 0

    @property
    def format(self) -> Format:
        return next(format for part_of_path, format in FORMATS.items() if part_of_path in self.path)

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Role and text of what was said so far."""
        return list(self.format.turns(self.body))


def directed(request: Recorded) -> Reply:
    """The reply that the prompt itself asks for."""
    start = request.prompt.find("[[{")
    if start < 0:
        return Reply()
    values, _ = json.JSONDecoder().raw_decode(request.prompt[start + 1 :])
    return msgspec.convert(values[min(request.call_number, len(values) - 1)], Reply, str_keys=True)


class _Reader(asyncio.StreamReader):
    """A reader that says at once when the other side is gone, also while nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


class FakeModel:
    """The server. `requests` holds every model call in the order of arrival."""

    def __init__(
        self, answer: Callable[[Recorded], Reply] = directed, *, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[Recorded] = []
        self.connections = 0
        self.pages: dict[str, str] = {}
        """What other paths than those of models answer with."""
        self.pages_asked: list[str] = []
        self.page_bodies: list[bytes] = []
        """What was sent along, for each of those asked."""
        self.port = port
        self._answer = answer
        self._tls = tls
        self._changed = threading.Condition()
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """What goes into `base_url`."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    def on(self, answer: Callable[[Recorded], Reply]) -> None:
        """From now on, `answer` decides what each request gets."""
        self._answer = answer

    def reset(self) -> None:
        """As if it had just been started. Nobody may be talking to it."""
        self._answer = directed
        self.requests.clear()
        self.pages.clear()
        self.pages_asked.clear()
        self.page_bodies.clear()
        self._gates.clear()

    def release(self, gate: str) -> None:
        """Let every reply pass this gate, now and later."""
        assert self._loop
        self._loop.call_soon_threadsafe(lambda: self._gate(gate).set())

    def wait_for(self, condition: Callable[[], bool], timeout: float = BOUND_S) -> None:
        """Block until something that happened here makes the condition true."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout), f"not true within {timeout} s"

    async def until(self, condition: Callable[[], bool], timeout: float = BOUND_S) -> None:
        await asyncio.to_thread(self.wait_for, condition, timeout)

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(ready.set)), daemon=True)
        self._thread.start()
        assert ready.wait(BOUND_S), "the fake model did not start"
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._loop and self._stop and self._thread
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive(), "the fake model did not stop"

    async def serve(self, ready: Callable[[], None]) -> None:
        """Listen until stopped."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def connected() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(_Reader(), self._connected)

        server = await self._loop.create_server(connected, "127.0.0.1", self.port, ssl=self._tls, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self._stop.wait()
        self._loop.remove_reader(server.sockets[0].fileno())
        await asyncio.sleep(0)  # a connection accepted in this very moment must still find its server
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _Reader) and self._stop
        if self._stop.is_set():
            writer.transport.abort()
            return
        self.connections += 1
        task = asyncio.ensure_future(self._converse(reader, writer, self.connections))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._hang_up(writer))  # also when it is cancelled before its first step

    def _hang_up(self, writer: asyncio.StreamWriter) -> None:
        assert self._stop
        if self._stop.is_set():
            writer.transport.abort()  # a polite end would take longer than the loop lives
        else:
            writer.close()

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    async def _converse(self, reader: _Reader, writer: asyncio.StreamWriter, connection: int) -> None:
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request_line, *lines = head.rstrip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = request_line.split(" ")
                if TITLE in body:
                    error = '{"error": {"message": "there are no titles here"}}'
                    _write_whole(writer, 404, error, {"connection": "close"})  # the work finds no connection of it
                    writer.close()
                elif any(part_of_path in path for part_of_path in FORMATS):
                    recorded = Recorded(json.loads(body), headers, time.monotonic(), connection, path)
                    await self._reply(recorded, reader, writer)
                else:
                    self._control(method, path, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    def _control(self, method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path in self.pages:
            self.pages_asked.append(path)
            self.page_bodies.append(body)
            _write_whole(writer, 200, self.pages[path])
        elif path == "/requests":
            _write_whole(writer, 200, json.dumps([asdict(request) for request in self.requests]))
        elif method == "POST" and path.startswith("/release/"):
            self._gate(path.removeprefix("/release/")).set()
            _write_whole(writer, 200, "{}")
        elif path.endswith("/models"):
            _write_whole(writer, 200, '{"object": "list", "data": [{"id": "fake", "object": "model"}]}')
        else:
            _write_whole(writer, 404, '{"error": {"message": "there is nothing here"}}')

    async def _reply(self, recorded: Recorded, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        with self._changed:
            self.requests.append(recorded)
            self._changed.notify_all()
        sending = asyncio.ensure_future(self._send(self._decide(recorded), recorded, writer))
        leaving = asyncio.ensure_future(reader.gone.wait())
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            gone = not sending.done() or isinstance(sending.exception(), ConnectionError)
        finally:
            sending.cancel()
            leaving.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await sending
        with self._changed:
            if gone:
                recorded.closed_early_at = time.monotonic()
            else:
                recorded.finished_at = time.monotonic()
            self._changed.notify_all()
        if gone:
            writer.close()

    def _decide(self, recorded: Recorded) -> Reply:
        try:
            return self._answer(recorded)
        except Exception as error:  # a mistake of the test: where it is seen, it can be understood
            return Reply(status=400, body=json.dumps({"error": f"the fake model cannot answer: {error!r}"}))

    async def _send(self, reply: Reply, recorded: Recorded, writer: asyncio.StreamWriter) -> None:
        if gate := reply.gates.get(-1):
            await self._gate(gate).wait()
        if reply.status == 0:
            writer.close()
        elif reply.body is not None:
            _write_whole(writer, reply.status, reply.body, reply.headers)
        else:
            framing = {"transfer-encoding": "chunked"} if reply.chunked else {"connection": "close"}
            _write_head(writer, reply.status, {"content-type": "text/event-stream", **framing, **reply.headers})
            await self._send_events(reply, recorded, writer)

    async def _send_events(self, reply: Reply, recorded: Recorded, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        start, delay = loop.time(), reply.delay_ms / 1000
        batch = bytearray()
        number = 0
        for number, text in enumerate(recorded.format.events(reply), 1):
            gate = reply.gates.get(number - 1)
            if batch and (gate or delay or len(batch) >= BATCH_BYTES):
                writer.write(bytes(batch))
                batch.clear()
                await writer.drain()
            if gate:
                await self._gate(gate).wait()
            if delay:
                await asyncio.sleep(start + number * delay - loop.time())
            batch += _piece(text.encode(), reply.chunked)
            recorded.sent = number
            if delay:
                writer.write(bytes(batch))
                batch.clear()
        writer.write(bytes(batch))
        if gate := reply.gates.get(number):
            await self._gate(gate).wait()
        if reply.ending == "silence":
            await asyncio.Event().wait()
        if reply.ending == "cut" or not reply.chunked:
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")


def _piece(data: bytes, chunked: bool) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if chunked else data


def _write_head(writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} Fake", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def _write_whole(writer: asyncio.StreamWriter, status: int, body: str, headers: dict[str, str] | None = None) -> None:
    data = body.encode()
    length = {"content-length": str(len(data))}
    _write_head(writer, status, {"content-type": "application/json", **length, **(headers or {})})
    writer.write(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake model server; the prompt says what it does.")
    parser.add_argument("--port", type=int, default=0)
    model = FakeModel(port=parser.parse_args().port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(model.serve(lambda: print(model.url, flush=True)))


if __name__ == "__main__":
    main()
