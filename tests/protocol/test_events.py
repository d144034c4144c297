"""Every event survives the wire, and a client is not stopped by what a newer server says."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from covey.protocol.events import (
    NAMES,
    TYPES,
    AgentEvent,
    ChangeKind,
    ConfigChanged,
    Event,
    File,
    Gap,
    MessageDelta,
    Payload,
    PermissionNotification,
    PermissionRequest,
    Presence,
    QuestionBatchNotification,
    QuestionBatchRequest,
    QuestionChoice,
    QuestionItem,
    ToolOutputDelta,
    created,
    decode_event,
    deleted,
    encode_event,
    updated,
)
from covey.protocol.extensions import ApprovalNotification, ApprovalRequest, LspEvent, McpEvent, SkillsEvent
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Finish,
    FinishPart,
    ImageUrl,
    ImageUrlPart,
    Message,
    Reasoning,
    ReasoningPart,
    Session,
    ShellCommand,
    ShellCommandPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    decode_message,
    decode_messages,
)
from covey.protocol.runs import Run, RunComplete, Usage

MESSAGE = Message(
    id="m",
    role="assistant",
    session_id="s",
    parts=(
        TextPart(data=Text(text="naïve 👍")),
        ReasoningPart(data=Reasoning(thinking="hm", signature="sig", started_at=1, finished_at=2)),
        ToolCallPart(data=ToolCall(id="c", name="view", input='{"path": "a"}', finished=True)),
        ToolResultPart(
            data=ToolResult(tool_call_id="c", name="view", content="x", metadata="{}", is_error=False, mime_type="a/b")
        ),
        ImageUrlPart(data=ImageUrl(url="http://127.0.0.1/a.png", detail="low")),
        BinaryPart(data=Binary(Path="a.png", MIMEType="image/png", Data="AAAA")),
        ShellCommandPart(data=ShellCommand(command="ls", output="a\n", exit_code=0)),
        FinishPart(data=Finish(reason="end_turn", time=3, message="m", details="d")),
    ),
    model="big",
    provider="local",
    created_at=1,
    updated_at=2,
    is_summary_message=True,
    run_id="r",
)
SESSION = Session(
    id="s",
    parent_session_id="",
    title="t",
    message_count=1,
    prompt_tokens=2,
    completion_tokens=3,
    summary_message_id="",
    cost=0.5,
    created_at=1,
    updated_at=2,
    is_busy=True,
    attached_clients=2,
    todos=({"content": "x", "done": False},),
)
PAYLOADS: list[Payload] = [
    MESSAGE,
    SESSION,
    Run(
        run_id="r",
        session_id="s",
        seq=7,
        state="queued",
        mode="fold",
        prompt="p",
        accepted_at=1.5,
        cancelled_by="shutdown",
    ),
    RunComplete(session_id="s", run_id="r", message_id="m", cancelled=True, usage=Usage(prompt_tokens=1, cost=0.25)),
    AgentEvent(type="retry", session_id="s", run_id="r", error="busy", attempt=2, retry_at=9.5),
    PermissionRequest(
        id="p",
        session_id="s",
        tool_call_id="c",
        tool_name="bash",
        description="ls",
        action="execute",
        params={"command": "ls", "nested": [1, {"a": None}]},
        path="/project",
    ),
    PermissionNotification(tool_call_id="c", granted=True, denied=False, session_id="s", run_id="r", permission_id="p"),
    QuestionBatchRequest(
        id="q",
        session_id="s",
        tool_call_id="c",
        questions=(
            QuestionItem(
                id="1", type="single_choice", question="Which?", choices=(QuestionChoice(id="1", label="red"),)
            ),
        ),
        run_id="r",
    ),
    QuestionBatchNotification(batch_id="q", session_id="s", run_id="r", answered=True),
    File(id="u.0", session_id="s", path="/project/a.py", created_at=1, updated_at=2, run_id="r"),
    ConfigChanged(workspace_id="w", skip_permissions=True),
    MessageDelta(message_id="m", session_id="s", run_id="r", part=1, kind="tool_input", offset=3, delta='"\n'),
    ToolOutputDelta(
        session_id="s", run_id="r", message_id="m", tool_call_id="c", offset=7, delta="\x1b[1mnaïve\r\n\0", dropped=3
    ),
    Presence(client_id="a", session_id="s", attached=True),
    Gap(reason="too old", resume_from="1.9"),
    McpEvent(type="state_changed", name="git", state="connected", tool_count=3),
    LspEvent(type="state_changed", name="ruff", state=3, error="it has ended"),
    SkillsEvent(names=("review",)),
    ApprovalRequest(id="digest", kind="hook", name="PreToolUse", source="/project/covey.toml", command="make check"),
    ApprovalNotification(approval_id="digest", approved=True, answered_by="kim"),
]
CHANGES = {"created": created, "updated": updated, "deleted": deleted}


def test_each_type_of_event_is_among_the_examples() -> None:
    assert {type(payload) for payload in PAYLOADS} == set(TYPES.values()) == set(NAMES)
    assert [NAMES[cls] for cls in TYPES.values()] == list(TYPES)


@pytest.mark.parametrize("change", ["created", "updated", "deleted"])
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: NAMES[type(payload)])
def test_every_event_comes_back_as_it_was(payload: Payload, change: ChangeKind) -> None:
    event = CHANGES[change](payload)
    encoded = encode_event(event)
    assert b"\n" not in encoded, "an event is one line"
    assert json.loads(encoded)["type"] == event.type
    assert json.loads(encoded)["payload"]["type"] == change == event.change
    assert decode_event(encoded) == event
    assert decode_event(encoded.decode()) == event


def test_an_event_knows_its_session() -> None:
    sessions = {event.type: event.session_id for event in map(created, PAYLOADS)}
    of_all = {"config_changed", "gap", "mcp_event", "lsp_event", "skills_event"}
    of_all |= {"approval_request", "approval_notification"}
    assert {name for name, session_id in sessions.items() if session_id == ""} == of_all
    assert set(sessions.values()) == {"s", ""}
    assert created(PermissionNotification(tool_call_id="c", granted=True, denied=False)).session_id == ""


def envelope(of: str, payload: object, change: str = "created") -> bytes:
    return json.dumps({"type": of, "payload": {"type": change, "payload": payload}}).encode()


@pytest.mark.parametrize(
    "data",
    [
        envelope("weather_event", {"anything": [1, 2]}),
        envelope("weather_event", None),
        b'{"type":"of the future","payload":"not even an envelope"}',
        envelope("message", {"id": "m"}, change="archived"),
    ],
)
def test_what_is_not_known_is_ignored(data: bytes) -> None:
    assert decode_event(data) is None


def as_builtins(value: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(msgspec.json.encode(value))
    return decoded


def test_fields_that_are_not_known_are_ignored_at_every_level() -> None:
    value = as_builtins(SESSION)
    data = {"type": "session", "new": 1, "payload": {"type": "updated", "new": 2, "payload": {**value, "new": {}}}}
    assert decode_event(json.dumps(data)) == updated(SESSION)
    message = as_builtins(MESSAGE)
    message["parts"][0]["data"]["new"] = message["parts"][0]["new"] = 1
    assert decode_event(envelope("message", message)) == created(MESSAGE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"type":"run_complete"}',
        b'{"payload":{}}',
        envelope("run_complete", {"session_id": "s"}),
        envelope("session", []),
        envelope("message", None),
        envelope("message", {**as_builtins(MESSAGE), "parts": 7}),
        envelope("message", {**as_builtins(MESSAGE), "parts": [7, {"type": "text"}, {"type": None}]}),
        envelope("message", {**as_builtins(MESSAGE), "parts": [{"type": "hologram"}], "role": "ghost"}),
    ],
)
def test_what_is_malformed_is_an_error_that_the_client_expects(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_event(data)


def with_unknown_parts() -> dict[str, Any]:
    message = as_builtins(MESSAGE)
    hologram = {"type": "hologram", "data": {"text": ["deep", {"er": 1}]}}
    message["parts"] = [message["parts"][0], hologram, message["parts"][2], {"type": "seance"}, message["parts"][-1]]
    return message


def test_a_part_that_is_not_known_leaves_an_empty_place_and_the_rest_of_the_message() -> None:
    empty = TextPart(data=Text(text=""))
    text, _, call, *_, finish = MESSAGE.parts
    expected = msgspec.structs.replace(MESSAGE, parts=(text, empty, call, empty, finish))
    encoded = json.dumps(with_unknown_parts()).encode()
    assert decode_message(encoded) == expected
    assert decode_event(envelope("message", with_unknown_parts(), "updated")) == updated(expected)
    both = json.dumps([as_builtins(MESSAGE), with_unknown_parts()]).encode()
    assert decode_messages(both) == (MESSAGE, expected)
    assert (expected.text, expected.finish, expected.tool_calls) == (MESSAGE.text, MESSAGE.finish, MESSAGE.tool_calls)


@pytest.mark.parametrize("data", [b"[7]", b"{}", b'[{"parts": []}]', b"[[]]", b"nope"])
def test_malformed_lists_of_messages_are_errors_too(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_messages(data)


def test_what_is_known_is_read_without_a_second_look() -> None:
    assert decode_messages(b"[]") == ()
    assert decode_messages(msgspec.json.encode([MESSAGE])) == (MESSAGE,)


def test_fields_at_their_default_do_not_cross_the_wire() -> None:
    complete = RunComplete(session_id="s", run_id="r", message_id="m")
    assert as_builtins(complete) == {"session_id": "s", "run_id": "r", "message_id": "m"}
    assert Event("created", complete, "s").type == "run_complete"


def test_output_of_which_nothing_is_missing_says_nothing_of_it() -> None:
    output = ToolOutputDelta(session_id="s", run_id="r", message_id="m", tool_call_id="c", offset=0, delta="x")
    names = ["session_id", "run_id", "message_id", "tool_call_id", "offset", "delta"]
    assert list(as_builtins(output)) == names
    assert list(as_builtins(msgspec.structs.replace(output, dropped=1))) == [*names, "dropped"]
