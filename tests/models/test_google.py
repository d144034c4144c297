"""Google's client over HTTP: where the key goes, what it tries again, and that signatures survive a whole turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import Reply
from covey.models import retry
from covey.models.base import ModelFailed, Retry
from covey.models.google import Google
from covey.protocol.messages import ToolResult, ToolResultPart
from tests.models.asking import answer, message, request, text
from tests.models.fixtures import KEY, ROOT
from tests.support.wire_server import WireServer, replay

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

FIXTURES = ROOT / "google"
MODEL = "gemini-3.8-flash"


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def client(server: WireServer, **fields: Any) -> Google:
    return Google("local", ProviderSettings(type="google", api_key=KEY, base_url=f"{server.url}/v1beta", **fields))


@pytest.mark.parametrize("model", [MODEL, f"models/{MODEL}"])
async def test_who_asks_and_where(server: WireServer, model: str) -> None:
    server.on("stream", replay(FIXTURES / "text.sse"))
    asking = client(server)
    await answer(asking, replace(request("hello"), model=model))
    await asking.aclose()
    [seen] = server.requests
    assert seen.path == f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    assert seen.headers["x-goog-api-key"] == KEY and KEY not in seen.path
    assert "authorization" not in seen.headers


async def test_a_strange_model_does_not_change_the_address(server: WireServer) -> None:
    server.on("stream", replay(FIXTURES / "text.sse"))
    asking = client(server)
    await answer(asking, replace(request("hello"), model="a?b#c d"))
    await asking.aclose()
    assert server.requests[0].path == "/v1beta/models/a%3Fb%23c%20d:streamGenerateContent?alt=sse"


async def test_a_call_that_nobody_can_read_is_asked_for_again(server: WireServer) -> None:
    server.on("stream", replay(FIXTURES / "malformed_call.sse"), replay(FIXTURES / "text.sse"))
    retries: list[Retry] = []
    asking = client(server)
    facts = await answer(asking, request("hello", on_retry=retries.append))
    await asking.aclose()
    assert text(facts).startswith("Hello") and "MALFORMED_FUNCTION_CALL" in retries[0].error


async def test_a_refused_key_says_what_to_do(server: WireServer) -> None:
    server.on("stream", replay(FIXTURES / "400_invalid_key.json"))
    asking = client(server)
    with pytest.raises(ModelFailed, match=r"API key not valid.*Set api_key for the provider 'local'") as failed:
        await answer(asking)
    await asking.aclose()
    assert failed.value.auth and len(server.requests) == 1


def test_how_long_to_wait_is_read_from_the_body() -> None:
    google = Google("local", ProviderSettings(type="google", api_key=KEY))
    assert google._retry_after((FIXTURES / "429_rate_limit.json").read_bytes()) == 34.0
    assert google._retry_after((FIXTURES / "503_overloaded.json").read_bytes()) is None


async def test_as_long_as_google_asks_for_is_waited(server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "MAX_RETRY_AFTER_S", 0.002)
    server.on("stream", replay(FIXTURES / "429_rate_limit.json"), replay(FIXTURES / "text.sse"))
    retries: list[Retry] = []
    asking = client(server)
    await answer(asking, request("hello", on_retry=retries.append))
    await asking.aclose()
    assert 0.002 <= retries[0].delay_s <= 0.0025, "34 s, as far as a server may ask for them"


@pytest.mark.parametrize("name", ["tool_call", "parallel_tools", "thoughts", "signed_text"])
async def test_the_next_step_sends_the_signatures_of_this_one_in_their_places(server: WireServer, name: str) -> None:
    server.on("stream", replay(FIXTURES / f"{name}.sse"))
    asking, first = client(server), replace(request("hello"), model=MODEL)
    reply = Reply(message_id="m2", session_id="s1", run_id="r1", model=MODEL, provider="local", now=0)
    async for fact in asking.stream(first):
        reply.take(fact)
    said = reply.message(0)
    results = [
        ToolResultPart(data=ToolResult(tool_call_id=call.id, name=call.name, content="x", metadata="", is_error=False))
        for call in said.tool_calls
    ]
    after = [message("tool", *results)] if results else [message("user", "go on")]
    await answer(asking, replace(first, messages=[*first.messages, said, *after]))
    await asking.aclose()
    sent = json.loads(server.requests[1].body)["contents"][1]["parts"]
    assert joined(sent) == joined(parts_in(f"{name}.sse"))


def parts_in(name: str) -> list[dict[str, Any]]:
    """All parts of the answer but thoughts, which nobody needs back."""
    lines = (FIXTURES / name).read_text("utf-8").splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    return [part for part in parts if not part.get("thought")]


def joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts in a row that nobody signed are one text."""
    result: list[dict[str, Any]] = []
    for part in parts:
        if result and set(part) == {"text"} == set(result[-1]):
            result[-1] = {"text": result[-1]["text"] + part["text"]}
        else:
            result.append(part)
    return result
