"""The other side of a connection: its requests are answered, ours are asked, and each of them can be taken back.

    peer = Peer(write, drain, handler)
    peer.receive(line)                                  # for each line that comes
    asked = peer.ask("session/request_permission", {…})
    answer = await asked.answer                         # a RpcAnswer

A request is begun when its line comes, in the order of the lines: what it does before it first waits is done before
the next one is looked at.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from covey.rpc.lines import TooLong
from covey.rpc.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Id,
    NoMessage,
    Notification,
    Params,
    Request,
    RpcAnswer,
    RpcError,
    decode,
    encode,
)

MOST_REQUESTS = 256
"""Under way at once. A person's editor has a handful."""


@dataclass(frozen=True, slots=True)
class AnsweredThen:
    """A result, and what is done as soon as it has been written."""

    result: Any
    then: Callable[[], None]


class Handler(Protocol):
    """What is done with what the other side says."""

    def request(self, request: Request) -> Awaitable[Any]:
        """Its result, or an `AnsweredThen`. May raise RpcError; None is answered as null."""

    def notification(self, notification: Notification) -> None: ...

    def internal(self, error: Exception) -> RpcError:
        """What to say about an error that is no RpcError."""


@dataclass(frozen=True, slots=True)
class Asked:
    id: int
    answer: asyncio.Future[RpcAnswer]


class Peer:
    """For one connection, in one event loop."""

    def __init__(self, write: Callable[[bytes], None], drain: Callable[[], Awaitable[None]], handler: Handler) -> None:
        self._write = write
        self.drain = drain
        """Waits while the other side has not taken what was written: between many notifications."""
        self._handler = handler
        self._ids = itertools.count(1)
        self._asked: dict[Id, Asked] = {}
        self._working: dict[Id, asyncio.Task[None]] = {}

    def receive(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._refuse(None, RpcError(INVALID_REQUEST, "this message is longer than what is taken"))
            return
        found = decode(line)
        match found:
            case Request() as request:
                self._begin(request)
            case Notification() as notification:
                # Behind the requests before it, which are begun in the same way.
                asyncio.get_running_loop().call_soon(self._handler.notification, notification)
            case RpcAnswer() as response:
                if asked := self._asked.pop(response.id, None):
                    asked.answer.set_result(response)
            case NoMessage(id, error):
                self._refuse(id, error)
            case _:
                assert_never(found)

    def notify(self, method: str, params: Params) -> None:
        self._write(encode(Notification(method, params)))

    def ask(self, method: str, params: Params) -> Asked:
        asked = Asked(next(self._ids), asyncio.get_running_loop().create_future())
        self._asked[asked.id] = asked
        self._write(encode(Request(asked.id, method, params)))
        return asked

    def forget(self, asked: Asked) -> None:
        """Nobody waits for this answer any more: a late one changes nothing."""
        self._asked.pop(asked.id, None)
        asked.answer.cancel()

    def stop(self, id: Id, answer: RpcError | None = None) -> None:
        """End the work on a request of the other side, and say so, if that is wanted."""
        if task := self._working.get(id):
            task.cancel()
            if answer:
                self._refuse(id, answer)

    async def close(self) -> None:
        """End all work. What was asked stays unanswered."""
        for asked in list(self._asked.values()):
            self.forget(asked)
        tasks = set(self._working.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # ── inside ──

    def _refuse(self, id: Id, error: RpcError) -> None:
        self._write(encode(RpcAnswer(id, error=error)))

    def _begin(self, request: Request) -> None:
        if request.id in self._working:
            self._refuse(request.id, RpcError(INVALID_REQUEST, "a request with this id is under way"))
        elif len(self._working) >= MOST_REQUESTS:
            self._refuse(request.id, RpcError(INTERNAL_ERROR, f"{MOST_REQUESTS} requests are under way: wait for some"))
        else:
            self._working[request.id] = asyncio.create_task(self._work(request))

    async def _work(self, request: Request) -> None:
        try:
            result = await self._handler.request(request)
        except RpcError as error:
            self._refuse(request.id, error)
        except Exception as error:
            self._refuse(request.id, self._handler.internal(error))
        else:
            answered = result if isinstance(result, AnsweredThen) else AnsweredThen(result, lambda: None)
            self._write(encode(RpcAnswer(request.id, answered.result)))
            answered.then()
        finally:
            del self._working[request.id]
