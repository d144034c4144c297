"""Every event that a client can see, and the envelope in which it travels.

An event is written as `{"type": <what>, "payload": {"type": <change>, "payload": <value>}}`.
Durable events are in the workspace's log and have an id; the others (`message_delta`, `tool_output`, `presence`,
`mcp_event`, `lsp_event`, `skills_event`, `gap`) do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec

from covey.protocol.extensions import ApprovalNotification, ApprovalRequest, LspEvent, McpEvent, SkillsEvent
from covey.protocol.messages import Message, Session, Wire, decode_message
from covey.protocol.runs import Run, RunComplete
from covey.protocol.who import ClientKind

ChangeKind = Literal["created", "updated", "deleted"]
DeltaKind = Literal["text", "reasoning", "tool_input"]


class AgentEvent(Wire, frozen=True):
    type: Literal["error", "agent_finished", "re_authenticate", "retry", "warning"]
    session_id: str
    run_id: str
    session_title: str | None = None
    error: str | None = None
    """What went wrong for good. v1 clients take whatever has it for the failure of the run."""
    reason: str | None = None
    """Why it is tried again, with type `retry` (some servers had it in `error`); what to know, with type `warning`."""
    attempt: int | None = None
    retry_at: float | None = None
    """When the next attempt starts, in unix seconds: only with type `retry`."""


class PermissionRequest(Wire, frozen=True):
    """A tool call waits until somebody allows or denies it."""

    id: str
    session_id: str
    tool_call_id: str
    tool_name: str
    description: str
    action: str
    params: dict[str, Any]
    path: str
    """The directory of the workspace."""
    run_id: str | None = None
    reason: str | None = None
    """Why somebody is asked."""
    rules: tuple[str, ...] = ()
    """What `allow_always` would add to the user's allow rules for the directory `path`, and for no other.

    None: no rule can say exactly this.
    """
    prefix_rules: tuple[str, ...] = ()
    """What `allow_prefix` would add instead: the same command with any further words. None: that could be anything."""
    network: bool = False
    """It probably needs the network, or asks for it. It gets it only if the answer says so (`Grant.network`)."""
    sandbox: str | None = None
    """For a command: what it would run in, for people."""
    confined: bool = False
    """For a command: it runs in a sandbox that keeps it from the network."""
    asks_for: Literal["", "network", "everything"] = ""
    """For a command: the call itself asks for the network, or to run outside the sandbox. '': for neither.

    Clients that ask a person take a plain yes to `network` for one with the network, say so beside the choice, and send
    `Grant.network`. To leave the sandbox always takes a choice of its own.
    """

    @property
    def yes_has_network(self) -> bool:
        """Whether a person who says yes, and nothing else, gives it the network: what they were asked for."""
        return self.asks_for == "network"


class PermissionNotification(Wire, frozen=True):
    """Somebody was asked about a call (neither granted nor denied, without `permission_id`), or the answer."""

    tool_call_id: str
    granted: bool
    denied: bool
    session_id: str | None = None
    run_id: str | None = None
    permission_id: str | None = None
    answered_by: str | None = None

    @property
    def is_answer(self) -> bool:
        return self.granted or self.denied


class QuestionChoice(Wire, frozen=True):
    id: str
    label: str
    description: str | None = None


class QuestionItem(Wire, frozen=True):
    """One question of a batch."""

    id: str
    type: Literal["yes_no", "single_choice", "multi_choice", "free_text"]
    question: str
    description: str | None = None
    choices: tuple[QuestionChoice, ...] = ()


class QuestionBatchRequest(Wire, frozen=True):
    """What the agent wants to know from people before it goes on."""

    id: str
    session_id: str
    tool_call_id: str
    questions: tuple[QuestionItem, ...]
    run_id: str | None = None


class QuestionBatchNotification(Wire, frozen=True):
    """A batch is closed: somebody answered or refused it, or its run ended."""

    batch_id: str
    session_id: str | None = None
    run_id: str | None = None
    answered: bool = False
    answered_by: str | None = None


class File(Wire, frozen=True):
    """A file that a turn has changed, or an undo has restored: see the event's `change`. Its content is on the disk."""

    id: str
    session_id: str
    path: str
    created_at: int
    updated_at: int
    run_id: str | None = None


class ConfigChanged(Wire, frozen=True):
    workspace_id: str
    skip_permissions: bool | None = None


class MessageDelta(Wire, frozen=True):
    """Growth of one part of a message. `offset` counts the code points that the part already had."""

    message_id: str
    session_id: str
    run_id: str
    part: int
    kind: DeltaKind
    offset: int
    delta: str


