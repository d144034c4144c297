"""A group of changes as the arguments of `covey_commit`. Pure."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

import msgspec

from covey.protocol.changes import Origin
from covey.protocol.messages import Message, Session
from covey.protocol.runs import Run
from covey.store import base
from covey.store.base import (
    AppendText,
    Change,
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
    SetMark,
    UpdateRun,
    Write,
    digest_of,
)
from covey.store.search_text import Token, is_searchable, searched_text
from covey.store.spending import AddSpending

DROP_BATCH = 500
"""Messages, and versions of files, that are removed in one transaction; the rest of a dropped session goes later."""
CHILD, ARCHIVED = 1, 2
"""What a shelf adds up: where a session is listed."""
WORD_LENGTH = 200
"""Of a word that is searched: nobody types more, and PostgreSQL takes no more than 2 kB."""
ENDED, CANCELLED = 1, 2

_encode = msgspec.json.Encoder().encode


class PgWrite(NamedTuple):
    """One write, in the columns of `covey_write`."""

    kind: str
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    e: str | None = None
    n: int | None = None
    m: int | None = None
    x: bytes | None = None
    y: bytes | None = None


@dataclass(slots=True)
class Group:
    """Changes that are written together. Each workspace of them is named once, in the order of its id."""

    changes: Sequence[Change]
    workspaces: list[str] = field(init=False)
    fences: dict[str, int] = field(init=False)
    """By workspace, the fence of its changes. Raises Fenced if they differ: then some are of a former owner."""

    def __post_init__(self) -> None:
        self.workspaces = sorted({change.workspace_id for change in self.changes})
        self.fences = {change.workspace_id: change.fence for change in self.changes}
        for change in self.changes:
            if change.fence != self.fences[change.workspace_id]:
                raise Fenced(f"the workspace {change.workspace_id} was lost in between")

    def columns(self) -> list[list[Any]]:
        """The arrays: of which workspace each change is, the writes, the events."""
        places = {workspace_id: place for place, workspace_id in enumerate(self.workspaces, 1)}
        writes = [
            (number, *row)
            for number, change in enumerate(self.changes, 1)
            for write in change.writes
            for row in rows_of(write)
        ]
        events = [
            (number, event.session_id, encoded)
            for number, change in enumerate(self.changes, 1)
            for event, encoded in zip(change.events, change.encoded, strict=True)
        ]
        of_changes = [places[change.workspace_id] for change in self.changes]
        return [of_changes, *_turned(writes, 1 + len(PgWrite._fields)), *_turned(events, 3)]


def _turned(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def rows_of(write: Write) -> Iterator[PgWrite]:
    match write:
        case PutMessage(message):
            yield _message(message)
        case AppendText(message_id, pieces):
            for piece in pieces:
                text = piece.text.encode("utf-8", "surrogatepass")
                yield PgWrite("tail", message_id, piece.kind, n=piece.part, m=piece.offset, x=text)
        case InsertRun(row):
            run = row.run
            yield PgWrite(
                "new run", run.run_id, run.session_id, run.state, row.digest,
                n=run.seq, m=_flags(run), x=_encode(run), y=_encode(row.attachments),
            )  # fmt: skip
        case UpdateRun(run):
            yield PgWrite("run", run.run_id, c=run.state, m=_flags(run), x=_encode(run))
        case PutSession(session):
            yield _session(session)
        case SetMark(session_id, mark):
            yield PgWrite("mark", session_id, n=mark)
        case PutEarlyCancel(run_id, until):
            yield PgWrite("early cancel", run_id, c=repr(until))
        case AddSpending(day, model, usage):
            used = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cost)
            yield PgWrite("spending", model, c=_encode(used).decode(), n=day)
        case PutFileVersion() | DropMessages() | DropSession() | PutUndo() | PutWorkspace():
            yield from _rare_rows(write)
        case _:
            assert_never(write)


def _rare_rows(write: PutFileVersion | DropMessages | DropSession | PutUndo | PutWorkspace) -> Iterator[PgWrite]:
    match write:
        case PutFileVersion():
            yield from _version(write)
        case DropMessages(session_id, message_ids):
            for message_id in message_ids:
                yield PgWrite("drop message", session_id, message_id)
        case DropSession(session_id):
            yield PgWrite("drop session", session_id, n=DROP_BATCH)
        case PutUndo(row):
            yield PgWrite("undo", row.id, row.session_id, n=int(row.done), x=_encode(row))
        case PutWorkspace(workspace):
            yield PgWrite("workspace", workspace.id, workspace.path, n=workspace.epoch, m=workspace.created_at)
        case _:
            assert_never(write)


def _flags(run: Run) -> int:
    return ENDED * run.ended + CANCELLED * run.is_being_cancelled


def _message(message: Message) -> PgWrite:
    searched = words_of(searched_text(message)) if is_searchable(message) else None
    is_prompt = message.role == "user" and not message.is_command
    return PgWrite(
        "message", message.id, message.session_id, message.run_id, message.role, searched,
        n=int(is_prompt), x=_encode(message),
    )  # fmt: skip


def _session(session: Session) -> PgWrite:
    shelf = CHILD * bool(session.parent_session_id) + ARCHIVED * (session.archived_at is not None)
    return PgWrite(
        "session", session.id, session.parent_session_id or "", e=words_of(session.title),
        n=session.updated_at, m=shelf, x=_encode(session),
    )  # fmt: skip


def _version(version: PutFileVersion) -> Iterator[PgWrite]:
    contents = {digest_of(content): content for content in (version.before, version.after) if content is not None}
    kept = {digest: content for digest, content in contents.items() if len(content) <= base.CONTENT_BYTES}
    for digest, content in kept.items():
        yield PgWrite("blob", digest, x=content)
    digests = {content: digest for digest, content in contents.items()}
    before, after = (None if content is None else digests[content] for content in (version.before, version.after))
    # An empty content counts too: a size of 0 means that nothing is kept.
    size = sum(max(1, len(content)) for content in kept.values())
    yield PgWrite(
        "file version", version.session_id, version.run_id, version.message_id,
        before or version.before_mark or None, after or version.after_mark or None,
        n=version.mode, m=size, x=os.fsencode(version.path),
        y=_encode(version.origin) if version.origin != Origin() else None,
    )  # fmt: skip
    if kept:
        yield PgWrite("bound", version.session_id, n=base.SESSION_CONTENT_BYTES)


# ── words ──


def tokens(text: str) -> list[Token]:
    """The words of a text as they are compared: without case and accents."""
    return [Token(found.start(), found.end(), _plain(found[0])) for found in re.finditer(r"[^\W_]+", text)]


def _plain(word: str) -> str:
    folded = unicodedata.normalize("NFD", word[:WORD_LENGTH].casefold())
    return "".join(char for char in folded if not unicodedata.combining(char))


def words_of(text: str) -> str | None:
    """Each word once, with blanks in between; None if there is none."""
    return " ".join(dict.fromkeys(token.word for token in tokens(text) if token.word)) or None
