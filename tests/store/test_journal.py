"""The journal: written before published, published in the order given, whatever the disk does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from covey.protocol.events import Event, created
from covey.store import journal as journal_module
from covey.store.base import Change, InsertRun, PutMessage, RunExists, RunRow, StoreFailed
from covey.store.journal import Journal, WorkspaceJournal
from tests.store.publishing import Published, growth, say, within_bound
from tests.store.test_store_conformance import message, run, session
from tests.support.disk import BOUND_S, Disk

pytestmark = pytest.mark.anyio


def _note(ended: list[str], name: str, done: asyncio.Future[None]) -> None:
    ended.append(name)


# ── order ──


async def test_what_is_said_first_is_published_first_and_numbered_without_gaps(
    book: WorkspaceJournal, published: Published
) -> None:
    names = [str(number) for number in range(300)]
    ended: list[str] = []
    futures = []
    for name in names:
        future = say(book, name)
        future.add_done_callback(partial(_note, ended, name))
        futures.append(future)
        if len(futures) % 50 == 0:
            await asyncio.sleep(0)
    await within_bound(*futures)
    await asyncio.sleep(0)
    assert published.order == ended == names
    assert published.seqs == list(range(1, 301))


async def test_nothing_is_published_before_it_is_written(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.hold()
    done = say(book, "a")
    await disk.wait_attempts(1)
    assert published.order == []
    assert not done.done()
    disk.release()
    await within_bound(done)
    assert published.order == ["a"]
    assert disk.log_bounds("w").last == 1


async def test_growth_never_overtakes_a_change_that_was_said_before_it(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    book.grow(growth("at once"))
    assert published.order == ["at once"]
    disk.hold()
    say(book, "A")
    book.grow(growth("a1"))
    book.grow(growth("a2"))
    last = say(book, "B")
    book.grow(growth("b1"))
    await disk.wait_attempts(1)
    assert published.order == ["at once"]
    disk.release()
    await within_bound(last)
    assert published.order == ["at once", "A", "a1", "a2", "B", "b1"]
    book.grow(growth("now"))
    assert published.order[-1] == "now"


async def test_each_workspace_has_its_own_order_and_numbers(
    disk: Disk, journal: Journal, book: WorkspaceJournal
) -> None:
    other = Published()
    second = journal.for_workspace("x", other, keep_events=1000)
    disk.hold()
    waiting = say(book, "a")
    await disk.wait_attempts(1)
    second.grow(growth("not behind another workspace"))
    assert other.order == ["not behind another workspace"]
    disk.release()
    await within_bound(waiting, say(second, "b"))
    assert other.seqs == [1]


async def test_then_is_called_before_anything_said_later_is_published(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.hold()
    seen: list[tuple[Exception | None, list[str]]] = []
    book.write((), (created(session("a")),), then=lambda failure: seen.append((failure, list(published.order))))
    last = say(book, "b")
    disk.release()
    await within_bound(last)
    assert seen == [(None, ["a"])]


async def test_a_waiter_who_leaves_changes_nothing(disk: Disk, book: WorkspaceJournal, published: Published) -> None:
    disk.hold()
    first, last = say(book, "a"), say(book, "b")
    first.cancel()
    disk.release()
    await within_bound(last)
    assert published.order == ["a", "b"]


async def test_a_publisher_that_fails_does_not_keep_others_from_being_published(
    disk: Disk, journal: Journal, book: WorkspaceJournal, published: Published
) -> None:
    class Broken(Published):
        def publish(self, seq: int, event: Event, encoded: bytes) -> None:
            raise RuntimeError("a bug of ours")

    broken = journal.for_workspace("x", Broken(), keep_events=1000)
    disk.hold()
    say(broken, "lost")
    last = say(book, "published")
    disk.release()
    await within_bound(last)
    assert published.order == ["published"]


# ── groups ──


async def test_what_is_said_while_the_disk_is_busy_becomes_one_group(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.hold()
    futures = [say(book, "first")]
    await disk.wait_attempts(1)
    futures += [say(book, str(number)) for number in range(100)]
    disk.release()
    await within_bound(*futures)
    assert [len(group) for group in disk.groups] == [1, 100]


async def test_a_group_is_bounded(disk: Disk, book: WorkspaceJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "GROUP_LIMIT", 40)
    disk.hold()
    futures = [say(book, "first")]
    await disk.wait_attempts(1)
    futures += [say(book, str(number)) for number in range(100)]
    disk.release()
    await within_bound(*futures)
    assert [len(group) for group in disk.groups] == [1, 40, 40, 20]


# ── a disk that refuses ──


async def test_on_a_full_disk_who_wants_an_answer_gets_it_and_the_rest_waits_in_order(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.full = True
    patient = [say(book, "P1")]
    book.grow(growth("p1"))
    refused = say(book, "I", patient=False)
    book.grow(growth("i"))
    patient.append(say(book, "P2"))
    with pytest.raises(StoreFailed, match="the disk is full"):
        await asyncio.wait_for(refused, BOUND_S)
    await disk.wait_attempts(disk.attempts + 2)
    assert published.order == []
    assert not any(future.done() for future in patient)
    disk.full = False
    patient.append(say(book, "P3"))
    await within_bound(*patient)
    assert published.order == ["P1", "p1", "i", "P2", "P3"]
    assert published.seqs == [1, 2, 3]


async def test_later_requests_are_refused_at_once_while_something_waits(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.full = True
    waiting = say(book, "P")
    await disk.wait_attempts(1)
    failures: list[Exception | None] = []
    for name in ("I1", "I2"):
        future = book.write((), (created(session(name)),), patient=False, then=failures.append)
        with pytest.raises(StoreFailed):
            await asyncio.wait_for(future, BOUND_S)
    assert [type(failure) for failure in failures] == [StoreFailed, StoreFailed]
    disk.full = False
    await within_bound(waiting)
    assert published.order == ["P"]


async def test_a_disk_that_refuses_a_group_is_not_asked_again_for_each_of_its_changes(
    disk: Disk, book: WorkspaceJournal
) -> None:
    """Each attempt on a locked database takes seconds: a hundred of them would block everybody for minutes."""
    disk.hold()
    futures = [say(book, "first", patient=False)]
    await disk.wait_attempts(1)
    futures += [say(book, str(number), patient=False) for number in range(100)]
    disk.full = True
    disk.release()
    await asyncio.wait(futures, timeout=BOUND_S)
    assert all(isinstance(future.exception(), StoreFailed) for future in futures)
    assert disk.attempts == 2


async def test_a_change_that_can_never_be_written_fails_alone(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.poison = "bad"
    disk.hold()
    first = say(book, "a")
    await disk.wait_attempts(1)
    bad, last = say(book, "bad"), say(book, "b")
    disk.release()
    await within_bound(first, last)
    with pytest.raises(StoreFailed, match="too big"):
        await asyncio.wait_for(bad, BOUND_S)
    assert published.order == ["a", "b"]
    assert published.seqs == [1, 2]


async def test_the_writing_thread_survives_a_bug_in_the_store(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    disk.bug = "odd"
    with pytest.raises(StoreFailed, match="surrogates not allowed"):
        await asyncio.wait_for(say(book, "odd"), BOUND_S)
    await within_bound(say(book, "b"))
    assert published.order == ["b"]


async def test_a_run_that_exists_is_known_to_who_posted_it_and_to_nobody_else(
    disk: Disk, book: WorkspaceJournal, published: Published
) -> None:
    insert = (InsertRun(RunRow(run(), "digest")),)
    disk.hold()
    first = book.write(insert, (created(run()),), patient=False)
    second = book.write(insert, (created(run()),), patient=False)
    last = say(book, "b")
    disk.release()
    await within_bound(first, last)
    with pytest.raises(RunExists):
        await second
    assert published.order == ["s", "b"]
    assert published.seqs == [1, 2]


# ── upkeep and reading ──


async def test_the_event_log_is_kept_short(
    disk: Disk, journal: Journal, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "TRIM_EVERY", 10)
    book = journal.for_workspace("w", published, keep_events=5)
    for number in range(40):
        await within_bound(say(book, str(number)))
    await within_bound(say(book, "last"))
    assert disk.log_bounds("w").last == 41
    assert disk.log_bounds("w").floor >= 35 - 10


async def test_upkeep_that_fails_harms_nobody(
    disk: Disk, book: WorkspaceJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(workspace_id: str, keep: int) -> None:
        raise ValueError("a bug of ours")

    monkeypatch.setattr(disk, "trim_events", broken)
    book._journal.trim_events("w", 1)
    await within_bound(say(book, "a"))


async def test_reading_goes_on_while_the_disk_is_busy_and_says_what_went_wrong(
    disk: Disk, journal: Journal, book: WorkspaceJournal
) -> None:
    disk.hold()
    say(book, "a")
    await disk.wait_attempts(1)
    assert await asyncio.wait_for(journal.read(disk.log_bounds, "w"), BOUND_S) == (0, 0)

    def unreadable() -> None:
        raise StoreFailed("cannot read", passing=False)

    with pytest.raises(StoreFailed, match="cannot read"):
        await asyncio.wait_for(journal.read(unreadable), BOUND_S)


# ── closing ──


async def test_closing_writes_and_tells_all_that_was_said(
    disk: Disk, journal: Journal, book: WorkspaceJournal, published: Published
) -> None:
    disk.hold()
    futures = [say(book, str(number)) for number in range(20)]
    closing = asyncio.create_task(journal.aclose(BOUND_S))
    disk.release()
    await asyncio.wait_for(closing, BOUND_S)
    await within_bound(*futures)
    assert published.order == [str(number) for number in range(20)]
    assert disk.closed


async def test_closing_does_not_wait_for_a_disk_that_goes_on_refusing(
    disk: Disk, journal: Journal, book: WorkspaceJournal, published: Published
) -> None:
    disk.full = True
    waiting = say(book, "P")
    await disk.wait_attempts(1)
    await asyncio.wait_for(journal.aclose(0.05), BOUND_S)
    assert disk.closed
    assert published.order == []
    assert not waiting.done()


async def test_closing_still_writes_what_waited_if_the_disk_recovers_in_time(
    disk: Disk, journal: Journal, book: WorkspaceJournal, published: Published
) -> None:
    disk.full = True
    waiting = say(book, "P")
    await disk.wait_attempts(1)
    closing = asyncio.create_task(journal.aclose(BOUND_S))
    await disk.wait_attempts(disk.attempts + 1)
    disk.full = False
    await asyncio.wait_for(closing, BOUND_S)
    await within_bound(waiting)
    assert published.order == ["P"]


async def test_a_message_is_in_the_store_when_it_is_published(disk: Disk, journal: Journal) -> None:
    stored: list[int] = []

    class Looking(Published):
        def publish(self, seq: int, event: Event, encoded: bytes) -> None:
            stored.append(len(disk.messages("w", "s", "", 0)))

    book = journal.for_workspace("w", Looking(), keep_events=1000)
    for number in range(5):
        added = message(str(number))
        await within_bound(book.write((PutMessage(added),), (created(added),)))
    assert stored == [1, 2, 3, 4, 5]


async def test_n5_who_comes_while_a_commit_is_in_doubt_is_told_at_once_that_the_store_is_away(
    book: WorkspaceJournal, disk: Disk, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit itself waits, and what belongs to a run waits behind it, in order."""
    commit, loop = disk.commit, asyncio.get_running_loop()
    later: list[asyncio.Future[None]] = []

    def in_doubt(changes: Sequence[Change]) -> list[int | RunExists]:
        monkeypatch.setattr(disk, "commit", commit)
        loop.call_soon_threadsafe(lambda: later.extend((say(book, "b"), say(book, "c", patient=False))))
        while len(later) < 2 or not later[1].done():
            disk.while_away()
        return commit(changes)

    monkeypatch.setattr(disk, "commit", in_doubt)
    await within_bound(say(book, "a"))
    with pytest.raises(StoreFailed) as refused:
        await later[1]
    assert refused.value.passing
    await within_bound(later[0])
    assert published.order == ["a", "b"]
