"""A command that prints 50 MB in front of 20 clients, half of which do not read: what a megabyte costs, and how much is
held meanwhile. Clients are shown what they can follow, so neither may grow with what is printed."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator

from bench.loader_client import Crowd, crowd
from bench.report import Figure
from bench.rig import Options, Rig, prompt_body, rig
from bench.wire import TERMINAL, TIMEOUT_S, events_path, request_bytes

FAST, SLOW = 10, 10
FEW_MB, MANY_MB = 10, 50
MB = 1_000_000
ALLOWED = 1.25
"""Noise of a shared machine; anything that grows with the output would be far above."""
ALLOWED_MB = 5.0
"""For the ends of the output in several places, and for what the sockets of twenty clients hold."""
ROUNDS = 3
NOTE = "the first 10 MB also go to a file"
SMALL_BUFFER = 4096
"""What the kernel takes for a client that does not read."""
FRAME = re.compile(rb'data: ({"type":"tool_output".*})\n\n')


class SlowClient:
    """Attaches, and reads nothing until it is asked to."""

    def __init__(self, made: Rig) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(("127.0.0.1", made.server.port))
        self._socket.sendall(request_bytes("GET", events_path(made.workspace_id)))
        self._data = b""
        self._read_until(b"retry:")

    def seen(self) -> tuple[int, int]:
        """How many bytes of output it was sent, and how many it knows to be missing, once the run has ended."""
        self._read_until(TERMINAL)
        data = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", self._data)  # what HTTP puts between two chunks
        outputs = [json.loads(found)["payload"]["payload"] for found in FRAME.findall(data)]
        self._data = b""
        return sum(len(o["delta"]) for o in outputs), sum(o.get("dropped", 0) for o in outputs)

    def close(self) -> None:
        self._socket.close()

    def _read_until(self, pattern: bytes) -> None:
        while pattern not in self._data:
            received = self._socket.recv(1 << 16)
            if not received:
                raise RuntimeError("the server ended the stream of a slow client")
            self._data += received


def measure(options: Options) -> Iterator[Figure]:
    rounds = options.size(ROUNDS, 1)
    with rig(options) as made, crowd(made, FAST) as fast, _slow_clients(made) as slow:
        _cost(made, fast, slow, 1)
        nothing = min(_cost(made, fast, slow, 0) for _ in range(rounds))
        before = made.server.memory_mb()
        few, many = (
            min(_cost(made, fast, slow, size) - nothing for _ in range(rounds)) / size for size in (FEW_MB, MANY_MB)
        )
        grown = made.server.peak_memory_mb() - before
    yield Figure(f"tool output: CPU per MB, {FEW_MB} MB", few, "us")
    yield Figure(f"tool output: CPU per MB, {MANY_MB} MB", many, "us")
    yield Figure(f"tool output: one of {MANY_MB} MB / one of {FEW_MB} MB", many / few, "x", ALLOWED, note=NOTE)
    yield Figure("tool output: memory at the most", grown, "MB", ALLOWED_MB, note="grown by")


@contextlib.contextmanager
def _slow_clients(made: Rig) -> Iterator[list[SlowClient]]:
    clients = [SlowClient(made) for _ in range(SLOW)]
    yield clients
    for client in clients:
        client.close()


def _cost(made: Rig, fast: Crowd, slow: list[SlowClient], size_mb: int) -> float:
    """Microseconds of server CPU for a run with one command that prints so much."""
    session_id = made.session()
    body = {**prompt_body(session_id, f"print={size_mb * MB}"), "yolo": True}
    before = made.server.cpu_s()
    fast.start_watching()
    made.caller.call("POST", made.agent, body)
    fast.seen()
    spent = made.server.cpu_s() - before
    for client in slow:
        sent, missing = client.seen()
        if sent + missing != size_mb * MB:
            raise RuntimeError(f"of {size_mb} MB, {sent} bytes were sent and {missing} are missing")
    return spent * 1e6
