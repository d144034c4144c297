"""One for each session: carries out what `lifecycle.runs` decides, and decides nothing itself.

Every ruling is written as one change, in which the decisions stand in their order; only then is a turn started or
stopped. Memory is ahead of the disk by at most what the journal has not written yet, and nothing is published before
that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

from msgspec import structs

from covey.engine.lanes.cancel_source import CancelSource
from covey.engine.lanes.lane_writer import LaneWriter, UnwrittenEnd
from covey.engine.lanes.open_runs import Entry, OpenRuns, announce_waiting, open_run
from covey.engine.lanes.refusals import being_undone, check_same_content, in_words, too_late
from covey.engine.recorder import Batch, confirmed
from covey.engine.turns import last_words
from covey.engine.turns.messages import user_message
from covey.engine.turns.parts import TurnParts
from covey.engine.turns.turn import Turn
from covey.lifecycle.decisions import (
    Decision,
    End,
    Fold,
    LaneBusy,
    LaneClosing,
    LaneFull,
    LaneHeld,
    NotQueued,
    OpenRun,
    Outcome,
    Park,
    Phase,
    Queue,
    QueueChange,
    RecordCancelled,
    Reorder,
    Start,
    StopTurn,
    TooLate,
    Unpark,
)
from covey.lifecycle.runs import CancelRuling, Lane
from covey.protocol.errors import Conflict
from covey.protocol.events import created
from covey.protocol.messages import Message
from covey.protocol.runs import CancelledBy, CancelReceipt, Covered, Mode, PromptReceipt, Run, RunComplete
from covey.protocol.who import NOBODY, Who
from covey.store.base import InsertRun, RunRow, SetMark


class Dispatcher:
    """The runs of one session."""

    def __init__(
        self, session_id: str, parts: TurnParts, on_quiet: Callable[[], None], mark: int, newest_seq: Callable[[], int]
    ) -> None:
        self.lane = Lane(mark=mark)
        self._session_id = session_id
        self._parts = parts
        self._newest_seq = newest_seq
        """The newest seq that was given out, in whichever session: what a cancel covers ends there."""
        self._on_quiet = on_quiet
        self._open = OpenRuns()
        self._turn: Turn | None = None
        self._drivers: set[asyncio.Task[None]] = set()
        self._writer = LaneWriter(parts)

    # ── what is asked from outside ──

    @property
    def is_busy(self) -> bool:
        """A run is under way, or about to be: not if all that is left is parked."""
        return self.lane.is_busy

    @property
    def is_idle(self) -> bool:
        """Nothing goes on, and all that was said of it is written."""
        return self.lane.is_empty and self._writer.is_idle

    def run(self, run_id: str) -> Run | None:
        """An open run, with what it is doing right now."""
        entry = self._open.find(run_id)
        if entry is None:
            return None
        run = entry.row.run
        if turn := self.turn_of(run_id):
            speaker = turn.speaker
            return structs.replace(run, waiting_on=speaker.waiting_on, last_progress_at=speaker.last_progress_at)
        return run

    def is_new(self, run_id: str) -> bool:
        """It is not recorded yet: perhaps the id is that of a run which ended long ago."""
        return self._open[run_id].recorded is not None

    def open_runs(self) -> list[Run]:
        return [run for open_run in self.lane.runs if (run := self.run(open_run.run_id))]

    def queued_prompts(self) -> list[str]:
        return [self._open.run(run.run_id).prompt for run in self.lane.queued]

    async def post(self, row: RunRow, *, mode: Mode | None, limit: int) -> PromptReceipt:
        """Accept a prompt: record it, then let it enter. Whoever asked may leave at any moment (R2).

        `mode`: how it is to wait, if the post said so.
        """
        run = row.run
        if known := self._open.find(run.run_id):
            return await self._same(known, row.digest, mode)
        try:
            self.lane = self.lane.accept(open_run(row), limit)
        except (LaneFull, LaneHeld, LaneClosing) as refusal:
            raise in_words(refusal, limit) from None
        batch = Batch([InsertRun(row)], [created(run)])
        recorded = self._parts.recorder.write(batch, patient=False, then=lambda error: self._recorded(run, error))
        self._open.add(row, recorded)
        await asyncio.shield(recorded)
        return self._receipt(run)

    async def _same(self, known: Entry, digest: str, mode: Mode | None) -> PromptReceipt:
        """The run id was posted again while its run is open (R14), or may have ended long ago: the store knows."""
        if known.recorded:
            await asyncio.shield(known.recorded)
        check_same_content(known.row, digest, mode)
        return self._receipt(known.row.run)

    def _receipt(self, run: Run) -> PromptReceipt:
        """What became of it until now; one that has ended meanwhile was at least accepted."""
        state = now.state if (now := self.run(run.run_id)) else run.state
        return PromptReceipt(run_id=run.run_id, session_id=run.session_id, seq=run.seq, state=state)

    def _recorded(self, posted: Run, error: Exception | None) -> None:
        """The journal is done with an accepted run: from here on nothing of it depends on who posted it."""
        run_id = posted.run_id
        if error:
            self.lane = self.lane.retract(run_id)
            self._open.forget(run_id)
            self._on_quiet()
            return
        entry = self._open[run_id]
        entry.recorded = None
        batch = Batch()
        if entry.row.run != posted:  # a cancel has reached it meanwhile
            batch.update_run(entry.row.run)
        self._apply_cancel(self.lane.enter(run_id), CancelSource("interrupt", posted.posted_by), batch)

    async def cancel(self, who: Who = NOBODY) -> CancelReceipt:
        """Cancel all open runs of the session (R4)."""
        return await self._cancelled(self.lane.cancel(self._newest_seq()), CancelSource("session_cancel", who.label))

    async def cancel_run(self, run_id: str, who: Who = NOBODY) -> CancelReceipt:
        return await self._cancelled(self.lane.cancel_run(run_id), CancelSource("run_cancel", who.label))

    async def clear_queue(self, who: Who = NOBODY) -> CancelReceipt:
        return await self._cancelled(self.lane.clear_queue(), CancelSource("queue_clear", who.label))

    async def remove(self, run_id: str, who: Who = NOBODY) -> CancelReceipt:
        try:
            ruling = self.lane.remove(run_id)
        except TooLate:
            raise too_late(run_id) from None
        if (receipt := await self._cancelled(ruling, CancelSource("queue_remove", who.label))).covered:
            return receipt
        raise too_late(run_id)  # it was only being posted again, and had ended long before

    async def edit(self, run_id: str, change: QueueChange) -> Run:
        """Change the text or the place of a prompt that still waits, park it or unpark it: all of it, or nothing."""
        if (entry := self._open.find(run_id)) and entry.recorded:
            await asyncio.wait({entry.recorded})
        try:
            lane, decisions = self.lane.change_queue(run_id, change)
        except TooLate:
            raise too_late(run_id) from None
        except NotQueued as other:
            raise Conflict(f"run {str(other)!r} does not wait in the queue of this session", "too_late") from None
        batch = Batch()
        if change.prompt is not None:
            batch.update_run(self._open.change(run_id, prompt=change.prompt))
        self.lane = lane
        run = self._open.run(run_id)
        await confirmed(self._carry_out(decisions, batch))
        return self.run(run_id) or run

    def unpark(self, run_id: str) -> None:
        """Nobody edits the run any more: its client has left, or took too long. Too late does no harm."""
        run = self.lane.find(run_id)
        if run and run.parked:
            self.lane, decisions = self.lane.unpark(run_id)
            self._carry_out(decisions)

    def turn_of(self, run_id: str) -> Turn | None:
        return self._turn if self._turn and self._turn.run_id == run_id else None

    def hold(self) -> None:
        """Keep runs out while something else changes the conversation, until `release`."""
        try:
            self.lane = self.lane.hold()
        except (LaneBusy, LaneHeld, LaneClosing) as refusal:
            raise in_words(refusal) from None

    def release(self) -> None:
        self.lane = self.lane.release()
        self._on_quiet()

    def check_not_held(self) -> None:
        """Raise Conflict while the conversation is being changed: whoever read it would see it half way."""
        if self.lane.held:
            raise being_undone()

    def close(self, by: CancelledBy = "shutdown") -> None:
        """Refuse new runs and cancel the open ones (R13). `drained` tells when they have ended."""
        self._apply_cancel(self.lane.close(self._newest_seq()), CancelSource(by))
        self._writer.close()

    async def drained(self) -> None:
        """Wait until no turn is under way, and nothing that was accepted still waits to be recorded."""
        while waits := {*self._drivers, *self._writer.mending, *self._open.unrecorded()}:
            await asyncio.wait(waits)

    # ── other nodes ──

    def rest(self) -> None:
        """Begin no more turns but those that one under way waits for."""
        self.lane = self.lane.rest()

    def stop(self) -> None:
        """Cancel the run under way, and nothing that waits: there is no more time."""
        if active := self.lane.active:
            self._apply_cancel(self.lane.cancel_run(active.run_id), CancelSource("shutdown"))

    def abandon(self) -> set[asyncio.Task[None]]:
        """End the turn under way without last words; gives what to wait for."""
        for driver in self._drivers:
            driver.cancel()
        self._writer.close()
        return set(self._drivers)

    # ── carrying out ──

    async def _cancelled(self, ruling: CancelRuling, source: CancelSource) -> CancelReceipt:
        unrecorded = {run.run_id: waits for run in ruling.covered if (waits := self._open[run.run_id].recorded)}
        await confirmed(self._apply_cancel(ruling, source))
        if unrecorded:  # each is recorded or refused by now, and what follows from that is ahead of this:
            await confirmed(self._parts.recorder.write(Batch()))
        refused = {run_id for run_id, recorded in unrecorded.items() if recorded.exception()}
        covered = tuple(
            Covered(run_id=run.run_id, state_found=run.phase.value)
            for run in ruling.covered
            if run.run_id not in refused
        )
        return CancelReceipt(covered=covered, mark=ruling.lane.mark)

    def _apply_cancel(
        self, ruling: CancelRuling, source: CancelSource, batch: Batch | None = None, leftover: Sequence[Message] = ()
    ) -> asyncio.Future[None]:
        """Write the cancel with all that it ends, as one change: after a crash it is known, or it never was.

        `leftover`: after a crash, the messages of the run that was active.
        """
        batch = batch or Batch()
        if ruling.lane.mark != self.lane.mark:
            batch.writes.append(SetMark(self._session_id, ruling.lane.mark))
        self.lane = ruling.lane
        for found in ruling.covered:
            self._note_cancel(found, source, batch)
        return self._carry_out(ruling.decisions, batch, leftover)

    def _note_cancel(self, found: OpenRun, source: CancelSource, batch: Batch) -> None:
        if found.phase is Phase.FOLDED or found.cancelled:
            return
        run = self._open.change(found.run_id, cancelled_by=source.by, cancelled_by_client=source.client)
        if found.phase is Phase.QUEUED or self._open[run.run_id].recorded:
            return  # its end follows in this very change; or it is written as soon as the run is recorded
        batch.update_run(run)

    def _carry_out(
        self, decisions: Sequence[Decision], batch: Batch | None = None, leftover: Sequence[Message] = ()
    ) -> asyncio.Future[None]:
        """Write a ruling as one change; then start and stop what it says."""
        batch = batch or Batch()
        ends: list[UnwrittenEnd] = []
        host: RunComplete | None = None
        for decision in decisions:
            match decision:
                case Queue(run_id, places):
                    run = self._open.change(run_id, state="queued")
                    self._place({run_id: run.seq, **dict(places)}, batch)
                case Reorder(places):
                    self._place(dict(places), batch)
                case Park(run_id, by):
                    batch.update_run(self._open.change(run_id, parked_by=by))
                case Unpark(run_id):
                    batch.update_run(self._open.change(run_id, parked_by=None))
                case Start(run_id):
                    self._begin(run_id, batch)
                case RecordCancelled(run_id):
                    self._open_turn(run_id, batch)
                    ends.append(self._end(run_id, self._close(run_id, Outcome.CANCELLED, batch, ()), batch))
                case End(run_id, outcome, Phase.ACTIVE):
                    ended, host = self._close(run_id, outcome, batch, leftover)
                    ends.append(self._end(run_id, (ended, host), batch))
                case End(run_id, _, Phase.FOLDED):
                    last = last_words.end_folded(self._open.run(run_id), host, self._parts.world)
                    ends.append(self._end(run_id, last, batch))
                case End(run_id):
                    waited = self._open.change(run_id, place=None, parked_by=None)
                    last = last_words.drop(waited, self._parts.world)
                    ends.append(self._end(run_id, last, batch))
                case StopTurn() | Fold():
                    pass  # acted upon below; folding is written by whoever begins the step
                case _:
                    assert_never(decision)
        begun = next((decision.run_id for decision in decisions if isinstance(decision, Start)), "")
        done = self._writer.write(batch, ends, begun)
        for decision in decisions:
            if isinstance(decision, Start):
                self._drive(decision.run_id, done)
            elif isinstance(decision, StopTurn) and self._turn and self._turn.run_id == decision.run_id:
                self._turn.stop()
        done.add_done_callback(lambda _: self._on_quiet())
        return done

    def _place(self, places: Mapping[str, int], batch: Batch) -> None:
        for run_id, place in places.items():
            batch.update_run(self._open.change(run_id, place=place))

    def _begin(self, run_id: str, batch: Batch) -> None:
        """The run is active and its prompt is in the conversation: both, or after a crash neither."""
        run = self._open.change(run_id, state="active", place=None, started_at=self._parts.world.now())
        self._turn = Turn(run, self._parts, self.fold_into)
        self._turn.speaker.on_wait = lambda: announce_waiting(self.run(run_id), self._parts.feed)
        batch.update_run(run)
        self._open_turn(run_id, batch)
        if session := self._parts.sessions.change(self._session_id):
            batch.update_session(session)  # it is busy now

    def _open_turn(self, run_id: str, batch: Batch) -> list[Message]:
        """Write the prompt. Gives it, after the commands of people that the model sees with it."""
        row = self._open[run_id].row
        commands = self._parts.sessions.take_commands(self._session_id)
        message = user_message(row.run, row.attachments, self._parts.world)
        batch.add_message(message)
        if session := self._parts.sessions.name(self._session_id, row.run.prompt):
            batch.update_session(session)
        return [*commands, message]

    def _drive(self, run_id: str, begun: asyncio.Future[None]) -> None:
        turn = self._turn
        assert turn is not None and turn.run_id == run_id
        driver = asyncio.create_task(self._run_turn(turn, begun), name=f"run {run_id}")
        self._drivers.add(driver)
        driver.add_done_callback(self._drivers.discard)

    async def _run_turn(self, turn: Turn, begun: asyncio.Future[None]) -> None:
        outcome = await turn.run(begun)
        self._open[turn.run_id].is_prompt_unwritten = begun.exception() is not None
        self.lane, decisions = self.lane.finish(turn.run_id, outcome)
        self._carry_out(decisions)

    def fold_into(self, run_id: str, batch: Batch) -> list[Message]:
        """A step of the active run begins: add what joins it to the change that opens the step; gives that."""
        self.lane, decisions = self.lane.begin_step(run_id)
        folded: list[Message] = []
        for decision in decisions:
            assert isinstance(decision, Fold)
            batch.update_run(self._open.change(decision.run_id, state="folded", place=None, folded_into=decision.into))
            folded += self._open_turn(decision.run_id, batch)
        return folded

    def _close(
        self, run_id: str, outcome: Outcome, batch: Batch, leftover: Sequence[Message]
    ) -> tuple[Run, RunComplete]:
        turn = self.turn_of(run_id)
        if turn:
            self._turn = None
        if self._open[run_id].is_prompt_unwritten:
            self._open_turn(run_id, batch)
        return last_words.compose(self._open.run(run_id), outcome, turn, leftover, batch, self._parts)

    def _end(self, run_id: str, last: tuple[Run, RunComplete], batch: Batch) -> UnwrittenEnd:
        batch.end_run(*last)
        return self._open.end(run_id, *last)

    # ── after a crash ──

    def recover(self, rows: Iterable[RunRow], messages: Sequence[Message]) -> None:
        """Take up what the store says is open, and go on (R15). `messages`: those of the run that was active."""
        rows = list(rows)
        self._open = OpenRuns.of(rows)
        self.lane = Lane.of(self._open.in_order(), self.lane.mark)
        self._apply_cancel(self.lane.recover(), CancelSource("shutdown"), leftover=messages)
        for row in rows:
            run = self.lane.find(row.run.run_id)
            if run and run.phase is Phase.ACCEPTED:
                self._apply_cancel(self.lane.enter(run.run_id), CancelSource("interrupt", row.run.posted_by))
