"""The sessions of a workspace, as they are asked for from outside: their records, messages, undos and forks."""

from __future__ import annotations

import asyncio
import shutil

import msgspec

from covey.engine.commands.parts import WorkspaceParts
from covey.engine.recorder import Batch, confirmed
from covey.engine.undo.undo import Undos
from covey.protocol.events import created, deleted, updated
from covey.protocol.messages import Message, Session
from covey.protocol.requests import ForkSession, UndoReceipt, UndoTurns, UpdateSession
from covey.store.base import DropSession, PutSession, StoreFailed

REREADS = 10
"""How often messages are read again: once is enough, unless the disk refuses the end of one of them."""


class Sessions:
    """Each command writes what it changes before it answers."""

    def __init__(self, parts: WorkspaceParts, undos: Undos) -> None:
        self._parts = parts
        self._undos = undos

    def all(self) -> list[Session]:
        """The last changed first."""
        return [self._parts.view(session) for session in self._parts.book.all()]

    def get(self, session_id: str) -> Session:
        return self._parts.view(self._parts.book.get(session_id))

    async def create(self, title: str) -> Session:
        self._parts.check_open()
        return await self._record(self._parts.book.create(title))

    async def create_child(self, parent_session_id: str, title: str) -> Session:
        """A session in which an agent works for another one, with the same model."""
        self._parts.check_open()
        parent = self._parts.book.get(parent_session_id)
        return await self._record(self._parts.book.create(title, parent.id, parent.model))

    async def _record(self, session: Session) -> Session:
        batch = Batch([PutSession(session)], [created(session)])
        try:
            await asyncio.shield(self._parts.recorder.write(batch, patient=False))
        except StoreFailed:
            self._parts.book.remove(session.id)
            self._parts.book.forget(session.id)
            raise
        return session

    async def update(self, session_id: str, update: UpdateSession) -> Session:
        """Change the fields that are given."""
        self._parts.book.get(session_id)
        names = ("title", "todos", "model", "mode")
        fields = {name: value for name in names if (value := getattr(update, name)) is not msgspec.UNSET}
        if reference := fields.get("model"):
            self._parts.agent.choice(reference)  # refuses one that nobody knows
        if fields.get("mode") == "ask":
            fields["mode"] = None  # as a session has it that nobody has changed
        session = self._parts.book.change(session_id, **fields)
        assert session is not None
        await confirmed(self._parts.recorder.write(Batch([PutSession(session)], [updated(session)])))
        return self._parts.view(session)

    async def delete(self, session_id: str) -> None:
        """End its runs, then remove it with those in which agents worked for it.

        Each run gets its terminal event first, and nothing more is accepted meanwhile.
        """
        parts = self._parts
        removed = [parts.book.remove(leaving) for leaving in parts.book.family(session_id)]
        leaving = [session.id for session in removed]
        drains = [drained for each in leaving for drained in parts.lanes.close("session_delete", each)]
        await asyncio.gather(*drains)
        await asyncio.gather(*(parts.agent.jobs.end_session(each) for each in leaving))
        for each in leaving:
            parts.book.forget(each)
            parts.lanes.forget(each)
        batch = Batch([DropSession(each) for each in leaving], [deleted(session) for session in removed])
        await confirmed(parts.recorder.write(batch))
        for each in leaving:
            await asyncio.to_thread(shutil.rmtree, parts.turns.tool_calls.spill_dir(each), ignore_errors=True)

    async def messages(self, session_id: str, after: str, limit: int) -> list[Message]:
        """The stored messages, those in progress as the feed has published them so far."""
        self._parts.book.get(session_id)
        live = self._parts.feed.live
        for _ in range(REREADS):
            stored = await self._read_messages(session_id, after, limit)
            if all(m.id in live or m.role != "assistant" or m.finish for m in stored):
                break  # else one of them began or ended while it was being read
        return [live[m.id].message() if m.id in live else m for m in stored]

    async def _read_messages(self, session_id: str, after: str, limit: int) -> list[Message]:
        return await self._parts.read(self._parts.store.messages, session_id, after, limit)

    async def undo(self, session_id: str, request: UndoTurns) -> UndoReceipt:
        """Take back the newest turn, or all from one on, with their files."""
        return await self._undos.undo(session_id, request)

    async def fork(self, session_id: str, request: ForkSession) -> Session:
        """A new session with copies of the messages up to one of them."""
        return await self._undos.fork(session_id, request)
