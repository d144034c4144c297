"""A bad network: a TCP proxy on loopback that breaks connections at an exact byte. Knows nothing of what it carries.

On its own thread and loop, like the fake model. Each connection is decided upon when its first bytes arrive:

    with FaultProxy(server.port, lambda link: Plan(down=Way(after=300, fault="cut"))) as proxy:
        ...                                      # connect to `proxy.port`
        proxy.wait_for(lambda: proxy.struck == 1)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn, Self

Fault = Literal["cut", "reset", "half_close", "stall", "garbage"]

BOUND_S = 30.0
"""How long a test waits for what must happen here: far longer than it takes."""
PIECE = 64 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: the kernel sends RST instead of FIN."""
GARBAGE = bytes(range(256)) + b'\r\n\r\ndata: {"state": "completed"}\n\n'
"""Every byte there is, and then something that could be taken for an end."""


@dataclass(frozen=True)
class Way:
    """What happens in one direction of a connection."""

    after: int = 0
    """The fault strikes when so many bytes have been passed on: those before it arrive, the next one does not."""
    fault: Fault | None = None
    """`cut` closes both sides; `reset` too, with RST; `half_close` ends this direction and leaves the other one open;
    `stall` passes on nothing more, and reads nothing more; `garbage` puts bytes in between and goes on."""
    garbage: bytes = GARBAGE
    piece: int = PIECE
    """At most so many bytes are passed on at once."""
    delay_s: float = 0.0
    """The pause before each piece."""


@dataclass(frozen=True)
class Plan:
    up: Way = Way()
    """From the client to the server."""
    down: Way = Way()


@dataclass
class Link:
    """One connection through the proxy."""

    number: int
    head: bytes
    """Its first bytes, which show what it is for."""
    up: int = 0
    down: int = 0
    """Bytes passed on so far."""
    struck: bool = False
    """Its fault has happened."""
    stalled: bool = False


class _Over(Exception):
    """Both sides of the connection are to be closed."""


class FaultProxy:
    """The proxy. `links` holds every connection in the order in which they began to speak."""

    def __init__(self, target: int, decide: Callable[[Link], Plan] = lambda link: Plan()) -> None:
        self.target = target
        self.decide = decide
        self.port = 0
        self.links: list[Link] = []
        self._changed = threading.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(BOUND_S), "the proxy did not start"
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._loop and self._stop
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive(), "the proxy did not stop"

    @property
    def struck(self) -> int:
        """How many faults have happened."""
        return sum(link.struck for link in self.links)

    def wait_for(self, condition: Callable[[], bool], timeout: float = BOUND_S) -> None:
        """Block until something that happened here makes the condition true."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout), f"not true within {timeout} s: {self.links[-5:]}"

    # ── inside ──

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        self._loop.remove_reader(server.sockets[0].fileno())
        await asyncio.sleep(0)  # a connection accepted in this very moment must still find its server
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._stop
        if self._stop.is_set():
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first bytes to its end."""
        with contextlib.suppress(OSError):
            head = await reader.read(PIECE)
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target)
            link = Link(len(self.links), head)
            with self._changed:
                self.links.append(link)
            plan = self.decide(link)
            for side in (writer, inner_writer):
                side.transport.set_write_buffer_limits(0)  # drained then means: in the hands of the kernel
            try:
                async with asyncio.TaskGroup() as pumps:
                    pumps.create_task(self._pump(link, "up", plan.up, reader, inner_writer, writer, head))
                    pumps.create_task(self._pump(link, "down", plan.down, inner_reader, writer, inner_writer, b""))
            except* (_Over, OSError):
                pass
            finally:
                for side in (inner_writer, writer):
                    self._hang_up(side)

    def _hang_up(self, side: asyncio.StreamWriter) -> None:
        assert self._stop
        if self._stop.is_set():
            side.transport.abort()  # to whom nobody reads, a polite end would take longer than the loop lives
        else:
            side.close()

    async def _pump(
        self, link: Link, name: Literal["up", "down"], way: Way, source: asyncio.StreamReader,
        sink: asyncio.StreamWriter, back: asyncio.StreamWriter, data: bytes,
    ) -> None:  # fmt: skip
        """Pass on what comes, until it ends or the fault strikes. `back` leads to where it comes from."""
        passed, due = 0, way.fault is not None
        while True:
            if due and passed == way.after:
                due = False
                await self._strike(link, way, source, sink, back)
            data = data or await source.read(PIECE)
            if not data:
                return self._end(link, sink)
            room = min(way.piece, way.after - passed) if due else way.piece
            piece, data = data[:room], data[room:]
            await asyncio.sleep(way.delay_s)
            sink.write(piece)
            await sink.drain()
            passed += len(piece)
            with self._changed:
                setattr(link, name, passed)
                self._changed.notify_all()

    def _end(self, link: Link, sink: asyncio.StreamWriter) -> None:
        """One side has nothing more to say. A stalled connection has nothing to wait for then."""
        if link.stalled:
            raise _Over
        if sink.can_write_eof():
            sink.write_eof()

    async def _strike(
        self, link: Link, way: Way, source: asyncio.StreamReader, sink: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        link.stalled = way.fault == "stall"
        with self._changed:
            link.struck = True
            self._changed.notify_all()
        match way.fault:
            case "garbage":
                sink.write(way.garbage)
            case "half_close":
                sink.write_eof()
                while await source.read(PIECE):
                    pass
                raise _Over
            case "stall":
                await asyncio.Event().wait()
            case "reset":
                self._reset(sink, back)
            case _:
                raise _Over

    def _reset(self, *sides: asyncio.StreamWriter) -> NoReturn:
        for side in sides:
            side.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            side.transport.abort()
        raise _Over
