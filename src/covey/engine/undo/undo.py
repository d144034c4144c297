"""Takes turns back, and forks sessions. What to take back is decided by `lifecycle.undo`; here it is carried out.

An undo survives a crash at any moment: everything is checked and prepared first; then one change takes the messages
away and notes which files are still to be restored; then each file is put back in one step; then the note is closed.
Whatever is still noted at the next start is gone on with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from covey.engine.lanes.dispatcher import Dispatcher
from covey.engine.lanes.lanes import Lanes
from covey.engine.recorder import Batch, Recorder, confirmed
from covey.engine.session_book import SessionBook
from covey.engine.shared import Shared
from covey.engine.turns.file_versions import change_kind, file_event, printable
from covey.engine.undo.restore import CannotRestore, Staged, look
from covey.lifecycle import undo as rules
from covey.lifecycle.undo import FileStep, Obstacle, Plan, Restore
from covey.protocol.effects import Effect
from covey.protocol.errors import Conflict, NotFound, Unavailable
from covey.protocol.events import created, deleted, updated
from covey.protocol.messages import Message, Session
from covey.protocol.requests import FileConflict, ForkSession, UndoneTurn, UndoReceipt, UndoTurns
from covey.protocol.runs import Run
from covey.store.base import (
    DropMessages,
    PutSession,
    PutUndo,
    StoreFailed,
    UndoFile,
    UndoRow,
    unknown_message,
)
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

RUNS_READ = 100_000
"""Runs of a session that are looked at: more than anybody has."""
NAMED = 20
"""Conflicts that an error names; `dry_run` tells them all."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """What an undo takes back."""

    kept: Sequence[Message]
    cut: Sequence[Message]
    runs: Sequence[Run]
    """In the order of their prompts."""
    steps: Sequence[FileStep]


class Undos:
    """Undo and fork in one workspace."""

    def __init__(
        self,
        workspace_id: str,
        root: str,
        shared: Shared,
        recorder: Recorder,
        sessions: SessionBook,
        view: Callable[[Session], Session],
        lanes: Lanes,
        check_open: Callable[[], None],
        effects: Callable[[], Mapping[str, Effect]],
        touching: Callable[[Iterable[str]], AbstractContextManager[None]],
    ) -> None:
        self._workspace_id = workspace_id
        self._root = root
        self._store = shared.store
        self._read = shared.journal.read
        self._world = shared.world
        self._recorder = recorder
        self._sessions = sessions
        self._view = view
        self._lanes = lanes
        self._check_open = check_open
        self._effects = effects
        self._touching = touching
        """While it changes files: so that no command that runs meanwhile is taken for who did it."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def drained(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    # ── undo ──

    async def undo(self, session_id: str, request: UndoTurns) -> UndoReceipt:
        """Take back the newest turn, or all from that of `request.run_id` on. Whoever asked may leave meanwhile."""
        self._check_open()
        self._sessions.get(session_id)
        held = self._lanes.hold(session_id)
        task = asyncio.ensure_future(self._undo(session_id, request))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(held, done))
        return await asyncio.shield(task)

    def _ended(self, held: Dispatcher, task: asyncio.Task[UndoReceipt]) -> None:
        held.release()
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may have left

    async def _undo(self, session_id: str, request: UndoTurns) -> UndoReceipt:
        turns = await self._turns(session_id, request.run_id)
        plan = await self._plan(turns, request)
        receipt = UndoReceipt(
            undone=tuple(UndoneTurn(run_id=run.run_id, prompt=run.prompt) for run in turns.runs),
            restored=tuple(printable(restore.path) for restore in plan.restore),
            removed_messages=len(turns.cut),
            removed=tuple(printable(restore.path) for restore in plan.restore if restore.target is None),
            untracked=rules.may_have_more_effects(turns.cut, turns.steps, self._effects()),
            skipped=tuple(map(_told, plan.left)),
            conflicts=tuple(map(_told, plan.conflicts)),
        )
        if request.dry_run:
            return receipt
        if plan.conflicts:
            raise _refusal(plan.conflicts)
        row = UndoRow(
            self._world.new_id(),
            session_id,
            tuple(run.run_id for run in turns.runs),
            self._world.now(),
            tuple(UndoFile(os.fsencode(r.path), r.found, r.target, r.mode, r.executable) for r in plan.restore),
            done=not plan.restore,
        )
        staged = await self._prepare(row)
        try:
            await self._take_back(turns, row)
        except BaseException:
            await in_thread(lambda: _clear(staged))
            raise
        skipped = await self._put(row, staged) if staged else []
        left = {obstacle.path for obstacle in skipped}
        restored = tuple(printable(r.path) for r in plan.restore if r.path not in left)
        removed = tuple(path for path in receipt.removed if path in restored)
        left_alone = (*receipt.skipped, *map(_told, skipped))
        return structs.replace(receipt, restored=restored, removed=removed, skipped=left_alone)

    async def _turns(self, session_id: str, run_id: str) -> _Turns:
        # What was said of runs that have ended may still be on its way to the disk, from which all is read here.
        await asyncio.shield(self._recorder.write(Batch(), patient=False))
        messages = await self._read(self._store.messages, self._workspace_id, session_id, "", 0)
        runs = await self._read(self._store.runs, self._workspace_id, session_id, "", RUNS_READ)
        if run_id and run_id not in {run.run_id for run in runs}:
            raise NotFound(f"there is no run {run_id!r} in this session", "run_not_found")
        hosts = {run.run_id: run.folded_into for run in runs if run.folded_into}
        cut = rules.turns_from(messages, hosts, run_id)
        if not cut:
            what = f"run {run_id!r} has left nothing, or was undone already" if run_id else "the session has no turn"
            raise Conflict(f"there is nothing to undo: {what}", "nothing_to_undo")
        with_messages = {message.run_id for message in cut}
        undone = sorted((run for run in runs if run.run_id in with_messages), key=lambda run: run.seq)
        if principal := next(filter(None, (run.effective_options.writes_for for run in undone)), ""):
            raise Conflict(
                f"an agent worked here for run {principal!r}: undo that one, in the session which sent the agent",
                "undo_conflict",
            )
        ids = [run.run_id for run in undone]
        steps = await self._read(self._store.file_steps, self._workspace_id, session_id, ids)
        return _Turns(messages[: len(messages) - len(cut)], cut, undone, steps)

    async def _plan(self, turns: _Turns, request: UndoTurns) -> Plan:
        if request.keep_files:
            return Plan((), ())
        paths = dict.fromkeys(step.path for step in turns.steps if step.path)
        found = await in_thread(lambda: {path: look(path) for path in paths})
        wanted = {self._absolute(path) for path in request.force_files}
        return rules.plan(turns.steps, found, [path for path in paths if printable(path) in wanted])

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._root, path))

    async def _prepare(self, row: UndoRow) -> list[Staged]:
        """The old contents, beside the files that are to get them; Conflict if that cannot be done for all."""
        staged = _staged(row)
        obstacles: list[Obstacle] = []
        for one in staged:
            if why := await self._prepare_one(one):
                obstacles.append(Obstacle(one.restore.path, why))
        if obstacles:
            await in_thread(lambda: _clear(staged))
            raise _refusal(obstacles)
        return staged

    async def _prepare_one(self, one: Staged) -> str:
        """Why it cannot be prepared; '' if it is."""
        target = one.restore.target
        content = await self._read(self._store.content, self._workspace_id, target) if target is not None else None
        if target is not None and content is None and target != one.restore.found:
            return rules.NOT_KEPT
        try:
            await in_thread(lambda: one.prepare(content))
        except CannotRestore as error:
            return str(error)
        return ""

    async def _take_back(self, turns: _Turns, row: UndoRow) -> None:
        """The messages go, and what is left to do is noted: one change. If it cannot be written, nothing happened."""
        before = self._sessions.get(row.session_id)
        # How much of the context is in use is not known until the next answer; what was spent stays spent.
        fields: dict[str, Any] = {"prompt_tokens": 0, "completion_tokens": 0}
        fields |= {"summary_message_id": rules.last_summary(turns.kept), **rules.todos_before(turns.kept, turns.cut)}
        removed = len(turns.cut)
        session = self._sessions.change(row.session_id, added_messages=-removed, **fields)
        assert session is not None
        ids = tuple(message.id for message in turns.cut)
        batch = Batch([DropMessages(row.session_id, ids), PutUndo(row)], [deleted(m) for m in reversed(turns.cut)])
        batch.update_session(session)
        try:
            await asyncio.shield(self._recorder.write(batch, patient=False))
        except StoreFailed:
            fields = {name: getattr(before, name) for name in fields}
            self._sessions.change(row.session_id, added_messages=removed, **fields)
            raise

    async def _put(self, row: UndoRow, staged: Sequence[Staged]) -> list[Obstacle]:
        """Restore the files, then say so. Gives those that were left as they are."""
        with self._touching(one.restore.path for one in staged):
            skipped = await in_thread(lambda: _put_all(staged))
        left = {obstacle.path for obstacle in skipped}
        for obstacle in skipped:
            log.warning("undo %s leaves %s as it is: %s", row.id, obstacle.path, obstacle.why)
        batch = Batch([PutUndo(structs.replace(row, done=True))])
        for number, one in enumerate(staged):
            restore = one.restore
            if restore.path not in left:
                kind = change_kind(restore.found, restore.target)
                batch.events.append(
                    file_event(kind, f"{row.id}.{number}", row.session_id, restore.path, None, self._world)
                )
        with contextlib.suppress(Unavailable):  # the files are restored; that it is noted again can only repeat it
            await confirmed(self._recorder.write(batch))
        return skipped

    async def recover(self) -> None:
        """Go on with what a crash cut off: before anything else happens in the workspace."""
        for row in await self._read(self._store.undos, self._workspace_id, pending=True):
            staged = _staged(row)
            for one in staged:
                if why := await self._prepare_one(one):
                    log.warning("undo %s cannot restore %s: %s", row.id, one.restore.path, why)
            await self._put(row, staged)

    # ── fork ──

    async def fork(self, session_id: str, request: ForkSession) -> Session:
        """A new session with copies of the messages up to one of them. Files and the session itself are not touched."""
        self._check_open()
        source = self._sessions.get(session_id)
        self._lanes.look(session_id).check_not_held()
        await asyncio.shield(self._recorder.write(Batch(), patient=False))
        messages = await self._read(self._store.messages, self._workspace_id, session_id, "", 0)
        if request.message_id and request.message_id not in {message.id for message in messages}:
            raise unknown_message(request.message_id)
        session, copies = self._copied(source, messages, request)
        batch = Batch([PutSession(session)], [created(session)])
        for copy in copies:
            batch.add_message(copy)
        batch.events.append(updated(structs.replace(session, message_count=len(copies))))
        try:
            await asyncio.shield(self._recorder.write(batch, patient=False))
        except StoreFailed:
            self._sessions.remove(session.id)
            raise
        return self._view(self._sessions.get(session.id))

    def _copied(
        self, source: Session, messages: Sequence[Message], request: ForkSession
    ) -> tuple[Session, list[Message]]:
        """A new session, and the messages that it begins with. They belong to no run: each has its own session."""
        chosen = rules.whole_until(messages, request.message_id)
        new = self._sessions.create(request.title or (f"{source.title} (fork)" if source.title else ""))
        copies = [
            structs.replace(message, id=self._world.new_id(), session_id=new.id, run_id=None) for message in chosen
        ]
        ids = {message.id: copy.id for message, copy in zip(chosen, copies, strict=True)}
        summary = ids.get(source.summary_message_id) or rules.last_summary(copies)
        fields = _inherited(source, whole=len(chosen) == len(messages))
        session = self._sessions.change(new.id, **fields, forked_from=source.id, summary_message_id=summary)
        assert session is not None
        return session, copies


