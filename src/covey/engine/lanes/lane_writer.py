"""Writes the rulings of one session. An end that the store refuses is not lost: it is recorded in fewer words (R8).

A full disk is no refusal: the journal waits for that by itself. Refused is what the store can never take as it is,
a text that is too big for it for instance. The ends of such a change are then made from what the store holds, as after
a crash, and tried until it takes them; whatever else the session decides is written behind them, so that order holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import assert_never

from covey.engine.recorder import Batch
from covey.engine.turns import last_words
from covey.engine.turns.messages import user_message
from covey.engine.turns.parts import TurnParts
from covey.lifecycle.decisions import Outcome
from covey.protocol.messages import Message
from covey.protocol.runs import Run, RunComplete
from covey.store.base import (
    AppendText,
    DropMessages,
    DropSession,
    Fenced,
    InsertRun,
    PutEarlyCancel,
    PutFileVersion,
    PutMessage,
    PutSession,
    PutUndo,
    PutWorkspace,
    RunRow,
    SetMark,
    UpdateRun,
    Write,
)
from covey.store.spending import AddSpending

log = logging.getLogger(__name__)

WAITS_S = (0.0, 0.25, 1.0, 5.0, 30.0)
"""Before each attempt to write an end anew; the last one is repeated."""


@dataclass(frozen=True, slots=True)
class UnwrittenEnd:
    """An end that is to be written: the run's row before it, and what is published."""

    row: RunRow
    run: Run
    terminal: RunComplete


@dataclass(frozen=True, slots=True, eq=False)
class _Ruling:
    batch: Batch
    ends: Sequence[UnwrittenEnd]
    begun: str
    """The run that it starts; '' for none."""
    done: asyncio.Future[None]


class LaneWriter:
    """First in, first out, also behind an end that is being made anew."""

    def __init__(self, parts: TurnParts) -> None:
        self._parts = parts
        self._refused: deque[tuple[_Ruling, Exception]] = deque()
        self._behind: list[_Ruling] = []
        self._mending: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._unwritten: set[asyncio.Future[None]] = set()

    @property
    def is_idle(self) -> bool:
        return not self._unwritten

    @property
    def mending(self) -> set[asyncio.Task[None]]:
        """What closing has to wait for."""
        return {self._mending} if self._mending else set()

    def close(self) -> None:
        """Try once more what is refused, then leave it to the next start."""
        self._closing.set()

    def write(self, batch: Batch, ends: Sequence[UnwrittenEnd], begun: str) -> asyncio.Future[None]:
        """Write a ruling; the future is done when it is published, or fails if it is refused and ended nothing."""
        ruling = _Ruling(batch, ends, begun, asyncio.get_running_loop().create_future())
        self._unwritten.add(ruling.done)
        ruling.done.add_done_callback(self._unwritten.discard)
        if self._mending:
            self._behind.append(ruling)
        else:
            self._hand_in(ruling)
        return ruling.done

    def _hand_in(self, ruling: _Ruling) -> None:
        self._parts.recorder.write(ruling.batch, then=lambda refusal: self._landed(ruling, refusal))

    def _landed(self, ruling: _Ruling, refusal: Exception | None) -> None:
        if ruling.done.done():  # who waited was told to end: others own the workspace
            return
        if refusal is None:
            ruling.done.set_result(None)
        elif ruling.ends and not isinstance(refusal, Fenced):  # whose ends are the new owner's
            self._refused.append((ruling, refusal))
            self._mending = self._mending or asyncio.create_task(self._mend())
        else:
            ruling.done.set_exception(refusal)
            ruling.done.exception()  # whoever awaits it still gets it; nobody has to

    async def _mend(self) -> None:
        """In their order: the ends of each refused change, then what else it said; then what was said meanwhile."""
        while self._refused:
            ruling, refusal = self._refused.popleft()
            if await self._end_anew(ruling.ends, refusal):
                self._hand_in(_Ruling(_rest(ruling), (), ruling.begun, ruling.done))
            elif not ruling.done.done():
                ruling.done.set_exception(refusal)
                ruling.done.exception()
        self._mending = None
        behind, self._behind = self._behind, []
        for each in behind:
            self._hand_in(each)

    async def _end_anew(self, refused: Sequence[UnwrittenEnd], why: Exception) -> bool:
        """Write ends anew until the store takes them, or there is no more time."""
        for wait_s in chain(WAITS_S, repeat(WAITS_S[-1])):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait_s)
            try:
                await self._parts.recorder.write(await _made_anew(refused, why, self._parts))
                return True
            except Fenced:
                return False
            except Exception as error:  # whatever it is: the next attempt may find it mended
                log.error("the end of run %s is refused: %s", refused[0].run.run_id, error)
            if self._closing.is_set():
                break
        return False


def _rest(ruling: _Ruling) -> Batch:
    """What the change said besides its ends: that the next one is active. Rows of others may be old by now."""
    about = (ruling.begun, None)
    return Batch(
        [write for write in ruling.batch.writes if _run_of(write) in about],
        [event for event in ruling.batch.events if getattr(event.payload, "run_id", None) in about],
    )


def _run_of(write: Write) -> str | None:
    """The run that a row is about; None of what is about the session, or is never part of a ruling."""
    match write:
        case UpdateRun():
            return write.run.run_id
        case PutMessage():
            return write.message.run_id
        case PutSession() | SetMark() | PutEarlyCancel() | AddSpending():
            return None
        case (
            InsertRun() | AppendText() | PutFileVersion() | PutUndo() | DropMessages() | DropSession() | PutWorkspace()
        ):
            return None
        case _:
            assert_never(write)


async def _made_anew(refused: Sequence[UnwrittenEnd], why: Exception, parts: TurnParts) -> Batch:
    batch = Batch()
    host: RunComplete | None = None
    for end in refused:
        if end.run.state == "folded":
            batch.end_run(*last_words.end_folded(end.row.run, host, parts.world))
        elif not end.terminal.message_id:  # dropped from the queue: there was nothing to store but the end itself
            batch.end_run(end.run, end.terminal)
        else:
            stored = await parts.read_run(end.run.session_id, end.run.run_id)
            last, host = _as_stored(end, stored, why, batch, parts)
            batch.end_run(last, host)
    return batch


def _as_stored(
    end: UnwrittenEnd, stored: Sequence[Message], why: Exception, batch: Batch, parts: TurnParts
) -> tuple[Run, RunComplete]:
    """The end of a turn, with no more of its words than the store has taken."""
    if not any(message.role == "user" for message in stored):
        batch.add_message(user_message(end.row.run, end.row.attachments, parts.world))
    outcome = Outcome.CANCELLED if end.terminal.cancelled else Outcome.FAILED
    error = "" if end.terminal.cancelled else f"how this run ended could not be written: {why}"
    words = last_words.cut_off(last_words.known_of(end.row.run, outcome, parts), stored)
    return last_words.close_turn(replace(words, error=error, usage=end.terminal.usage), batch, parts.world)
