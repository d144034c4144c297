"""The journal, smaller promises: what it takes for granted, whom it waits for, and what is in the log for people."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from covey.protocol.events import Event, created
from covey.store import journal as journal_module
from covey.store.base import Change, PutWorkspace, RunExists, StoreFailed, WorkspaceRow
from covey.store.journal import Journal, WorkspaceJournal
from tests.store.publishing import Published, growth, say, within_bound
from tests.store.test_store_conformance import session
from tests.support.disk import BOUND_S, Disk

pytestmark = pytest.mark.anyio

HELD_S = 0.2
"""How long something is given to happen that must not."""


class MoodyDisk(Disk):
    """The next commits fail with `failures`, one after the other; None: that one succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: deque[StoreFailed | None] = deque()
        self.trimmed_after: list[int] = []

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        def fail(changes: Sequence[Change]) -> None:
            if self.failures and (failure := self.failures.popleft()):
                raise failure

        self.before_commit = fail
        return super().commit(changes)

    def trim_events(self, workspace_id: str, keep: int) -> None:
        self.trimmed_after.append(self.log_bounds(workspace_id).last)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> MoodyDisk:
    monkeypatch.setattr(journal_module, "RETRY_S", 0.01)
    return MoodyDisk()


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# ── what is taken for granted ──


async def test_a_change_waits_for_room_and_is_synced_unless_somebody_says_otherwise(
    disk: MoodyDisk, book: WorkspaceJournal, published: Published
) -> None:
    disk.full = True
    waiting = book.write((), (created(session("a")),))
    await disk.wait_attempts(3)
    assert not waiting.done()
    disk.full = False
    await within_bound(waiting, book.write((), (), durable=False))
    assert [change.durable for group in disk.groups for change in group] == [True, False]
    assert published.order == ["a"]


async def test_a_change_that_nobody_tells_of_is_written(disk: MoodyDisk, journal: Journal) -> None:
    row = WorkspaceRow("w", "/project", 7, 1)
    await asyncio.wait_for(journal.write(Change("w", (PutWorkspace(row),))), BOUND_S)
    assert disk.workspaces() == [row]
    assert disk.log_bounds("w") == (0, 0)


async def test_who_writes_a_change_that_nobody_tells_of_hears_that_the_disk_is_full(
    disk: MoodyDisk, journal: Journal
) -> None:
    disk.full = True
    with pytest.raises(StoreFailed, match="the disk is full"):
        await asyncio.wait_for(journal.write(Change("w", ())), BOUND_S)


async def test_the_writing_thread_does_not_keep_the_process_alive(disk: MoodyDisk) -> None:
    """A disk that hangs must not keep a server from ending: the next start makes up for it."""
    before = set(threading.enumerate())
    made = Journal(disk)
    daemons = {thread.daemon for thread in set(threading.enumerate()) - before}
    await made.aclose(BOUND_S)
    assert daemons == {True}


async def test_the_disk_is_not_touched_when_there_is_nothing_to_write(
    disk: MoodyDisk, journal: Journal, book: WorkspaceJournal
) -> None:
    journal.trim_events("w", 1)
    await asyncio.wait_for(journal.aclose(BOUND_S), BOUND_S)
    assert disk.trimmed_after == [0]
    assert disk.attempts == 0


async def test_the_log_is_looked_at_after_every_so_many_events(
    disk: MoodyDisk, book: WorkspaceJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "TRIM_EVERY", 3)
    for number in range(8):
        await within_bound(say(book, str(number)))
    await within_bound(book.write((), ()))
    assert disk.trimmed_after == [3, 6]


# ── order ──


async def test_nothing_overtakes_a_change_that_waits_when_its_group_was_refused_for_good(
    disk: MoodyDisk, book: WorkspaceJournal, published: Published
) -> None:
    """Something in the group can never be written, and then the disk is full: each is tried alone, until one waits."""
    disk.hold()
    first = say(book, "first")
    await disk.wait_attempts(1)
    disk.failures.extend([None, StoreFailed("too big", passing=False), StoreFailed("full", passing=True)])
    later = [say(book, name) for name in ("P1", "P2", "P3")]
    disk.release()
    await within_bound(first, *later)
    assert published.order == ["first", "P1", "P2", "P3"]
    assert published.seqs == [1, 2, 3, 4]
    assert [len(group) for group in disk.groups] == [1, 3]


# ── who waits, and who has left ──


