"""What a store must do. SQLite is the default; the conformance suite in tests/store is what another one has to pass.

A `Change` is written whole or not at all: rows, and the events about them, in one transaction. Events get the
next numbers of their workspace at that moment, so the log has no gaps and never mentions what was not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from covey.protocol.changes import Origin
from covey.protocol.errors import NotFound, Unavailable
from covey.protocol.events import Event
from covey.protocol.growth import TextPiece
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.runs import Run
from covey.store.search_text import Hits
from covey.store.spending import AddSpending, SpendingRow

if TYPE_CHECKING:
    from covey.lifecycle.undo import FileStep

Place = tuple[int, str]
"""Where a session stands among others (`session_order.py`): when it was changed last, and its id."""
CONTENT_BYTES = 5 * 1024 * 1024
"""A larger content of a file is not kept, only its digest: no tool of ours writes one, and source files are smaller."""
SESSION_CONTENT_BYTES = 128 * 1024 * 1024
"""What the versions of a session's files may hold together; beyond it the oldest contents go, and stay gone."""


class StoreFailed(Unavailable):
    """The store could not write or read. `passing`: disk full, locked or an I/O error, which may be over soon."""

    code = "store_unavailable"

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class Fenced(StoreFailed):
    """Somebody else owns the workspace by now: what was decided here is not written, and never will be."""

    code = "workspace_moved"

    def __init__(self, message: str) -> None:
        super().__init__(message, passing=False)


class SearchUnavailable(Unavailable):
    """The SQLite of this machine was built without full-text search."""

    code = "search_unavailable"


def unknown_message(message_id: str, where: str = "this session") -> NotFound:
    """Nothing can come after a message that is not there; all messages would be the wrong answer."""
    return NotFound(f"there is no message {message_id!r} in {where}", "message_not_found")


def unknown_session(session_id: str) -> NotFound:
    return NotFound(f"there is no session {session_id!r} in this workspace", "session_not_found")


def digest_of(content: bytes) -> str:
    """What a content of a file is known by."""
    return hashlib.sha256(content).hexdigest()


def prompt_digest(session_id: str, prompt: str, attachments: Sequence[Attachment], options: object) -> str:
    """What makes two posts the same (R14), but for how they wait: the default of that depends on who made the id."""
    return digest_of(msgspec.json.encode((session_id, prompt, attachments, options)))


class RunExists(Exception):
    """A run with this id is in the store already."""


class WorkspaceRow(msgspec.Struct, frozen=True):
    id: str
    path: str
    epoch: int
    created_at: int


class RunRow(msgspec.Struct, frozen=True):
    """A run with what clients do not see of it."""

    run: Run
    digest: str
    """Whether a second post of the same run id has the same content (R14)."""
    attachments: tuple[Attachment, ...] = ()


class UndoFile(msgspec.Struct, frozen=True):
    """A file that an undo restores. Contents are known by their digest, None where there is no file."""

    path: bytes
    """As the system has it: a name need not be UTF-8."""
    found: str | None
    target: str | None
    mode: int = 0
    executable: bool | None = None
    """Whether it may be executed then; None: that stays as it is."""


class UndoRow(msgspec.Struct, frozen=True):
    """Turns that were taken back. Until it is done, some of its files may still have to be restored."""

    id: str
    session_id: str
    run_ids: tuple[str, ...]
    at: float
    files: tuple[UndoFile, ...] = ()
    done: bool = False


class PutWorkspace(msgspec.Struct, frozen=True):
    row: WorkspaceRow


class PutSession(msgspec.Struct, frozen=True):
    session: Session


class DropSession(msgspec.Struct, frozen=True):
    """Remove a session with its messages, versions of files and undos.

    Its runs stay: their ids may be posted again, and have an answer.
    """

    session_id: str


class DropMessages(msgspec.Struct, frozen=True):
    """Remove some messages of a session: their turns were undone."""

    session_id: str
    message_ids: tuple[str, ...]


