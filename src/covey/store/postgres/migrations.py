"""Bringing the tables up to this version: in numbered steps, one node at a time.

A locked row keeps others waiting, not an advisory lock: it works through any pooler, and with whatever speaks
PostgreSQL's protocol. A step adds and leaves what is there, so that nodes of the version before go on beside it; what
is no longer needed is removed one version later.
"""

from __future__ import annotations

from contextlib import suppress

import asyncpg

from covey.store.base import StoreFailed
from covey.store.postgres.connection import PgConnection
from covey.store.postgres.schema import STEPS, functions

NEWER = "the store was made by a newer Covey: upgrade this one"


async def migrate(connection: PgConnection) -> tuple[int, int]:
    """Do what is missing, as one transaction. Gives the step that was the last before, and that it is now."""
    await _make_ledger(connection)
    async with connection.transaction():
        # Whoever comes second waits here, and then finds everything done.
        await connection.execute("SELECT step FROM schema_steps WHERE step = 0 FOR UPDATE")
        done = await version(connection)
        if done > len(STEPS):
            raise StoreFailed(NEWER, passing=False)
        for number, step in enumerate(STEPS[done:], done + 1):
            await connection.execute(step)
            await connection.execute("INSERT INTO schema_steps VALUES ($1)", number)
        await connection.execute(functions())
        return done, len(STEPS)


async def version(connection: PgConnection) -> int:
    """The last step that was done; 0 if there is none."""
    if await connection.fetchval("SELECT to_regclass('schema_steps')") is None:
        return 0
    return int(await connection.fetchval("SELECT coalesce(max(step), 0) FROM schema_steps"))


async def _make_ledger(connection: PgConnection) -> None:
    """The table of steps, with the row that is locked. Two that make it at once are both content with either's."""
    with suppress(asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
        await connection.execute("CREATE TABLE IF NOT EXISTS schema_steps (step integer PRIMARY KEY)")
    await connection.execute("INSERT INTO schema_steps VALUES (0) ON CONFLICT DO NOTHING")
