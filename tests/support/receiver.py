"""A receiver of webhooks on loopback, which answers as the test says and keeps what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

WAIT_S = 30.0


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def notice(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Receiver:
    """Gives each of `answers` once, then 204. 0: it hangs up without an answer; -1: it never answers."""

    def __init__(self, answers: Sequence[int] = (), location: str = "") -> None:
        self.received: list[Received] = []
        self._answers = list(answers)
        self._location = location
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook?token=t0p"

    def wait(self, count: int) -> list[Received]:
        """What came, once it is as many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.received) >= count, WAIT_S), self.received
            return list(self.received)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, received: Received) -> int:
        with self._changed:
            self.received.append(received)
            self._changed.notify_all()
            return self._answers.pop(0) if self._answers else 204

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                status = receiver._take(Received(self.path, headers, body))
                self.close_connection = True
                if status < 0:
                    receiver._closing.wait(WAIT_S)
                elif status:
                    self.send_response(status)
                    if receiver._location:
                        self.send_header("location", receiver._location)
                    self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
