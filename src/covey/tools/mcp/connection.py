"""Requests and answers with one server: numbers, waits with bounds, cancels, and what the server asks or tells.

How the messages travel is a `McpTransport`; what they mean is `client.py`. An answer that nobody waits for is dropped.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from covey.tools.mcp.words import METHOD_NOT_FOUND, ConnectionEnded, McpError, Message, ServerRefused, TimedOut

log = logging.getLogger(__name__)

ASKED_AT_ONCE = 16
"""Requests of a server that are worked on at the same time; more are refused."""

OnMessage = Callable[[Message], None]
OnRequest = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Answers what a server asks. Raises ServerRefused to refuse it."""
OnNotification = Callable[[str, dict[str, Any]], None]
OnProgress = Callable[[dict[str, Any]], None]


class McpTransport(Protocol):
    """A way to one server."""

    def start(self, on_message: OnMessage, on_end: Callable[[Exception], None]) -> None:
        """Begin to listen. `on_end` is called once, when nothing more comes."""
        ...

    def send(self, message: Message) -> None:
        """Give it a message. Raises ConnectionEnded."""
        ...

    def abandon(self, request_id: int, method: str) -> None:
        """Nobody waits for this answer any more: tell the server."""
        ...

    async def close(self) -> None:
        """End the conversation, and whatever was started for it. May be called again."""
        ...


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[dict[str, Any]]
    on_progress: OnProgress | None
    heard_at: float
    progress: float = float("-inf")


class McpConnection:
    """One conversation."""

    def __init__(self, transport: McpTransport, on_request: OnRequest, on_notification: OnNotification) -> None:
        self._transport = transport
        self._on_request = on_request
        self._on_notification = on_notification
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._asked: dict[Any, asyncio.Task[None]] = {}
        self.ended: asyncio.Future[Exception] = self._loop.create_future()
        """Done, with why, once the server is gone."""
        transport.start(self._received, self._ended)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        idle_s: float | None,
        total_s: float | None = None,
        on_progress: OnProgress | None = None,
        on_number: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """The server's result. Raises McpError. Cancelling this tells the server, and waits for nothing."""
        if self.ended.done():
            raise ConnectionEnded(str(self.ended.result()))
        number = next(self._numbers)
        if on_number:
            on_number(number)
        body = dict(params)
        if on_progress:
            body["_meta"] = {**body.get("_meta", {}), "progressToken": number}
        waiting = _Waiting(self._loop.create_future(), on_progress, self._loop.time())
        self._waiting[number] = waiting
        try:
            self._transport.send({"jsonrpc": "2.0", "id": number, "method": method, "params": body})
            await self._answered(waiting, method, idle_s, total_s)
            return waiting.answer.result()
        finally:
            del self._waiting[number]
            if not waiting.answer.done() and not self.ended.done():
                self._transport.abandon(number, method)
            waiting.answer.cancel()

    async def _answered(self, waiting: _Waiting, method: str, idle_s: float | None, total_s: float | None) -> None:
        """Until there is an answer. Progress extends the one bound, nothing extends the other."""
        began = self._loop.time()
        while not waiting.answer.done():
            now = self._loop.time()
            if self._asked:  # a person is being asked meanwhile: that is no silence of the server
                waiting.heard_at = now
            bounds = [(began + total_s, total_s, "in all")] if total_s else []
            if idle_s:
                bounds.append((waiting.heard_at + idle_s, idle_s, "without a sign"))
            until, seconds, how = min(bounds, default=(None, 0.0, ""))
            if until is not None and now >= until:
                raise TimedOut(f"{method} took longer than {seconds:g} s {how}")
            await asyncio.wait([waiting.answer], timeout=None if until is None else until - now)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = dict(params)
        self._transport.send(message)

    async def close(self) -> None:
        """Whoever waits gets an error. Nothing of the server is left."""
        self._ended(ConnectionEnded("the connection was closed"))
        await self._transport.close()

    def _ended(self, why: Exception) -> None:
        if self.ended.done():
            return
        self.ended.set_result(why)
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(why if isinstance(why, McpError) else ConnectionEnded(str(why)))
        for task in self._asked.values():
            task.cancel()

    # ── what comes ──

    def _received(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._answer(message)
        elif number is None:
            self._notified(method, _table(message.get("params")))
        elif len(self._asked) >= ASKED_AT_ONCE or number in self._asked:
            self._reply(number, error=ServerRefused(-32000, "too many requests at once"))
        else:
            task = self._loop.create_task(self._ask(number, method, _table(message.get("params"))))
            self._asked[number] = task
            task.add_done_callback(lambda _: self._asked.pop(number, None))

    def _answer(self, message: Message) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None or waiting.answer.done():
            return  # nobody waits for it any more
        error = message.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            refused = ServerRefused(
                code if isinstance(code, int) else 0, str(error.get("message", "")), error.get("data")
            )
            waiting.answer.set_exception(refused)
        elif isinstance(message.get("result"), dict):
            waiting.answer.set_result(message["result"])
        else:
            waiting.answer.set_exception(McpError("the server's answer is neither a result nor an error"))

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/progress":
            self._progressed(params)
            return
        if method == "notifications/cancelled" and (task := self._asked.get(params.get("requestId"))):
            task.cancel()
        self._on_notification(method, params)

    def _progressed(self, params: dict[str, Any]) -> None:
        token, progress = params.get("progressToken"), params.get("progress")
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        if waiting is None or waiting.on_progress is None or not isinstance(progress, int | float):
            return
        if progress > waiting.progress:  # it must rise: what only repeats itself is no sign of life
            waiting.progress, waiting.heard_at = progress, self._loop.time()
            waiting.on_progress(params)

    async def _ask(self, number: Any, method: str, params: dict[str, Any]) -> None:
        try:
            self._reply(number, result=await self._on_request(method, params))
        except ServerRefused as refusal:
            self._reply(number, error=refusal)
        except Exception:
            log.exception("a request of an MCP server could not be answered: %s", method)
            self._reply(number, error=ServerRefused(-32603, "internal error"))

    def _reply(self, number: Any, *, result: dict[str, Any] | None = None, error: ServerRefused | None = None) -> None:
        if self.ended.done():
            return
        body = {"error": {"code": error.code, "message": str(error)}} if error else {"result": result}
        with suppress(ConnectionEnded):  # whoever listens learns of it
            self._transport.send({"jsonrpc": "2.0", "id": number, **body})


def unknown_method(method: str) -> ServerRefused:
    return ServerRefused(METHOD_NOT_FOUND, f"there is no {method} here")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
