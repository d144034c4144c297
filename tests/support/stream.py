"""An event stream as a plain client sees it: read by a thread of its own, and put together again as a transcript."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from covey.protocol.sse import FrameDecoder

_GROWS = {"text": "text", "reasoning": "thinking", "tool_call": "input"}
"""By the type of a part: the field of its data that deltas add to."""


@dataclass(frozen=True)
class Seen:
    """One event as a client saw it."""

    id: str
    type: str
    change: str
    payload: Any


class Stream:
    """An open event stream."""

    def __init__(self, port: int, path: str, headers: dict[str, str]) -> None:
        self.events: list[Seen] = []
        self.ended = False
        self.raw = bytearray()
        self._changed = threading.Condition()
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            self._open(path, headers)
        except BaseException:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _open(self, path: str, headers: dict[str, str]) -> None:
        self._connection.request("GET", path, headers=headers)
        assert self._connection.sock is not None
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()

    def _read(self) -> None:
        decoder = FrameDecoder()
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while chunk := self._response.read1(65536):
                frames = decoder.feed(chunk)
                with self._changed:
                    self.raw += chunk
                    self.events += [_seen(frame.id, frame.data) for frame in frames]
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[list[Seen]], Any], timeout: float = 30.0) -> Any:
        """Block until the events seen so far make the condition true; gives what it gave."""
        found: list[Any] = []

        def check() -> bool:
            found[:] = [condition(self.events)]
            return bool(found[0])

        with self._changed:
            ok = self._changed.wait_for(check, timeout)
        assert ok, f"not seen within {timeout} s; the last events: {self.events[-5:]}"
        return found[0]

    def wait_end(self, timeout: float = 30.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended, timeout), "the stream did not end"

    def terminal(self, run_id: str, timeout: float = 30.0) -> Any:
        """The terminal event of a run."""

        def found(seen: list[Seen]) -> Seen | None:
            return next((e for e in seen if e.type == "run_complete" and e.payload["run_id"] == run_id), None)

        return self.wait_for(found, timeout).payload

    def wait_state(self, run_id: str, state: str) -> None:
        """Block until the run was published in this state."""
        self.wait_for(
            lambda seen: [
                e for e in seen if e.type == "run" and e.payload["run_id"] == run_id and e.payload["state"] == state
            ]
        )

    def wait_delta(self) -> None:
        """Block until some text has been streamed."""
        self.wait_for(lambda seen: any(e.type == "message_delta" for e in seen))

    def of_type(self, kind: str) -> list[Seen]:
        return [event for event in list(self.events) if event.type == kind]

    @property
    def durable(self) -> list[Seen]:
        """What is in the log, and therefore the same for everybody."""
        return [event for event in list(self.events) if event.id]

    @property
    def errors(self) -> list[Seen]:
        return [e for e in self.of_type("agent_event") if e.payload["type"] in ("error", "re_authenticate")]

    @property
    def last_id(self) -> str:
        return next((event.id for event in reversed(self.events) if event.id), "")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._response.close()
        self._connection.close()


def _seen(event_id: str, data: str) -> Seen:
    value = json.loads(data)
    inner = value["payload"]
    return Seen(event_id, value["type"], inner["type"], inner["payload"])


def transcript(events: Iterable[Seen]) -> dict[str, Any]:
    """The messages that a client has after these events: whole ones replace, deltas add. A hole is an error."""
    messages: dict[str, Any] = {}
    for event in events:
        if event.type == "message":
            messages[event.payload["id"]] = json.loads(json.dumps(event.payload))
        elif event.type == "message_delta":
            _grow(messages[event.payload["message_id"]]["parts"], event.payload)
    return messages


def _grow(parts: list[Any], delta: Any) -> None:
    part = parts[delta["part"]]  # a part that begins was published by a whole message
    name = _GROWS[part["type"]]
    text = part["data"][name]
    assert delta["offset"] == len(text), f"a delta for {delta['offset']} where {len(text)} code points are known"
    part["data"][name] = text + delta["delta"]
