"""A real HTTP server that replays wire fixtures, whole or with faults, for any format. Knows nothing of what it sends.

with WireServer() as server:
    server.on("/responses", replay(path, status=503), replay(path))   # first a 503, from then on the answer
    ...                                                               # give `server.url` to whatever is tested
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

BOUND_S = 30.0
"""How long starting and stopping may take: far longer than they do."""
HTML = b"<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body>It works!</body></html>\n"


@dataclass(frozen=True)
class Serving:
    """What one request gets."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    piece: int = 0
    """So many bytes in each write, with a turn of the loop between two of them; 0: all at once."""
    after: int | None = None
    """Only so many bytes are sent, and then comes the ending; None: all of them."""
    ending: Literal["end", "cut", "reset", "stall"] = "end"
    """`end`: as it should be; `cut`: the connection is closed within the body; `reset`: it breaks; `stall`: nothing
    more comes until the client goes away."""


def replay(path: Path, **fields: Any) -> Serving:
    """A fixture as it is, or with other fields. Its name says its status: `429_rate_limit.json`."""
    first = path.name.partition("_")[0]
    streamed = path.suffix == ".sse"
    headers = {"content-type": "text/event-stream; charset=utf-8" if streamed else "application/json"}
    headers_file = path.with_suffix(".headers")
    if not streamed and headers_file.exists():
        headers |= dict(line.split(": ", 1) for line in headers_file.read_text("utf-8").splitlines())
    status = int(first) if first.isdecimal() else 200
    return replace(Serving(path.read_bytes(), status, headers), **fields)


@dataclass
class Seen:
    """One request, as it was received."""

    path: str
    headers: dict[str, str]
    body: bytes


class WireServer:
    """The server, on a thread and a loop of its own, so that it answers whatever the test's own loop is doing."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.gone = threading.Semaphore(0)
        """Released whenever a client goes away from an ending that stalls."""
        self.port = 0
        self._servings: dict[str, list[Serving]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(self, part_of_path: str, *servings: Serving) -> None:
        """Requests whose path has this in it get these, one after the other; the last one repeats."""
        self._servings[part_of_path] = list(servings)

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(BOUND_S), "the wire server did not start"
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive(), "the wire server did not stop"

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        self._loop.remove_reader(server.sockets[0].fileno())
        await asyncio.sleep(0)  # a connection accepted in this very moment must still find its server
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._stop.is_set():
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort() if self._stop.is_set() else writer.close())

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request_line, *lines = head.rstrip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                seen = Seen(request_line.split(" ")[1], headers, body)
                self.requests.append(seen)
                await self._answer(self._serving(seen.path), reader, writer)

    def _serving(self, path: str) -> Serving:
        for part_of_path, servings in self._servings.items():
            if part_of_path in path:
                return servings.pop(0) if len(servings) > 1 else servings[0]
        return Serving(b'{"error": {"message": "there is nothing here"}}', 404)

    async def _answer(self, serving: Serving, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = serving.body if serving.after is None else serving.body[: serving.after]
        framing = {"transfer-encoding": "chunked"}
        lines = [f"{name}: {value}" for name, value in (serving.headers | framing).items()]
        writer.write(("\r\n".join([f"HTTP/1.1 {serving.status} Replayed", *lines]) + "\r\n\r\n").encode("latin-1"))
        size = serving.piece or max(len(body), 1)
        for start in range(0, len(body), size):
            piece = body[start : start + size]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        match serving.ending:
            case "end":
                writer.write(b"0\r\n\r\n")
            case "cut":
                writer.close()
            case "reset":
                await self._reset(writer)
            case "stall":
                with contextlib.suppress(ConnectionError):
                    await reader.read()  # b"" once the client has gone away
                self.gone.release()
                writer.close()

    async def _reset(self, writer: asyncio.StreamWriter) -> None:
        """Close so that the other side gets an error instead of an end."""
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
