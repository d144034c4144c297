"""What waits to be delivered, one after the other, beside everything else. Nobody ever waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

QUEUE_MAX = 100
"""A receiver that is down must not fill the memory: beyond this the oldest are dropped."""
CLOSE_S = 1.0
"""How long a delivery that was cancelled may take to close its connection or to end its program."""

Item = TypeVar("Item")


class DeliveryQueue(Generic[Item]):
    """`what` is the name of the items in the log. A task works only while there are any."""

    def __init__(self, what: str, deliver: Callable[[Item], Awaitable[None]]) -> None:
        self._what = what
        self._deliver = deliver
        self._waiting: deque[Item] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    def put(self, item: Item) -> None:
        if self._closed:
            return
        if len(self._waiting) >= QUEUE_MAX:
            self._waiting.popleft()
            log.warning("a %s was dropped: more than %d wait", self._what, QUEUE_MAX)
        self._waiting.append(item)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name=self._what)

    async def _work(self) -> None:
        while self._waiting:
            try:
                await self._deliver(self._waiting.popleft())
            except Exception:  # the next one may go better
                log.exception("a %s failed", self._what)

    async def aclose(self) -> None:
        """Give up at once what was not delivered."""
        self._closed = True
        if self._worker and not self._worker.done():
            count = len(self._waiting) + 1
            log.warning("the server ends with %d undelivered %s%s", count, self._what, "s" if count > 1 else "")
            self._worker.cancel()
            await asyncio.wait({self._worker}, timeout=CLOSE_S)
        self._waiting.clear()