@pytest.mark.parametrize("full", [False, True])
async def test_a_waiter_who_left_keeps_nothing_from_happening(
    disk: MoodyDisk, book: WorkspaceJournal, published: Published, full: bool, caplog: pytest.LogCaptureFixture
) -> None:
    disk.hold()
    seen: list[bool] = []
    left = book.write((), (created(session("a")),), patient=False, then=lambda failure: seen.append(bool(failure)))
    book.grow(growth("a1"))
    left.cancel()
    disk.full = full
    disk.release()
    await asyncio.wait({say(book, "b", patient=False)}, timeout=BOUND_S)
    assert seen == [full]
    assert published.order == (["a1"] if full else ["a", "a1", "b"])
    assert errors(caplog) == []


async def test_a_failure_that_nobody_waits_for_is_no_complaint_of_the_loop(
    disk: MoodyDisk, book: WorkspaceJournal
) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    disk.full = True
    failed = asyncio.Event()
    book.write((), (), patient=False, then=lambda failure: failed.set())
    await asyncio.wait_for(failed.wait(), BOUND_S)
    disk.full = False
    await within_bound(say(book, "next"))  # now the thread holds on to the failed one no more
    gc.collect()
    assert complaints == []


# ── closing ──


async def test_the_store_is_not_closed_while_somebody_reads(disk: MoodyDisk, journal: Journal) -> None:
    closed = threading.Event()
    disk.close = closed.set  # type: ignore[method-assign]
    disk.closed = True  # for the fixture
    reading = threading.Event()

    def read() -> bool:
        reading.set()
        journal._thread.join(BOUND_S)  # the last moment before the store is closed
        return closed.wait(HELD_S)

    result = asyncio.ensure_future(journal.read(read))
    await asyncio.to_thread(reading.wait, BOUND_S)
    await asyncio.wait_for(journal.aclose(BOUND_S), BOUND_S)
    assert await result is False, "the store was closed under the hands of a reader"
    assert closed.is_set()


async def test_the_store_is_not_closed_while_the_writing_thread_hangs_in_it(
    disk: MoodyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(disk)
    disk.hold()
    waiting = say(journal.for_workspace("w", Published(), keep_events=1000), "a")
    await disk.wait_attempts(1)
    await asyncio.wait_for(journal.aclose(0.01), BOUND_S)
    assert not disk.closed
    assert not waiting.done()
    assert any("still refuses to write" in line for line in errors(caplog))
    disk.release()
    await asyncio.to_thread(journal._thread.join, BOUND_S)
    assert disk.log_bounds("w").last == 1  # what it was busy with is whole


# ── what is in the log for people ──


async def test_ordinary_work_is_not_in_the_log(
    book: WorkspaceJournal, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    await within_bound(say(book, "a"), say(book, "b"))
    book.grow(growth("b1"))
    await within_bound(say(book, "c"))
    await journal.aclose(BOUND_S)
    assert errors(caplog) == []


async def test_a_disk_that_refuses_is_in_the_log_once_and_so_is_that_it_writes_again(
    disk: MoodyDisk, book: WorkspaceJournal, caplog: pytest.LogCaptureFixture
) -> None:
    disk.hold()
    waiting = [say(book, "first")]
    await disk.wait_attempts(1)
    full = StoreFailed("the disk is full", passing=True)
    disk.failures.extend([None, full, full])
    waiting += [say(book, name) for name in ("a", "b", "c")]
    disk.release()
    await within_bound(*waiting)
    said = ["the store refuses to write, trying again: the disk is full", "the store writes again"]
    assert errors(caplog) == said
    disk.failures.append(full)
    await within_bound(say(book, "d"))
    assert errors(caplog) == said * 2


async def test_what_is_refused_for_good_is_in_the_log_unless_somebody_is_informed(
    disk: MoodyDisk, book: WorkspaceJournal, caplog: pytest.LogCaptureFixture
) -> None:
    disk.poison = "bad"
    await asyncio.wait({say(book, "bad", patient=False)}, timeout=BOUND_S)
    assert errors(caplog) == []
    await asyncio.wait({say(book, "bad")}, timeout=BOUND_S)
    assert errors(caplog) == ["a change was refused for good: too big"]


async def test_a_bug_of_ours_is_in_the_log(
    disk: MoodyDisk, book: WorkspaceJournal, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Published):
        def publish(self, seq: int, event: Event, encoded: bytes) -> None:
            raise RuntimeError("a bug in a publisher")

    def upkeep(workspace_id: str, keep: int) -> None:
        raise ValueError("a bug in upkeep")

    disk.bug = "odd"
    disk.trim_events = upkeep  # type: ignore[method-assign]
    await asyncio.wait({say(book, "odd", patient=False)}, timeout=BOUND_S)
    say(journal.for_workspace("x", Broken(), keep_events=1000), "lost")
    journal.trim_events("w", 1)
    await within_bound(say(book, "a"))
    published = "\n".join(errors(caplog))
    assert "in a way of which it does not know" in published
    assert "could not be published" in published
    assert "upkeep failed: cannot write: ValueError: a bug in upkeep" in published
