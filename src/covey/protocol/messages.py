"""Sessions, messages and their parts, as they are stored and as they cross the wire.

There is one definition of a message in Covey: the store, the engine, the feed and every client use these values.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

Role = Literal["user", "assistant", "tool", "system"]
SessionMode = Literal["ask", "plan", "accept_edits", "sandboxed"]
"""How much of a session's work is asked about: as rules say; nothing is changed; edits in the workspace are not asked
about; nor are commands, which run in the sandbox and without the network."""
FinishReason = Literal["end_turn", "max_tokens", "tool_use", "canceled", "error", "content_filter", "unknown"]


class Wire(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Base of all wire values: immutable; a field with a default is left out of the JSON while it has it."""


class Text(Wire, frozen=True):
    text: str


class Reasoning(Wire, frozen=True):
    thinking: str
    signature: str
    started_at: int | None = None
    finished_at: int | None = None


class ToolCall(Wire, frozen=True):
    """A call the model asked for. `input` is the JSON text exactly as the model wrote it: untrusted."""

    id: str
    name: str
    input: str
    finished: bool


class ToolResult(Wire, frozen=True):
    tool_call_id: str
    name: str
    content: str
    metadata: str
    is_error: bool
    data: str | None = None
    mime_type: str | None = None


class ImageUrl(Wire, frozen=True):
    url: str
    detail: str | None = None


class Binary(Wire, frozen=True):
    Path: str
    MIMEType: str
    Data: str
    """Base64."""


class ShellCommand(Wire, frozen=True):
    """What a person ran beside the conversation."""

    command: str
    output: str
    exit_code: int
    share: bool = False
    """The model sees it with the next prompt."""


class Finish(Wire, frozen=True):
    reason: FinishReason
    time: int
    message: str | None = None
    details: str | None = None


class TextPart(Wire, frozen=True, tag="text", tag_field="type"):
    data: Text


class ReasoningPart(Wire, frozen=True, tag="reasoning", tag_field="type"):
    data: Reasoning


class ToolCallPart(Wire, frozen=True, tag="tool_call", tag_field="type"):
    data: ToolCall


class ToolResultPart(Wire, frozen=True, tag="tool_result", tag_field="type"):
    data: ToolResult


class ImageUrlPart(Wire, frozen=True, tag="image_url", tag_field="type"):
    data: ImageUrl


class BinaryPart(Wire, frozen=True, tag="binary", tag_field="type"):
    data: Binary


class ShellCommandPart(Wire, frozen=True, tag="shell_command", tag_field="type"):
    data: ShellCommand


class FinishPart(Wire, frozen=True, tag="finish", tag_field="type"):
    data: Finish


Part = (
    TextPart | ReasoningPart | ToolCallPart | ToolResultPart | ImageUrlPart | BinaryPart | ShellCommandPart | FinishPart
)


class Message(Wire, frozen=True):
    """What the user, the model or a tool said: parts, in their order."""

    id: str
    role: Role
    session_id: str
    parts: tuple[Part, ...]
    model: str
    provider: str
    created_at: int
    updated_at: int
    is_summary_message: bool = False
    run_id: str | None = None
    cwd: str = ""
    """Of a prompt: where its author was, see `RunOptions`. The model is told."""

    @property
    def finish(self) -> Finish | None:
        """How the message ended; None while it is still being written."""
        last = self.parts[-1] if self.parts else None
        return last.data if isinstance(last, FinishPart) else None

    @property
    def is_command(self) -> bool:
        """A person's own shell command: it stands in the conversation, and belongs to no turn."""
        return (
            self.role == "user" and self.run_id is None and isinstance(next(iter(self.parts), None), ShellCommandPart)
        )

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.data.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part.data for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(part.data for part in self.parts if isinstance(part, ToolResultPart))


_message = msgspec.json.Decoder(Message)
_messages = msgspec.json.Decoder(tuple[Message, ...])
_PART_TYPES = frozenset(part.__struct_config__.tag for part in get_args(Part))


def decode_message(data: bytes | str | msgspec.Raw) -> Message:
    """A message from a server that may be newer than this client: a part of a type not known here is an empty text.

    So it keeps its place, which deltas count. Strictly first: that is fast, and nearly always enough.
    """
    try:
        return _message.decode(data)
    except msgspec.ValidationError:
        return msgspec.convert(_with_known_parts(msgspec.json.decode(data)), Message)


def decode_messages(data: bytes) -> tuple[Message, ...]:
    """Several of them, as `decode_message` reads one."""
    try:
        return _messages.decode(data)
    except msgspec.ValidationError:
        decoded = msgspec.json.decode(data, type=list[Any])
        return msgspec.convert([_with_known_parts(message) for message in decoded], tuple[Message, ...])


def _with_known_parts(message: Any) -> Any:
    """What is not a message at all stays as it is: its decoder says what is wrong with it."""
    match message:
        case {"parts": [*parts]}:
            return {**message, "parts": [_known(part) for part in parts]}
    return message


def _known(part: Any) -> Any:
    match part:
        case {"type": str(name)} if name not in _PART_TYPES:
            return {"type": "text", "data": {"text": ""}}
    return part


class Session(Wire, frozen=True):
    """One conversation. `is_busy` and `attached_clients` are facts of the moment, never stored.

    `attached_clients`: those that show it to somebody now, who could answer what is asked in it.
    """

    id: str
    parent_session_id: str
    title: str
    message_count: int
    prompt_tokens: int
    completion_tokens: int
    summary_message_id: str
    cost: float
    created_at: int
    updated_at: int
    is_busy: bool
    attached_clients: int
    todos: tuple[dict[str, Any], ...] | None = None
    model: str | None = None
    """`provider/model`, where this session has one of its own."""
    granted: tuple[tuple[str, ...], ...] | None = None
    """What was allowed for this session: tool, action and subject, and how far a command gets if that is further.

    Stored with it, and never sent to anybody.
    """
    asked: tuple[tuple[str, ...], ...] | None = None
    """Calls that had not begun when this was written, as somebody is asked: by an answer's id and their own.

    Stored with it, and never sent to anybody.
    """
    forked_from: str | None = None
    """The session whose messages it began with. It stands on its own: unlike a child, it does not go with that one."""
    archived_at: int | None = None
    """When somebody put it aside to be kept: lists leave it out unless asked for it, and it is never pruned."""
    mode: SessionMode | None = None
    """What is asked about in it; None: `ask`."""

    def as_sent(self, *, is_busy: bool, attached_clients: int) -> Session:
        """With the facts of the moment, and without what is for the server alone."""
        return msgspec.structs.replace(
            self, is_busy=is_busy, attached_clients=attached_clients, granted=None, asked=None
        )


class Attachment(Wire, frozen=True):
    """A file that comes with a prompt."""

    file_path: str
    file_name: str
    mime_type: str
    content: bytes
    """Base64 on the wire."""

    @property
    def is_text(self) -> bool:
        return self.mime_type.startswith("text/") or self.mime_type in (
            "application/json",
            "application/toml",
        )
