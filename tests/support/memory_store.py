"""A store in memory, for simulations: the same promises as SQLite, no thread of its own, faults on demand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec

from covey.lifecycle.undo import FileStep
from covey.protocol.growth import TextPiece, grown
from covey.protocol.messages import Message
from covey.protocol.runs import Run, Usage
from covey.store import base
from covey.store.base import (
    AppendText,
    Change,
    DropMessages,
    DropSession,
    InsertRun,
    LogBounds,
    Place,
    PutEarlyCancel,
    PutFileVersion,
    PutMessage,
    PutSession,
    PutUndo,
    PutWorkspace,
    RunExists,
    RunRow,
    SessionRow,
    SetMark,
    StoredEvent,
    UndoRow,
    UpdateRun,
    WorkspaceRow,
    Write,
    digest_of,
    unknown_message,
)
from covey.store.search_text import Hit, Hits, Phrase, Token, is_searchable, phrases, searched_text, snippet
from covey.store.session_order import place_of
from covey.store.spending import AddSpending, SpendingRow


class MemoryStore:
    """Dictionaries in the order of insertion. `before_commit` may raise StoreFailed to play a failing disk."""

    while_away: Callable[[], None]  # never: it is always known here what became of a commit

    def __init__(self) -> None:
        self.before_commit: Callable[[Sequence[Change]], None] = lambda changes: None
        self._workspaces: dict[str, WorkspaceRow] = {}
        self._sessions: dict[tuple[str, str], SessionRow] = {}
        self._messages: dict[str, tuple[str, Message]] = {}
        self._tails: dict[str, list[TextPiece]] = {}
        self._runs: dict[tuple[str, str], RunRow] = {}
        self._events: dict[str, dict[int, tuple[str, bytes]]] = {}
        self._early: dict[tuple[str, str], PutEarlyCancel] = {}
        self._versions: dict[int, tuple[str, PutFileVersion]] = {}
        self._held: dict[int, int] = {}
        """By version whose contents are kept: their size."""
        self._undos: dict[tuple[str, str], UndoRow] = {}
        self._spending: dict[tuple[int, str, str], SpendingRow] = {}

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        self.before_commit(changes)
        return [self._apply(change) for change in changes]

    def _apply(self, change: Change) -> int | RunExists:
        for write in change.writes:
            if isinstance(write, InsertRun) and (change.workspace_id, write.row.run.run_id) in self._runs:
                return RunExists(write.row.run.run_id)
            self._write(change.workspace_id, write)
        log = self._events.setdefault(change.workspace_id, {})
        first = max(log, default=0) + 1
        for seq, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), first):
            log[seq] = (event.session_id, encoded)
        return first

    def _write(self, workspace_id: str, write: Write) -> None:
        match write:
            case PutWorkspace(row):
                self._workspaces[row.id] = row
            case PutSession(session):
                known = self._sessions.get((workspace_id, session.id))
                self._sessions[workspace_id, session.id] = SessionRow(session, known.mark if known else 0)
            case DropSession(session_id):
                self._sessions.pop((workspace_id, session_id), None)
                gone = [
                    m.id for owner, m in self._messages.values() if (owner, m.session_id) == (workspace_id, session_id)
                ]
                self._drop_messages(gone)
                for number in self._versions_of(workspace_id, session_id):
                    del self._versions[number]
                    self._held.pop(number, None)
                for undo_key in [
                    k for k, u in self._undos.items() if (k[0], u.session_id) == (workspace_id, session_id)
                ]:
                    del self._undos[undo_key]
            case DropMessages(session_id, message_ids):
                known_ids = [i for i in message_ids if i in self._messages]
                mine = [i for i in known_ids if self._owner(i) == (workspace_id, session_id)]
                self._drop_messages(mine)
            case PutFileVersion():
                self._put_version(workspace_id, write)
            case PutUndo(undo):
                if not undo.done or (workspace_id, undo.session_id) in self._sessions:
                    self._undos[workspace_id, undo.id] = undo
            case InsertRun(run_row):
                self._runs[workspace_id, run_row.run.run_id] = run_row
            case UpdateRun(run):
                if known_run := self._runs.get((workspace_id, run.run_id)):
                    changed = RunRow(run, known_run.digest, known_run.attachments)
                    self._runs[workspace_id, run.run_id] = changed
            case PutMessage(message):
                self._messages[message.id] = (workspace_id, message)
                self._tails.pop(message.id, None)
            case AppendText(message_id, pieces):
                self._tails.setdefault(message_id, []).extend(pieces)
            case SetMark(session_id, mark):
                if marked := self._sessions.get((workspace_id, session_id)):
                    self._sessions[workspace_id, session_id] = SessionRow(marked.session, max(marked.mark, mark))
            case AddSpending(day, model, usage):
                key = (day, workspace_id, model)
                spent = self._spending.get(key, SpendingRow(*key, 0, Usage()))
                self._spending[key] = SpendingRow(*key, spent.runs + 1, spent.usage + usage)
            case PutEarlyCancel():
                self._early[workspace_id, write.run_id] = write
            case _:
                assert_never(write)

    def _owner(self, message_id: str) -> tuple[str, str]:
        workspace_id, message = self._messages[message_id]
        return workspace_id, message.session_id

    def _drop_messages(self, message_ids: Sequence[str]) -> None:
        for message_id in message_ids:
            del self._messages[message_id]
            self._tails.pop(message_id, None)

    def _put_version(self, workspace_id: str, version: PutFileVersion) -> None:
        number = max(self._versions, default=0) + 1
        self._versions[number] = (workspace_id, version)
        if kept := _kept(version):
            self._held[number] = sum(max(1, len(content)) for content in kept.values())
        held = [n for n in self._versions_of(workspace_id, version.session_id) if n in self._held]
        while sum(self._held[n] for n in held) > base.SESSION_CONTENT_BYTES:
            del self._held[held.pop(0)]

    def _versions_of(self, workspace_id: str, session_id: str) -> list[int]:
        mine = (workspace_id, session_id)
        return [number for number, (owner, v) in self._versions.items() if (owner, v.session_id) == mine]

    def trim_events(self, workspace_id: str, keep: int) -> None:
        log = self._events.get(workspace_id, {})
        for seq in [seq for seq in log if seq <= max(log) - max(keep, 1)]:
            del log[seq]

    def upkeep(self) -> bool:
        return False

    def is_lost(self) -> bool:
        return False

    def workspaces(self) -> list[WorkspaceRow]:
        return list(self._workspaces.values())

    def log_bounds(self, workspace_id: str) -> LogBounds:
        log = self._events.get(workspace_id, {})
        return LogBounds(min(log, default=1) - 1, max(log, default=0))

    def events(self, workspace_id: str, after: int, upto: int, session_id: str, limit: int) -> list[StoredEvent]:
        found = [
            StoredEvent(seq, encoded)
            for seq, (owner, encoded) in sorted(self._events.get(workspace_id, {}).items())
            if after < seq <= upto and (not session_id or owner in ("", session_id))
        ]
        return found[:limit]

    def next_size(self, workspace_id: str, after: int, upto: int, session_id: str) -> int:
        page = MemoryStore.events(self, workspace_id, after, upto, session_id, 1)
        return len(page[0].encoded) if page else 0

    def event_sizes(self, workspace_id: str, limit: int) -> list[int]:
        log = sorted(self._events.get(workspace_id, {}).items(), reverse=True)
        return [len(encoded) for _, (_, encoded) in log[:limit]]

    def newest_id(self, workspace_id: str) -> str:
        sessions = [session_id for owner, session_id in self._sessions if owner == workspace_id]
        published = [session_id for session_id, _ in self._events.get(workspace_id, {}).values()]
        undos = [undo_id for _, undo_id in self._undos]
        return max([*self._messages, *undos, *sessions, *published], default="")

    def sessions(self, workspace_id: str) -> list[SessionRow]:
        rows = [row for (owner, _), row in self._sessions.items() if owner == workspace_id]
        return sorted(rows, key=lambda row: (row.session.updated_at, row.session.id), reverse=True)

    def session(self, workspace_id: str, session_id: str) -> SessionRow | None:
        return self._sessions.get((workspace_id, session_id))

    def child_sessions(self, workspace_id: str, session_id: str) -> list[SessionRow]:
        rows = [row for row in MemoryStore.sessions(self, workspace_id) if row.session.parent_session_id == session_id]
        return sorted((row for row in rows if session_id), key=lambda row: row.session.id)

    def newest_mark(self, workspace_id: str) -> int:
        return max((row.mark for row in MemoryStore.sessions(self, workspace_id)), default=0)

    def sessions_page(
        self, workspace_id: str, before: Place, limit: int, *, children: bool, archived: bool
    ) -> list[SessionRow]:
        listed = [
            row
            for row in MemoryStore.sessions(self, workspace_id)
            if place_of(row.session) < before
            and (children or not row.session.parent_session_id)
            and (archived or row.session.archived_at is None)
        ]
        return listed[:limit]

    def session_size(self, workspace_id: str, session_id: str) -> int:
        mine = (workspace_id, session_id)
        found = [m for owner, m in self._messages.values() if (owner, m.session_id) == mine]
        return sum(len(msgspec.json.encode(message)) for message in found)

    def search(self, workspace_id: str, query: str, limit: int, before: str = "") -> Hits:
        wanted = phrases(query, _tokens)
        if before and (before not in self._messages or self._messages[before][0] != workspace_id):
            raise unknown_message(before, "this workspace")
        ids = list(self._messages)
        older = set(ids[: ids.index(before)] if before else ids)
        titles = [
            Hit(row.session.id, "", "", *snippet(row.session.title, wanted, _tokens), row.session.updated_at)
            for row in MemoryStore.sessions(self, workspace_id)
            if _has_all(row.session.title, wanted)
        ]
        messages = [
            Hit(m.session_id, m.id, m.role, *snippet(searched_text(m), wanted, _tokens), m.created_at)
            for owner, m in reversed(self._messages.values())
            if owner == workspace_id and (owner, m.session_id) in self._sessions
            if m.id in older and is_searchable(m) and _has_all(searched_text(m), wanted)
        ]
        return Hits(() if before else tuple(titles[:limit]), tuple(messages[:limit]), True)

    def messages_before(self, workspace_id: str, session_id: str, before: str, limit: int) -> list[Message]:
        mine = self._messages_in(workspace_id, session_id)
        ids = [message.id for message in mine]
        if before and before not in ids:
            raise unknown_message(before)
        end = ids.index(before) if before else len(mine)
        return mine[max(0, end - limit) : end]

    def messages(self, workspace_id: str, session_id: str, after: str, limit: int) -> list[Message]:
        mine = self._messages_in(workspace_id, session_id)
        ids = [message.id for message in mine]
        if after and after not in ids:
            raise unknown_message(after)
        start = ids.index(after) + 1 if after else 0
        return mine[start : start + limit] if limit else mine[start:]

    def messages_since(self, workspace_id: str, session_id: str, message_id: str) -> list[Message]:
        mine = self._messages_in(workspace_id, session_id)
        start = next((place for place, message in enumerate(mine) if message.id == message_id), 0)
        prompts = [place for place in range(start) if mine[place].role == "user" and not mine[place].is_command]
        before = mine[max(prompts, default=-1) + 1 : start]
        return [message for message in before if message.role == "assistant" or message.is_command] + mine[start:]

    def prompts(self, workspace_id: str, session_id: str, limit: int) -> list[Message]:
        mine = self._messages_in(workspace_id, session_id)
        return [m for m in reversed(mine) if m.role == "user" and not m.is_command][:limit]

    def messages_of_run(self, workspace_id: str, session_id: str, run_id: str) -> list[Message]:
        return [message for message in self._messages_in(workspace_id, session_id) if message.run_id == run_id]

    def _messages_in(self, workspace_id: str, session_id: str) -> list[Message]:
        mine = [m for owner, m in self._messages.values() if (owner, m.session_id) == (workspace_id, session_id)]
        return [self._with_tail(message) for message in mine]

    def _with_tail(self, message: Message) -> Message:
        return grown(message, self._tails.get(message.id, ()))

    def run(self, workspace_id: str, run_id: str) -> RunRow | None:
        return self._runs.get((workspace_id, run_id))

    def runs(self, workspace_id: str, session_id: str, state: str, limit: int) -> list[Run]:
        mine = [row.run for (owner, _), row in self._runs.items() if owner == workspace_id]
        found = [r for r in mine if session_id in ("", r.session_id) and state in ("", r.state)]
        return sorted(found, key=lambda run: run.seq, reverse=True)[:limit]

    def open_runs(self, workspace_id: str) -> list[RunRow]:
        rows = [row for (owner, _), row in self._runs.items() if owner == workspace_id and not row.run.ended]
        return sorted(rows, key=lambda row: row.run.seq)

    def last_run_seq(self, workspace_id: str) -> int:
        return max((row.run.seq for (owner, _), row in self._runs.items() if owner == workspace_id), default=0)

    def early_cancels(self, workspace_id: str) -> list[PutEarlyCancel]:
        mine = [cancel for (owner, _), cancel in self._early.items() if owner == workspace_id]
        return sorted(mine, key=lambda cancel: cancel.until)

    def file_steps(self, workspace_id: str, session_id: str, run_ids: Sequence[str] | None) -> list[FileStep]:
        steps = []
        for number in self._versions_of(workspace_id, session_id):
            _, v = self._versions[number]
            before, after = (None if c is None else digest_of(c) for c in (v.before, v.after))
            before, after = before or v.before_mark or None, after or v.after_mark or None
            if run_ids is None or v.run_id in run_ids:
                kept = before is None or self.content(workspace_id, before) is not None
                steps.append(FileStep(v.run_id, v.message_id, v.path, before, after, v.mode, kept, v.origin))
        return steps

    def content(self, workspace_id: str, digest: str) -> bytes | None:
        kept = (_kept(self._versions[number][1]) for number in self._held)
        return next((contents[digest] for contents in kept if digest in contents), None)

    def spending(self, since_day: int, limit: int) -> list[SpendingRow]:
        rows = sorted((row for row in self._spending.values() if row.day >= since_day), key=lambda row: row[:3])
        return rows[::-1][:limit]

    def undos(self, workspace_id: str, *, pending: bool) -> list[UndoRow]:
        mine = [row for (owner, _), row in self._undos.items() if owner == workspace_id and not (pending and row.done)]
        return sorted(mine, key=lambda row: row.id)

    def close(self) -> None:
        pass


def _kept(version: PutFileVersion) -> dict[str, bytes]:
    contents = [content for content in (version.before, version.after) if content is not None]
    return {digest_of(content): content for content in contents if len(content) <= base.CONTENT_BYTES}


def _tokens(text: str) -> list[Token]:
    return [Token(found.start(), found.end(), _plain(found[0])) for found in re.finditer(r"[^\W_]+", text)]


def _plain(word: str) -> str:
    """Without case and accents."""
    return "".join(c for c in unicodedata.normalize("NFD", word.casefold()) if not unicodedata.combining(c))


def _has_all(text: str, wanted: Sequence[Phrase]) -> bool:
    tokens = _tokens(text)
    return bool(wanted) and all(any(phrase.matches(tokens, place) for place in range(len(tokens))) for phrase in wanted)
