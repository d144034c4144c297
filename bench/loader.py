"""Many clients in one process, as cheap as Python can make them: `python -m bench.loader`.

It opens event streams and reads them with epoll into one buffer. Bytes, delta frames and words (`~`) are counted by C
code in place; nothing is parsed. The first client's bytes are kept, so that one whole stream can be checked. Commands
and answers are lines of JSON on stdin and stdout; `loader_client` speaks them.
"""

from __future__ import annotations

import json
import re
import select
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.wire import DELTA, TERMINAL, connect, events_path, request_bytes

BUFFER = 1 << 20
TAIL = 13
"""One byte less than the patterns have: a pattern that two reads share is found, and found once."""
TEXT = re.compile(rb'"delta":"([^"]*)"')
FRAME = re.compile(rb'(?:[0-9a-f]+\r\n)?data: {"type":"message_delta"[^\n]*\n\n(?:\r\n)?')
"""A delta with what HTTP puts around it."""
OPEN_AT_ONCE = 50
"""Below the listening backlog, so that no connection has to be tried again."""

assert len(DELTA) == len(TERMINAL) == TAIL + 1


@dataclass
class Client:
    socket: socket.socket
    tail: bytes = bytes(TAIL)
    terminals: int = 0
    words: int = 0


@dataclass
class Seen:
    """What one `watch` saw, all clients together."""

    first_at: float = 0.0
    """When the first delta came, by the clock that all processes share."""
    last_at: float = 0.0
    """When the last delta came."""
    frames: int = 0
    reads: int = 0
    size: int = 0
    words: int = 0
    """In the deltas of the first client."""
    delta_bytes: float = 0.0
    """The mean size of a delta on the wire, as the first client got it."""
    same: bool = True
    """Every client got as many words as the first one."""
    latencies_ms: list[float] = field(default_factory=list)


class Loader:
    def __init__(self) -> None:
        self._clients: dict[int, Client] = {}
        self._epoll = select.epoll()
        self._buffer = bytearray(TAIL + BUFFER)
        self._view = memoryview(self._buffer)[TAIL:]

    def open(self, port: int, workspace_id: str, count: int) -> int:
        """Attach so many clients. Returns how many there are now."""
        while count > 0:
            fresh = [self._connect(port, workspace_id) for _ in range(min(OPEN_AT_ONCE, count))]
            count -= len(fresh)
            for client in fresh:
                _await_preamble(client.socket)
        return len(self._clients)

    def _connect(self, port: int, workspace_id: str) -> Client:
        client = Client(connect(port))
        client.socket.sendall(request_bytes("GET", events_path(workspace_id)))
        self._clients[client.socket.fileno()] = client
        self._epoll.register(client.socket, select.EPOLLIN)
        return client

    def close(self) -> int:
        for number, client in self._clients.items():
            self._epoll.unregister(number)
            client.socket.close()
        self._clients.clear()
        return 0

    def watch(self, runs: int, stamps: bool, timeout_s: float) -> dict[str, Any]:
        """Read until every client has seen the terminal events of so many runs."""
        for client in self._clients.values():
            client.terminals = client.words = 0
        seen = Seen()
        kept: list[tuple[float, bytes]] = []
        first = next(iter(self._clients))
        unfinished = len(self._clients)
        deadline = time.perf_counter() + timeout_s
        while unfinished:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{unfinished} clients have not seen the end")
            for number, _ in self._epoll.poll(1.0, 1024):
                client = self._clients[number]
                was_unfinished = client.terminals < runs
                end, now = self._read(client, seen)
                if stamps or number == first:
                    kept.append((now, bytes(self._buffer[TAIL:end])))
                if was_unfinished and client.terminals >= runs:
                    unfinished -= 1
        self._sum_up(seen, kept, stamps)
        return asdict(seen)

    def _read(self, client: Client, seen: Seen) -> tuple[int, float]:
        """One read into the shared buffer. Gives where the bytes end, and when they came."""
        buffer = self._buffer
        buffer[:TAIL] = client.tail
        size = client.socket.recv_into(self._view)
        now = time.perf_counter()
        if not size:
            raise RuntimeError("the server ended a stream")
        end = TAIL + size
        if frames := buffer.count(DELTA, 0, end):
            seen.frames += frames
            seen.first_at = seen.first_at or now
            seen.last_at = now
        client.terminals += buffer.count(TERMINAL, 0, end)
        client.words += buffer.count(b"~", TAIL, end)
        client.tail = bytes(buffer[size:end])
        seen.reads += 1
        seen.size += size
        return end, now

    def _sum_up(self, seen: Seen, kept: list[tuple[float, bytes]], stamps: bool) -> None:
        words = [client.words for client in self._clients.values()]
        seen.same = len(set(words)) == 1
        if stamps:
            for now, data in kept:
                sent = (stamp for text in TEXT.findall(data) for stamp in text.split(b"~")[1:])
                seen.latencies_ms += [now * 1e3 - int(stamp) / 1e6 for stamp in sent]
        else:
            whole = b"".join(data for _, data in kept)
            deltas = FRAME.findall(whole)
            seen.words = sum(text.count(b"~") for text in TEXT.findall(b"".join(deltas)))
            seen.delta_bytes = sum(map(len, deltas)) / max(1, len(deltas))


def _await_preamble(connection: socket.socket) -> None:
    data = b""
    while b"retry:" not in data:
        data += connection.recv(65536)


def main() -> None:
    loader = Loader()
    print("ready", flush=True)
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        try:
            answer = {"answer": getattr(loader, command.pop("do"))(**command)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
