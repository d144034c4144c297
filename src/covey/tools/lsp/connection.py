"""Requests to a language server and its answers, and its requests to us, over a pair of pipes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Protocol

from covey.tools.lsp.frames import BadFrame, LspDecoder, encode

METHOD_NOT_FOUND = -32601
CONTENT_MODIFIED, SERVER_CANCELLED = -32801, -32802
"""The text changed while it worked, or it prefers to be asked again: neither is an answer."""


class Pipes(Protocol):
    """A program's input and output."""

    def write(self, data: bytes) -> None: ...

    async def read(self) -> bytes:
        """What it has written since; b"" once there is no more."""
        ...


class ServerGone(Exception):
    """The language server has ended, or speaks in a way that nobody can follow."""


class RequestRefused(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unanswerable(Exception):
    """A request of the server that this client does not serve."""


Answer = Callable[[str, Any], Any]
"""Method and parameters of a request of the server → the result. Raises Unanswerable."""
Notified = Callable[[str, Any], None]


class LspConnection:
    """One connection. Somebody has to run `serve`; when that returns, every open request has failed."""

    def __init__(self, pipes: Pipes, answer: Answer, notified: Notified) -> None:
        self._pipes = pipes
        self._answer = answer
        self._notified = notified
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}
        self.why_gone = ""
        """Why it is over; '' while it is not."""

    @property
    def is_asked(self) -> bool:
        """A request waits for its answer."""
        return bool(self._open)

    async def request(self, method: str, params: Any, timeout_s: float | None = None) -> Any:
        """The result. Raises ServerGone, RequestRefused, TimeoutError. The server is told if nobody waits any more."""
        if self.why_gone:
            raise ServerGone(self.why_gone)
        number = next(self._numbers)
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[number] = answered
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(timeout_s):
                return await answered
        finally:
            if self._open.pop(number, None) and not self.why_gone:
                self.notify("$/cancelRequest", {"id": number})

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def serve(self) -> str:
        """Read until the server ends or breaks the rules; gives why it is over."""
        decoder = LspDecoder()
        why = "it has ended"
        try:
            while data := await self._pipes.read():
                for message in decoder.feed(data):
                    self._take(message)
        except BadFrame as error:
            why = str(error)
        finally:
            self.why_gone = why
            for answered in self._open.values():
                if not answered.done():
                    answered.set_exception(ServerGone(why))
            self._open.clear()
        return why

    def _take(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": str(method), "id": int() | str() as asked}:
                self._serve_request(asked, method, message.get("params"))
            case {"method": str(method)}:
                self._notified(method, message.get("params"))
            case {"id": int(number)}:
                self._settle(self._open.pop(number, None), message)

    def _serve_request(self, asked: int | str, method: str, params: Any) -> None:
        try:
            answer = {"result": self._answer(method, params)}
        except Unanswerable:
            answer = {"error": {"code": METHOD_NOT_FOUND, "message": f"{method} is not served"}}
        self._send({"jsonrpc": "2.0", "id": asked, **answer})

    def _settle(self, answered: asyncio.Future[Any] | None, message: dict[str, Any]) -> None:
        if answered is None or answered.done():
            return  # nobody waits for it any more
        match message.get("error"):
            case None:
                answered.set_result(message.get("result"))
            case {"code": int(code), "message": str(text)}:
                answered.set_exception(RequestRefused(code, text))
            case _:
                answered.set_exception(RequestRefused(0, "it gave no reason"))

    def _send(self, message: dict[str, Any]) -> None:
        if not self.why_gone:
            self._pipes.write(encode(message))
