"""What the face wants done: values that its shell carries out. None of them is done here.

Structs of msgspec, which are made faster than dataclasses: there are many, and each is made at every start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from covey.protocol.messages import SessionMode
from covey.protocol.requests import PermissionAction, QuestionResponse
from covey.protocol.runs import Mode
from covey.tui.face.composer import Draft, PromptToken

Listed = Literal["models", "jobs", "sessions", "commands", "extensions"]


class Post(Struct, frozen=True):
    """A prompt to the session that is shown or, if none is, to a new one."""

    text: str
    mode: Mode | None = None
    files: tuple[PromptToken, ...] = ()
    new_model: str = ""
    new_mode: SessionMode = "ask"
    """For a new session."""


class RunOwnCommand(Struct, frozen=True):
    """A command of the user's own; `share`: the model sees it with the next prompt."""

    command: str
    share: bool


class Cancel(Struct, frozen=True):
    session_id: str


class AnswerPermission(Struct, frozen=True):
    ask_id: str
    action: PermissionAction
    reason: str = ""
    network: bool = False
    unsandboxed: bool = False


class AllowEdits(Struct, frozen=True):
    """Yes to an edit, and to all others in its session."""

    ask_id: str
    session_id: str


class AnswerBatch(Struct, frozen=True):
    """Without responses: the agent goes on without."""

    ask_id: str
    responses: tuple[QuestionResponse, ...]


class DecideApproval(Struct, frozen=True):
    ask_id: str
    approve: bool


class GoToSession(Struct, frozen=True):
    """Another one; '': none, for a new one."""

    session_id: str


class EditQueued(Struct, frozen=True):
    """A change of a queued prompt. `then`: what becomes of the composer when it is done."""

    session_id: str
    run_id: str
    change: Mapping[str, Any]
    then: Literal["", "edit", "edited"] = ""


class DropQueued(Struct, frozen=True):
    session_id: str
    run_id: str


class DropUnsent(Struct, frozen=True):
    """A prompt that was refused, or waits for the connection."""

    run_id: str


class FindFiles(Struct, frozen=True):
    query: str


class LoadList(Struct, frozen=True):
    what: Listed


class LoadChanges(Struct, frozen=True):
    """What a session has changed in files."""

    session_id: str


class ChangeSession(Struct, frozen=True):
    session_id: str
    title: str | None = None
    model: str | None = None
    mode: SessionMode | None = None
    archived: bool | None = None


class DeleteSession(Struct, frozen=True):
    session_id: str


class ExportSession(Struct, frozen=True):
    session_id: str
    title: str


class Summarize(Struct, frozen=True):
    session_id: str
    focus: str


class Undo(Struct, frozen=True):
    """Without `really` nothing is changed: only what would be is asked for."""

    session_id: str
    run_id: str
    really: bool = False
    keep_files: bool = False


class Fork(Struct, frozen=True):
    """With all messages up to this one; the prompt after it becomes the draft of the fork."""

    session_id: str
    message_id: str
    prompt: str = ""


class FindText(Struct, frozen=True):
    """Words, in all sessions of the workspace."""

    words: str


class FindFurtherUp(Struct, frozen=True):
    """Words, in messages of a session that are not loaded."""

    session_id: str
    words: str


class LoadBackTo(Struct, frozen=True):
    """Older messages of a session, up to this one."""

    session_id: str
    message_id: str


class ShowJob(Struct, frozen=True):
    job_id: str


class KillJob(Struct, frozen=True):
    job_id: str


class Copy(Struct, frozen=True):
    text: str
    about: str
    """What it is, for people: "the answer"."""


class Notify(Struct, frozen=True):
    """The user does not look: the terminal may say so."""

    title: str
    text: str


class SaveDraft(Struct, frozen=True):
    session_id: str
    draft: Draft


class SaveHistory(Struct, frozen=True):
    text: str


class OpenEditor(Struct, frozen=True):
    text: str


class ReadClipboard(Struct, frozen=True):
    """An image, where a program of the system can give it."""


class ReadFile(Struct, frozen=True):
    """A path that was pasted or dropped: if it is an image, it comes along."""

    path: str
    as_typed: str


class Scroll(Struct, frozen=True):
    """What a key means for the conversation that is shown."""

    intent: str


class Search(Struct, frozen=True):
    query: str
    step: int = 0
    """To the next hit (1), the one before (-1), or only the query has changed."""


class Settle(Struct, frozen=True):
    """A setting of this face, by its name: `theme`, `mouse`."""

    name: Literal["theme", "mouse"]
    value: str


class LogIn(Struct, frozen=True):
    """The terminal is lent to `covey login`."""

    provider: str


class UseEmbedded(Struct, frozen=True):
    """The terminal is lent to `covey models get`, which asks before it downloads anything."""


class ReadConfigAgain(Struct, frozen=True):
    """The server looks again for models and keys."""


class Do(Struct, frozen=True):
    """What the shell does to itself."""

    what: Literal["quit", "suspend", "redraw"]


ConversationEffect = Scroll | Search
"""Done by the face itself, which knows the conversation that is shown."""
ShellEffect = SaveDraft | SaveHistory | Settle | Do
LocalEffect = Copy | Notify | OpenEditor | ReadClipboard | ReadFile | LogIn | UseEmbedded
"""What needs this machine, and no server."""
IntentEffect = Post | Cancel | AnswerPermission | AllowEdits | AnswerBatch | DecideApproval | GoToSession | DropUnsent
"""What the follower sees to."""
SessionEffect = ChangeSession | DeleteSession | ExportSession | Summarize | Undo | Fork | RunOwnCommand
QueueEffect = EditQueued | DropQueued
SearchEffect = FindFiles | FindText | FindFurtherUp | LoadBackTo
LookupEffect = SearchEffect | LoadList | LoadChanges | ShowJob | KillJob | ReadConfigAgain
RequestEffect = SessionEffect | QueueEffect | LookupEffect
CarriedEffect = LocalEffect | IntentEffect | RequestEffect
Effect = ConversationEffect | ShellEffect | CarriedEffect
