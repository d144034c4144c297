"""On the same bytes, our decoders understand what the official SDKs understand.

Each SDK is a function from the address of a server to a `Collected`: it asks by the SDK, and collects by its reference.
An error inside the answer is a `Broken` with the text that the SDK has. Where we understand more than the SDK does, the
fixture is named in BEYOND, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from covey.models.trouble import AnswerBroken
from tests.models.fixtures import FORMATS, Collected, collected, fed, format_of, name_of, streamed
from tests.support.wire_server import WireServer, replay

BEYOND = {
    "chat/llamacpp_old_error_line": "the SDK skips fields that SSE does not know",
    "anthropic/refusal": "the SDK leaves the sentence in stop_details, where nobody would see it",
    "google/malformed_call": "the SDK leaves it to its user that there is no usable call",
}
REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filter",
    "max_output_tokens": "max_tokens",
    "completed": "end_turn",
    # Anthropic
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "content_filter",
    # Google
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "OTHER": "unknown",
}


class Broken(Exception):
    """The SDK says that the answer is an error; the text is its own."""


def by_openai_chat(url: str) -> Collected:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    text = reasoning = stop = ""
    calls: dict[int, list[str]] = {}
    usage: Any = None
    try:
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            usage = chunk.usage or _groq_usage(chunk) or usage
            for choice in chunk.choices:
                more = choice.delta.model_extra or {}
                text += choice.delta.content or choice.delta.refusal or ""
                reasoning += more.get("reasoning_content") or more.get("reasoning") or ""
                stop = choice.finish_reason or stop
                for call in choice.delta.tool_calls or ():
                    known = calls.setdefault(call.index, ["", "", ""])
                    known[0] = call.id or known[0]
                    known[1] = call.function.name or known[1]
                    known[2] += call.function.arguments or ""
    except openai.APIError as error:
        raise Broken(error.message) from None
    cached = usage and usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens
    counted = (usage.prompt_tokens, usage.completion_tokens, cached or 0) if usage else None
    in_order = tuple((known[0], known[1], known[2]) for known in calls.values())
    return Collected(text, reasoning, in_order, counted, REASONS[stop])


def _groq_usage(chunk: Any) -> Any:
    """What the SDK keeps, but has no type for."""
    openai = pytest.importorskip("openai")
    beside = (chunk.model_extra or {}).get("x_groq") or {}
    usage = beside.get("usage")
    return openai.types.CompletionUsage.model_validate(usage) if usage else None


def by_openai_responses(url: str) -> Collected:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    try:
        for event in client.responses.create(model="m", input="x", stream=True):
            match event.type:
                case "response.completed" | "response.incomplete":
                    return _whole_response(event.response)
                case "response.failed":
                    raise Broken(event.response.error.message)
                case "error":
                    raise Broken(event.message)
    except openai.APIError as error:
        raise Broken(error.message) from None
    raise Broken("no end")


def _whole_response(response: Any) -> Collected:
    """From the last event, which has everything once more: the deltas have no part in it."""
    text = ""
    thoughts: list[str] = []
    calls: list[tuple[str, str, str]] = []
    for item in response.output:
        match item.type:
            case "message":
                text += "".join(part.text if part.type == "output_text" else part.refusal for part in item.content)
            case "reasoning":
                thoughts += [part.text for part in item.summary or item.content or ()]
            case "function_call":
                calls.append((item.call_id, item.name, item.arguments))
    stop = response.incomplete_details.reason if response.incomplete_details else response.status
    usage = (
        response.usage.input_tokens,
        response.usage.output_tokens,
        response.usage.input_tokens_details.cached_tokens,
    )
    return Collected(text, "\n\n".join(thoughts), tuple(calls), usage, "tool_use" if calls else REASONS[stop])


def by_anthropic(url: str) -> Collected:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    messages = [{"role": "user", "content": "x"}]
    try:
        with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
            message = stream.get_final_message()
    except anthropic.APIError as error:
        raise Broken(error.body["error"]["message"]) from None
    text = "".join(block.text for block in message.content if block.type == "text")
    reasoning = "".join(block.thinking for block in message.content if block.type == "thinking")
    calls = tuple((b.id, b.name, _compact(b.input)) for b in message.content if b.type == "tool_use")
    cached, written = message.usage.cache_read_input_tokens or 0, message.usage.cache_creation_input_tokens or 0
    usage = (message.usage.input_tokens + cached + written, message.usage.output_tokens, cached)
    if message.stop_reason is None:
        raise Broken("")
    return Collected(text, reasoning, calls, usage, REASONS[message.stop_reason])


def by_google(url: str) -> Collected:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="x", http_options=genai.types.HttpOptions(base_url=url))
    text = reasoning = stop = ""
    calls: list[tuple[str, str, str]] = []
    usage = None
    try:
        for chunk in client.models.generate_content_stream(model="m", contents="x"):
            usage = chunk.usage_metadata or usage
            for candidate in chunk.candidates or ():
                stop = candidate.finish_reason.value if candidate.finish_reason else stop
                for part in (candidate.content and candidate.content.parts) or ():
                    if part.function_call:
                        call = part.function_call
                        calls.append((call.id or "", call.name, _compact(call.args or {})))
                    elif part.thought:
                        reasoning += part.text or ""
                    else:
                        text += part.text or ""
            if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
                stop = "SAFETY"
    except genai.errors.APIError as error:
        raise Broken(error.message) from None
    if not stop:
        raise Broken("")
    answered = ((usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)) if usage else 0
    counted = (usage.prompt_token_count or 0, answered, usage.cached_content_token_count or 0) if usage else None
    return Collected(text, reasoning, tuple(calls), counted, "tool_use" if calls else REASONS[stop])


def _compact(value: Any) -> str:
    """The input of a call, where an SDK gives it decoded."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _comparable(ours: Collected, name: str) -> Collected:
    """Where the SDK gives the input of calls decoded, ours must mean the same; else it must be the same text."""
    if name not in ("anthropic", "google"):
        return ours
    calls = tuple((call_id, tool, _compact(json.loads(text or "{}"))) for call_id, tool, text in ours.calls)
    return replace(ours, calls=calls)


SDKS: dict[str, Callable[[str], Collected]] = {
    "chat": by_openai_chat,
    "responses": by_openai_responses,
    "anthropic": by_anthropic,
    "google": by_google,
}
"""For each wire format, how its official SDK is asked. A format without an entry is not compared."""


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def compared() -> list[Path]:
    return [path for name in SDKS if name in FORMATS for path in streamed(name) if name_of(path) not in BEYOND]


@pytest.mark.parametrize("path", compared(), ids=name_of)
def test_our_decoder_gives_what_the_sdk_gives(path: Path, server: WireServer) -> None:
    wire = format_of(path)
    server.on(wire.path, replay(path))
    try:
        theirs: Collected | str = SDKS[wire.name](server.url)
    except Broken as broken:
        theirs = str(broken)
    try:
        ours: Collected | str = _comparable(collected(fed(wire.decoder(), path.read_bytes())), wire.name)
    except AnswerBroken as broken:
        ours = str(broken).removeprefix("reported an error: ")
    if isinstance(theirs, str) and isinstance(ours, str):
        assert ours.startswith(theirs)
    else:
        assert ours == theirs


def test_every_format_is_compared() -> None:
    assert set(FORMATS) <= set(SDKS)
