"""What carries a client's requests to a server and the answers back, as far as a client needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class TransportFailed(Exception):
    """There is no answer, or only a part of one."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. The names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class OpenAnswer(Protocol):
    """The answer to one request, while it arrives. Its head is there."""

    status: int
    headers: dict[str, str]

    async def read(self, timeout_s: float) -> bytes:
        """The next bytes of the body, as soon as there are any; empty at its end."""

    async def read_all(self, timeout_s: float) -> bytes:
        """The rest of the body."""

    def close(self) -> None:
        """Nothing more is read."""


class Transport(Protocol):
    """The way to one server. Whatever fails on it is a `TransportFailed`, or an error for people."""

    async def request(
        self, method: str, target: str, body: bytes = b"", *, headers: Mapping[str, str], timeout_s: float
    ) -> Response:
        """One request and its whole answer."""

    async def open(
        self, method: str, target: str, body: bytes = b"", *, headers: Mapping[str, str], timeout_s: float
    ) -> OpenAnswer:
        """Send a request and wait for the head of its answer."""

    async def aclose(self) -> None:
        """Let go of what is kept between requests."""
