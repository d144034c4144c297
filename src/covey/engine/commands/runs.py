"""The runs of a workspace, as they are asked for from outside: posting, watching and cancelling them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from covey.config.schema import ConfigError
from covey.engine.commands import intake
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.commands.queue_changes import queue_change
from covey.engine.commands.run_waiters import RunWaiters
from covey.engine.commands.stalled import as_it_is
from covey.engine.lanes.dispatcher import Dispatcher
from covey.engine.lanes.refusals import check_same_content
from covey.engine.recorder import Batch
from covey.engine.turns import summary
from covey.engine.turns.turn import Turn
from covey.lifecycle.early_cancels import EarlyCancels
from covey.lifecycle.parking import Parking
from covey.protocol.errors import BadRequest, NotFound, QueueFull
from covey.protocol.events import Event
from covey.protocol.messages import Attachment
from covey.protocol.requests import EditPrompt, PostPrompt
from covey.protocol.runs import CancelReceipt, Covered, PromptReceipt, Run, RunComplete, RunOptions
from covey.protocol.who import NOBODY, Who
from covey.store.base import PutEarlyCancel, RunExists

EARLY_CANCEL_S = 60.0
"""How long a cancel waits for a prompt that it has overtaken."""


class Runs:
    """Finds the lane that a command is for. What becomes of a run is decided there, by `lifecycle.runs`."""

    def __init__(
        self, parts: WorkspaceParts, reload: Callable[[], Awaitable[None]], on_deadline: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._on_deadline = on_deadline
        """Called when `next_deadline` may be earlier than it was, or a prompt was refused."""
        self._reload = reload
        self._world = parts.shared.world
        self._early = EarlyCancels()
        self._parking = Parking()
        self._arriving = 0
        """Prompts that are just being accepted or refused."""
        self._waiters = RunWaiters(self._look_up)

    # ── posting ──

    async def post(self, request: PostPrompt, who: Who = NOBODY, chosen_id: str = "") -> PromptReceipt:
        """Accept a prompt (R1), or refuse it before anything is recorded.

        `chosen_id`: the id if the caller gave none, so that another node can post it twice and it is one run.
        """
        self._arriving += 1
        try:
            receipt = await self._post(request, who, chosen_id)
        except BaseException:  # refused: perhaps nothing keeps the workspace any more
            self._on_deadline()
            raise
        finally:
            self._arriving -= 1
        self._parts.shared.counts["prompts_accepted"] += 1
        return receipt

    @property
    def is_accepting(self) -> bool:
        """A prompt is on its way in: the workspace must not be released under it."""
        return self._arriving > 0

    async def _post(self, request: PostPrompt, who: Who, chosen_id: str) -> PromptReceipt:
        self._parts.admission.check_open()
        intake.check(request)
        await self._parts.session(request.session_id)
        try:
            if request.model:
                await self._parts.check_model(request.model)
            intake.check_rules(request.allow)
            mentioned = await intake.mentioned(request, self._parts.agent.root)
            return await self._accept(request, request.options, mentioned, who, chosen_id)
        except (BadRequest, QueueFull):  # which is no answer to who only lost the 202 of a run that there is
            if posted := await self._posted_before(request, request.options, chosen_id):
                return posted
            raise

    async def post_for_agent(self, request: PostPrompt, writes_for: str, agent: str = "") -> PromptReceipt:
        """A prompt that a model wrote: it mentions no files, since that would be a way around permissions.

        `writes_for`: the run in whose name it may change something; '': it only looks. `agent`: a custom one, by name.
        """
        self._parts.admission.check_open()
        options = msgspec.structs.replace(request.options, delegate=True, writes_for=writes_for, agent=agent)
        return await self._accept(request, options)

    async def summarize(
        self, session_id: str, focus: str = "", who: Who = NOBODY, chosen_id: str = ""
    ) -> PromptReceipt:
        """Accept a run that replaces the session's conversation by a summary of it; `focus`: what must not be lost."""
        self._parts.admission.check_open()
        await self._parts.session(session_id)
        request = PostPrompt(session_id=session_id, prompt=f"{summary.PROMPT} {focus}".strip(), mode="own_turn")
        return await self._accept(request, RunOptions(summarize=True), who=who, chosen_id=chosen_id)

    async def _accept(
        self,
        request: PostPrompt,
        options: RunOptions,
        mentioned: tuple[Attachment, ...] = (),
        who: Who = NOBODY,
        chosen_id: str = "",
    ) -> PromptReceipt:
        parts = self._parts
        if parts.agent.config.mistake:
            await parts.turns.refresh(0)  # which raises it, unless it has been mended
        if self._model_missing() or parts.agent.key_refused:
            await self._reload()  # perhaps somebody has followed the advice below, or has a new key
            if self._model_missing():
                raise BadRequest(parts.agent.no_model, "no_model")
        parts.admission.check_open()  # meanwhile it may have begun to close, or the session be gone
        parts.book.get(request.session_id)
        dispatcher = parts.lanes.open(request.session_id)
        row = intake.accepted(request, options, mentioned, parts.lanes.next_seq(), self._world, who, chosen_id)
        if self._early.covers(row.run.run_id, self._world.now()):
            run = msgspec.structs.replace(row.run, cancelled_by="run_cancel")
            row = msgspec.structs.replace(row, run=run)
        try:
            limit = parts.agent.config.limits.queue_per_session
            mode = intake.mode_of(request, options)
            return await dispatcher.post(row, mode=mode, limit=limit)
        except RunExists:
            if not request.run_id and not chosen_id:  # another node, whose clock is ahead, gave out the same one
                return await self._accept(request, options, mentioned, who)
            posted = await self._posted_before(request, options, chosen_id)
            assert posted is not None
            return posted

    def _model_missing(self) -> bool:
        try:
            return self._parts.agent.choice() is None
        except ConfigError:
            return False  # one is named, and cannot be built: the run fails with what is wrong, and everybody sees it

    async def _posted_before(self, request: PostPrompt, options: RunOptions, chosen_id: str) -> PromptReceipt | None:
        """The answer for a run id whose run is in the store, if the content is the same (R14); None: there is none."""
        known = await self._parts.read(self._parts.store.run, request.run_id or chosen_id)
        if known is None:
            return None
        check_same_content(known, intake.digest(request, options), intake.mode_of(request, options))
        run = known.run
        return PromptReceipt(run_id=run.run_id, session_id=run.session_id, seq=run.seq, state=run.state)

    # ── cancelling, and the queue ──

    async def cancel_session(self, session_id: str, who: Who = NOBODY) -> CancelReceipt:
        """Cancel all open runs of a session (R4)."""
        return await (await self._open_lane(session_id)).cancel(who)

    async def cancel(self, run_id: str, who: Who = NOBODY) -> CancelReceipt:
        """Cancel one run. An id that nobody has posted yet is remembered, so that a cancel may overtake its prompt."""
        lanes = self._parts.lanes
        if dispatcher := lanes.of_run(run_id):
            return await dispatcher.cancel_run(run_id, who)
        if await self._parts.read(self._parts.store.run, run_id):
            return CancelReceipt(covered=(), mark=0)
        if dispatcher := lanes.of_run(run_id):  # it was posted while we looked
            return await dispatcher.cancel_run(run_id, who)
        now = self._world.now()
        self._early = self._early.remember(run_id, now, EARLY_CANCEL_S)
        await self._parts.recorder.write(Batch([PutEarlyCancel(run_id, now + EARLY_CANCEL_S)]), patient=False)
        return CancelReceipt(covered=(Covered(run_id=run_id, state_found="unknown"),), mark=0)

    async def queued(self, session_id: str) -> list[str]:
        """The prompts that wait in a session."""
        await self._parts.session(session_id)
        return self._parts.lanes.look(session_id).queued_prompts()

    async def clear_queue(self, session_id: str, who: Who = NOBODY) -> CancelReceipt:
        """Drop what waits in a session, not what runs."""
        return await (await self._open_lane(session_id)).clear_queue(who)

    async def edit_queued(self, session_id: str, run_id: str, request: EditPrompt, who: Who = NOBODY) -> Run:
        """Change the text or the place of a prompt that still waits, park it or unpark it."""
        change = queue_change(request, who.label or "somebody")
        run = await (await self._lane_of(session_id, run_id)).edit(run_id, change)
        if change.parked_by:
            self._parking = self._parking.park(run_id, who.client_id, asyncio.get_running_loop().time())
            self._on_deadline()
        return run

    def unpark_left(self, now: float, is_here: Callable[[str], bool]) -> None:
        """Unpark what nobody edits any more (R7)."""
        for run_id in self._parking.due(now, is_here):
            self._parking = self._parking.unpark(run_id)
            if dispatcher := self._parts.lanes.of_run(run_id):
                dispatcher.unpark(run_id)

    def next_deadline(self) -> float | None:
        """When `unpark_left` next has something to do by itself."""
        return self._parking.next_deadline()

    async def remove_queued(self, session_id: str, run_id: str, who: Who = NOBODY) -> CancelReceipt:
        """Drop one prompt that still waits."""
        return await (await self._lane_of(session_id, run_id)).remove(run_id, who)

    async def _open_lane(self, session_id: str) -> Dispatcher:
        """The lane of an existing session, to cancel in it."""
        await self._parts.session(session_id)
        return self._parts.lanes.open(session_id)

    async def _lane_of(self, session_id: str, run_id: str) -> Dispatcher:
        """The lane of a session; NotFound for a run that was never seen in it."""
        await self._parts.session(session_id)
        run = await self.get(run_id)
        if run.session_id != session_id:
            raise NotFound(f"run {run_id!r} is of another session, {run.session_id!r}", "run_not_found")
        return self._parts.lanes.look(session_id)

    # ── watching ──

    async def get(self, run_id: str, wait_s: float = 0.0) -> Run:
        """A run; with `wait_s`, as soon as it has ended, or as it is then."""
        return await self._waiters.run(run_id, wait_s)

    async def newest(self, session_id: str, state: str, limit: int) -> list[Run]:
        """The newest runs first: of one session or all (''), in one state or any ('')."""
        stored = await self._parts.read(self._parts.store.runs, session_id, state, limit)
        now = {run.run_id: run for run in self.open_runs()}
        refusal = self._parts.shared.journal.refusal
        return [run if run.ended else as_it_is(now.get(run.run_id, run), refusal) for run in stored]

    def open_runs(self) -> list[Run]:
        """Those that have not ended, with what each is doing right now."""
        return [as_it_is(run, self._parts.shared.journal.refusal) for run in self._parts.lanes.open_runs()]

    async def _look_up(self, run_id: str) -> Run:
        """A run as it is now. One whose end is decided but not written yet is as the store still has it: open."""
        self._parts.admission.check_here()
        dispatcher = self._parts.lanes.of_run(run_id)
        now = dispatcher.run(run_id) if dispatcher else None
        refusal = self._parts.shared.journal.refusal
        if dispatcher and now and not dispatcher.is_new(run_id):
            return as_it_is(now, refusal)
        row = await self._parts.read(self._parts.store.run, run_id)
        run = row.run if row else now
        if run:
            return as_it_is(run, refusal)
        raise NotFound(f"there is no run {run_id!r} in this workspace", "run_not_found")

    # ── for agents that a run sends ──

    def turn_of(self, run_id: str) -> Turn | None:
        """The turn of an active run."""
        return self._parts.lanes.turn_of(run_id)

    def terminal(self, run_id: str) -> asyncio.Future[RunComplete]:
        """The terminal event of a run that is yet to be posted. Whoever asks for it must `forget` it."""
        return self._waiters.terminal(run_id)

    def forget(self, run_id: str) -> None:
        self._waiters.forget(run_id)

    # ── for the workspace ──

    def moved(self) -> None:
        """Others own the workspace: whoever waits for an end has to ask there."""
        self._waiters.wake_all()

    def on_event(self, event: Event) -> None:
        """An event was published."""
        if isinstance(event.payload, RunComplete):
            self._parts.shared.counts[f"runs_ended_{event.payload.outcome}"] += 1
            self._waiters.ended(event.payload)

    async def recover(self) -> None:
        """Take up what was open when the server stopped (R15)."""
        parts = self._parts
        seq, mark = await parts.read(parts.store.last_run_seq), await parts.read(parts.store.newest_mark)
        parts.lanes.recover(seq, mark)
        early = await parts.read(parts.store.early_cancels)
        self._early = EarlyCancels(tuple((cancel.run_id, cancel.until) for cancel in early))
        rows = await parts.read(parts.store.open_runs)
        for session_id in dict.fromkeys(row.run.session_id for row in rows):
            with suppress(NotFound):  # its last words are still owed, and belong to no session any more
                await parts.session(session_id)
            mine = [row for row in rows if row.run.session_id == session_id]
            active = next((row.run.run_id for row in mine if row.run.state == "active"), None)
            if active:
                await asyncio.to_thread(parts.shared.end_processes, parts.turns.tool_calls.process_tag(active))
            leftover = await parts.turns.read_run(session_id, active) if active else []
            parts.lanes.open(session_id).recover(mine, leftover)