class PutFileVersion(msgspec.Struct, frozen=True):
    """A tool call or a command has changed a file. None: there was, or is, no file.

    Without a path it says that a command may have changed more than is known (`origin.missed`).
    """

    session_id: str
    run_id: str
    path: str
    """Absolute and free of links, as `os.fsdecode` gives it."""
    before: bytes | None
    after: bytes | None
    message_id: str = ""
    """The message with the result of the call."""
    mode: int = 0
    """Permission bits of the file before, if they are known."""
    before_mark: str = ""
    after_mark: str = ""
    """What a content is known by that is not given here, and not kept."""
    origin: Origin = Origin()


class PutUndo(msgspec.Struct, frozen=True):
    """What an undo is about to do, or that it has done it."""

    row: UndoRow


class InsertRun(msgspec.Struct, frozen=True):
    """Must be the first write of its change: if the id exists, nothing of the change is written (RunExists)."""

    row: RunRow


class UpdateRun(msgspec.Struct, frozen=True):
    """Everything of a run that may change; its attachments and digest never do."""

    run: Run


class PutMessage(msgspec.Struct, frozen=True):
    """The whole message, as it is now. Text saved by `AppendText` is part of it and not needed any more."""

    message: Message


class AppendText(msgspec.Struct, frozen=True):
    """Text by which a message in progress has grown since the last time."""

    message_id: str
    pieces: tuple[TextPiece, ...]


class SetMark(msgspec.Struct, frozen=True):
    """The session's cancel mark: it only rises."""

    session_id: str
    mark: int


class PutEarlyCancel(msgspec.Struct, frozen=True):
    run_id: str
    until: float


Write = (
    PutWorkspace
    | PutSession
    | DropSession
    | DropMessages
    | InsertRun
    | UpdateRun
    | PutMessage
    | AppendText
    | SetMark
    | PutEarlyCancel
    | PutFileVersion
    | PutUndo
    | AddSpending
)


class Change(msgspec.Struct, frozen=True):
    """What is written together. `encoded` is the JSON of each event."""

    workspace_id: str
    writes: tuple[Write, ...]
    events: tuple[Event, ...] = ()
    encoded: tuple[bytes, ...] = ()
    durable: bool = True
    """Somebody was promised that this survives a power cut."""
    fence: int = 0  # the number under which its workspace was owned then; 0: one server, nobody to fence off


class LogBounds(NamedTuple):
    """The events that the log holds: all with `floor` < seq <= `last`."""

    floor: int
    last: int


class StoredEvent(NamedTuple):
    seq: int
    encoded: bytes


class SessionRow(NamedTuple):
    session: Session
    mark: int