class ToolOutputDelta(Wire, frozen=True):
    """What a running tool call, or a person's own command, has printed since. The result of the call, or the message
    of the command, is what counts once it is there. A command has no run: `run_id` is empty, and both other ids are
    that of its message.

    `offset` and `dropped` count bytes: those of the UTF-8 of all that was printed, with U+FFFD in the place of what is
    no UTF-8. `delta` begins at `offset`, and the `dropped` bytes before it are not sent.
    """

    session_id: str
    run_id: str
    message_id: str
    """The answer that has the call, or the message that the command will have."""
    tool_call_id: str
    offset: int
    delta: str
    dropped: int = 0


class Presence(Wire, frozen=True):
    """A client came, went, or looks at another session."""

    client_id: str
    session_id: str
    attached: bool
    name: str | None = None
    kind: ClientKind | None = None


class Gap(Wire, frozen=True):
    """History after the client's last event id is gone: reload over REST, then follow from `resume_from`."""

    reason: str
    resume_from: str


Payload = (
    Message
    | Session
    | Run
    | RunComplete
    | AgentEvent
    | PermissionRequest
    | PermissionNotification
    | QuestionBatchRequest
    | QuestionBatchNotification
    | ApprovalRequest
    | ApprovalNotification
    | File
    | ConfigChanged
    | MessageDelta
    | ToolOutputDelta
    | Presence
    | McpEvent
    | LspEvent
    | SkillsEvent
    | Gap
)

TYPES: dict[str, type[Any]] = {
    "message": Message,
    "session": Session,
    "run": Run,
    "run_complete": RunComplete,
    "agent_event": AgentEvent,
    "permission_request": PermissionRequest,
    "permission_notification": PermissionNotification,
    "question_batch_request": QuestionBatchRequest,
    "question_batch_notification": QuestionBatchNotification,
    "approval_request": ApprovalRequest,
    "approval_notification": ApprovalNotification,
    "file": File,
    "config_changed": ConfigChanged,
    "message_delta": MessageDelta,
    "tool_output": ToolOutputDelta,
    "presence": Presence,
    "mcp_event": McpEvent,
    "lsp_event": LspEvent,
    "skills_event": SkillsEvent,
    "gap": Gap,
}
WITHOUT_ID = frozenset({"message_delta", "tool_output", "presence", "mcp_event", "lsp_event", "skills_event", "gap"})
"""What is never stored, so that no stream resumes after it. All other types are durable."""
NAMES: dict[type[Any], str] = {cls: name for name, cls in TYPES.items()}


class Event(msgspec.Struct, frozen=True):
    """One event, out of its envelope: what changed, and which session it belongs to ('' = the whole workspace)."""

    change: ChangeKind
    payload: Payload
    session_id: str

    @property
    def type(self) -> str:
        return NAMES[type(self.payload)]


def created(payload: Payload) -> Event:
    return Event("created", payload, _session_of(payload))


def updated(payload: Payload) -> Event:
    return Event("updated", payload, _session_of(payload))


def deleted(payload: Payload) -> Event:
    return Event("deleted", payload, _session_of(payload))


def _session_of(payload: Payload) -> str:
    if isinstance(payload, Session):
        return payload.id
    return getattr(payload, "session_id", None) or ""


_encoder = msgspec.json.Encoder()


def encode_event(event: Event) -> bytes:
    """The JSON of the envelope: encoded once, then stored and sent as it is."""
    return _encoder.encode({"type": event.type, "payload": {"type": event.change, "payload": event.payload}})


class _Envelope(msgspec.Struct):
    """Both layers have this shape: what it is, or how it changed, and the rest."""

    type: str
    payload: msgspec.Raw


_CHANGES: dict[str, ChangeKind] = {change: change for change in get_args(ChangeKind)}
_envelope = msgspec.json.Decoder(_Envelope).decode
_decoders: dict[str, Callable[[msgspec.Raw], Any]] = {
    **{name: msgspec.json.Decoder(cls).decode for name, cls in TYPES.items()},
    "message": decode_message,
}


def decode_event(data: bytes | str) -> Event | None:
    """The event in `data`, or None when its type or its change is one that this version does not know."""
    outer = _envelope(data)
    decode = _decoders.get(outer.type)
    if decode is None:
        return None
    inner = _envelope(outer.payload)
    change = _CHANGES.get(inner.type)
    if change is None:
        return None
    payload = decode(inner.payload)
    return Event(change, payload, _session_of(payload))
