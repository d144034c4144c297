"""The only writer. What is published has been written, in the order in which it was said.

One thread writes; whatever was handed in while it was busy becomes one group with one fsync. Growth of a message in
progress is not written token by token: it goes straight to the feed, but never past a change that was said before it.

When the disk is full or locked, a change that belongs to a run under way waits and is tried again, with everything
after it in order; a change that somebody is waiting for an answer to fails, so that they get a clear answer now.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from covey.protocol.events import Event, MessageDelta, encode_event
from covey.store.base import Change, Fenced, Store, StoreFailed, Write

log = logging.getLogger(__name__)

GROUP_LIMIT = 512
"""Changes in one transaction: beyond this a group adds latency, not throughput."""
RETRY_S = 0.25
"""How long to wait before a change that the disk refused is tried again."""
TRIM_EVERY = 1000
"""Events between two looks at how many are kept."""
READERS = 2
"""Reading threads: one may be busy with a long replay while another answers."""

P = ParamSpec("P")
T = TypeVar("T")


class Publisher(Protocol):
    """Where events go once they are written: the feed of a workspace."""

    def publish(self, seq: int, event: Event, encoded: bytes) -> None: ...

    def grow(self, delta: MessageDelta) -> None: ...


class _Silent:
    """Publishes nothing."""

    def publish(self, seq: int, event: Event, encoded: bytes) -> None:
        raise AssertionError(event)

    def grow(self, delta: MessageDelta) -> None:
        raise AssertionError(delta)


@dataclass(slots=True, eq=False)
class _Pending:
    change: Change
    patient: bool
    done: asyncio.Future[None]
    then: Callable[[Exception | None], None] | None
    owner: WorkspaceJournal


_Item = _Pending | Callable[[], None] | None
"""What is handed to the writing thread: a change, something to do between two groups, or that there is no more."""


class Journal:
    """The writing thread and the reading threads of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._put_off: deque[_Item] = deque()
        """What came in while a commit was in doubt: before the inbox."""
        self._give_up = threading.Event()
        self._stalled: list[_Pending] = []
        self._is_refused = False
        self.refusal = ""
        """Why nothing can be written at the moment, for people; '': all is well."""
        self.on_refusal: set[Callable[[], None]] = set()
        """Called on the loop when that has changed."""
        self._has_upkeep = True
        self._landed: deque[tuple[_Pending, int | Exception]] = deque()
        self._start()

    def _start(self) -> None:
        self._store.while_away = self._refuse_new
        self._readers = ThreadPoolExecutor(READERS, "covey-read")
        self._thread = threading.Thread(target=self._write_loop, name="covey-write", daemon=True)
        self._thread.start()

    def for_workspace(
        self, workspace_id: str, publisher: Publisher, keep_events: int, *, fence: int = 0
    ) -> WorkspaceJournal:
        """A workspace's own face of the journal; it keeps about the last `keep_events` events."""
        return WorkspaceJournal(self, workspace_id, publisher, keep_events, fence)

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a reading method of the store on a reading thread."""
        return await self._loop.run_in_executor(self._readers, lambda: call(*args, **kwargs))

    async def write(self, change: Change) -> None:
        """Write a change that no workspace publishes."""
        silent = WorkspaceJournal(self, change.workspace_id, _Silent(), 0, change.fence)
        await silent.write(change.writes, patient=False)

    def submit(self, pending: _Pending) -> None:
        self._inbox.put(pending)

    def trim_events(self, workspace_id: str, keep: int) -> None:
        """Have the writing thread forget old events between two groups."""
        self._inbox.put(lambda: self._store.trim_events(workspace_id, keep))

    async def aclose(self, timeout_s: float) -> None:
        """Write what was handed in, then stop. What the disk still refuses after the timeout is left to recovery."""
        self._inbox.put(None)
        await self._loop.run_in_executor(self._readers, self._thread.join, timeout_s)
        self._give_up.set()
        await self._loop.run_in_executor(self._readers, self._thread.join, 1.0)
        self._readers.shutdown(wait=True)
        if self._thread.is_alive():  # it waits inside the store, which cannot be closed under its hands
            log.error("the store still refuses to write; the next start goes on from what it holds")
        else:
            self._store.close()

    # ── the writing thread ──

    def _write_loop(self) -> None:
        closing = False
        while not self._give_up.is_set() and not (closing and not self._stalled):
            group, closing = self._next_group(closing)
            again, self._stalled = self._stalled, []
            self._write(again + group)

    def _next_group(self, closing: bool) -> tuple[list[_Pending], bool]:
        """What there is to write: waits for something, unless refused changes are due to be tried again.

        While nobody has anything to write, the store does what it has put off, one piece at a time.
        """
        group: list[_Pending] = []
        while self._has_upkeep and not (self._stalled or closing or self._put_off) and self._inbox.empty():
            self._maintain(self._do_upkeep)
        try:
            item = (
                self._put_off.popleft()
                if self._put_off
                else self._inbox.get(timeout=RETRY_S if self._stalled else None)
            )
            while True:
                if item is None:
                    closing = True
                elif isinstance(item, _Pending):
                    group.append(item)
                else:
                    self._maintain(item)
                    self._has_upkeep = True
                if len(group) >= GROUP_LIMIT:
                    break
                item = self._taken(0)
        except queue.Empty:
            pass
        return group, closing

    def _taken(self, timeout: float | None) -> _Item:
        """The next item. Raises queue.Empty if there is none in time."""
        if self._put_off:
            return self._put_off.popleft()
        return self._inbox.get(timeout=timeout) if timeout != 0 else self._inbox.get_nowait()

    def _refuse_new(self) -> None:
        """The store is away, and a commit waits to learn what became of it: nobody else has to wait for that."""
        with suppress(queue.Empty):
            while True:
                item = self._inbox.get_nowait()
                if isinstance(item, _Pending) and not item.patient:
                    self._land([(item, StoreFailed("the store cannot be reached", passing=True))])
                else:
                    self._put_off.append(item)

    def _write(self, group: list[_Pending]) -> None:
        if not group:
            return
        try:
            results = self._store.commit([pending.change for pending in group])
        except Exception as error:
            failure = _as_failure(error)
            if len(group) == 1:
                self._refused(group[0], failure)
                return
            for pending in group:  # one bad change must not fail its neighbours
                if failure.passing or self._stalled:
                    self._refused(pending, failure)
                else:
                    self._write([pending])
        else:
            self._has_upkeep = True
            if self._is_refused:
                self._is_refused = False
                log.warning("the store writes again")
                self._tell_refusal("")
            self._land(list(zip(group, results, strict=True)))

    def _refused(self, pending: _Pending, error: StoreFailed) -> None:
        """A patient change waits, and so does every patient one after it; other callers get their answer now."""
        if pending.patient and (error.passing or self._stalled):
            if not self._is_refused:  # said once, not at each attempt: a log must not fill the disk either
                self._is_refused = True
                log.error("the store refuses to write, trying again: %s", error)
                self._tell_refusal(str(error))
            self._stalled.append(pending)
        else:
            self._land([(pending, error)])

    def _tell_refusal(self, why: str) -> None:
        """On the loop, in the order of what lands: what was written after a refusal is published after its end."""

        def tell() -> None:
            self.refusal = why
            for told in tuple(self.on_refusal):
                told()

        self._loop.call_soon_threadsafe(tell)

    def _land(self, results: list[tuple[_Pending, int | Exception]]) -> None:
        """Hand results back to the loop. They go through one queue, so their order is not the loop's to change."""
        self._landed.extend(results)
        self._loop.call_soon_threadsafe(self._publish)

    def _publish(self) -> None:
        while self._landed:
            pending, result = self._landed.popleft()
            try:
                pending.owner.landed(pending, result)
            except Exception:  # a bug of ours must not keep later changes from being published
                log.exception("a change was written but could not be published")

    def _do_upkeep(self) -> None:
        self._has_upkeep = False  # also if it fails: it is tried again after the next change, not at once
        self._has_upkeep = self._store.upkeep()

    def _maintain(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            log.warning("upkeep failed: %s", str(_as_failure(error)))


def _as_failure(error: Exception) -> StoreFailed:
    """A bug in a store, or a value that it cannot hold, must not end the thread on which everything waits."""
    if isinstance(error, StoreFailed):
        return error
    log.error("the store failed in a way of which it does not know", exc_info=error)
    return StoreFailed(f"cannot write: {type(error).__name__}: {error}", passing=False)


class WorkspaceJournal:
    """One workspace's way to write and to publish: first in, first out.

    `fence`: the number under which the workspace is owned, which goes with every change. It is of this object and not
    of the store: a workspace that was lost and won again has another journal, and the old one is refused.
    """

    def __init__(
        self, journal: Journal, workspace_id: str, publisher: Publisher, keep_events: int, fence: int = 0
    ) -> None:
        self._journal = journal
        self._workspace_id = workspace_id
        self._fence = fence
        self._is_cut_off = False
        self.on_lost: Callable[[], None] = lambda: None
        """Called once a change was refused because others own the workspace."""
        self._publisher = publisher
        self._loop = asyncio.get_running_loop()
        self._outbox: deque[_Pending | MessageDelta] = deque()
        self._keep_events = keep_events
        self._untrimmed = 0

    def write(
        self,
        writes: Sequence[Write],
        events: Sequence[Event] = (),
        *,
        patient: bool = True,
        durable: bool = True,
        then: Callable[[Exception | None], None] | None = None,
    ) -> asyncio.Future[None]:
        """Write a change and publish its events. The future is done when both have happened.

        `patient`: it belongs to a run under way, so a full disk delays it; else it fails with StoreFailed.
        `then` is called at that very moment, with the failure if there is one: before anything that was said later.
        """
        encoded = tuple(encode_event(event) for event in events)
        change = Change(self._workspace_id, tuple(writes), tuple(events), encoded, durable, self._fence)
        pending = _Pending(change, patient, self._loop.create_future(), then, self)
        self._outbox.append(pending)
        if self._is_cut_off:
            self._loop.call_soon(self.landed, pending, Fenced("another node owns the workspace"))
        else:
            self._journal.submit(pending)
        return pending.done

    def cut_off(self) -> None:
        """Others own the workspace: whatever is said from now on is refused, and nothing is published any more."""
        self._is_cut_off = True

    def grow(self, delta: MessageDelta) -> None:
        """Publish growth of a message, after everything that was written before it."""
        if self._is_cut_off:
            return
        if self._outbox:
            self._outbox.append(delta)
        else:
            self._publisher.grow(delta)

    def landed(self, pending: _Pending, result: int | Exception) -> None:
        """The writing thread is done with a change: publish it, and the growth that waited for it."""
        if self._outbox and self._outbox[0] is pending:
            self._outbox.popleft()
        else:
            self._outbox.remove(pending)  # refused while earlier changes still wait
        failure = result if isinstance(result, Exception) else None
        if failure:
            self._fail(pending, failure)
        else:
            assert isinstance(result, int)
            change = pending.change
            for seq, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), result):
                self._publisher.publish(seq, event, encoded)
            self._count(len(change.events))
            if not pending.done.done():
                pending.done.set_result(None)
        if pending.then:
            pending.then(failure)
        while self._outbox and isinstance(self._outbox[0], MessageDelta):
            self._publisher.grow(self._outbox.popleft())  # type: ignore[arg-type] # just checked

    def _count(self, events: int) -> None:
        self._untrimmed += events
        if self._untrimmed >= TRIM_EVERY:
            self._untrimmed = 0
            self._journal.trim_events(self._workspace_id, self._keep_events)

    def _fail(self, pending: _Pending, error: Exception) -> None:
        if isinstance(error, Fenced):
            self.on_lost()
        elif pending.patient:
            log.error("a change was refused for good: %s", error)
        if not pending.done.done():
            pending.done.set_exception(error)
            pending.done.exception()  # a caller that awaits it still gets it; nobody has to
