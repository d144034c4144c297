"""Sends requests to one server and reads its answers: what every method of `Client` needs, and nothing about routes."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable
from covey.client.http import CannotConnect, Http
from covey.client.targets import target, workspace_path
from covey.client.transport import OpenAnswer, Transport, TransportFailed
from covey.protocol.errors import NotFound, decode_error
from covey.protocol.paths import Address
from covey.protocol.requests import CreateWorkspace
from covey.protocol.who import ClientKind

ANSWER_S = 30.0
"""No route but the long poll waits for anything slower than a disk."""

T = TypeVar("T")


async def _cannot_revive() -> None:
    """Nobody knows how to start this server: it was given by its address."""


class Caller:
    """A connection to one server, as one client with one id. Not thread-safe."""

    def __init__(
        self,
        address: Address,
        *,
        token: str = "",
        client_id: str = "",
        name: str = "",
        kind: ClientKind = "api",
        answer_s: float = ANSWER_S,
        transport: Transport | None = None,
    ) -> None:
        self.address = address
        self.client_id = client_id or str(uuid.uuid4())
        self.name = name
        """What others see of this client, such as the name of its user."""
        self.kind: ClientKind = kind
        self.has_token = bool(token)
        self.revive: Callable[[], Awaitable[None]] = _cannot_revive
        """Starts the server again if it is gone and was ours to start: called before a connection is tried again."""
        self._answer_s = answer_s
        self._joined: dict[str, CreateWorkspace] = {}
        self._transport = transport or Http(address, {"Authorization": f"Bearer {token}"} if token else {})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def open_events(self, workspace_id: str, *, session_id: str, last_event_id: str) -> OpenAnswer:
        """The open answer of the event stream."""
        where = target(
            f"{workspace_path(workspace_id)}/events",
            {"client_id": self.client_id, "deltas": 1, "session_id": session_id},
        )
        return await self._open_stream(where, {"Last-Event-ID": last_event_id} if last_event_id else {})

    async def _open_stream(self, where: str, more: Mapping[str, str]) -> OpenAnswer:
        exchange = await self._open(where, {"Accept": "text/event-stream", **more})
        kind = exchange.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            exchange.close()
            raise BadAnswer(f"{self.address} answered with {kind or 'nothing'} where events were expected.")
        return exchange

    async def _open(self, where: str, headers: Mapping[str, str]) -> OpenAnswer:
        """The answer to a GET, while it arrives."""
        with self._failures():
            exchange = await self._transport.open("GET", where, headers=headers, timeout_s=self._answer_s)
            if exchange.status != 200:
                raise decode_error(exchange.status, await exchange.read_all(self._answer_s))
        return exchange

    async def _pieces(self, exchange: OpenAnswer, silence_s: float) -> AsyncGenerator[bytes, None]:
        """The rest of an answer as it comes. Raises ConnectionLost if it is cut off, or silent for so long."""
        try:
            with self._failures():
                while chunk := await exchange.read(silence_s):
                    yield chunk
        finally:
            exchange.close()

    async def _get(self, answer: type[T], path: str, *, extra_s: float = 0.0, **params: Any) -> T:
        return decode(answer, await self._send("GET", path, extra_s=extra_s, **params))

    async def _list(self, of: type[T], path: str) -> tuple[T, ...]:
        """What a route lists that older servers do not have: then there is nothing."""
        try:
            return decode(tuple[of, ...], await self._send("GET", path))  # type: ignore[valid-type]
        except NotFound as error:
            if error.code != "not_found":
                raise
            return ()

    async def _post(self, answer: type[T], path: str, body: msgspec.Struct | None = None) -> T:
        return decode(answer, await self._send("POST", path, body))

    async def _send(
        self,
        method: str,
        path: str,
        body: msgspec.Struct | None = None,
        *,
        extra_s: float = 0.0,
        **params: Any,
    ) -> bytes:
        if method != "GET":
            params.setdefault("client_id", self.client_id)  # who does it
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if data else {}
        with self._failures():
            response = await self._transport.request(
                method, target(path, params), data, headers=headers, timeout_s=self._answer_s + extra_s
            )
        if not 200 <= response.status < 300:
            raise decode_error(response.status, response.body)
        return response.body

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what happens on the wire into errors that tell people what to do."""
        try:
            yield
        except CannotConnect as error:
            start = "covey serve" if self.address.is_unix else f"covey serve --host {self.address}"
            raise ServerUnreachable(
                f"No Covey server answers at {self.address} ({error}). Start one with `{start}`, or check the address."
            ) from None
        except TransportFailed as error:
            raise ConnectionLost(f"The connection to {self.address} broke before it answered ({error}).") from None


def decode(answer: type[T], body: bytes) -> T:
    with readable(body):
        return msgspec.json.decode(body, type=answer)


@contextmanager
def readable(body: bytes) -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        start = body[:80].decode("utf-8", "replace").strip() or "an empty body"
        raise BadAnswer(f"The server's answer cannot be read ({error}); it begins with: {start}") from None
