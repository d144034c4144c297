"""What a message says about itself, and how request bodies are read."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from covey.protocol.events import TYPES, ChangeKind, DeltaKind
from covey.protocol.messages import (
    Attachment,
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    Role,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.requests import CreateWorkspace, Grant, PostPrompt, UpdateSession
from covey.protocol.runs import Run, Usage

CALL = ToolCall(id="c", name="view", input="{}", finished=False)
RESULT = ToolResult(tool_call_id="c", name="view", content="x", metadata="", is_error=False)
FINISH = Finish(reason="end_turn", time=1)


def message(*parts: Part) -> Message:
    return Message(
        id="m", role="assistant", session_id="s", parts=parts, model="", provider="", created_at=0, updated_at=0
    )


def test_a_message_tells_its_text_calls_results_and_finish() -> None:
    one = message(
        TextPart(data=Text(text="a")),
        ToolCallPart(data=CALL),
        TextPart(data=Text(text="b")),
        ToolResultPart(data=RESULT),
        FinishPart(data=FINISH),
    )
    assert (one.text, one.tool_calls, one.tool_results, one.finish) == ("ab", (CALL,), (RESULT,), FINISH)


def test_a_message_in_progress_has_no_finish() -> None:
    assert message().finish is None
    assert message(TextPart(data=Text(text="a"))).finish is None
    assert (message().text, message().tool_calls, message().tool_results) == ("", (), ())


QUESTIONS = ("question_batch_request", "question_batch_notification")


def test_the_words_of_the_protocol_are_those_that_v1_clients_know() -> None:
    assert set(get_args(Role)) == {"user", "assistant", "tool", "system"}
    reasons = "end_turn, max_tokens, tool_use, canceled, error, content_filter, unknown"
    assert set(get_args(FinishReason)) == set(reasons.split(", "))
    parts = "text, reasoning, tool_call, tool_result, image_url, binary, shell_command, finish"
    assert [part.__struct_config__.tag for part in get_args(Part)] == parts.split(", ")
    events = "message session run run_complete agent_event permission_request permission_notification config_changed"
    extensions = "mcp_event lsp_event skills_event approval_request approval_notification"
    ours = {"file", "message_delta", "tool_output", "presence", "gap"}
    assert set(TYPES) == {*events.split(), *extensions.split(), *ours, *QUESTIONS}
    assert set(get_args(DeltaKind)) == {"text", "reasoning", "tool_input"}
    assert set(get_args(ChangeKind)) == {"created", "updated", "deleted"}


def test_a_part_is_its_type_and_its_data() -> None:
    assert msgspec.json.encode(TextPart(data=Text(text="a"))) == b'{"type":"text","data":{"text":"a"}}'


def test_a_message_does_not_spell_out_what_it_is_not() -> None:
    assert msgspec.json.decode(msgspec.json.encode(message())).keys() == {
        "id",
        "role",
        "session_id",
        "parts",
        "model",
        "provider",
        "created_at",
        "updated_at",
    }
    assert not message().is_summary_message


@pytest.mark.parametrize(
    ("mime_type", "is_text"),
    [
        ("text/plain", True),
        ("text/x-python", True),
        ("application/json", True),
        ("application/toml", True),
        ("image/png", False),
        ("", False),
    ],
)
def test_an_attachment_knows_whether_it_is_text(mime_type: str, is_text: bool) -> None:
    assert Attachment(file_path="a", file_name="a", mime_type=mime_type, content=b"x").is_text is is_text


def test_an_attachment_is_base64_on_the_wire() -> None:
    attachment = Attachment(file_path="a", file_name="a", mime_type="image/png", content=b"\x00\xff")
    encoded = msgspec.json.encode(attachment)
    assert b'"content":"AP8="' in encoded
    assert msgspec.json.decode(encoded, type=Attachment) == attachment


def test_a_prompt_needs_nothing_to_be_read_so_that_the_answer_can_say_what_is_missing() -> None:
    assert msgspec.json.decode(b"{}", type=PostPrompt) == PostPrompt()
    assert msgspec.json.decode(b'{"mode": null, "new": 1}', type=PostPrompt) == PostPrompt()
    with pytest.raises(msgspec.ValidationError, match=r"\$\.mode"):
        msgspec.json.decode(b'{"mode": "later"}', type=PostPrompt)


def test_only_the_fields_given_are_changed() -> None:
    assert msgspec.json.decode(b"{}", type=UpdateSession) == UpdateSession()
    assert msgspec.json.decode(b'{"todos": null}', type=UpdateSession) == UpdateSession(todos=None)
    assert msgspec.json.decode(b'{"title": ""}', type=UpdateSession) == UpdateSession(title="")


def test_an_environment_is_given_either_way() -> None:
    for env in ({"A": "b"}, ["A=b"]):
        body = msgspec.json.encode({"path": "/p", "client_id": "c", "env": env})
        assert msgspec.json.decode(body, type=CreateWorkspace).env == env


def test_a_grant_is_one_of_three_answers() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.action"):
        msgspec.json.decode(b'{"permission": {"id": "p"}, "action": "always"}', type=Grant)


def test_a_run_has_ended_when_it_has_an_end() -> None:
    run = Run(run_id="r", session_id="s", seq=1, state="active", mode="fold", prompt="p", accepted_at=0.0)
    assert not run.ended
    assert msgspec.structs.replace(run, state="completed", ended_at=0.0).ended


def test_usage_adds_up() -> None:
    assert Usage() + Usage(prompt_tokens=1, completion_tokens=2, cost=0.5) == Usage(
        prompt_tokens=1, completion_tokens=2, cost=0.5
    )
