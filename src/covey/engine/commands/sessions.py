"""The sessions of a workspace, as they are asked for from outside: their records, messages, undos and forks."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

import msgspec

from covey.engine.commands.changes import ChangesQuery, session_changes
from covey.engine.commands.file_history import file_history
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.commands.searching import check_query, search
from covey.engine.recorder import Batch, confirmed
from covey.engine.undo.undo import Undos
from covey.protocol.changes import SessionChanges
from covey.protocol.events import created, deleted, updated
from covey.protocol.messages import Message, Session, TextPart
from covey.protocol.requests import ForkSession, UndoReceipt, UndoTurns, UpdateSession
from covey.protocol.search import SearchResult
from covey.protocol.v1 import HistoryFile
from covey.store.base import DropSession, PutSession, StoreFailed
from covey.store.session_order import page_in

SESSIONS_READ = 50
PROMPTS_READ = 200
"""How far back somebody looks for something that was asked before."""
EXPORT_PAGE = 20
"""Messages read at once: one with pictures may have megabytes."""
REREADS = 10
"""How often messages are read again: once is enough, unless the disk refuses the end of one of them."""


class Export(NamedTuple):
    """A session, and its messages in order, in pages."""

    session: Session
    pages: AsyncGenerator[list[Message], None]


class Sessions:
    """Each command writes what it changes before it answers."""

    def __init__(self, parts: WorkspaceParts, undos: Undos) -> None:
        self._parts = parts
        self._undos = undos

    async def page(
        self, *, before: str = "", limit: int, children: bool = False, archived: bool = False
    ) -> list[Session]:
        """The last changed first; with `before`, those that follow this one. It costs the page, not what there is.

        `children`: also those of agents. `archived`: also those that were put aside.
        """
        parts = self._parts
        rows = await parts.read(page_in, parts.store, before, limit, children=children, archived=archived)
        return [session for row in rows if (session := self.present(row.session))]

    def present(self, stored: Session) -> Session | None:
        """A session that was read from the store, as it is now; None: it was deleted meanwhile."""
        session = self._parts.book.present(stored)
        return self._parts.view(session) if session else None

    async def read(self, session_id: str) -> Session:
        """Any session. Raises NotFound."""
        return self._parts.view(await self._parts.session(session_id))

    def get(self, session_id: str) -> Session:
        """One that somebody has asked for since the workspace was opened: every one in which something goes on."""
        return self._parts.view(self._parts.book.get(session_id))

    def known_title(self, session_id: str) -> str:
        """Of one that `get` would give, else ''."""
        session = self._parts.book.find(session_id)
        return session.title if session else ""

    async def create(self, title: str) -> Session:
        self._parts.admission.check_open()
        return await self._record(self._parts.book.create(title))

    async def create_child(self, parent_session_id: str, title: str) -> Session:
        """A session in which an agent works for another one, with the same model."""
        self._parts.admission.check_open()
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
        await self._parts.session(session_id)
        names = ("title", "todos", "model", "mode")
        fields = {name: value for name in names if (value := getattr(update, name)) is not msgspec.UNSET}
        if reference := fields.get("model"):
            await self._parts.check_model(reference)
        if fields.get("mode") == "ask":
            fields["mode"] = None  # as a session has it that nobody has changed
        if update.archived is not msgspec.UNSET:
            fields["archived_at"] = self._parts.shared.world.now_s() if update.archived else None
        session = self._parts.book.change(session_id, **fields)
        assert session is not None
        await confirmed(self._parts.recorder.write(Batch([PutSession(session)], [updated(session)])))
        return self._parts.view(session)

    async def delete(self, session_id: str) -> None:
        """End its runs, then remove it with those in which agents worked for it.

        Each run gets its terminal event first, and nothing more is accepted meanwhile.
        """
        parts = self._parts
        await parts.session(session_id)
        removed = [parts.book.remove(leaving) for leaving in parts.book.family(session_id)]
        drains = [drained for each in removed for drained in parts.lanes.close("session_delete", each.id)]
        await asyncio.gather(*drains, self._remove_children(removed))
        leaving = [session.id for session in removed]
        await asyncio.gather(*(parts.agent.jobs.end_session(each) for each in leaving))
        for each in leaving:
            parts.book.forget(each)
            parts.lanes.forget(each)
        batch = Batch([DropSession(each) for each in leaving], [deleted(session) for session in removed])
        await confirmed(parts.recorder.write(batch))
        results = parts.turns.tool_calls.long_results
        for each in leaving:
            await asyncio.to_thread(shutil.rmtree, results.directory(each), ignore_errors=True)

    async def _remove_children(self, removed: list[Session]) -> None:
        """Add those that were not known yet: nothing is open in them, or they would be."""
        book = self._parts.book
        for parent in removed:  # which becomes longer meanwhile
            for row in await self._parts.read(self._parts.store.child_sessions, parent.id):
                if book.take_in(row.session):
                    removed += [book.remove(leaving) for leaving in book.family(row.session.id)]

    async def messages(self, session_id: str, after: str, limit: int) -> list[Message]:
        """The stored messages, those in progress as the feed has published them so far."""
        store = self._parts.store
        return await self._as_published(session_id, lambda: self._parts.read(store.messages, session_id, after, limit))

    async def messages_before(self, session_id: str, before: str, limit: int) -> list[Message]:
        """The page of so many messages that ends before one of them, or at the end ('')."""
        store = self._parts.store
        return await self._as_published(
            session_id, lambda: self._parts.read(store.messages_before, session_id, before, limit)
        )

    async def _as_published(self, session_id: str, read: Callable[[], Awaitable[list[Message]]]) -> list[Message]:
        await self._parts.session(session_id)
        live = self._parts.feed.live
        for _ in range(REREADS):
            stored = await read()
            if all(m.id in live or m.role != "assistant" or m.finish for m in stored):
                break  # else one of them began or ended while it was being read
        # An end that is written counts, though it is yet to be published: its run is said to have ended too.
        return [live[m.id].message() if m.id in live and not m.finish else m for m in stored]

    async def history(self, session_id: str) -> list[HistoryFile]:
        """What the session has changed, file by file."""
        return await file_history(self._parts, session_id)

    async def changes(
        self, session_id: str, *, run_id: str = "", after: str = "", limit: int = 0, diffs: bool = True
    ) -> SessionChanges:
        """What the session, or one turn of it, has changed: by file and turn, a page of files after a path."""
        return await session_changes(self._parts, session_id, ChangesQuery(run_id, after, limit, diffs))

    async def prompts(self, session_id: str = "") -> list[Message]:
        """What people asked, the newest first: in one session or in all (''), without what was attached."""
        if session_id:
            await self._parts.session(session_id)
        ids = [session_id] if session_id else [session.id for session in await self.page(limit=SESSIONS_READ)]
        found: list[Message] = []
        for each in ids:
            if (room := PROMPTS_READ - len(found)) <= 0:
                break
            found += await self._parts.read(self._parts.store.prompts, each, room)
        found.sort(key=lambda message: (message.created_at, message.id), reverse=True)
        return [_only_text(message) for message in found]

    async def search(self, query: str, limit: int, before: str = "") -> SearchResult:
        """Messages and titles with all words of a query. Raises BadRequest if there is no word in it."""
        check_query(query)
        return await self._parts.read(search, self._parts.store, query, limit, before)

    async def export(self, session_id: str) -> Export:
        """All of a session, a few messages at a time: no more than those is in memory, however long it is."""
        session = await self.read(session_id)
        return Export(session, self._all_messages(session_id))

    async def _all_messages(self, session_id: str) -> AsyncGenerator[list[Message], None]:
        after = ""
        while page := await self.messages(session_id, after, EXPORT_PAGE):
            yield page
            after = page[-1].id

    async def undo(self, session_id: str, request: UndoTurns) -> UndoReceipt:
        """Take back the newest turn, or all from one on, with their files."""
        await self._parts.session(session_id)
        return await self._undos.undo(session_id, request)

    async def fork(self, session_id: str, request: ForkSession) -> Session:
        """A new session with copies of the messages up to one of them."""
        await self._parts.session(session_id)
        return await self._undos.fork(session_id, request)


def _only_text(message: Message) -> Message:
    return msgspec.structs.replace(message, parts=tuple(part for part in message.parts if isinstance(part, TextPart)))
