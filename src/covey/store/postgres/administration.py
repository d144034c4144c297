"""What an operator does to the shared database, while no node of the cluster needs to be there."""

from __future__ import annotations

import time
from typing import NamedTuple

from covey.store.base import StoreFailed
from covey.store.postgres.connection import Ask, Connection, PgConnection, T, failures
from covey.store.postgres.migrations import migrate


class Upgraded(NamedTuple):
    """The last step of the tables before, and now."""

    before: int
    after: int


def upgrade(url: str) -> Upgraded:
    """Make the tables, or bring them up to this version."""
    return Upgraded(*_asked(url, migrate))


def new_epoch(url: str) -> int:
    """Every workspace begins a new epoch: what clients have is not what is there. How many there are."""
    return _asked(url, _new_epoch)


async def _new_epoch(connection: PgConnection) -> int:
    await migrate(connection)
    async with connection.transaction():
        alive = await connection.fetch("SELECT name FROM nodes WHERE lease_until > now() ORDER BY name")
        if alive:
            names = ", ".join(row["name"] for row in alive)
            raise StoreFailed(f"these nodes are running, and must not be: {names}", passing=False)
        query = "UPDATE workspaces SET epoch = greatest(epoch + 1, $1) RETURNING 1"
        return len(await connection.fetch(query, int(time.time())))


def _asked(url: str, ask: Ask[T]) -> T:
    connection = Connection(url)
    try:
        with failures("cannot use the store"):
            return connection.call(ask)
    finally:
        connection.close()
