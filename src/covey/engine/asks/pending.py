"""Requests that wait for a person: kept by id, answered once. The first answer wins; later ones come too late."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

R = TypeVar("R")
A = TypeVar("A")


class Pending(Generic[R, A]):
    """The open requests of one kind in a workspace. Not a place for rules about who may answer what."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[R, asyncio.Future[A]]] = {}

    @property
    def requests(self) -> list[R]:
        return [request for request, _ in self._open.values()]

    def find(self, request_id: str) -> R | None:
        """The request, if nobody has answered it."""
        request, answer = self._open.get(request_id, (None, None))
        return request if answer is not None and not answer.done() else None

    async def wait(self, request_id: str, request: R) -> A:
        """Until somebody answers. Whatever ends the waiting, the request is closed then."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._open[request_id] = (request, answer)
        try:
            return await answer
        finally:
            del self._open[request_id]

    def answer(self, request_id: str, answer: A) -> bool:
        """False: somebody else was first, or the request is closed."""
        if self.find(request_id) is None:
            return False
        self._open[request_id][1].set_result(answer)
        return True
