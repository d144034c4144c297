"""The database fails over to a standby: if that had not everything, a workspace begins a new epoch (N7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from covey.protocol.events import created
from covey.store.base import PutWorkspace, WorkspaceRow
from tests.store.test_store_conformance import change, session
from tests.support.claiming_store import ClaimingStore
from tests.support.postgres import PostgresProcess

EVENT = created(session())


@pytest.fixture
def pair() -> Iterator[tuple[PostgresProcess, PostgresProcess]]:
    """A primary, and a standby that follows it."""
    primary = PostgresProcess.fresh()
    standby = PostgresProcess()
    try:
        primary.sql("CREATE DATABASE covey")
        where = ("-h", str(primary.directory), "-p", str(primary.port), "-U", "covey")
        standby.run("pg_basebackup", "-D", str(standby.data), *where, "-R", "-X", "stream", "--checkpoint=fast")
        standby.start()
        yield primary, standby
    finally:
        standby.remove()
        primary.remove()


def caught_up(primary: PostgresProcess, standby: PostgresProcess) -> bool:
    (row,) = primary.sql("SELECT pg_current_wal_lsn()::text AS at")
    (behind,) = standby.sql("SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn AS is_there", row["at"])
    return bool(behind["is_there"])


def epoch_of(store: ClaimingStore) -> int:
    return store.workspaces()[0].epoch


@pytest.mark.parametrize("is_synchronous", [False, True])
def test_n7_after_a_failover_that_may_have_lost_something_a_workspace_has_a_new_epoch(
    pair: tuple[PostgresProcess, PostgresProcess], is_synchronous: bool
) -> None:
    primary, standby = pair
    if is_synchronous:
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
    before = ClaimingStore(primary.url("covey"))
    before.commit([change(PutWorkspace(WorkspaceRow("w", "/w", 7, 1)), events=(EVENT,))])
    before.nodes.release("w", before.fences["w"])
    before.claim("w")
    assert epoch_of(before) == 7, "on the same timeline nothing changes"
    while not caught_up(primary, standby):
        pass
    before.close()
    primary.stop()
    standby.run("pg_ctl", "promote", "-w", "-D", str(standby.data))

    after = ClaimingStore(standby.url("covey"), "two")
    after.nodes.declare_dead("one")
    after.claim("w")
    assert (epoch_of(after) == 7) == is_synchronous
    after.nodes.release("w", after.fences["w"])
    now = epoch_of(after)
    after.claim("w")
    assert epoch_of(after) == now, "once is enough"
    assert after.commit([change(events=(EVENT,))]) == [2]
    after.close()
