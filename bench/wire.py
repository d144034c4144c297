"""The smallest HTTP client that can measure: blocking sockets, no parsing beyond what a figure needs."""

from __future__ import annotations

import json
import socket
import time
import uuid
from typing import Any

from bench.processes import TOKEN

TIMEOUT_S = 20.0
RECEIVE_BYTES = 1 << 20
TERMINAL = b'"run_complete"'
DELTA = b'message_delta"'


def request_bytes(method: str, path: str, body: Any = None) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n"
    if data:
        head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
    return head.encode() + b"\r\n" + data


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Caller:
    """A kept connection for requests, one after the other."""

    def __init__(self, port: int) -> None:
        self._socket = connect(port)

    def send(self, method: str, path: str, body: Any = None) -> None:
        self._socket.sendall(request_bytes(method, path, body))

    def receive(self) -> tuple[int, bytes]:
        """Status and body of the answer."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(rest) < int(fields[b"content-length"]):
            rest += self._more()
        return int(head[9:12]), rest

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self.send(method, path, body)
        status, data = self.receive()
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {data!r}")
        return json.loads(data) if data else None

    def close(self) -> None:
        self._socket.close()

    def _more(self) -> bytes:
        data = self._socket.recv(RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


class Stream:
    """One event stream with deltas. `until` gives the moment at which a pattern had arrived."""

    def __init__(self, port: int, workspace_id: str, session_id: str = "") -> None:
        self._socket = connect(port)
        self._socket.sendall(request_bytes("GET", events_path(workspace_id, session_id)))
        self.data = b""
        self.until(b"retry:")

    def until(self, pattern: bytes) -> float:
        """Reads on; what came before and after the pattern stays in `data` until `forget`."""
        start, deadline = 0, time.perf_counter() + TIMEOUT_S
        while self.data.find(pattern, start) < 0:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"no {pattern!r} in {self.data[-2000:]!r}")
            start = max(0, len(self.data) - len(pattern))
            received = self._socket.recv(RECEIVE_BYTES)
            if not received:
                raise RuntimeError("the stream ended")
            self.data += received
        return time.perf_counter()

    def receive(self) -> bytes:
        return self._socket.recv(RECEIVE_BYTES)

    def forget(self) -> None:
        self.data = b""

    def close(self) -> None:
        self._socket.close()


def events_path(workspace_id: str, session_id: str = "") -> str:
    narrowed = f"&session_id={session_id}" if session_id else ""
    return f"/v1/workspaces/{workspace_id}/events?deltas=1&client_id={uuid.uuid4()}{narrowed}"
