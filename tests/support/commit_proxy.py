"""A proxy in front of PostgreSQL that knows a commit when it sees one, and breaks the connection exactly there.

It reads the messages of the protocol on their way, each with its type and length, and counts executions of
`covey_commit`. For each, `decide` says what happens:

    pass       nothing
    cut        the statement never arrives
    swallow    it is carried out, and the answer never arrives
    hold       the connection breaks, and the statement arrives when its client has already connected anew
    before     `on_strike` is called, and nothing is sent any more
    after      it is carried out, `on_strike` is called, and no answer is sent any more
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Literal, Self

Action = Literal["pass", "cut", "swallow", "hold", "before", "after"]

COMMIT = b"covey_commit("
LOOK_UP = b"UPDATE logs SET writer"
READY = b"Z"
ERROR = b"E"
BOUND_S = 30.0


class _Messages:
    """Bytes, cut into messages: the first of a client has no type."""

    def __init__(self, *, has_greeting: bool) -> None:
        self._buffer = b""
        self._has_greeting = has_greeting

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The type (empty for the greeting) and all bytes of each message that is complete."""
        self._buffer += data
        while True:
            start = 0 if self._has_greeting else 1
            if len(self._buffer) < start + 4:
                return
            size = start + int.from_bytes(self._buffer[start : start + 4], "big")
            if len(self._buffer) < size:
                return
            whole, self._buffer = self._buffer[:size], self._buffer[size:]
            self._has_greeting = False
            yield whole[:start], whole


def _names(message: bytes) -> list[bytes]:
    """The texts at the beginning of a message."""
    return message[5:].split(b"\0", 2)


class _Connection:
    def __init__(self, proxy: CommitProxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = socket.create_connection(("127.0.0.1", proxy.target))
        for side in (client, self._server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # messages are small, and each is waited for
        self._commits: set[bytes] = set()
        """Names of prepared statements that are commits."""
        self._looks: set[bytes] = set()
        self._action: Action = "pass"
        self._held = b""
        self._is_looking = False
        self.threads = [threading.Thread(target=pump, daemon=True) for pump in (self._up, self._down)]

    def _up(self) -> None:
        messages = _Messages(has_greeting=True)
        with contextlib.suppress(OSError):
            while data := self._client.recv(65536):
                for kind, message in messages.feed(data):
                    self._pass_up(kind, message)
        if self._action not in ("swallow", "after", "hold"):
            self.close()

    def _pass_up(self, kind: bytes, message: bytes) -> None:
        if kind == b"P":
            name, query, _ = _names(message)
            self._commits |= {name} if COMMIT in query else set()
            self._looks |= {name} if LOOK_UP in query else set()
        elif kind == b"B":
            _, name, _ = _names(message)
            self._is_looking |= name in self._looks
            if name in self._commits:
                self._action = self._proxy.next_action()
                if self._action == "before":
                    self._proxy.on_strike()
                if self._action in ("cut", "before"):
                    raise ConnectionAbortedError
        if self._action == "hold":
            self._held += message
            if kind == b"S":
                self._proxy.hold(self)
                raise ConnectionAbortedError
            return
        self._server.sendall(message)

    def deliver(self) -> None:
        """What was held back arrives after all."""
        self._action, held = "pass", self._held
        self._server.sendall(held)

    def break_off(self) -> None:
        """The client sees its connection break; the server does not."""
        with contextlib.suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)

    def _down(self) -> None:
        messages = _Messages(has_greeting=False)
        is_late = False
        with contextlib.suppress(OSError):
            while data := self._server.recv(65536):
                for kind, message in messages.feed(data):
                    is_late |= bool(self._held) and kind == ERROR
                    if self._held and kind == READY:
                        self._proxy.answered_late(was_refused=is_late)
                        raise ConnectionAbortedError
                    if self._action in ("swallow", "after"):
                        if kind == READY:
                            if self._action == "after":
                                self._proxy.on_strike()
                            raise ConnectionAbortedError
                        continue
                    if self._is_looking and kind == READY:
                        self._is_looking = False
                        self._proxy.looked_up()
                    if not self._held:
                        self._client.sendall(message)
        self.close()

    def close(self) -> None:
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()


class CommitProxy:
    """Listens on `port`. `commits` counts those that were seen; `late` says of each held one whether it was refused."""

    def __init__(self, target: int, decide: Callable[[int], Action] = lambda number: "pass") -> None:
        self.target = target
        self.decide = decide
        self.on_strike: Callable[[], None] = lambda: None
        self.commits = 0
        self.struck = 0
        self.late: list[bool] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._held: list[_Connection] = []
        self._connections: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(BOUND_S)
        for connection in self._connections:
            connection.close()
            for thread in connection.threads:
                thread.join(BOUND_S)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    connection = _Connection(self, client)
                except OSError:
                    client.close()
                    continue
                self._connections.append(connection)
                for thread in connection.threads:
                    thread.start()

    def next_action(self) -> Action:
        with self._lock:
            self.commits += 1
            action = self.decide(self.commits)
            self.struck += action != "pass"
            return action

    # ── what is held back ──

    def hold(self, connection: _Connection) -> None:
        with self._lock:
            self._held.append(connection)
        connection.break_off()

    def looked_up(self) -> None:
        """A new connection knows what became of its predecessor's commit: only now the late one arrives."""
        with self._lock:
            held, self._held = self._held, []
        for connection in held:
            connection.deliver()

    def answered_late(self, *, was_refused: bool) -> None:
        with self._changed:
            self.late.append(was_refused)
            self._changed.notify_all()

    def wait_late(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.late) >= count, BOUND_S), "nothing came late"
