"""The open runs of one session: their rows as they are now, which may be ahead of what is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from covey.engine.lanes.lane_writer import UnwrittenEnd
from covey.engine.turns.speaker import START
from covey.feed.feed import Feed
from covey.lifecycle.decisions import OpenRun, Phase
from covey.protocol.events import updated
from covey.protocol.runs import Run, RunComplete
from covey.store.base import RunRow

SHOWN_CHARS = 8_192
"""Of a prompt: a run is sent whole whenever it waits on something else, and a long one would be sent over and over."""


@dataclass(slots=True)
class Entry:
    """One open run."""

    row: RunRow
    recorded: asyncio.Future[None] | None = None
    """Until it is done nothing may be written about the run: the id may belong to one that ended long ago."""
    is_prompt_unwritten: bool = False
    """The change with its prompt was refused: the prompt is written together with the end."""


@dataclass(slots=True)
class OpenRuns:
    """Holds entries; what becomes of them is decided by the lane."""

    entries: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[RunRow]) -> OpenRuns:
        """Those that the store says are open."""
        return cls({row.run.run_id: Entry(row) for row in rows})

    def in_order(self) -> tuple[OpenRun, ...]:
        """What the rules need to know of them, in the order of the queue."""
        return tuple(sorted((open_run(entry.row) for entry in self.entries.values()), key=lambda run: run.place))

    def __getitem__(self, run_id: str) -> Entry:
        return self.entries[run_id]

    def find(self, run_id: str) -> Entry | None:
        return self.entries.get(run_id)

    def add(self, row: RunRow, recorded: asyncio.Future[None]) -> None:
        self.entries[row.run.run_id] = Entry(row, recorded)

    def forget(self, run_id: str) -> None:
        """It was never recorded."""
        del self.entries[run_id]

    def end(self, run_id: str, run: Run, terminal: RunComplete) -> UnwrittenEnd:
        return UnwrittenEnd(self.entries.pop(run_id).row, run, terminal)

    def run(self, run_id: str) -> Run:
        return self.entries[run_id].row.run

    def change(self, run_id: str, **fields: Any) -> Run:
        entry = self.entries[run_id]
        run = structs.replace(entry.row.run, **fields)
        entry.row = structs.replace(entry.row, run=run)
        return run

    def unrecorded(self) -> set[asyncio.Future[None]]:
        return {entry.recorded for entry in self.entries.values() if entry.recorded}


def is_shown_waiting(run: Run) -> bool:
    """Whether others may know what it waits on now: all else that is said of it is written, and it is short."""
    waits = run.waiting_on not in (None, START) and not run.is_being_cancelled
    return waits and len(run.prompt) <= SHOWN_CHARS


def announce_waiting(run: Run | None, feed: Feed) -> None:
    """It waits on something else: a fact of the moment, which needs no place in the log."""
    if run and is_shown_waiting(run):
        feed.announce(updated(run))


def open_run(row: RunRow) -> OpenRun:
    """A run as far as the rules care about it: one that was just posted, or that the store says is open."""
    run = row.run
    phase = Phase(run.state)
    return OpenRun(
        run.run_id,
        run.seq,
        run.mode == "fold",
        phase,
        cancelled=run.is_being_cancelled,
        entered=phase is not Phase.ACCEPTED,
        host=run.folded_into or "",
        hosts=not run.effective_options.keep_others_out,
        delegate=run.effective_options.delegate,
        interrupts=run.mode == "interrupt",
        parked=run.parked_by is not None,
        place=run.place if run.place is not None and phase is Phase.QUEUED else run.seq,
    )
