"""What a view keeps of each thing that it knows: the server's own value, and what events and the user added to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from covey.protocol.events import AgentEvent, PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Covered, Run, RunState
from covey.protocol.who import ClientKind

LinkState = Literal["connecting", "connected", "lost"]
AskOutcome = Literal["allowed", "denied", "answered", "not_answered", "closed"]
"""`closed`: nobody answered it in time, because its run or its session ended."""


@dataclass(slots=True)
class Link:
    """The event stream."""

    state: LinkState = "connecting"
    since: float = 0.0
    """When it got into this state. While it is lost: when it was lost, however often it was tried again."""
    why: str = ""
    last_event_id: str = ""
    gap: str = ""
    """Why events are missing, until everything has been loaded again."""


@dataclass(slots=True)
class RunRecord:
    """A run, and what its own value does not say."""

    run: Run
    retry: AgentEvent | None = None
    """It waits before it tries again."""
    warning: AgentEvent | None = None
    """The newest one; not shown in the state, as it passes."""
    key_refused: bool = False
    """The provider refused the key."""


@dataclass(slots=True)
class SessionRecord:
    """A session, its runs, and what the user has seen of it."""

    session: Session | None = None
    """None: only events about its runs have come so far."""
    runs: dict[str, RunRecord] = field(default_factory=dict)
    """The open ones; of the session that is shown, also those that have ended."""
    ended_seq: int = 0
    """The seq of the newest run that is known to have ended."""
    ended_as: RunState | Literal[""] = ""
    """How that one ended."""
    seen_seq: int = 0
    """`ended_seq` when the user last looked."""

    @property
    def open_runs(self) -> list[Run]:
        return [record.run for record in self.runs.values() if not record.run.ended]

    @property
    def is_busy(self) -> bool:
        """A run is under way, or about to be: not if all that is left is parked."""
        return any(not run.parked_by for run in self.open_runs)

    @property
    def is_unread(self) -> bool:
        return self.ended_seq > self.seen_seq

    @property
    def has_failed(self) -> bool:
        """Its newest run did, and none has begun since."""
        return self.ended_as in ("failed", "interrupted") and not any(run.started_at for run in self.open_runs)

    @property
    def active(self) -> RunRecord | None:
        """The run that is under way."""
        return next((known for known in self.runs.values() if known.run.state == "active"), None)

    @property
    def can_be_steered(self) -> bool:
        """A prompt that is to join what runs would: its run lets others in, or none is under way yet."""
        return self.active is None or not self.active.run.effective_options.keep_others_out

    def joins(self, run: Run) -> bool:
        """A prompt that waits becomes part of the turn under way."""
        return self.active is not None and run.joins(self.active.run)

    @property
    def queue(self) -> list[Run]:
        """The prompts that wait, in the order in which they will run."""
        waiting = [run for run in self.open_runs if run.state == "queued"]
        return sorted(waiting, key=lambda run: (run.place if run.place is not None else run.seq, run.seq))

    def ended(self, run: Run) -> None:
        if run.seq >= self.ended_seq:
            self.ended_seq, self.ended_as = run.seq, run.state

    def forget_ended_runs(self) -> None:
        self.runs = {run_id: record for run_id, record in self.runs.items() if not record.run.ended}


AskRequest = PermissionRequest | QuestionBatchRequest | ApprovalRequest


@dataclass(slots=True)
class OpenAsk:
    """A permission request, a batch of questions or an approval that nobody has answered."""

    request: AskRequest
    is_being_answered: bool = False
    """The user here has answered it, and the server has not said yet that it counts."""

    @property
    def kind(self) -> Literal["permission", "question", "approval"]:
        match self.request:
            case PermissionRequest():
                return "permission"
            case QuestionBatchRequest():
                return "question"
            case ApprovalRequest():
                return "approval"
            case _:
                assert_never(self.request)

    @property
    def session_id(self) -> str:
        """Where it is asked; '': an approval concerns the whole workspace."""
        return "" if isinstance(self.request, ApprovalRequest) else self.request.session_id

    @property
    def run_id(self) -> str | None:
        """Of the run that waits; None: not known, or none does."""
        return None if isinstance(self.request, ApprovalRequest) else self.request.run_id


@dataclass(frozen=True, slots=True)
class ClosedAsk:
    request: AskRequest
    outcome: AskOutcome
    by: str | None = None
    """Who answered, as people call them; None: nobody did, or they said no name."""


@dataclass(slots=True)
class SentPrompt:
    """A prompt that the user has given and that is no run yet, as far as is known here."""

    prompt: PostPrompt
    given_at: float
    state: Literal["sending", "accepted", "refused"] = "sending"
    error: str = ""


@dataclass(slots=True)
class SentCancel:
    """A cancel that the user asked for. It is gone when all that it covers has ended."""

    session_id: str
    run_id: str
    asked_at: float
    covered: dict[str, Covered] | None = None
    """What it still has to end; None: the server has not answered."""


@dataclass(frozen=True, slots=True)
class PresentClient:
    """Somebody who is attached to the workspace, as they say they are."""

    client_id: str
    session_id: str
    name: str | None
    kind: ClientKind | None