_OWN = frozenset(
    {"id", "parent_session_id", "title", "message_count", "summary_message_id", "cost", "created_at", "updated_at"}
    | {"is_busy", "attached_clients", "forked_from"}
)
_OF_THE_END = frozenset({"prompt_tokens", "completion_tokens", "todos"})


def _inherited(source: Session, *, whole: bool) -> dict[str, Any]:
    """What a fork takes over: settings, and what is true at the end of the conversation only if all of it is copied."""
    left = _OWN if whole else _OWN | _OF_THE_END
    return {name: getattr(source, name) for name in source.__struct_fields__ if name not in left}


def _staged(row: UndoRow) -> list[Staged]:
    return [
        Staged(
            Restore(os.fsdecode(file.path), file.found, file.target, file.mode, file.executable),
            f".covey-undo-{row.id}-{n}.tmp",
        )
        for n, file in enumerate(row.files)
    ]


def _put_all(staged: Sequence[Staged]) -> list[Obstacle]:
    skipped = []
    for one in staged:
        try:
            one.put()
        except CannotRestore as error:
            skipped.append(Obstacle(one.restore.path, str(error)))
    _clear(staged)
    return skipped


def _clear(staged: Sequence[Staged]) -> None:
    for one in staged:
        one.clear()


def _refusal(obstacles: Sequence[Obstacle]) -> Conflict:
    named = [f"{printable(obstacle.path)}: {obstacle.why}" for obstacle in obstacles[:NAMED]]
    if len(obstacles) > NAMED:
        named.append(f"and {len(obstacles) - NAMED} more")
    listing = "\n".join(f"  {line}" for line in named)
    return Conflict(
        f"nothing was undone, because these files would lose something:\n{listing}\n"
        "Settle them and undo again, name them in force_files to restore them all the same, "
        "or undo only the messages with keep_files.",
        "undo_conflict",
    )


def _told(obstacle: Obstacle) -> FileConflict:
    return FileConflict(path=printable(obstacle.path), reason=obstacle.why)