class Store(Protocol):
    """Called from the journal's threads only. Writes come from one thread; reads may come from several."""

    while_away: Callable[[], None]  # called now and then while a commit waits to learn what became of it

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        """Write the changes in order, as one group: all or, with StoreFailed, none.

        Gives, for each, the seq of its first event; RunExists for one that was left out because its run is there.
        """
        ...

    def trim_events(self, workspace_id: str, keep: int) -> None:
        """Forget the oldest events, so that about `keep` remain: some now, and if they are many, the rest in upkeep."""
        ...

    def upkeep(self) -> bool:
        """Do a small, bounded piece of what nobody waits for; False: there is nothing left. A writing call."""
        ...

    def is_lost(self) -> bool:
        """Whether the file was deleted or replaced while it is open: what is written now would be gone."""
        ...

    def workspaces(self) -> list[WorkspaceRow]: ...

    def log_bounds(self, workspace_id: str) -> LogBounds: ...

    def events(self, workspace_id: str, after: int, upto: int, session_id: str, limit: int) -> list[StoredEvent]:
        """Events with after < seq <= upto; of one session (and of none) if `session_id` is given.

        At most `limit`, and fewer if they are large: a very large one comes alone. None only if there are no more.
        """
        ...

    def next_size(self, workspace_id: str, after: int, upto: int, session_id: str) -> int:
        """How many bytes the first of those events has, 0 if there is none: known without reading it."""
        ...

    def event_sizes(self, workspace_id: str, limit: int) -> list[int]:
        """Bytes of the newest events, the newest first."""
        ...

    def newest_id(self, workspace_id: str) -> str:
        """The highest id of the workspace's messages, undos, and sessions, also recently deleted ones.

        An undo is younger than the messages that it took away.
        """
        ...

    def sessions(self, workspace_id: str) -> list[SessionRow]:
        """All sessions, the newest first."""
        ...

    def session(self, workspace_id: str, session_id: str) -> SessionRow | None: ...

    def child_sessions(self, workspace_id: str, session_id: str) -> list[SessionRow]:
        """Those in which agents worked for this one, the oldest first; not those of these agents' own agents."""
        ...

    def newest_mark(self, workspace_id: str) -> int:
        """The highest cancel mark of all sessions, 0 if there is none."""
        ...

    def sessions_page(
        self, workspace_id: str, before: Place, limit: int, *, children: bool, archived: bool
    ) -> list[SessionRow]:
        """The newest sessions after a place. `children`: also those in which agents work; `archived`: also those."""
        ...

    def session_size(self, workspace_id: str, session_id: str) -> int:
        """Bytes of its messages."""
        ...

    def search(self, workspace_id: str, query: str, limit: int, before: str = "") -> Hits:
        """Titles and messages with all words of the query; the last may be the beginning of a word.

        At most `limit` of each. With `before`, only messages, those older than this one; NotFound if it is not there.
        A query is words, never syntax. Raises SearchUnavailable.
        """
        ...

    def messages(self, workspace_id: str, session_id: str, after: str, limit: int) -> list[Message]:
        """In order, with the text that was saved of those in progress. `limit` 0: all.

        Those after the message `after`, if it is given: NotFound if there is no such message.
        """
        ...

    def messages_before(self, workspace_id: str, session_id: str, before: str, limit: int) -> list[Message]:
        """The last `limit` messages before this one ('': of all), in order: the page that ends there.

        NotFound if there is no such message.
        """
        ...

    def messages_since(self, workspace_id: str, session_id: str, message_id: str) -> list[Message]:
        """What decides how a model sees the session from this message on: all messages, if it is not there.

        The message and all after it; and before them the answers since the last prompt, for how the turn of the
        message ended may be known from one of those.
        """
        ...

    def messages_of_run(self, workspace_id: str, session_id: str, run_id: str) -> list[Message]:
        """In order, with the text that was saved of those in progress."""
        ...

    def run(self, workspace_id: str, run_id: str) -> RunRow | None: ...

    def runs(self, workspace_id: str, session_id: str, state: str, limit: int) -> list[Run]:
        """The newest first; '' for any session or state."""
        ...

    def open_runs(self, workspace_id: str) -> list[RunRow]:
        """Runs without a terminal event, in the order of their seq."""
        ...

    def last_run_seq(self, workspace_id: str) -> int: ...

    def early_cancels(self, workspace_id: str) -> list[PutEarlyCancel]: ...

    def prompts(self, workspace_id: str, session_id: str, limit: int) -> list[Message]:
        """The newest messages of people in a session, the newest first, without their commands."""
        ...

    def file_steps(self, workspace_id: str, session_id: str, run_ids: Sequence[str] | None) -> list[FileStep]:
        """What these runs, or all (None), have changed, in order."""
        ...

    def content(self, workspace_id: str, digest: str) -> bytes | None:
        """A content of a file of this workspace; None if it is not kept, or not what its digest says."""
        ...

    def undos(self, workspace_id: str, *, pending: bool) -> list[UndoRow]:
        """The oldest first; only those that are not done, if they are `pending`."""
        ...

    def spending(self, since_day: int, limit: int) -> list[SpendingRow]:
        """Of all workspaces, from this day on, the newest first."""
        ...

    def close(self) -> None: ...
