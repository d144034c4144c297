"""Connections to PostgreSQL for threads that wait: each thread has one of its own, with an event loop of its own.

asyncpg costs a third of the CPU of drivers that wait by themselves, and the journal's threads do nothing but wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import asyncpg

from covey.store.base import Fenced, StoreFailed

log = logging.getLogger(__name__)
T = TypeVar("T")
PgConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Ask = Callable[["PgConnection"], Coroutine[Any, Any, T]]
"""Something that is asked of a connection."""

CONNECT_S = 5.0
NOTICE = 4
"""Rounds of the loop before anything is asked: it only runs meanwhile, so a connection that broke is noticed now. What
is sent on one would be in doubt, and what is not sent is not. A server that goes away says so first, and then hangs up:
each is read in a round of its own, after whoever asks has had its turn in it."""
STATEMENT_S = 30.0
"""For one statement. Nothing here takes long, but the store may be busy."""
SETTINGS = {"application_name": "covey", "transaction_timeout": "30s", "client_min_messages": "warning"}

FENCED = "CV001"
"""What `covey_commit` raises if somebody else owns the workspace."""
_PASSING = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.PostgresSystemError,
    OSError,
    TimeoutError,
)
"""What may be over soon: the store is gone, restarts, is a standby, is full, or has given up a transaction."""
_IN_DOUBT = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TransactionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
    OSError,
    TimeoutError,
)
"""The connection broke while a statement was under way: nobody knows whether it was carried out."""


def _is_in_doubt(error: BaseException) -> bool:
    """A value that the driver cannot send was never sent, also if that error is of the same kind."""
    return isinstance(error, _IN_DOUBT) and not isinstance(error, ValueError)


class NotConnected(Exception):
    """There is no connection, so nothing was asked, and nothing can be in doubt."""


class ConnectionBroken(StoreFailed):
    """The connection broke. What was under way may or may not have been done."""

    def __init__(self, message: str) -> None:
        super().__init__(message, passing=True)


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Whatever the store says, in our own words and kinds."""
    try:
        yield
    except StoreFailed:
        raise
    except NotConnected as error:
        raise StoreFailed(f"{what}: {error}", passing=True) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        text = f"{what}: {str(error) or type(error).__name__}"
        if getattr(error, "sqlstate", "") == FENCED:
            raise Fenced(text) from error
        if _is_in_doubt(error):
            raise ConnectionBroken(text) from error
        raise StoreFailed(text, passing=isinstance(error, _PASSING) and not isinstance(error, ValueError)) from error


class Connection:
    """One connection, used by one thread. It is made when it is needed, and again after it broke."""

    def __init__(self, url: str, on_connect: Ask[None] | None = None, name: str = "covey") -> None:
        self._url = url
        self._on_connect = on_connect
        self.name = name
        self.made = 0
        """How often it was made: a number that rises tells that it broke in between."""
        self._loop = asyncio.new_event_loop()
        self._connection: PgConnection | None = None
        self._has_no_room = False
        """The database had no connection left for it."""

    def fetch(self, query: str, *values: Any) -> list[Any]:
        return self.call(lambda connection: connection.fetch(query, *values, timeout=STATEMENT_S))

    def call(self, ask: Ask[T]) -> T:
        """Raises what the driver raises; see `failures`."""
        return self._loop.run_until_complete(self._call(ask))

    async def _call(self, ask: Ask[T]) -> T:
        for _ in range(NOTICE):
            await asyncio.sleep(0)
        try:
            connection = await self._connected()
        except _IN_DOUBT as error:  # nothing was asked yet
            if not _is_in_doubt(error):
                raise
            raise NotConnected(str(error) or type(error).__name__) from error
        try:
            return await ask(connection)
        except _IN_DOUBT as error:
            if _is_in_doubt(error):
                self._drop()
            raise

    async def _connected(self) -> PgConnection:
        if self._connection is None or self._connection.is_closed():
            self._connection = None
            made = await self._connect()
            self.made += 1
            try:
                if self._on_connect:
                    await self._on_connect(made)
            except BaseException:
                made.terminate()
                raise
            self._connection = made
        return self._connection

    async def _connect(self) -> PgConnection:
        settings = {**SETTINGS, "application_name": self.name}
        try:
            made = await asyncpg.connect(self._url, timeout=CONNECT_S, server_settings=settings)
        except asyncpg.TooManyConnectionsError as error:
            if not self._has_no_room:  # said once, not at each attempt
                log.error("the database has no connection left for this server, trying again: %s", error)
            self._has_no_room = True
            raise
        self._has_no_room = False
        return made

    def _drop(self) -> None:
        if self._connection:
            self._connection.terminate()
            self._connection = None

    def close(self) -> None:
        """From any thread, but not while another one uses it."""
        closer = threading.Thread(target=self._close)  # this one may have a loop of its own that runs
        closer.start()
        closer.join()

    def _close(self) -> None:
        if self._loop.is_closed():
            return
        if self._connection and not self._connection.is_closed():
            with suppress(Exception):
                self._loop.run_until_complete(self._connection.close(timeout=1.0))
        self._drop()
        self._loop.close()


def shown(url: str) -> str:
    """Which database it is, without what is secret."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_room(url: str, count: int, needed: int) -> None:
    """Raise StoreFailed unless `count` more connections can be made at once: better now than in the middle of a turn.

    `needed`: what is said of it, all in all.
    """
    with failures("cannot connect"):
        try:
            asyncio.run(_connect_at_once(url, count))
        except asyncpg.TooManyConnectionsError as error:
            text = f"it has no room for the {needed} connections that a node needs ({error})"
            raise StoreFailed(text, passing=True) from error


async def _connect_at_once(url: str, count: int) -> None:
    trying = (asyncpg.connect(url, timeout=CONNECT_S, server_settings=SETTINGS) for _ in range(count))
    made = await asyncio.gather(*trying, return_exceptions=True)
    for connection in made:
        if not isinstance(connection, BaseException):
            await connection.close(timeout=1.0)
    for failed in made:
        if isinstance(failed, BaseException):
            raise failed


class Readers:
    """A connection for each thread that reads. Whoever looks at the database finds them by their name."""

    def __init__(self, url: str, name: str = "covey") -> None:
        self._url = url
        self.name = name
        self._local = threading.local()
        self._made: list[Connection] = []

    def fetch(self, query: str, *values: Any) -> Sequence[Any]:
        """The rows. A connection that broke while nobody used it is made again: nothing was asked yet."""
        connection = self._mine()
        with failures("cannot read"):
            try:
                return connection.fetch(query, *values)
            except _IN_DOUBT as error:
                if not _is_in_doubt(error):
                    raise
                return connection.fetch(query, *values)

    def made(self) -> int:
        """How often the connection of this thread was made."""
        return self._mine().made

    def _mine(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection and connection.name != self.name:  # it was renamed: each thread lets go of its own
            self._made.remove(connection)
            connection.close()
            connection = None
        if connection is None:
            connection = self._local.connection = Connection(self._url, name=self.name)
            self._made.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._made:
            connection.close()
