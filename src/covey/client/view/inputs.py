"""What a view is fed with: facts of the connection, events, answers of the server, and what the user did.

Times come with the facts (unix seconds); nobody here reads a clock. An answer carries the number of its load.
"""

from __future__ import annotations

from msgspec import Struct

from covey.protocol.events import Event, PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.messages import Message, Session
from covey.protocol.requests import PostPrompt, WorkspaceView
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run

# ── the connection ──


class Connecting(Struct, frozen=True, tag_field="input", tag="connecting"):
    """The first attempt begins."""

    at: float


class Connected(Struct, frozen=True, tag_field="input", tag="connected"):
    """The event stream is open. It resumes after the last id that the view has, if it has one."""

    at: float


class Disconnected(Struct, frozen=True, tag_field="input", tag="disconnected"):
    at: float
    why: str = ""


class Received(Struct, frozen=True):
    """An event of the stream. In JSON: `{"input": "event", "id": ..., "event": <as on the wire>}`."""

    event: Event
    id: str = ""


# ── answers of the server ──


class SessionsLoaded(Struct, frozen=True, tag_field="input", tag="sessions_loaded"):
    load: int
    sessions: tuple[Session, ...]


class RunsLoaded(Struct, frozen=True, tag_field="input", tag="runs_loaded"):
    load: int
    runs: tuple[Run, ...]


class MessagesLoaded(Struct, frozen=True, tag_field="input", tag="messages_loaded"):
    load: int
    messages: tuple[Message, ...]
    has_older: bool = False
    """There are messages before the first of these."""


class AsksLoaded(Struct, frozen=True, tag_field="input", tag="asks_loaded"):
    load: int
    permissions: tuple[PermissionRequest, ...] = ()
    questions: tuple[QuestionBatchRequest, ...] = ()
    approvals: tuple[ApprovalRequest, ...] = ()


class WorkspaceLoaded(Struct, frozen=True, tag_field="input", tag="workspace_loaded"):
    load: int
    workspace: WorkspaceView


class PromptAccepted(Struct, frozen=True, tag_field="input", tag="prompt_accepted"):
    receipt: PromptReceipt


class PromptRefused(Struct, frozen=True, tag_field="input", tag="prompt_refused"):
    """The server will not have it. No answer at all is no refusal: it is sent again after the next connection."""

    run_id: str
    message: str
    code: str = ""


class CancelAnswered(Struct, frozen=True, tag_field="input", tag="cancel_answered"):
    session_id: str
    receipt: CancelReceipt
    run_id: str = ""


class CancelFailed(Struct, frozen=True, tag_field="input", tag="cancel_failed"):
    """The server will not have it, or it is not known whether it does. It may be asked for again."""

    session_id: str
    run_id: str = ""


class AnswerFailed(Struct, frozen=True, tag_field="input", tag="answer_failed"):
    """The answer to an ask was not taken, and the ask is still open as far as anybody knows."""

    ask_id: str


# ── what the user did ──


class SessionOpened(Struct, frozen=True, tag_field="input", tag="session_opened"):
    """The face shows this session now ('': none)."""

    session_id: str


class OlderWanted(Struct, frozen=True, tag_field="input", tag="older_wanted"):
    """The user scrolled to the first message that is known."""


class PromptGiven(Struct, frozen=True, tag_field="input", tag="prompt_given"):
    """The prompt has a run id of the face's own making: by it, it goes once, however often it is sent."""

    prompt: PostPrompt
    at: float = 0.0


class PromptDropped(Struct, frozen=True, tag_field="input", tag="prompt_dropped"):
    """The user took a refused prompt back."""

    run_id: str


class CancelAsked(Struct, frozen=True, tag_field="input", tag="cancel_asked"):
    """Of one run or, with '', of all that is open in the session."""

    session_id: str
    run_id: str = ""
    at: float = 0.0


class AnswerGiven(Struct, frozen=True, tag_field="input", tag="answer_given"):
    """The user answered an ask, and the shell is sending it."""

    ask_id: str


ConnectionFact = Connecting | Connected | Disconnected
LoadAnswer = SessionsLoaded | RunsLoaded | MessagesLoaded | AsksLoaded | WorkspaceLoaded
SendAnswer = PromptAccepted | PromptRefused | CancelAnswered | CancelFailed | AnswerFailed
UserIntent = SessionOpened | OlderWanted | PromptGiven | PromptDropped | CancelAsked | AnswerGiven
ViewInput = Received | ConnectionFact | LoadAnswer | SendAnswer | UserIntent
