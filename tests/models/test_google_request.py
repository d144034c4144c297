"""What Gemini is sent for each kind of message, and what becomes of the schemas of tools."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from covey.models.base import ModelRequest, ToolSpec
from covey.models.gemini_schema import clean_schema
from covey.models.google_request import GO_ON, UNSIGNED, encode_request, version_of
from covey.protocol.messages import Binary, BinaryPart, ImageUrl, ImageUrlPart, Message
from covey.tools.registry import make_tools
from tests.models.asking import message, request
from tests.models.test_anthropic_request import call, results, thought
from tests.models.test_anthropic_request import said as said_by

NEW, OLD = "gemini-3.8-flash", "gemini-2.5-pro"
PNG = base64.b64encode(b"\x89PNG").decode()
PICTURE = {"inlineData": {"mimeType": "image/png", "data": PNG}}


def asked(*messages: Message | str, model: str = NEW, **fields: Any) -> ModelRequest:
    return replace(request(*messages, **fields), model=model)


def said(*parts: Any, model: str = NEW) -> Message:
    return said_by(*parts, model=model)


def body(sent: ModelRequest) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_request(sent, "local"))
    return value


def contents(sent: ModelRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(content["role"], content["parts"]) for content in body(sent)["contents"]]


def test_the_smallest_request() -> None:
    assert body(asked("hello", model="gemma-4-31b-it")) == {
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}]
    }


def test_system_prompt_tools_and_limit() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    tools = [ToolSpec("ls", "Lists.", schema), ToolSpec("now", "Tells.", {"type": "object", "properties": {}})]
    sent = body(asked("hello", system="Be kind.", tools=tools, max_tokens=100))
    assert sent["systemInstruction"] == {"parts": [{"text": "Be kind."}]}
    assert sent["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "ls",
                    "description": "Lists.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
                {"name": "now", "description": "Tells."},
            ]
        }
    ]
    assert sent["generationConfig"]["maxOutputTokens"] == 100


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        (NEW, "", {"includeThoughts": True}),
        (NEW, "low", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-4-argon", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-flash-latest", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
        (OLD, "", {"includeThoughts": True}),
        (OLD, "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-2.0-flash", "high", None),
        ("gemma-4-31b-it", "high", None),
    ],
)
def test_effort(model: str, effort: str, config: dict[str, Any] | None) -> None:
    assert body(asked("x", model=model, effort=effort)).get("generationConfig", {}).get("thinkingConfig") == config


def test_the_version_is_read_from_the_name() -> None:
    assert version_of("models/gemini-3.1-pro-preview") == (3, 1)
    assert version_of("gemini-4-argon") == (4, 0)
    assert version_of("gemma-4-31b-it") is None


def test_results_stand_right_behind_their_calls_and_alone() -> None:
    step = [
        said("I look.", thought("", "c:SIG\n"), call("k1", "ls", '{"path": "a"}'), call("k2", "view", "")),
        results("k1", "k2", content="no", is_error=True),
    ]
    assert contents(asked("look", *step, "and now?", "quick!")) == [
        ("user", [{"text": "look"}]),
        (
            "model",
            [
                {"text": "I look."},
                {"functionCall": {"name": "ls", "args": {"path": "a"}, "id": "k1"}, "thoughtSignature": "SIG"},
                {"functionCall": {"name": "view", "args": {}, "id": "k2"}},
            ],
        ),
        (
            "user",
            [
                {"functionResponse": {"name": "ls", "response": {"error": "no"}, "id": "k1"}},
                {"functionResponse": {"name": "view", "response": {"error": "no"}, "id": "k2"}},
            ],
        ),
        ("user", [{"text": "and now?"}, {"text": "quick!"}]),
    ]


def test_an_id_that_is_ours_is_not_sent() -> None:
    made = "call_0123456789abcdef"
    step = contents(asked("x", said(call(made, "ls")), results(made)))
    assert made not in json.dumps(step) and step[2][1][0]["functionResponse"]["response"] == {"output": "done"}


def test_a_call_that_was_never_signed_is_marked_where_signatures_are_demanded() -> None:
    step = [said(call("a", "ls"), call("b", "ls"), model="another"), results("a", "b")]
    calls = contents(asked("x", *step))[1][1]
    assert [part.get("thoughtSignature") for part in calls] == [UNSIGNED, None]
    assert UNSIGNED not in json.dumps(contents(asked("x", *step, model=OLD)))


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        (["First second.", thought("", "p7:S\n")], [{"text": "First "}, {"text": "second.", "thoughtSignature": "S"}]),
        (["All.", thought("", "p4:S\n")], [{"text": "All.", "thoughtSignature": "S"}]),
        (["All.", thought("", "p0:S\n")], [{"text": "All."}, {"text": "", "thoughtSignature": "S"}]),
        (
            [thought("Hm.", "t:S\n"), "Yes."],
            [{"text": "Hm.", "thought": True, "thoughtSignature": "S"}, {"text": "Yes."}],
        ),
        ([thought("Hm.", ""), "Yes."], [{"text": "Yes."}]),
        (["Yes.", thought("", "c:S\n")], [{"text": "Yes."}]),
        (["Yes.", thought("", "t\nqx:S\npx:S\n")], [{"text": "Yes."}]),
    ],
    ids=["a part", "all", "nothing", "a thought", "unsigned", "a call that never came", "strange"],
)
def test_signatures_go_back_to_their_places(parts: list[Any], sent: list[dict[str, Any]]) -> None:
    assert contents(asked("x", said(*parts), "y"))[1] == ("model", sent)


def test_signatures_of_another_model_stay_here() -> None:
    other = said(thought("Hm.", "t:S\n"), "Yes.", thought("", "p4:S\n"), model="gemini-4-argon")
    assert contents(asked("x", other, "y"))[1] == ("model", [{"text": "Yes."}])


def test_pictures() -> None:
    shown = message("user", "see", BinaryPart(data=Binary(Path="a.png", MIMEType="image/png", Data=PNG)))
    assert contents(asked(shown)) == [("user", [{"text": "see"}, PICTURE])]
    address = message("user", ImageUrlPart(data=ImageUrl(url="https://example.org/a.png")))
    assert "https://example.org/a.png" in contents(asked(address))[0][1][0]["text"]
    assert PNG not in json.dumps(body(asked(shown, sees_images=False)))


def test_pictures_in_results() -> None:
    step = [said(call("a", "view")), results("a", data=PNG, mime_type="image/png")]
    [(_, [response])] = contents(asked("x", *step))[2:]
    assert response["functionResponse"]["parts"] == [PICTURE]
    older = contents(asked("x", *step, model=OLD))
    assert "parts" not in older[2][1][0]["functionResponse"]
    assert older[3] == ("user", [{"text": "The picture that view gave:"}, PICTURE])


def test_the_user_has_the_last_word() -> None:
    assert contents(asked("x", said("y")))[-1] == ("user", [{"text": GO_ON}])
    assert contents(asked(" ")) == [("user", [{"text": GO_ON}])]
    assert contents(asked("x", results("nobody")))[-1] == ("user", [{"text": "x"}])


# Schemas.

REFUSED = ("$schema", "$defs", "$ref", "additionalProperties", "exclusiveMinimum", "title", "default", "const", "oneOf")


@pytest.mark.parametrize(
    ("schema", "cleaned"),
    [
        ({"type": "string", "title": "T", "default": "", "description": "D"}, {"type": "string", "description": "D"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "integer", "nullable": True}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ({"const": 3}, {"type": "string", "enum": ["3"]}),
        ({"enum": ["a", None, ""]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "integer", "format": "int32", "exclusiveMinimum": 0}, {"type": "integer", "format": "int32"}),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        (
            {"properties": {"a": True}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}},
                    {"properties": {"b": {"type": "string"}}},
                ]
            },
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "boolean"}}, "description": "D"},
            {"type": "boolean", "description": "D"},
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}},
            {"type": "object", "properties": {"a": {"type": "object"}}},
        ),
    ],
)
def test_schemas_are_cut_down_to_what_is_accepted(schema: dict[str, Any], cleaned: dict[str, Any]) -> None:
    assert clean_schema(schema) == cleaned


@pytest.mark.parametrize("name", make_tools())
def test_the_schemas_of_our_own_tools_are_accepted(name: str) -> None:
    def keys(schema: dict[str, Any]) -> set[str]:
        inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
        inner += [schema["items"]] if "items" in schema else []
        return set(schema).union(*map(keys, inner))

    original = make_tools()[name].schema
    cleaned = clean_schema(original)
    assert not keys(cleaned) & set(REFUSED)
    assert set(cleaned.get("properties", {})) == set(original.get("properties", {}))


def test_a_schema_for_the_output_is_given_to_the_provider_where_there_are_no_tools() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    generation = body(asked("hi", output_schema=schema))["generationConfig"]
    assert generation["responseMimeType"] == "application/json"
    assert generation["responseSchema"] == clean_schema(schema)
    with_tools = body(asked("hi", output_schema=schema, tools=[ToolSpec("ls", "Lists.", {"type": "object"})]))
    assert "responseSchema" not in with_tools.get("generationConfig", {})
