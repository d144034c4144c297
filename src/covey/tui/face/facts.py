"""What the shell tells the face, beside what the terminal sends: what became of effects, and what the view saw."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from covey.protocol.changes import SessionChanges
from covey.protocol.extensions import ExtensionView
from covey.protocol.jobs import JobView
from covey.protocol.messages import Session, SessionMode
from covey.protocol.requests import ProviderInfo, UndoReceipt
from covey.protocol.runs import RunComplete
from covey.protocol.search import SearchHit
from covey.tui.face.composer import PromptToken, Suggestion
from covey.tui.inputs import TerminalInput


class Looked(Struct, frozen=True):
    """The view has changed, or time has passed: the face looks at it again."""


class Said(Struct, frozen=True):
    """A sentence for the user, shown for a while."""

    text: str
    kind: Literal["note", "warning", "error"] = "note"


class RunEnded(Struct, frozen=True):
    terminal: RunComplete


class CancelDone(Struct, frozen=True):
    """The receipt of a cancel: how many runs it covers; None: it did not reach the server."""

    covered: int | None


class FilesFound(Struct, frozen=True):
    query: str
    files: tuple[Suggestion, ...]


class ModelsLoaded(Struct, frozen=True):
    providers: tuple[ProviderInfo, ...]


class JobsLoaded(Struct, frozen=True):
    jobs: tuple[JobView, ...]


class ExtensionsLoaded(Struct, frozen=True):
    extensions: tuple[ExtensionView, ...]


class ChangesLoaded(Struct, frozen=True):
    changes: SessionChanges


class TextFound(Struct, frozen=True):
    """Where words were said, the newest first."""

    words: str
    hits: tuple[SearchHit, ...]


class FoundFurtherUp(Struct, frozen=True):
    """Messages that are not loaded, and in which all these words were said: the newest first."""

    words: str
    message_ids: tuple[str, ...]


class BackLoaded(Struct, frozen=True):
    """Older messages have come, because words may be in them."""


class JobLoaded(Struct, frozen=True):
    job: JobView


class SessionsPaged(Struct, frozen=True):
    """Older sessions than the view has."""

    sessions: tuple[Session, ...]


class CommandsLoaded(Struct, frozen=True):
    """Commands of the workspace: skills, prompts of servers, the user's own."""

    commands: tuple[Suggestion, ...]


class UndoPreviewed(Struct, frozen=True):
    run_id: str
    receipt: UndoReceipt


class Undone(Struct, frozen=True):
    receipt: UndoReceipt


class QueuedChanged(Struct, frozen=True):
    """An edit of a queued prompt was taken; `text`: the prompt, to be edited."""

    run_id: str
    then: Literal["", "edit", "edited"]
    text: str = ""


class EditTooLate(Struct, frozen=True):
    """The prompt had begun, or was gone: the edit does not count."""

    run_id: str
    why: str


class Edited(Struct, frozen=True):
    """What came out of the external editor."""

    text: str


class FileRead(Struct, frozen=True):
    """A file that comes along with the prompt; None: it is none, and what was typed stays text."""

    token: PromptToken | None
    as_typed: str = ""


class DraftFound(Struct, frozen=True):
    session_id: str
    text: str
    tokens: tuple[tuple[str, PromptToken], ...]


class HistoryLoaded(Struct, frozen=True):
    prompts: tuple[str, ...]


class SearchFound(Struct, frozen=True):
    """Which place is shown of what was looked for, and how many there are; 0: none."""

    number: int
    total: int


class Unsendable(Struct, frozen=True):
    """A prompt that could not become a run of a new session: it comes back."""

    text: str
    why: str
    new_model: str = ""
    new_mode: SessionMode = "ask"
    """These two: what was chosen for the session, and still is."""


class Pointed(Struct, frozen=True):
    """A click on something that can be chosen."""

    what: Literal["item", "choice", "suggestion", "session", "queued"]
    number: int = 0
    id: str = ""


Fact = (
    Looked
    | Said
    | RunEnded
    | CancelDone
    | FilesFound
    | ModelsLoaded
    | JobsLoaded
    | ExtensionsLoaded
    | ChangesLoaded
    | TextFound
    | JobLoaded
    | SessionsPaged
    | CommandsLoaded
    | UndoPreviewed
    | Undone
    | QueuedChanged
    | EditTooLate
    | Edited
    | FileRead
    | DraftFound
    | HistoryLoaded
    | SearchFound
    | FoundFurtherUp
    | BackLoaded
    | Unsendable
)
FaceInput = TerminalInput | Pointed | Fact
